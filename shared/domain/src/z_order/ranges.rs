//! Splits a box into ranges of addresses. Reads no row.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use super::{Curve, Region};

/// A cell: all addresses that begin with the same bits. At least one of its points lies in the box.
struct ZCell {
    /// The number of bits with which all addresses of the cell begin. `first` is the smallest of the addresses.
    depth: usize,
    first: u64,
    all: Region,
    /// The number of the cell's points outside of the box.
    waste: u128,
}

impl Curve {
    /// Ranges of addresses that cover a box: disjoint, sorted, and with gaps between them.
    ///
    /// The addresses are halved at most `max_splits` times, always in the part with the most points outside of the box.
    /// Then the smallest gaps are closed until at most `max_ranges` ranges are left. Without these limits the ranges
    /// contain exactly the box.
    pub fn ranges(
        &self,
        region: &Region,
        max_splits: usize,
        max_ranges: usize,
    ) -> Vec<RangeInclusive<u64>> {
        let widths = self.widths();
        let all = Region {
            low: vec![0; widths.len()],
            high: (0..widths.len()).map(|attribute| self.max_of(attribute)).collect(),
        };

        let mut done = Vec::new();
        let mut open = BinaryHeap::new();
        let mut take = |cell: Option<ZCell>, open: &mut BinaryHeap<ZCell>| match cell {
            Some(cell) if cell.waste > 0 => open.push(cell),
            Some(cell) => done.push(self.addresses_of(&cell)),
            None => {}
        };

        take(ZCell::of(0, 0, all, region), &mut open);
        for _ in 0..max_splits {
            let Some(cell) = open.pop() else { break };
            let (attribute, bit) = self.bits()[cell.depth];
            let (mut lower, mut upper) = (cell.all.clone(), cell.all);
            lower.high[attribute] &= !(1 << bit);
            upper.low[attribute] |= 1 << bit;
            let depth = cell.depth + 1;
            let middle = cell.first + self.below(depth) + 1;
            take(ZCell::of(depth, cell.first, lower, region), &mut open);
            take(ZCell::of(depth, middle, upper, region), &mut open);
        }

        done.extend(open.iter().map(|cell| self.addresses_of(cell)));
        close_gaps(done, max_ranges)
    }

    fn addresses_of(&self, cell: &ZCell) -> RangeInclusive<u64> {
        cell.first..=cell.first + self.below(cell.depth)
    }
}

impl ZCell {
    /// `None` if no point of the cell lies in the box.
    fn of(depth: usize, first: u64, all: Region, region: &Region) -> Option<Self> {
        let inside = all.intersection(region)?;
        let waste = all.volume() - inside.volume();
        Some(Self { depth, first, all, waste })
    }
}

/// Orders cells by the number of points outside of the box. Of cells with equally many, the cell with smaller addresses
/// is greater, and is halved first.
impl Ord for ZCell {
    fn cmp(&self, other: &Self) -> Ordering {
        self.waste.cmp(&other.waste).then(other.first.cmp(&self.first))
    }
}

impl PartialOrd for ZCell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ZCell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ZCell {}

/// Joins ranges that touch, then ranges with the smallest gaps, until at most `max_ranges` are left.
fn close_gaps(mut ranges: Vec<RangeInclusive<u64>>, max_ranges: usize) -> Vec<RangeInclusive<u64>> {
    ranges.sort_by_key(|range| *range.start());
    // The gap before a range: the number of addresses between it and the range before it.
    let gap = |n: usize| ranges[n].start() - ranges[n - 1].end() - 1;
    let mut gaps: Vec<usize> = (1..ranges.len()).filter(|n| gap(*n) > 0).collect();
    gaps.sort_by_key(|n| std::cmp::Reverse(gap(*n)));
    gaps.truncate(max_ranges.saturating_sub(1));
    gaps.sort_unstable();

    let begins = [0].into_iter().chain(gaps.iter().copied());
    let ends = gaps.iter().copied().chain([ranges.len()]);
    let joined = begins.zip(ends).filter(|(begin, end)| begin < end);
    joined.map(|(begin, end)| *ranges[begin].start()..=*ranges[end - 1].end()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region() -> impl Strategy<Value = Region> {
        let bounds = |max: u64| (0..=max, 0..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
        (bounds(15), bounds(31), bounds(7))
            .prop_map(|(a, b, c)| Region { low: vec![a.0, b.0, c.0], high: vec![a.1, b.1, c.1] })
    }

    fn curve() -> Curve {
        Curve::new(vec![4, 5, 3]).expect("a curve")
    }

    fn are_apart(ranges: &[RangeInclusive<u64>]) -> bool {
        ranges.iter().all(|range| range.start() <= range.end())
            && ranges.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start())
    }

    proptest! {
        #[test]
        fn without_limits_they_hold_the_box_and_nothing_else(region in region()) {
            let ranges = curve().ranges(&region, usize::MAX, usize::MAX);
            prop_assert!(are_apart(&ranges), "{ranges:?}");
            for address in curve().addresses() {
                let is_inside = ranges.iter().any(|range| range.contains(&address));
                prop_assert_eq!(is_inside, region.contains(&curve().point(address)));
            }
        }

        #[test]
        fn with_limits_they_hold_the_box_at_least(
            region in region(),
            max_splits in 0_usize..40,
            max_ranges in 1_usize..6,
        ) {
            let ranges = curve().ranges(&region, max_splits, max_ranges);
            prop_assert!(are_apart(&ranges) && ranges.len() <= max_ranges, "{ranges:?}");
            for address in curve().addresses() {
                let is_inside = ranges.iter().any(|range| range.contains(&address));
                prop_assert!(is_inside || !region.contains(&curve().point(address)));
            }
        }
    }

    #[test]
    fn one_point_and_the_whole_space_are_one_range() {
        let point = Region { low: vec![3, 17, 5], high: vec![3, 17, 5] };
        let address = curve().address(&[3, 17, 5]);
        assert_eq!(curve().ranges(&point, usize::MAX, 4), [address..=address]);
        let all = Region { low: vec![0; 3], high: vec![15, 31, 7] };
        assert_eq!(curve().ranges(&all, 4_000, 4), [curve().addresses()]);
        let widest = Curve::new(vec![32, 32]).expect("a curve");
        let all = Region { low: vec![0; 2], high: vec![u64::MAX >> 32; 2] };
        assert_eq!(widest.ranges(&all, 4_000, 4), [0..=u64::MAX]);
        let half = Region { low: vec![1, 0], high: vec![u64::MAX >> 32; 2] };
        assert_eq!(widest.ranges(&half, 4_000, 1).last().map(|it| *it.end()), Some(u64::MAX));
    }
}
