//! Z-order: addresses that interleave the bits of several attributes, so that a box in the attributes is a few
//! ranges of addresses. Knows no metric and no table.
//!
//! An attribute is encoded to a fixed number of bits by a monotone function ([`encode`]). A [`Curve`]
//! interleaves the bits of all attributes, the highest first. A [`Region`] is a box: [`Curve::ranges`] splits
//! it into ranges of addresses, and [`Curve::next_inside`] finds the next address inside.

mod curve;
pub mod encode;
mod next_inside;
mod ranges;
mod region;

pub use curve::{Curve, CurveError, MAX_ADDRESS_BITS, MAX_ATTRIBUTES, MAX_BITS};
pub use region::Region;
