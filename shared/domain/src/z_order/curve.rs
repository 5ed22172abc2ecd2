//! The curve: for each bit of an address, the attribute and the bit that it comes from. Encodes no value.

use std::ops::RangeInclusive;

/// The largest number of attributes of a curve.
pub const MAX_ATTRIBUTES: usize = 8;
/// The largest number of bits of one attribute.
pub const MAX_BITS: u8 = 32;
/// The largest number of bits of an address.
pub const MAX_ADDRESS_BITS: u32 = 64;

/// The order in which the bits of some attributes form an address.
///
/// The attributes take turns, each with its highest unused bit. An attribute without further bits is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    widths: Vec<u8>,
    /// The origin of each bit of an address, the highest bit first: an attribute, and a bit of its value.
    bits: Vec<(usize, u8)>,
}

/// The reasons for which widths do not form a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// There are too few or too many attributes.
    #[error("has {0} attributes; a curve has 1 to {MAX_ATTRIBUTES}")]
    Attributes(usize),
    /// An attribute has too few or too many bits.
    #[error("has {0} bits; an attribute has 1 to {MAX_BITS}")]
    Bits(u8),
    /// The attributes have too many bits together.
    #[error("have {0} bits together; an address has at most {MAX_ADDRESS_BITS}")]
    AddressBits(u32),
}

impl Curve {
    /// Makes the curve of attributes with these widths in bits.
    pub fn new(widths: Vec<u8>) -> Result<Self, CurveError> {
        if !(1..=MAX_ATTRIBUTES).contains(&widths.len()) {
            return Err(CurveError::Attributes(widths.len()));
        }
        if let Some(width) = widths.iter().find(|width| !(1..=MAX_BITS).contains(*width)) {
            return Err(CurveError::Bits(*width));
        }

        let sum: u32 = widths.iter().map(|width| u32::from(*width)).sum();
        if sum > MAX_ADDRESS_BITS {
            return Err(CurveError::AddressBits(sum));
        }

        let rounds = 1..=widths.iter().copied().max().expect("there is one");
        let bits = rounds.flat_map(|round| {
            let attributes = widths.iter().enumerate();
            attributes
                .filter_map(move |(attribute, width)| Some((attribute, width.checked_sub(round)?)))
        });
        let bits = bits.collect();
        Ok(Self { widths, bits })
    }

    /// The number of bits of each attribute.
    pub fn widths(&self) -> &[u8] {
        &self.widths
    }

    /// The largest value of an attribute.
    pub fn max_of(&self, attribute: usize) -> u64 {
        max_of(self.widths[attribute])
    }

    /// The number of bytes of an address.
    pub fn address_bytes(&self) -> usize {
        self.bits.len().div_ceil(8)
    }

    /// The address of a point, which has a value for each attribute.
    pub fn address(&self, point: &[u64]) -> u64 {
        let bit = |(attribute, bit): &(usize, u8)| point[*attribute] >> bit & 1;
        self.bits.iter().fold(0, |address, place| address << 1 | bit(place))
    }

    /// The point at an address.
    pub fn point(&self, address: u64) -> Vec<u64> {
        let mut point = vec![0; self.widths.len()];
        for (n, (attribute, bit)) in self.bits.iter().rev().enumerate() {
            point[*attribute] |= (address >> n & 1) << bit;
        }
        point
    }

    /// All addresses.
    pub fn addresses(&self) -> RangeInclusive<u64> {
        0..=self.below(0)
    }

    /// The origin of each bit of an address, the highest bit first: an attribute, and a bit of its value.
    pub(super) fn bits(&self) -> &[(usize, u8)] {
        &self.bits
    }

    /// The largest number that fits into the bits of an address after the highest `depth` bits.
    pub(super) fn below(&self, depth: usize) -> u64 {
        let left = self.bits.len() - depth;
        u32::try_from(left)
            .ok()
            .and_then(|left| 1_u64.checked_shl(left))
            .map_or(u64::MAX, |n| n - 1)
    }
}

/// The largest number that has `bits` bits.
pub(super) const fn max_of(bits: u8) -> u64 {
    u64::MAX >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_highest_bits_come_first_and_a_narrow_attribute_is_passed_over() {
        let curve = Curve::new(vec![3, 1, 2]).expect("a curve");
        assert_eq!(curve.address(&[0b100, 0, 0]), 0b10_0000);
        assert_eq!(curve.address(&[0, 1, 0]), 0b01_0000);
        assert_eq!(curve.address(&[0, 0, 0b11]), 0b00_1010);
        assert_eq!(curve.address(&[0b011, 0, 0]), 0b00_0101);
        assert_eq!((curve.addresses(), curve.address_bytes()), (0..=0b11_1111, 1));
        let full = Curve::new(vec![32, 32]).expect("a curve");
        assert_eq!((full.addresses(), full.address_bytes()), (0..=u64::MAX, 8));
    }

    #[test]
    fn widths_that_make_no_curve_are_refused() {
        assert_eq!(Curve::new(vec![]), Err(CurveError::Attributes(0)));
        assert_eq!(Curve::new(vec![1; 9]), Err(CurveError::Attributes(9)));
        assert_eq!(Curve::new(vec![4, 0]), Err(CurveError::Bits(0)));
        assert_eq!(Curve::new(vec![33]), Err(CurveError::Bits(33)));
        assert_eq!(Curve::new(vec![32, 32, 1]), Err(CurveError::AddressBits(65)));
    }

    proptest! {
        #[test]
        fn a_point_comes_back_from_its_address(
            widths in prop::collection::vec(1_u8..=16, 1..=4),
            values in prop::collection::vec(any::<u64>(), 4),
        ) {
            let curve = Curve::new(widths.clone()).expect("at most 64 bits");
            let point: Vec<u64> =
                widths.iter().zip(values).map(|(width, value)| value & max_of(*width)).collect();
            let address = curve.address(&point);
            prop_assert!(curve.addresses().contains(&address));
            prop_assert_eq!(curve.point(address), point);
        }

        /// Then the corners of a box have the smallest and the largest address in it.
        #[test]
        fn a_point_that_is_nowhere_smaller_has_no_smaller_address(
            low in prop::collection::vec(0_u64..16, 3),
            more in prop::collection::vec(0_u64..16, 3),
        ) {
            let curve = Curve::new(vec![5, 6, 5]).expect("a curve");
            let high: Vec<u64> = low.iter().zip(&more).map(|(low, more)| low + more).collect();
            prop_assert!(curve.address(&low) <= curve.address(&high));
        }
    }
}
