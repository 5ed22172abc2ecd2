//! Z-order: addresses that interleave the bits of several attributes. A box, one range of values for each attribute, is
//! then a few ranges of addresses. Knows no metric and no table.
//!
//! A monotone function encodes an attribute to a fixed number of bits ([`encode`]). A [`Curve`] interleaves the bits of
//! all attributes, the highest first. A [`Region`] is a box: [`Curve::ranges`] splits it into ranges of addresses, and
//! [`Curve::next_inside`] finds the next address inside.

mod curve;
pub mod encode;
mod next_inside;
mod ranges;
mod region;

pub use curve::{Curve, CurveError, MAX_ADDRESS_BITS, MAX_ATTRIBUTES, MAX_BITS};
pub use region::Region;
