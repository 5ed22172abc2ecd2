//! A file that keeps how far a command came, for the next run of the same command. Chooses no place for it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use local::private;

/// Writes the file. Only its owner can read it, and a crash leaves either the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = new_beside(path);
    private::options().create(true).truncate(true).open(&new)?.write_all(bytes)?;
    fs::rename(&new, path)
}

/// Checks that the file can be written, before anything is done whose progress it keeps. Leaves it as it is.
pub(crate) fn ensure_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let new = new_beside(path);
    private::options().create(true).truncate(true).open(&new)?;
    fs::remove_file(&new)
}

/// The name of what becomes the file. Two processes that write the same file do not meet.
fn new_beside(path: &Path) -> PathBuf {
    with_suffix(path, &format!("-new{}", std::process::id()))
}

/// Appends to the name of a file.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
