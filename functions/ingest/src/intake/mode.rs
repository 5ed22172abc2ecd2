//! How a sender wants its readings written, and in whose words it is answered. Stores nothing.

/// The way readings are written.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct Mode {
    /// Whether a reading with a timestamp sets its metrics and leaves the others of that device and
    /// timestamp, instead of replacing them.
    pub(crate) merge: bool,
    /// Whether rooms are taken as they are sent: they are history that the registry does not know.
    pub(crate) rooms_given: bool,
    /// Whether nothing is stored where anything is refused.
    pub(crate) is_whole: bool,
}

/// Whose words a refusal has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Words {
    #[default]
    Native,
    /// By these a client of `InfluxDB` knows that it need not send again.
    InfluxDb,
}
