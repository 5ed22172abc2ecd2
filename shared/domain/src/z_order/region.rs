//! A box in the attributes of a curve. Knows no address.

/// A box: a smallest and a largest value for each attribute, both inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The smallest value of each attribute.
    pub low: Vec<u64>,
    /// The largest value of each attribute, which is not below the smallest.
    pub high: Vec<u64>,
}

impl Region {
    /// Whether a point lies inside the box.
    pub fn contains(&self, point: &[u64]) -> bool {
        let bounds = self.low.iter().zip(&self.high);
        bounds.zip(point).all(|((low, high), value)| (low..=high).contains(&value))
    }

    /// The number of points in the box.
    pub(super) fn volume(&self) -> u128 {
        self.low.iter().zip(&self.high).map(|(low, high)| u128::from(high - low) + 1).product()
    }

    /// The box that two boxes have in common.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        let pairs = |a: &[u64], b: &[u64], of: fn(u64, u64) -> u64| -> Vec<u64> {
            a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect()
        };
        let low = pairs(&self.low, &other.low, u64::max);
        let high = pairs(&self.high, &other.high, u64::min);
        let is_any = low.iter().zip(&high).all(|(low, high)| low <= high);
        is_any.then_some(Self { low, high })
    }
}
