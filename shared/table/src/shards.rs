//! The number of partitions that the registry's devices are in, and the partition of a device. Stores nothing.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use domain::DeviceId;

/// The number of partitions that the registry's devices are in. It is fixed when the table is made.
///
/// One partition gives 3,000 read and 1,000 write units a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(NonZeroU8);

/// One of the partitions of the registry's devices: its number, or `None` if there is a single partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(pub(crate) Option<u8>);

/// The error for a number of partitions that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a whole number from 1 to {}", Shards::MAX)]
pub struct ShardsError;

impl Shards {
    /// A single partition, for small tables. Its name has no number.
    pub const ONE: Self = Self(NonZeroU8::MIN);
    /// The largest number of partitions. A list reads all of them.
    pub const MAX: u8 = 64;

    /// A number of partitions from 1 to [`MAX`](Self::MAX).
    pub fn new(number: u64) -> Result<Self, ShardsError> {
        let number = u8::try_from(number).ok().filter(|number| *number <= Self::MAX);
        number.and_then(NonZeroU8::new).map(Self).ok_or(ShardsError)
    }

    /// The number of partitions.
    pub const fn number(self) -> u8 {
        self.0.get()
    }

    /// The partition of a device.
    ///
    /// CRC-32 spreads `UUID`s, MAC addresses of one vendor and serial numbers evenly; a product or a sum of
    /// code points puts most of them into a few partitions.
    pub fn of(self, device: &DeviceId) -> Shard {
        let hash = crc32fast::hash(device.as_str().as_bytes());
        let n = hash % u32::from(self.number());
        Shard((self != Self::ONE).then(|| u8::try_from(n).expect("less than a u8")))
    }

    /// All partitions.
    pub fn all(self) -> impl ExactSizeIterator<Item = Shard> {
        (0..self.number()).map(move |n| Shard((self != Self::ONE).then_some(n)))
    }
}

impl Default for Shards {
    fn default() -> Self {
        Self::ONE
    }
}

impl FromStr for Shards {
    type Err = ShardsError;

    fn from_str(text: &str) -> Result<Self, ShardsError> {
        text.parse().map_err(|_| ShardsError).and_then(Self::new)
    }
}

impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::device;

    /// The 99.9 % quantile of chi-square with so many degrees of freedom, by Wilson and Hilferty.
    fn quantile(degrees: f64) -> f64 {
        let part = 2.0 / (9.0 * degrees);
        degrees * (1.0 - part + 3.09 * part.sqrt()).powi(3)
    }

    fn chi_square(ids: &[String], shards: Shards) -> f64 {
        let mut sizes = vec![0.0_f64; shards.number().into()];
        for id in ids {
            let Shard(n) = shards.of(&device(id));
            sizes[usize::from(n.unwrap_or_default())] += 1.0;
        }
        let size = f64::from(u32::try_from(ids.len()).expect("few"));
        let expected = size / f64::from(shards.number());
        sizes.iter().map(|it| (it - expected).powi(2) / expected).sum()
    }

    /// Only the upper tail: ids that are counted up are spread more evenly than chance would do it.
    #[test]
    fn devices_are_spread_evenly_over_all_partitions() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut made = |make: &mut dyn FnMut(u64, u128) -> String| {
            (0..20_000).map(|n| make(n, rng.u128(..))).collect::<Vec<_>>()
        };
        let kinds = [
            made(&mut |_, random| {
                let hex = format!("{random:032x}");
                let (a, b, c) = (&hex[..8], &hex[8..12], &hex[13..16]);
                format!("{a}-{b}-4{c}-a{}-{}", &hex[17..20], &hex[20..])
            }),
            made(&mut |_, random| {
                let [a, b, c, ..] = random.to_le_bytes();
                format!("a4:cf:12:{a:02x}:{b:02x}:{c:02x}")
            }),
            made(&mut |n, _| format!("SN-2026-{n:08}")),
            made(&mut |n, _| n.to_string()),
        ];
        for number in [2, 3, 4, 8, 15, 16, 64] {
            let shards = Shards::new(number).expect("a number");
            for ids in &kinds {
                let found = chi_square(ids, shards);
                let allowed = quantile(f64::from(shards.number()) - 1.0);
                assert!(found < allowed, "{}, {shards}: {found} of {allowed}", ids[0]);
            }
        }
    }

    #[test]
    fn one_partition_has_no_number() {
        let id = "d".parse().expect("an id");
        assert_eq!(Shards::ONE.of(&id).of_name("DEVICE"), "DEVICE");
        assert_eq!(Shards::ONE.all().count(), 1);
    }

    #[test]
    fn every_device_is_in_one_of_the_partitions() {
        for number in 1..=64 {
            let shards = Shards::new(number).expect("a number");
            let all: Vec<_> = shards.all().collect();
            for n in 0..100 {
                let shard = shards.of(&device(&format!("d{n}")));
                assert!(all.contains(&shard));
                assert_eq!(Shard::parse(&shard.of_name("DEVICE"), "DEVICE"), Some(shard));
            }
        }
    }

    #[test]
    fn other_numbers_are_refused() {
        for text in ["0", "65", "-1", "300", "two", "1.5", ""] {
            let error = text.parse::<Shards>().expect_err(text);
            assert_eq!(error.to_string(), "is not a whole number from 1 to 64");
        }
        for text in ["DEVICE#", "DEVICE#01", "DEVICE#64", "DEVICE#-1", "DEVICE1", "ROOM", ""] {
            assert_eq!(Shard::parse(text, "DEVICE"), None, "{text}");
        }
    }
}
