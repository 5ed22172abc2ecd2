//! The groups of devices for which the rollup function makes rollups at the same time, called a sweep. Sweeps nothing.

use super::DeviceId;

/// The number of groups. One group is swept each minute, so each group is swept once in a quarter of an hour.
pub const SWEEP_GROUPS: usize = 15;

/// The group of a device.
///
/// CRC-32 spreads ids that differ in one character evenly over the groups. A sum of code points would not.
pub fn sweep_group(device: &DeviceId) -> usize {
    crc32fast::hash(device.as_str().as_bytes()) as usize % SWEEP_GROUPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_spread_over_all_groups() {
        let mut sizes = [0; SWEEP_GROUPS];
        for n in 0..1_500 {
            let id = format!("sensor-{n:04}").parse().expect("an id");
            sizes[sweep_group(&id)] += 1;
        }
        assert!(sizes.iter().all(|size| (60..140).contains(size)), "{sizes:?}");
    }
}
