//! How far the rollups of a table reach. Reads no rollup.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use domain::{DeviceId, Quarter, TimeRange, Timestamp, Zone};
use serde::Serialize;
use table::{Invocation, ReadRollupState, RollupState, StoreResult};

/// The time for which rollups are complete, and the zone of their days.
#[derive(Debug)]
pub(crate) struct Horizon {
    state: Option<RollupState>,
}

impl Horizon {
    /// Reads the state of the rollups.
    pub(crate) async fn read(
        store: &impl ReadRollupState,
        invocation: &Invocation,
    ) -> StoreResult<Self> {
        Ok(Self { state: store.rollup_state(invocation).await? })
    }

    /// The zone of the days; UTC before there are any.
    pub(crate) fn zone(&self) -> Zone {
        let name = self.state.as_ref().map(|state| state.zone.as_str());
        // A zone that this binary's database lacks agrees with no stored day: quarters serve.
        name.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC)
    }

    /// The state, if the rollup function has run.
    pub(crate) const fn state(&self) -> Option<&RollupState> {
        self.state.as_ref()
    }

    /// What the rollups lack of what was written until now; `None` where nothing is known to be missing.
    pub(crate) fn lag(&self, now: Timestamp) -> Option<Lag> {
        let state = self.state.as_ref()?;
        let backlog = state.backlog.filter(|it| now.since(it.at) < BACKLOG_VALIDITY);
        let queue = state.queue.filter(|depth| depth.messages > 0);
        let lag = Lag {
            changes_since: backlog.map(|it| it.since),
            quarters: queue.map(|depth| depth.messages),
        };
        (backlog.is_some() || queue.is_some()).then_some(lag)
    }

    /// The time for which every bucket of a device with readings has its rollup: whole quarters.
    pub(crate) fn rolled_up(&self, device: &DeviceId) -> Option<TimeRange> {
        let state = self.state.as_ref()?;
        let sealed = Quarter::of(state.sealed_of(device)).start();
        TimeRange::new(ceiling(state.since), sealed).ok()
    }
}

/// What the rollups of past time may lack, as far as their state tells.
#[derive(Debug, Serialize)]
pub(crate) struct Lag {
    /// Changes of readings since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_since: Option<Timestamp>,
    /// The number of quarters of an hour that could not be folded and are tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarters: Option<u64>,
}

impl Lag {
    /// The same as a sentence.
    pub(crate) fn text(&self) -> String {
        let changes =
            self.changes_since.map(|since| format!("changes of past readings since {since}"));
        let quarters = self.quarters.map(|number| format!("{number} quarters of an hour"));
        let lacks: Vec<String> = changes.into_iter().chain(quarters).collect();
        format!("rollups are behind; they may lack {}", lacks.join(" and "))
    }
}

/// The time for which a note of late changes counts. The rollup function renews it every 30 seconds, and the
/// state that is known may be a minute old.
const BACKLOG_VALIDITY: TimeDelta = TimeDelta::minutes(2);

/// The state of the rollups as this process has last read it.
///
/// An older state is right as well: what was sealed since then is folded from readings.
#[derive(Debug, Default)]
pub(crate) struct KnownState {
    state: Mutex<Option<(Timestamp, RollupState)>>,
    /// Whether it is known that the rooms of all rollups are noted. That stays true.
    has_noted_rooms: AtomicBool,
}

/// The age at which the state is read again.
const MAX_AGE: TimeDelta = TimeDelta::minutes(1);

impl KnownState {
    /// The state, at most a minute old.
    pub(crate) async fn horizon(
        &self,
        store: &impl ReadRollupState,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Horizon> {
        if let Some((read_at, state)) = &*self.known()
            && now.since(*read_at) < MAX_AGE
        {
            return Ok(Horizon { state: Some(state.clone()) });
        }
        let horizon = Horizon::read(store, invocation).await?;
        *self.known() = horizon.state.clone().map(|state| (now, state));
        Ok(horizon)
    }

    /// Whether the rooms of all rollups are noted, also of those that were folded before rooms were noted.
    pub(crate) async fn has_noted_rooms(
        &self,
        store: &impl ReadRollupState,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        if !self.has_noted_rooms.load(Ordering::Relaxed) {
            let walk = store.room_walk(invocation).await?;
            let is_done = walk.is_some_and(|walk| walk.is_done);
            self.has_noted_rooms.store(is_done, Ordering::Relaxed);
        }
        Ok(self.has_noted_rooms.load(Ordering::Relaxed))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<(Timestamp, RollupState)>> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

/// The first edge of a quarter that is not before a timestamp.
pub(crate) fn ceiling(at: Timestamp) -> Timestamp {
    let quarter = Quarter::of(at);
    if quarter.start() == at { at } else { quarter.end() }
}
