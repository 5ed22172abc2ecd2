//! Numbers of at most 18 digits, as most measured values are: integer arithmetic without allocation. For longer numbers
//! there is [`Exact`](crate::Exact).

use std::cmp::Ordering;

use smol_str::{SmolStr, format_smolstr};

/// The largest number of digits, and the largest number of digits after the point.
const MAX_DIGITS: u32 = 18;
/// The significant digits of a quotient.
const QUOTIENT_DIGITS: u32 = 15;

/// The number `digits` / 10^`scale`. Each number has only one form: the last digit after the point is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Small {
    digits: i64,
    scale: u32,
}

impl Small {
    pub(crate) const ZERO: Self = Self { digits: 0, scale: 0 };

    /// `digits` / 10^`scale`; `None` if the result is not a small number.
    pub(crate) fn new(digits: i128, scale: i64) -> Option<Self> {
        let (mut digits, mut scale) = match u32::try_from(scale) {
            Ok(scale) => (digits, scale),
            Err(_) => {
                let zeros = u32::try_from(scale.unsigned_abs())
                    .ok()
                    .filter(|zeros| *zeros <= MAX_DIGITS)?;
                (digits.checked_mul(power(zeros))?, 0)
            }
        };
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }

        let is_small = digits.unsigned_abs() < power(MAX_DIGITS).unsigned_abs();
        let digits = i64::try_from(digits).ok().filter(|_| is_small && scale <= MAX_DIGITS)?;
        Some(Self { digits, scale })
    }

    /// Reads a number in plain notation; `None` for a longer number, for another notation, and for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let length = whole.len() + fraction.len();
        if length == 0 || length > MAX_DIGITS as usize {
            return None;
        }

        let mut digits = 0;
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits = digits * 10 + i128::from(char::from(byte).to_digit(10)?);
        }
        let sign = if unsigned.len() < text.len() { -1 } else { 1 };
        Self::new(sign * digits, i64::try_from(fraction.len()).ok()?)
    }

    pub(crate) fn digits(self) -> i64 {
        self.digits
    }

    pub(crate) fn scale(self) -> u32 {
        self.scale
    }

    /// The digits of both numbers at a common scale, and this scale.
    fn aligned(self, other: Self) -> (i128, i128, u32) {
        let scale = self.scale.max(other.scale);
        let at = |number: Self| i128::from(number.digits) * power(scale - number.scale);
        (at(self), at(other), scale)
    }

    /// The digits of the sum, and their scale.
    pub(crate) fn sum(self, other: Self) -> (i128, i64) {
        let (one, two, scale) = self.aligned(other);
        (one + two, scale.into())
    }

    /// The digits of the difference, and their scale.
    pub(crate) fn difference(self, other: Self) -> (i128, i64) {
        let (one, two, scale) = self.aligned(other);
        (one - two, scale.into())
    }

    /// The digits of the product, and their scale.
    pub(crate) fn product(self, other: Self) -> (i128, i64) {
        let scale = self.scale + other.scale;
        (i128::from(self.digits) * i128::from(other.digits), scale.into())
    }

    /// The quotient, rounded half to even to 15 significant digits. `None` if the divisor is zero or the quotient is
    /// not a small number.
    pub(crate) fn rounded_quotient(self, divisor: Self) -> Option<Self> {
        if divisor.digits == 0 {
            return None;
        }

        let length = |number: Self| {
            let log = number.digits.unsigned_abs().checked_ilog10();
            log.map_or(1, |log| i64::from(log) + 1)
        };
        // With this shift, the quotient of the digits has 15 or 16 digits.
        let mut shift = i64::from(QUOTIENT_DIGITS) + length(divisor) - length(self);
        let shifted =
            |digits: i64, by: i64| i128::from(digits) * u32::try_from(by).map_or(1, power);
        let dividend = shifted(self.digits, shift);
        let mut divided_by = shifted(divisor.digits, -shift);
        if (dividend / divided_by).abs() >= power(QUOTIENT_DIGITS) {
            divided_by *= 10;
            shift -= 1;
        }

        let scale = i64::from(self.scale) - i64::from(divisor.scale) + shift;
        Self::new(half_even(dividend, divided_by), scale)
    }

    /// The number, rounded half to even to 15 significant digits. `None` if the result is not a small number.
    pub(crate) fn rounded(self) -> Option<Self> {
        let behind = self.digits.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
        let Some(behind) = behind.checked_sub(QUOTIENT_DIGITS) else { return Some(self) };
        Self::new(half_even(self.digits.into(), power(behind)) * power(behind), self.scale.into())
    }

    /// The number in plain notation.
    pub(crate) fn text(self) -> SmolStr {
        if self.scale == 0 {
            return format_smolstr!("{}", self.digits);
        }
        let sign = if self.digits < 0 { "-" } else { "" };
        let one = power(self.scale).unsigned_abs();
        let digits = u128::from(self.digits.unsigned_abs());
        let width = self.scale as usize;
        format_smolstr!("{sign}{}.{:0width$}", digits / one, digits % one)
    }
}

impl Ord for Small {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two, _) = self.aligned(*other);
        one.cmp(&two)
    }
}

impl PartialOrd for Small {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// 10^`exponent`, which is at most 38.
pub(crate) const fn power(exponent: u32) -> i128 {
    10_i128.pow(exponent)
}

/// The quotient of integers, rounded to an integer. A tie is rounded to the even integer.
fn half_even(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    let twice = rest.unsigned_abs() * 2;
    let is_up = match twice.cmp(&divisor.unsigned_abs()) {
        Ordering::Less => false,
        Ordering::Equal => quotient % 2 != 0,
        Ordering::Greater => true,
    };
    let away = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
    if is_up { quotient + away } else { quotient }
}
