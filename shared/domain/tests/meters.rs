//! Which devices a sum leaves out, for any devices behind one another, circles among them: against a search of all
//! pairs, which shares nothing with the walk.

use std::collections::{BTreeMap, BTreeSet};

use domain::given;
use domain::{DeviceId, meter_of};
use proptest::prelude::*;

const DEVICES: usize = 7;

fn id(number: usize) -> DeviceId {
    given::device(&format!("d{number}"))
}

/// The pairs of a device and one above it, directly or by way of others.
fn pairs(behind: &[Option<usize>]) -> BTreeSet<(usize, usize)> {
    let direct = behind.iter().enumerate().filter_map(|(device, meter)| Some((device, (*meter)?)));
    let mut pairs: BTreeSet<(usize, usize)> = direct.collect();
    loop {
        let further: Vec<_> = pairs
            .iter()
            .flat_map(|(device, meter)| {
                let above = pairs.iter().filter(move |(below, _)| below == meter);
                above.map(move |(_, above)| (*device, *above))
            })
            .filter(|pair| !pairs.contains(pair))
            .collect();
        if further.is_empty() {
            return pairs;
        }
        pairs.extend(further);
    }
}

proptest! {
    #[test]
    fn a_sum_holds_every_device_once(
        // A number of a device that is not there as well.
        behind in prop::collection::vec(prop::option::of(0..=DEVICES), DEVICES),
        counted in prop::collection::btree_set(0..DEVICES, 0..=DEVICES),
    ) {
        let ids: Vec<DeviceId> = (0..=DEVICES).map(id).collect();
        let meters: BTreeMap<&DeviceId, &DeviceId> = behind
            .iter()
            .enumerate()
            .filter_map(|(device, meter)| Some((&ids[device], &ids[(*meter)?])))
            .collect();
        let number = |id: &DeviceId| ids.iter().position(|it| it == id).expect("one of them");
        let left_out = |device: usize| {
            let is_counted = |it: &DeviceId| counted.contains(&number(it));
            meter_of(&ids[device], |it| meters.get(it).copied(), is_counted).map(number)
        };
        let pairs = pairs(&behind);
        let is_above = |device: usize, meter: usize| pairs.contains(&(device, meter));
        for device in counted.iter().copied() {
            let above: Vec<usize> =
                counted.iter().copied().filter(|it| *it != device && is_above(device, *it)).collect();
            // Those in a circle with it are above and below it at once.
            let is_first = above.iter().all(|it| is_above(*it, device) && device < *it);
            match left_out(device) {
                None => prop_assert!(is_first, "d{device} is counted beside {above:?}"),
                Some(meter) => {
                    prop_assert!(!is_first, "d{device} is left out for d{meter}");
                    prop_assert!(above.contains(&meter), "d{meter} is not above d{device}");
                }
            }
            // Whatever is left out is in exactly one device that is not.
            let mut top = device;
            for _ in 0..=DEVICES {
                top = left_out(top).unwrap_or(top);
            }
            prop_assert_eq!(left_out(top), None, "d{} ends nowhere", device);
        }
    }
}
