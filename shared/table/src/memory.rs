//! The ports in memory, with failures on demand: for tests. Counts no capacity units.

mod alert_items;
mod alerts;
mod annotations;
mod conditions;
mod deletions;
mod index_by_conditions;
mod page;
mod rollups;
mod seen;
mod stays;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::TimeDelta;

use super::{
    AddArrival, AddToken, Added, Companion, CountIntroduced, EditRegistry, Edited, FindRegistry,
    FindToken, InsertOutcome, Invocation, ListPage, Listing, LookUpRegistry, ManageTokens,
    MarkIndexed, MergeReadings, MeterChange, Page, PageRegistry, PutOutcome, PutReadings,
    QueryReadings, QueryRoomReadings, RangeQuery, ReadRegistry, ReadingKey, Refold,
    RegisterDevices, Registration, RollupKey, RollupState, RoomWalk, SearchDevices, SearchHit,
    SearchPage, SearchQuery, Seen, StayKey, StoreError, StoreResult, StoredRollup, TeachRegistry,
    UpdateOutcome, UpdateRegistry, companions, keys,
};
use domain::{
    Annotation, AnnotationId, BehindError, DeletedDevice, Deletion, Device, DeviceId, DeviceParts,
    DevicePatch, DevicePatchError, DeviceUpdate, Edit, Hints, Label, Order, Reading, Room, RoomId,
    RoomPatch, Stay, Timestamp, Token, TokenHash,
};

/// A table in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    readings: BTreeMap<ReadingKey, Reading>,
    arrivals: BTreeMap<ReadingKey, String>,
    devices: BTreeMap<DeviceId, Device>,
    deletions: BTreeMap<DeviceId, Deletion>,
    rooms: BTreeMap<RoomId, Room>,
    stays: BTreeMap<StayKey, Stay>,
    tokens: BTreeMap<TokenHash, Token>,
    annotations: BTreeMap<AnnotationId, Annotation>,
    introduced: BTreeMap<String, usize>,
    expiries: BTreeMap<ReadingKey, Timestamp>,
    rollups: BTreeMap<RollupKey, StoredRollup>,
    sealing: Option<RollupState>,
    late: crate::LateChanges,
    refolds: BTreeMap<DeviceId, Refold>,
    seen: BTreeMap<(RoomId, DeviceId), Seen>,
    room_walk: Option<RoomWalk>,
    conditions: index_by_conditions::IndexByConditions,
    alerts: alert_items::AlertItems,
    index: Index,
    failures: VecDeque<Option<StoreError>>,
    write_failures: VecDeque<StoreError>,
    not_stored: Vec<usize>,
    panic: Option<(usize, String)>,
    write_panic: Option<String>,
    reading_time: Duration,
    calls: Calls,
}

/// The index of attributes.
#[derive(Debug, Default)]
enum Index {
    /// It is absent, or does not hold every device.
    #[default]
    Absent,
    /// It shows the devices as they are.
    UpToDate,
    /// It shows the devices as they were.
    Late(BTreeMap<DeviceId, Device>),
}

/// How often the table was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Reads of any kind.
    pub reads: usize,
    /// Writes of any kind to the registry.
    pub registry_writes: usize,
    /// Calls of [`PutReadings`], [`MergeReadings`] and [`AddArrival`].
    pub puts: usize,
}

impl MemoryStore {
    /// Lets the next calls fail with these errors, one each.
    pub fn fail_with(&self, errors: impl IntoIterator<Item = StoreError>) {
        self.state().failures.extend(errors.into_iter().map(Some));
    }

    /// Lets a call fail with this error after that many have not.
    pub fn fail_after(&self, calls: usize, error: StoreError) {
        self.state().failures.extend((0..calls).map(|_| None).chain([Some(error)]));
    }

    /// Lets every device be in the index of attributes, as it is now and will be.
    pub fn index_attributes(&self) {
        self.state().index = Index::UpToDate;
    }

    /// Lets the index of attributes show the devices as they are now, whatever becomes of them.
    pub fn delay_index(&self) {
        let mut state = self.state();
        state.index = Index::Late(state.devices.clone());
    }

    /// Lets nothing fail any more.
    pub fn end_failures(&self) {
        self.state().failures.clear();
    }

    /// Lets the next writes to the registry fail with these errors, one each.
    pub fn fail_registry_writes_with(&self, errors: impl IntoIterator<Item = StoreError>) {
        self.state().write_failures.extend(errors);
    }

    /// Lets the next call panic with this text.
    pub fn panic_with(&self, text: &str) {
        self.panic_after(0, text);
    }

    /// Lets a call panic with this text after that many have not.
    pub fn panic_after(&self, calls: usize, text: &str) {
        self.state().panic = Some((calls, text.to_owned()));
    }

    /// Lets the next write to the registry panic with this text.
    pub fn panic_at_write_with(&self, text: &str) {
        self.state().write_panic = Some(text.to_owned());
    }

    /// Lets a read of the stored readings of a device take so long for each of them.
    pub fn take_for_readings(&self, time: Duration) {
        self.state().reading_time = time;
    }

    /// Leaves the readings at these positions of the next put without storing them.
    pub fn leave_not_stored(&self, positions: &[usize]) {
        self.state().not_stored = positions.to_vec();
    }

    /// How often the table was asked so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.state().calls
    }

    /// Everything stored, by time.
    #[must_use]
    pub fn readings(&self) -> Vec<Reading> {
        self.state().readings.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the table")
    }

    /// The table for one call, which panics if that was asked for.
    fn call(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        match state.panic.take() {
            None => {}
            Some((0, text)) => {
                drop(state);
                panic!("{text}");
            }
            Some((calls, text)) => state.panic = Some((calls - 1, text)),
        }
        state
    }

    fn read(&self) -> StoreResult<MutexGuard<'_, State>> {
        let mut state = self.call();
        state.calls.reads += 1;
        state.pop_failure().map_or(Ok(state), Err)
    }

    fn write(&self) -> StoreResult<MutexGuard<'_, State>> {
        let mut state = self.call();
        if let Some(text) = state.write_panic.take() {
            drop(state);
            panic!("{text}");
        }
        state.calls.registry_writes += 1;
        let failure = state.write_failures.pop_front().or_else(|| state.pop_failure());
        failure.map_or(Ok(state), Err)
    }

    fn page(&self, query: &RangeQuery, keep: impl Fn(&Reading) -> bool) -> StoreResult<Page> {
        let state = self.read()?;
        let mut found: Vec<Reading> = state
            .readings
            .values()
            .filter(|r| query.range.contains(r.at) && keep(r))
            .filter(|r| match (&query.after, query.order) {
                (None, _) => true,
                (Some(after), Order::Ascending) => ReadingKey::of(r) > *after,
                (Some(after), Order::Descending) => ReadingKey::of(r) < *after,
            })
            .cloned()
            .collect();
        if query.order == Order::Descending {
            found.reverse();
        }
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        Ok(Page { readings: found, has_more })
    }
}

impl State {
    fn deleted(&self, is_asked: impl Fn(&DeviceId) -> bool) -> Vec<DeletedDevice> {
        let asked = self.deletions.iter().filter(|(id, _)| is_asked(id));
        asked.map(|(id, it)| DeletedDevice { id: id.clone(), deletion: *it }).collect()
    }

    fn pop_failure(&mut self) -> Option<StoreError> {
        self.failures.pop_front().flatten()
    }

    fn edit_device(
        &mut self,
        id: &DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> UpdateOutcome<Edited, DevicePatchError> {
        let Some(old) = self.devices.get(id) else { return UpdateOutcome::ConditionFailed(None) };
        let edited = patch.edited(old, now);
        let edited = edited
            .and_then(|device| Ok((device, self.meter_companions(MeterChange::of(old, patch))?)));
        let (device, mut beside) = match edited {
            Ok(edited) => edited,
            Err(why) => return UpdateOutcome::ConditionFailed(Some(why)),
        };
        if device == *old && beside.is_empty() {
            return UpdateOutcome::Updated(Edited { device, room: None });
        }
        let device = device.next_version();
        beside.extend(companions(old, &device));
        let mut room = None;
        if let Edit::Set(into) = &patch.room
            && old.place().room() != Some(into)
        {
            let new = Room::new(into.clone(), now);
            let known = self.rooms.get(into).cloned();
            if known.is_none() {
                beside.push(Companion::RegisterRoom(new.clone()));
            }
            room = Some(known.unwrap_or(new));
        }
        self.write_device(device.clone(), beside);
        UpdateOutcome::Updated(Edited { device, room })
    }

    fn meter_companions(&self, mut change: MeterChange) -> Result<Vec<Companion>, BehindError> {
        while let Some(id) = change.next() {
            let found = self.devices.get(id).cloned();
            change.see(found)?;
        }
        Ok(change.companions())
    }

    fn write_device(&mut self, device: Device, companions: Vec<Companion>) {
        self.devices.insert(device.id().clone(), device);
        self.write_companions(companions);
    }

    fn write_companions(&mut self, companions: Vec<Companion>) {
        for companion in companions {
            match companion {
                Companion::RegisterRoom(room) => drop(self.rooms.insert(room.id.clone(), room)),
                // The index is made of the devices, and nothing happens between a look and its write.
                Companion::KeepEntry(..)
                | Companion::DropEntry(..)
                | Companion::StillBehind { .. } => {}
                Companion::KeepStay(of) => drop(self.stays.insert(StayKey::of(&of), of.stay)),
                Companion::NoteBehind(meter, device) => {
                    self.note(meter.id(), |it| it.behind_it.extend([device]));
                }
                Companion::ForgetBehind(meter, device) => {
                    self.note(meter.id(), |it| it.behind_it.retain(|it| *it != device));
                }
            }
        }
    }
}

impl State {
    fn note(&mut self, meter: &DeviceId, note: impl FnOnce(&mut DeviceParts)) {
        let meter = self.devices.get_mut(meter).expect("it was read");
        let noted = meter.changed(note).expect("a change was checked");
        *meter = noted.next_version();
    }

    /// Stores the readings that are to be stored.
    fn store(&mut self, readings: &[Reading], store: impl Fn(&mut Self, &Reading)) -> PutOutcome {
        if readings.is_empty() {
            return PutOutcome::default();
        }
        self.calls.puts += 1;
        if let Some(cause) = self.pop_failure() {
            return PutOutcome { not_stored: (0..readings.len()).collect(), cause: Some(cause) };
        }
        let mut not_stored = std::mem::take(&mut self.not_stored);
        not_stored.retain(|place| *place < readings.len());
        for (n, reading) in readings.iter().enumerate() {
            if !not_stored.contains(&n) {
                store(self, reading);
            }
        }
        let cause = (!not_stored.is_empty()).then(|| StoreError::Throttled("on demand".into()));
        PutOutcome { not_stored, cause }
    }

    fn put(&mut self, reading: &Reading, retention: Option<TimeDelta>) {
        let key = ReadingKey::of(reading);
        self.arrivals.remove(&key);
        self.expire(&key, retention);
        self.readings.insert(key, reading.clone());
    }

    fn expire(&mut self, key: &ReadingKey, retention: Option<TimeDelta>) {
        match page::expiry(key.at, retention) {
            Some(expires) => self.expiries.insert(key.clone(), expires),
            None => self.expiries.remove(key),
        };
    }
}

impl PutReadings for MemoryStore {
    async fn put_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        _invocation: &Invocation,
    ) -> PutOutcome {
        self.call().store(readings, |state, reading| state.put(reading, retention))
    }
}

impl MergeReadings for MemoryStore {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        _invocation: &Invocation,
    ) -> PutOutcome {
        self.call().store(readings, |state, reading| {
            if retention.is_some() {
                state.expire(&ReadingKey::of(reading), retention);
            }
            let merged = match state.readings.get(&ReadingKey::of(reading)) {
                Some(stored) => stored.merged(reading),
                None => reading.clone(),
            };
            state.readings.insert(ReadingKey::of(reading), merged);
        })
    }
}

impl AddArrival for MemoryStore {
    async fn add_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        _invocation: &Invocation,
    ) -> StoreResult<Added> {
        let mut state = self.call();
        state.calls.puts += 1;
        if let Some(failure) = state.pop_failure() {
            return Err(failure);
        }
        let place = ReadingKey::of(reading);
        if state.readings.contains_key(&place) {
            let is_own = state.arrivals.get(&place).is_some_and(|known| known == arrival);
            return Ok(if is_own { Added::Stored } else { Added::Taken });
        }
        state.put(reading, retention);
        state.arrivals.insert(place, arrival.to_owned());
        Ok(Added::Stored)
    }
}

impl QueryReadings for MemoryStore {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        _invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.page(query, |reading| reading.device == *device)
    }
}

impl QueryRoomReadings for MemoryStore {
    fn has_room_index(&self) -> bool {
        true
    }

    async fn room_readings(
        &self,
        room: &RoomId,
        _devices: &[DeviceId],
        query: &RangeQuery,
        _invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.page(query, |reading| reading.room.as_ref() == Some(room))
    }
}

impl ReadRegistry for MemoryStore {
    async fn devices(&self, _invocation: &Invocation) -> StoreResult<Listing<Device>> {
        let state = self.read()?;
        let found = state.devices.values().cloned().collect();
        Ok(Listing { found, deleted: state.deleted(|_| true), ..Listing::default() })
    }

    async fn rooms(&self, _invocation: &Invocation) -> StoreResult<Listing<Room>> {
        let found = self.read()?.rooms.values().cloned().collect();
        Ok(Listing { found, ..Listing::default() })
    }
}

impl PageRegistry for MemoryStore {
    async fn room_page(
        &self,
        after: Option<&RoomId>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<Room>> {
        Ok(page::list_page(self.read()?.rooms.values(), |it| Some(&it.id) > after, limit))
    }

    async fn room_device_page(
        &self,
        room: &RoomId,
        after: Option<&DeviceId>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Option<ListPage<Device>>> {
        let is_asked = |it: &Device| it.place().room() == Some(room) && Some(it.id()) > after;
        Ok(Some(page::list_page(self.read()?.devices.values(), is_asked, limit)))
    }
}

impl LookUpRegistry for MemoryStore {
    async fn device(&self, id: &DeviceId, _invocation: &Invocation) -> StoreResult<Option<Device>> {
        Ok(self.read()?.devices.get(id).cloned())
    }

    async fn deletion(
        &self,
        id: &DeviceId,
        _invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        Ok(self.read()?.deletions.get(id).copied())
    }

    async fn room(&self, id: &RoomId, _invocation: &Invocation) -> StoreResult<Option<Room>> {
        Ok(self.read()?.rooms.get(id).cloned())
    }
}

impl FindRegistry for MemoryStore {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        _invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        let state = self.read()?;
        let found = ids.iter().filter_map(|id| state.devices.get(id).cloned()).collect();
        Ok(Listing { found, deleted: state.deleted(|id| ids.contains(id)), ..Listing::default() })
    }

    async fn find_some_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<(Listing<Device>, Vec<DeviceId>)> {
        Ok((self.find_devices(ids, invocation).await?, Vec::new()))
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        _invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        let state = self.read()?;
        let found = ids.iter().filter_map(|id| state.rooms.get(id).cloned()).collect();
        Ok(Listing { found, ..Listing::default() })
    }
}

impl MarkIndexed for MemoryStore {
    async fn mark_indexed(&self, _now: Timestamp, invocation: &Invocation) -> StoreResult<bool> {
        self.is_indexed(invocation).await
    }
}

impl SearchDevices for MemoryStore {
    async fn is_indexed(&self, _invocation: &Invocation) -> StoreResult<bool> {
        Ok(!matches!(self.read()?.index, Index::Absent))
    }

    async fn search(
        &self,
        query: &SearchQuery<'_>,
        _invocation: &Invocation,
    ) -> StoreResult<SearchPage> {
        let state = self.read()?;
        let devices = match &state.index {
            Index::Late(devices) => devices,
            Index::Absent | Index::UpToDate => &state.devices,
        };
        let after = query.after.map(SearchHit::place);
        let (first, last) = keys::search_range(query.range, after.as_deref());
        let hits_of = |device: &Device| -> Vec<SearchHit> {
            let entries = device.search_entries().into_iter();
            let entries = entries.filter(|it| it.subject == *query.subject);
            entries.map(|it| SearchHit { value: it.value, device: device.id().clone() }).collect()
        };
        let mut hits: Vec<SearchHit> = devices.values().flat_map(hits_of).collect();
        hits.retain(|hit| (&first..=&last).contains(&&hit.place()));
        hits.sort_by_key(SearchHit::place);
        let has_more = hits.len() > query.limit;
        hits.truncate(query.limit);
        Ok(SearchPage { hits, has_more })
    }
}

impl FindToken for MemoryStore {
    async fn token(
        &self,
        hash: &TokenHash,
        _invocation: &Invocation,
    ) -> StoreResult<Option<Token>> {
        Ok(self.read()?.tokens.get(hash).cloned())
    }
}

impl CountIntroduced for MemoryStore {
    async fn count_introduced(
        &self,
        sender: &str,
        more: usize,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Option<usize>> {
        let mut state = self.write()?;
        let known = state.introduced.entry(sender.to_owned()).or_default();
        if *known + more > limit {
            return Ok(Some(*known));
        }
        *known += more;
        Ok(None)
    }
}

impl AddToken for MemoryStore {
    async fn add_token(&self, token: &Token, _invocation: &Invocation) -> StoreResult<()> {
        let mut state = self.write()?;
        if state.tokens.contains_key(&token.hash) {
            return Err(StoreError::Refused("the token is there".into()));
        }
        state.tokens.insert(token.hash, token.clone());
        Ok(())
    }
}

impl ManageTokens for MemoryStore {
    async fn tokens(&self, _invocation: &Invocation) -> StoreResult<Vec<Token>> {
        Ok(self.read()?.tokens.values().cloned().collect())
    }

    async fn revoke_token(
        &self,
        hash: &TokenHash,
        at: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let token = state.tokens.get_mut(hash);
        let found = token.is_some();
        if let Some(token) = token {
            token.revoked.get_or_insert(at);
        }
        Ok(found)
    }
}

impl RegisterDevices for MemoryStore {
    async fn register_device(
        &self,
        device: &Device,
        _invocation: &Invocation,
    ) -> StoreResult<Registration> {
        let mut state = self.write()?;
        if let Some(known) = state.devices.get(device.id()) {
            return Ok(Registration::Exists(Box::new(known.clone())));
        }
        let (new, registration) = match state.deletions.get(device.id()) {
            Some(deletion) if deletion.ended.is_none() => {
                return Ok(Registration::Deleted(*deletion));
            }
            Some(deletion) => {
                let new = device.clone().numbered_after(deletion);
                (new.clone(), Registration::Exists(Box::new(new)))
            }
            None => (device.clone(), Registration::Inserted),
        };
        state.deletions.remove(device.id());
        state.devices.insert(device.id().clone(), new);
        Ok(registration)
    }

    async fn register_room(
        &self,
        room: &Room,
        _invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        let mut state = self.write()?;
        if let Some(known) = state.rooms.get(&room.id) {
            return Ok(InsertOutcome::Exists(known.clone()));
        }
        state.rooms.insert(room.id.clone(), room.clone());
        Ok(InsertOutcome::Inserted)
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut state = self.write()?;
        let Some(device) = state.devices.get_mut(device) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        match device.changed(|it| it.introduced_rooms.extend([room.clone()])) {
            Ok(introduced) => device.clone_from(&introduced),
            Err(_) => return Ok(UpdateOutcome::ConditionFailed(Some(device.clone()))),
        }
        Ok(UpdateOutcome::Updated(device.clone()))
    }
}

impl TeachRegistry for MemoryStore {
    async fn teach_device(
        &self,
        known: &Device,
        hints: &Hints,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let Some(taught) = known.taught(hints) else {
            return Ok(UpdateOutcome::Updated(known.clone()));
        };
        let mut state = self.write()?;
        let Some(device) = state.devices.get_mut(known.id()) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        if device.version() != known.version() {
            return Ok(UpdateOutcome::ConditionFailed(Some(device.clone())));
        }
        let DeviceParts { source, fold_settings, version, metrics, .. } = taught.into_parts();
        let mut parts = device.clone().into_parts();
        parts.metrics.extend(metrics);
        let taught = DeviceParts { source, fold_settings, version, ..parts };
        *device = Device::new(taught).expect("no setting of a person is taught");
        Ok(UpdateOutcome::Updated(device.clone()))
    }

    async fn name_room(
        &self,
        id: &RoomId,
        name: &Label,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut state = self.write()?;
        let Some(room) = state.rooms.get_mut(id) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        if room.name.is_some() {
            return Ok(UpdateOutcome::ConditionFailed(Some(room.clone())));
        }
        room.name = Some(name.clone());
        Ok(UpdateOutcome::Updated(room.clone()))
    }
}

impl UpdateRegistry for MemoryStore {
    async fn update_device(
        &self,
        known: &Device,
        learned: &DeviceUpdate,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut state = self.write()?;
        let Some(device) = state.devices.get_mut(known.id()) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        let earlier = learned.first_seen.is_none_or(|at| at < device.first_seen());
        let is_there_still = device.place() == known.place();
        if !(earlier && (learned.room.is_none() || is_there_still)) {
            return Ok(UpdateOutcome::ConditionFailed(Some(device.clone())));
        }
        learned.apply(device);
        Ok(UpdateOutcome::Updated(device.clone()))
    }

    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut state = self.write()?;
        let Some(old) = state.devices.get(known.id()) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        if (old.version(), old.place()) != (known.version(), known.place()) {
            return Ok(UpdateOutcome::ConditionFailed(Some(old.clone())));
        }
        let device = old.with_stay(Some(stay.clone()));
        let companions = companions(old, &device);
        state.write_device(device.clone(), companions);
        Ok(UpdateOutcome::Updated(device))
    }

    async fn update_room(
        &self,
        id: &RoomId,
        first_seen: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut state = self.write()?;
        match state.rooms.get_mut(id) {
            Some(room) if first_seen < room.first_seen => {
                room.first_seen = first_seen;
                Ok(UpdateOutcome::Updated(room.clone()))
            }
            known => Ok(UpdateOutcome::ConditionFailed(known.cloned())),
        }
    }
}

impl EditRegistry for MemoryStore {
    async fn edit_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Edited, DevicePatchError>> {
        Ok(self.write()?.edit_device(id, patch, now))
    }

    async fn edit_room(
        &self,
        id: &RoomId,
        patch: &RoomPatch,
        _invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut state = self.write()?;
        let Some(room) = state.rooms.get_mut(id) else {
            return Ok(UpdateOutcome::ConditionFailed(None));
        };
        patch.apply(room);
        Ok(UpdateOutcome::Updated(room.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backlog, Deadline, KeepRollupState as _};

    #[tokio::test]
    async fn writes_fail_in_the_order_that_was_asked_for() {
        let store = MemoryStore::default();
        store.fail_registry_writes_with([StoreError::TimedOut, StoreError::Throttled("x".into())]);
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
        let backlog = Backlog { since: Timestamp::MIN, at: Timestamp::MIN };
        let first = store.note_backlog(backlog, &invocation).await;
        assert!(matches!(first, Err(StoreError::TimedOut)));
        let second = store.note_backlog(backlog, &invocation).await;
        assert!(matches!(second, Err(StoreError::Throttled(_))));
        assert!(store.note_backlog(backlog, &invocation).await.is_ok());
    }
}
