//! The next address inside a box, known as BIGMIN. Reads no row.

use super::{Curve, MAX_ATTRIBUTES, Region};

impl Curve {
    /// The smallest address in a box that is greater than `current`; `None` if there is no such address.
    ///
    /// A reader that has come to a row outside of the box goes on at the returned address instead of at the next row.
    ///
    /// Source: Tropf and Herzog, Multidimensional Range Search in Dynamically Balanced Trees, 1981.
    pub fn next_inside(&self, current: u64, region: &Region) -> Option<u64> {
        let (mut low, mut high) = (copy(&region.low), copy(&region.high));
        let mut next = None;
        let depth = self.bits().len();

        for (n, (attribute, bit)) in self.bits().iter().enumerate() {
            let one = 1_u64 << bit;
            let is_set = |value: u64| value & one != 0;
            // Among the values with the same higher bits: the smallest value with this bit set, and the largest without
            // this bit.
            let smallest = |value: u64| (value | one) & !(one - 1);
            let largest = |value: u64| value & !one | (one - 1);

            let (of_low, of_high) = (low[*attribute], high[*attribute]);
            match (current >> (depth - 1 - n) & 1 == 1, is_set(of_low), is_set(of_high)) {
                (false, false, false) | (true, true, true) => {}
                (false, false, true) => {
                    let mut point = low;
                    point[*attribute] = smallest(of_low);
                    next = Some(self.address(&point));
                    high[*attribute] = largest(of_high);
                }
                (false, true, true) => return Some(self.address(&low)),
                (true, false, false) => return next,
                (true, false, true) => low[*attribute] = smallest(of_low),
                (_, true, false) => unreachable!("no smallest value is above the largest"),
            }
        }

        next
    }
}

/// A copy of a point, filled with zeros up to the largest number of attributes.
fn copy(point: &[u64]) -> [u64; MAX_ATTRIBUTES] {
    let mut copy = [0; MAX_ATTRIBUTES];
    copy[..point.len()].copy_from_slice(point);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every box of a curve of 3, 4 and 2 bits, and every address.
    #[test]
    fn it_is_the_next_address_inside_whichever_box_and_address() {
        let curve = Curve::new(vec![3, 4, 2]).expect("a curve");
        let points: Vec<(u64, Vec<u64>)> =
            curve.addresses().rev().map(|it| (it, curve.point(it))).collect();
        let bounds = |bits: u32| {
            let values = 0..1_u64 << bits;
            values.flat_map(move |low| (low..1 << bits).map(move |high| (low, high)))
        };
        for (a, b, c) in
            bounds(3).flat_map(|a| bounds(4).flat_map(move |b| bounds(2).map(move |c| (a, b, c))))
        {
            let region = Region { low: vec![a.0, b.0, c.0], high: vec![a.1, b.1, c.1] };
            let mut next = None;
            for (current, point) in &points {
                assert_eq!(curve.next_inside(*current, &region), next, "{current} {region:?}");
                next = if region.contains(point) { Some(*current) } else { next };
            }
        }
    }
}
