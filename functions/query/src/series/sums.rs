//! The devices of a sum, without what a meter in the same rooms measures too. Chooses no rooms.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, Meter, MetricName, MetricRule, RoomId, TimeRange, meters_above};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use series::{
    Ask, DEVICE_CONCURRENCY, DeviceRows, DeviceValues, Failure, LeftOut, Place, Presences,
    RowReader, Store, counted, device_values, hold, leave_out, presence, room_before,
    values_within,
};
use table::Invocation;

use super::answer::Columns;
use super::subject::Subject;

/// A device that measures energy, and what of it counts as such.
pub(super) type Metered<'a> = (DeviceValues<'a>, Meter<'a>);

/// The meters of a sum of energy.
pub(super) struct Meters<'a> {
    /// Those that are shown, in the order of their ids.
    pub(super) shown: Vec<Metered<'a>>,
    /// Those that are shown whole and count at times only, as they count.
    pub(super) at_times: Vec<Metered<'a>>,
    /// What other meters measure too.
    pub(super) left_out: Vec<LeftOut<'a>>,
}

/// Reads the meters of devices. A device behind others is read when it counts itself, or whole where devices are shown
/// apart.
pub(super) async fn meters<'a, S: Store>(
    subject: &'a Subject,
    mut reader: RowReader<'_, S>,
    metered: Vec<(&'a Device, Meter<'a>)>,
    (is_apart, range): (bool, TimeRange),
    ask: impl Fn(&'a Device) -> Ask<'a> + Copy,
) -> Result<Meters<'a>, Failure> {
    let RowReader { store, invocation, .. } = reader;
    let is_summed =
        |meter: &Meter<'_>| subject.is_shared() && meter.is_of_sums() && meter.other_role.is_none();
    let counting = metered.iter().filter(|(_, meter)| is_summed(meter) && !meter.used.is_empty());
    let counting: BTreeSet<&DeviceId> = counting.map(|(device, _)| device.id()).collect();
    let above = |device: &'a Device, meter: &Meter<'_>| -> Vec<&'a DeviceId> {
        let above = meters_above(device.id(), |id| subject.behind(id)).into_iter();
        above.filter(|id| is_summed(meter) && counting.contains(id)).collect()
    };
    let of_others: BTreeSet<&DeviceId> =
        metered.iter().flat_map(|(device, meter)| above(device, meter)).collect();
    let (first, later): (Vec<_>, Vec<_>) = metered.into_iter().partition(|(device, meter)| {
        is_apart || of_others.contains(device.id()) || above(device, meter).is_empty()
    });
    let first = first.into_iter().map(|(device, meter)| (device, meter, vec![range])).collect();
    let mut shown = read(&mut reader, first, ask).await?;

    let mut presences = Presences::new();
    for (it, _) in shown.iter().filter(|(it, _)| of_others.contains(it.device.id())) {
        let hold = hold(it, |_| true);
        let stays = presence(store, &ask(it.device), it, hold, invocation).await?;
        presences.insert(it.device.id().clone(), stays);
    }
    let mut left_out = Vec::new();
    // When a device counts, if not always.
    let mut at_times_of = |device: &'a Device, meter: &Meter<'_>| {
        let behind = |id: &DeviceId| subject.behind(id).filter(|_| is_summed(meter));
        let when = counted(range, device.id(), behind, &presences, |_| true);
        let left = LeftOut::behind_meter(device, &when)?;
        left_out.push(left);
        Some(when.itself)
    };
    let (mut partly, mut rest) = (Vec::new(), Vec::new());
    for (it, meter) in &shown {
        if let Some(parts) = at_times_of(it.device, meter).filter(|parts| !parts.is_empty()) {
            partly.push((it.device, meter.clone(), parts));
        }
    }
    for (device, meter) in later {
        let parts = at_times_of(device, &meter).unwrap_or_else(|| vec![range]);
        if !parts.is_empty() {
            rest.push((device, meter, parts));
        }
    }
    let mut at_times = read(&mut reader, partly, ask).await?;
    if !is_apart {
        shown.retain(|(it, _)| at_times.iter().all(|(of, _)| of.device.id() != it.device.id()));
        shown.append(&mut at_times);
    }
    shown.extend(read(&mut reader, rest, ask).await?);
    shown.sort_by_key(|(it, _)| it.device.id());
    Ok(Meters { shown, at_times, left_out })
}

/// Reads devices in parts of the range, each with its meter.
async fn read<'a, S: Store>(
    reader: &mut RowReader<'_, S>,
    devices: Vec<(&'a Device, Meter<'a>, Vec<TimeRange>)>,
    ask: impl Fn(&'a Device) -> Ask<'a>,
) -> Result<Vec<Metered<'a>>, Failure> {
    let rows = devices.iter().map(|(device, meter, parts)| DeviceRows {
        ask: ask(device),
        metrics: meter.names().count(),
        parts: parts.clone(),
    });
    let rows: Vec<_> = rows.collect();
    Box::pin(reader.spend(&rows)).await?;

    let RowReader { store, invocation, .. } = *reader;
    let spans = |rule: &MetricRule| *rule != MetricRule::Gauge;
    let found = devices.into_iter().map(|(device, meter, parts)| {
        let ask = ask(device);
        Box::pin(async move {
            let names: Vec<MetricName> = meter.names().cloned().collect();
            let values = values_within(store, &ask, &parts, &names, spans, invocation).await?;
            Ok((values, meter))
        })
    });
    let found: Vec<_> = found.collect();
    stream::iter(found).buffered(DEVICE_CONCURRENCY).try_collect().await
}

/// Takes from the sums of a place's row what a meter in the room measures too, and tells what that is. A meter that was in
/// the room when the range began, and has no row there, measures it too until it is elsewhere. `before` is where meters were
/// then, as far as it is known.
pub(super) async fn leave_out_of<'a>(
    subject: &'a Subject,
    store: &impl Store,
    place: &mut Place<'a>,
    before: &mut BTreeMap<&'a DeviceId, Option<RoomId>>,
    (columns, names, rooms): (&Columns, &[MetricName], Option<&'a BTreeSet<RoomId>>),
    ask: impl Fn(&'a Device) -> Ask<'a>,
    invocation: &Invocation,
) -> Result<Vec<LeftOut<'a>>, Failure> {
    let behind = |id: &DeviceId| subject.behind(id);
    let spans = |rule: &MetricRule| columns.spans(rule);
    let ask_there = |device| Ask { rooms, ..ask(device) };
    let there: BTreeSet<&DeviceId> = place.devices.iter().map(|it| it.device.id()).collect();
    let has_sums = place.room.is_some() && columns.sums().next().is_some();
    let above = there.iter().filter(|_| has_sums).flat_map(|id| meters_above(id, behind));
    let above: BTreeSet<&DeviceId> = above.filter(|id| !there.contains(id)).collect();
    for meter in above.into_iter().filter_map(|id| subject.known(id)) {
        let room = match before.entry(meter.id()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                unknown.insert(room_before(store, &ask(meter), invocation).await?)
            }
        };
        if *room == place.room {
            let ask = ask_there(meter);
            place.devices.push(device_values(store, &ask, names, spans, invocation).await?);
        }
    }
    let (devices, sums, asked) = (&mut place.devices, columns.sums(), (ask_there, spans));
    let mut left_out = leave_out(store, devices, sums, behind, asked, invocation).await?;
    place.devices.retain(|it| there.contains(it.device.id()));
    left_out.retain(|it| there.contains(it.device()));
    Ok(left_out)
}
