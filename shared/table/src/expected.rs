//! The condition that a put makes on the stored item under its key. Says nothing of the new item.

/// The item that a conditional put expects under its key. The put is refused if another item is stored.
///
/// Of two writers that read the same item, only the first writes. The second is refused and reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Expected {
    /// No item.
    Absent,
    /// Any item. There must be one. This serves to replace an unreadable item, whose version is not known.
    Present,
    /// An item whose [`VERSION`](crate::item::attribute::VERSION) is this number. An item without a
    /// version is refused.
    Version(u64),
}

impl Expected {
    /// The item that a put of this version expects: the previous version, or no item before version 1.
    pub const fn before(version: u64) -> Self {
        match version {
            0 | 1 => Self::Absent,
            later => Self::Version(later - 1),
        }
    }
}
