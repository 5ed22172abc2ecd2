//! A file that another program may still be writing, so that its last line may be incomplete. Reads no line.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The reason to refuse an incomplete last line.
pub const CUT: &str = "is the last line, without an end, of a file that is being written: it may be cut; import it again later";

/// A file that may grow, with its state when the import began. Clones share the note about an open last line.
#[derive(Debug, Clone, Default)]
pub struct Growing {
    path: PathBuf,
    /// The length and the time of the last write, if known; `None` for a stream.
    seen: Option<(u64, Option<SystemTime>)>,
    is_open_ended: Arc<AtomicBool>,
}

impl Growing {
    /// Notes the state of a file before its lines are read.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: look(path), ..Self::default() }
    }

    /// Returns whether a last line without a line end may be read, because nothing was written since the import began.
    /// If so, notes that there is such a line.
    pub fn takes_open_end(&self) -> bool {
        let is_same = look(&self.path) == self.seen;
        self.is_open_ended.store(is_same, Ordering::Relaxed);
        is_same
    }

    /// Returns the start of an error about a line: the file's name, or nothing for a text without a file.
    pub fn named(&self) -> String {
        if self.path.as_os_str().is_empty() {
            return String::new();
        }
        format!("{}: ", self.path.display())
    }

    /// The remark about a last line that was read without its line end.
    pub fn said(&self) -> Option<String> {
        self.is_open_ended.load(Ordering::Relaxed).then(|| {
            let is_standard_input = self.path == Path::new("-");
            let name = self.path.to_string_lossy();
            let name = if is_standard_input { "standard input" } else { &*name };
            format!("last line    of {name} has no end: if somebody still writes it, its last value may be cut")
        })
    }
}

/// The length of a file and the time of the last write; `None` for anything but a file.
fn look(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let is = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((is.len(), is.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a stream nothing tells whether its writer was cut off.
    #[test]
    fn the_last_line_of_a_stream_is_taken_and_it_is_said_that_it_has_no_end() {
        for (path, name) in [("-", "standard input"), ("/dev/null", "/dev/null")] {
            let growing = Growing::of(Path::new(path));
            assert_eq!(growing.said(), None, "before such a line");

            assert!(growing.takes_open_end(), "{path}");
            let said = growing.said().unwrap();
            assert!(said.starts_with(&format!("last line    of {name} has no end")), "{said}");
        }
    }
}
