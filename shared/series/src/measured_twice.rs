//! What a meter in the same rooms measures too, taken from the sums of a series. Chooses no devices.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::{Device, DeviceId, MetricName, MetricRule, meters_above};
use table::Invocation;

use super::counting::{Counted, Presences, counted, hold, presence, values_within};
use super::device::DeviceValues;
use super::failure::Failure;
use super::gather::Ask;
use super::members::LeftOut;
use crate::ports::Store;

/// Takes from the sums of a series what a meter in the same rooms measures too, and tells what that is. A meter that
/// lacks a metric measures nothing of it. `names` are the metrics that add up.
pub async fn leave_out<'a, 'm>(
    store: &impl Store,
    found: &mut [DeviceValues<'a>],
    names: impl Iterator<Item = &'m MetricName>,
    behind: impl Fn(&DeviceId) -> Option<&'a DeviceId> + Copy,
    (ask, spans): (impl Fn(&'a Device) -> Ask<'a>, impl Fn(&MetricRule) -> bool + Copy),
    invocation: &Invocation,
) -> Result<Vec<LeftOut<'a>>, Failure> {
    let mut left_out: BTreeMap<&DeviceId, Vec<Option<LeftOut<'a>>>> = BTreeMap::new();
    // By meter and hold, in which alone the columns differ.
    let mut stays_of = BTreeMap::new();
    for name in names {
        let mut presences = Presences::new();
        let has_it = |it: &DeviceValues<'_>| {
            it.metrics.contains_key(name) && it.device.not_of_room(name).is_none()
        };
        let having: BTreeMap<&DeviceId, usize> = (found.iter().enumerate())
            .filter(|(_, it)| has_it(it))
            .map(|(place, it)| (it.device.id(), place))
            .collect();
        for (id, place) in &having {
            let device = found[*place].device;
            let above = meters_above(device.id(), behind).into_iter();
            for (meter, place) in above.filter_map(|id| Some((id, *having.get(id)?))) {
                if !presences.contains_key(meter) {
                    let it = &found[place];
                    let hold = hold(it, |of| of == name);
                    let stays = match stays_of.entry((meter.clone(), hold)) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(unknown) => unknown
                            .insert(presence(store, &ask(it.device), it, hold, invocation).await?),
                    };
                    presences.insert(meter.clone(), stays.clone());
                }
            }
            let is_meter = |id: &DeviceId| having.contains_key(id);
            let ask = ask(device);
            let range = ask.grid.range();
            let when: Counted<'a> = counted(range, device.id(), behind, &presences, is_meter);
            let left = LeftOut::behind_meter(device, &when);
            if left.is_some() {
                let names = std::slice::from_ref(name);
                let parts = &when.itself;
                let itself = values_within(store, &ask, parts, names, spans, invocation).await?;
                found[*place].metrics.extend(itself.metrics);
            }
            let known = device.metrics().get_key_value(name).map(|(name, _)| name);
            let left = left.map(|it| it.of_metrics(known.into_iter().collect()));
            left_out.entry(id).or_default().push(left);
        }
    }
    Ok(left_out.into_values().flat_map(LeftOut::joined).collect())
}
