//! Encodes values to a fixed number of bits, so that a greater value never has a smaller code. Interleaves nothing.
//!
//! So all values of a box have codes between the codes of its corners. Two values may have the same code. Values that
//! are found by their codes must therefore be compared themselves.

use super::curve::max_of;

/// The code of a whole number from 0 on. A number that is too large has the largest code.
pub fn unsigned(value: u64, bits: u8) -> u64 {
    value.min(max_of(bits))
}

/// The code of a whole number: two's complement with the sign bit flipped. A number that is too small or too large has
/// the smallest or the largest code.
pub fn signed(value: i64, bits: u8) -> u64 {
    let half = i64::try_from(max_of(bits) / 2).expect("at most 62 bits are left");
    let value = value.clamp(-half - 1, half);
    // The sum is from 0 to the largest code, so the cast does not change it.
    value.wrapping_add(half + 1).cast_unsigned()
}

/// The code of a floating-point number: its highest bits. The sign bit is flipped, and all other bits too if the number
/// is negative. -0 counts as 0.
///
/// The highest bits of measured values hardly differ; [`scaled`] tells such values apart better.
pub fn float(value: f64, bits: u8) -> u64 {
    let code = (value + 0.0).to_bits();
    let ordered = if code >> 63 == 1 { !code } else { code | 1 << 63 };
    ordered >> (64 - bits)
}

/// The code of a number by its position among at least two knots in rising order. Between any two neighbouring knots
/// there are equally many codes. Numbers outside have the first or the last code.
///
/// Two knots make a linear scale. With quantiles of the values as knots, all codes are used about equally often.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each step rounds without changing the order, and the product is from 0 to 2^32"
)]
pub fn scaled(value: f64, knots: &[f64], bits: u8) -> u64 {
    let above = knots.partition_point(|knot| *knot <= value);
    let intervals = knots.len() - 1;
    let place = match above {
        0 => 0.0,
        above if above > intervals => intervals as f64,
        above => {
            let (from, to) = (knots[above - 1], knots[above]);
            (above - 1) as f64 + ((value - from) / (to - from)).min(1.0)
        }
    };
    (place / intervals as f64 * max_of(bits) as f64).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::z_order::MAX_BITS;
    use proptest::prelude::*;

    /// Numbers of all sizes, with those at which encodings go wrong.
    fn number() -> impl Strategy<Value = f64> {
        let special = [
            0.0,
            -0.0,
            f64::MIN_POSITIVE,
            -f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
            f64::MAX,
            f64::MIN,
            f64::EPSILON,
            15.0,
            30.0,
        ];
        prop_oneof![
            prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
            0.0..40.0,
            prop::sample::select(special.to_vec())
        ]
    }

    fn knots() -> impl Strategy<Value = Vec<f64>> {
        let steps = prop::collection::vec(0.001..1e6, 2..10);
        (-1e6..1e6, steps).prop_map(|(first, steps)| {
            let mut at: f64 = first;
            steps
                .iter()
                .map(|step| {
                    at += step;
                    at
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_greater_number_has_no_smaller_code(
            one in number(),
            other in number(),
            knots in knots(),
            bits in 1..=MAX_BITS,
        ) {
            let (less, more) = (one.min(other), one.max(other));
            prop_assert!(float(less, bits) <= float(more, bits));
            prop_assert!(scaled(less, &knots, bits) <= scaled(more, &knots, bits));
            prop_assert!(scaled(more, &knots, bits) <= max_of(bits));
            prop_assert!(float(more, bits) <= max_of(bits));
        }

        #[test]
        fn a_greater_whole_number_has_no_smaller_code_and_fits_its_bits(
            one in any::<i64>(),
            other in any::<i64>(),
            near in -70_i64..70,
            bits in 1..=MAX_BITS,
        ) {
            for (less, more) in [(one.min(other), one.max(other)), (near, near + 1)] {
                prop_assert!(signed(less, bits) <= signed(more, bits));
                prop_assert!(signed(more, bits) <= max_of(bits));
                let [one, other] = [less, more].map(i64::cast_unsigned);
                prop_assert!(unsigned(one.min(other), bits) <= unsigned(one.max(other), bits));
                prop_assert!(unsigned(one.max(other), bits) <= max_of(bits));
            }
        }
    }

    #[test]
    fn zero_has_one_code_and_ends_are_clamped() {
        assert_eq!(float(-0.0, 32), float(0.0, 32));
        assert_eq!(float(-5e-324, MAX_BITS) + 1, float(0.0, MAX_BITS));
        assert_eq!([-3, -2, -1, 0, 1, 2].map(|n| signed(n, 2)), [0, 0, 1, 2, 3, 3]);
        assert_eq!((unsigned(7, 3), unsigned(8, 3)), (7, 7));
        let of = |value| scaled(value, &[15.0, 30.0], 8);
        assert_eq!([-1e300, 15.0, 22.5, 29.99, 30.0, 1e300].map(of), [0, 0, 127, 254, 255, 255]);
    }

    #[test]
    fn quantiles_give_each_interval_as_many_codes() {
        let knots = [0.0, 1.0, 2.0, 10.0, 110.0];
        let of = |value| scaled(value, &knots, 8);
        assert_eq!([1.0, 2.0, 10.0, 60.0, 110.0].map(of), [63, 127, 191, 223, 255]);
    }
}
