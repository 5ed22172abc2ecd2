//! How a sender wants its readings written, and in whose words it is answered. Stores nothing.

/// How the readings of a request are written.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct StoreOptions {
    /// Whether a reading with a timestamp sets its metrics and leaves the stored ones of the same device and
    /// timestamp.
    pub(crate) merge: bool,
    /// Whether rooms stay as they are sent: they are history that the registry does not know.
    pub(crate) keeps_rooms: bool,
    /// Whether nothing is stored where anything is refused.
    pub(crate) all_or_nothing: bool,
}

/// In whose words a refusal is said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum ReplyDialect {
    #[default]
    Native,
    /// A client of `InfluxDB` knows by these words that it need not send again.
    InfluxDb,
}
