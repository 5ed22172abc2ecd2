//! The server and the directory of a command that names neither. Opens nothing.

/// The address of a server that is started without options.
pub(crate) const SERVER: &str = "http://127.0.0.1:8080";
/// The default directory of the local data.
pub(crate) const DATA_DIR: &str = "roomtide-data";
