//! The write units of a request, for its readings and their rollups. Sends nothing.

use std::collections::BTreeSet;
use std::hash::Hash;

/// 15 minutes and a day, in milliseconds.
const QUARTER: i64 = 900_000;
const DAY: i64 = 86_400_000;

/// Returns the write units of readings, given as pairs of owner and time in milliseconds. Each reading, each rollup of
/// 15 minutes and each rollup of a day costs one unit. The index by room has units of its own.
#[expect(clippy::cast_precision_loss, reason = "a request is small")]
pub(super) fn of<'a, T: Ord + Hash + Copy + 'a>(
    readings: &(impl Iterator<Item = (T, i64)> + Clone + 'a),
) -> f64 {
    let buckets = |length: i64| {
        readings.clone().map(|(of, at)| (of, at.div_euclid(length))).collect::<BTreeSet<_>>().len()
    };
    (readings.clone().count() + buckets(QUARTER) + buckets(DAY)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollups_are_counted_once_for_a_bucket() {
        let minutes = |of: &'static str, minutes: std::ops::Range<i64>| {
            minutes.map(move |minute| (of, 1_768_147_200_000 + minute * 60_000))
        };
        let units = of(&minutes("a", 0..30));
        assert!((units - 33.0).abs() < f64::EPSILON, "{units}");
        let units = of(&minutes("a", 0..1).chain(minutes("b", 0..1)));
        assert!((units - 6.0).abs() < f64::EPSILON, "{units}");
    }
}
