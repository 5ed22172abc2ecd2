//! What the tests of this package share: the SDK's own form of attributes, and a client with prepared answers.

pub(crate) mod attribute;
pub(crate) mod canned;
