//! The condition of a put on the item under its key. Says nothing of the item that is put.

/// The item that a conditional put expects under its key; the put is refused if there is another.
///
/// Two writers that read the same item both expect what they read, so only the first of them writes.
/// The second reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No item.
    Absent,
    /// Any item. It is for one that cannot be read: nobody can tell its version.
    Present,
    /// An item whose [`VERSION`](crate::item::attribute::VERSION) is this number. An item without a
    /// version is refused.
    Version(u64),
}

impl Expected {
    /// What a put of an item with this version expects, where versions count the puts from 1.
    #[must_use]
    pub const fn before(version: u64) -> Self {
        match version {
            0 | 1 => Self::Absent,
            later => Self::Version(later - 1),
        }
    }
}
