//! The condition of a put on the item under its key. Says nothing of the item that is put.

/// The item that a conditional put expects under its key; the put is refused if there is another.
///
/// Of two writers that read the same item, only the first writes. The second is refused and reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Expected {
    /// No item.
    Absent,
    /// Any item, for an item that cannot be read and so has no known version.
    Present,
    /// An item whose [`VERSION`](crate::item::attribute::VERSION) is this number. An item without a
    /// version is refused.
    Version(u64),
}

impl Expected {
    /// What a put of an item with this version expects, where versions count the puts from 1.
    pub const fn before(version: u64) -> Self {
        match version {
            0 | 1 => Self::Absent,
            later => Self::Version(later - 1),
        }
    }
}
