//! The directory of temporary files: the free space, and errors if it is too small. Makes no file.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// The environment variable that sets another directory.
const VARIABLE: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// Fails if the directory of temporary files has less than `bytes` of free space.
pub fn ensure_room(taken_by: impl Display, bytes: u64) -> anyhow::Result<()> {
    let directory = tempfile::env::temp_dir();
    // If the free space is unknown, writing will fail instead.
    let free = free(&directory).unwrap_or(u64::MAX);
    ensure!(
        bytes <= free,
        "{taken_by} takes about {} in {}, which has {}; {VARIABLE} names another directory",
        megabytes(bytes),
        directory.display(),
        megabytes(free)
    );
    Ok(())
}

/// Adds the directory's free space to an error.
pub fn with_room<T>(
    result: anyhow::Result<T>,
    cannot: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    result.with_context(|| {
        let directory = tempfile::env::temp_dir();
        let free = free(&directory).map(|free| format!(", which has {}", megabytes(free)));
        let (cannot, free) = (cannot(), free.unwrap_or_default());
        let directory = directory.display();
        format!("{cannot} in {directory}{free}; {VARIABLE} names another directory")
    })
}

/// The free bytes of a directory; `None` if the system does not tell.
#[cfg(unix)]
fn free(directory: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(directory).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

#[cfg(not(unix))]
const fn free(_: &Path) -> Option<u64> {
    None
}

/// Writes a size in megabytes, rounded up.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn too_small_a_directory_is_named_with_what_it_has_and_what_moves_it() {
        ensure_room("nothing", 0).unwrap();
        let said = ensure_room("sorting", u64::MAX).unwrap_err().to_string();
        let directory = tempfile::env::temp_dir();
        let begin =
            format!("sorting takes about 18446744073710 MB in {}, which has ", directory.display());
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.ends_with(" MB; TMPDIR names another directory"), "{said}");
        let failed = Err::<(), _>(anyhow::anyhow!("No space left"));
        let said =
            format!("{:#}", with_room(failed, || "the copy does not fit".to_owned()).unwrap_err());
        let begin = format!("the copy does not fit in {}, which has ", directory.display());
        assert!(said.starts_with(&begin) && said.ends_with("directory: No space left"), "{said}");
    }
}
