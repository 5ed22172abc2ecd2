//! A small file, as of settings or of a sample event, or standard input and output in its place. Knows no content.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use serde::de::DeserializeOwned;

use crate::output::print;
use crate::progress_file;

/// The name for standard input and output.
const STANDARD: &str = "-";
/// The maximum size of a file, because a device or a pipe may never end.
const MAX_LENGTH: u64 = 16 << 20;

/// Reads a file as JSON.
pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.display();
    serde_json::from_str(&content(path)?).with_context(|| format!("{name} is not JSON"))
}

/// Reads the text of a file.
pub(crate) fn content(path: &Path) -> anyhow::Result<String> {
    let (file, name) = open(path)?;
    let mut text = String::new();
    let read = file.take(MAX_LENGTH + 1).read_to_string(&mut text);
    let read = read.with_context(|| format!("cannot read {name}"))?;
    ensure!(read as u64 <= MAX_LENGTH, "{name} has more than 16 MiB");

    // Some editors write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Opens a file, or standard input. Returns its name, too.
pub(crate) fn open(path: &Path) -> anyhow::Result<(Box<dyn Read>, String)> {
    if path == Path::new(STANDARD) {
        return Ok((Box::new(io::stdin()), "standard input".to_owned()));
    }

    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    Ok((Box::new(file), name))
}

/// Writes an export to a file, or else to standard output.
pub(crate) fn export(to: Option<&Path>, text: &str) -> anyhow::Result<ExitCode> {
    match to.filter(|to| *to != Path::new(STANDARD)) {
        Some(to) => write(to, text.as_bytes())?,
        None => print(text.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file. If that fails, the old file stays. A device or a pipe is written directly, not replaced. Of a link,
/// the target is written.
fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let place = fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
    let is_replaced = fs::metadata(&place).map_or(true, |found| found.is_file());
    let written = if is_replaced {
        progress_file::ensure_file(&place)?;
        progress_file::replace(&place, bytes)
    } else {
        fs::write(&place, bytes)
    };
    written.with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn an_export_that_cannot_be_written_leaves_the_old_file_and_a_device_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("alerts.toml");
        fs::write(&file, "old").unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");

        // The name of the new file beside it is too long.
        let long = directory.path().join("a".repeat(255));
        fs::write(&long, "old").unwrap();
        write(&long, b"new").unwrap_err();
        assert_eq!(fs::read_to_string(&long).unwrap(), "old");

        let link = directory.path().join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"newer").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "newer");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        let (data, to_data) =
            (directory.path().join("roomtide.db"), directory.path().join("b.toml"));
        fs::write(&data, "rows").unwrap();
        std::os::unix::fs::symlink(&data, &to_data).unwrap();
        write(&to_data, b"new").unwrap_err();
        assert_eq!(fs::read_to_string(&data).unwrap(), "rows");

        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        write(Path::new("/dev/full"), b"new").unwrap_err();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_of_settings_is_read_without_its_mark_and_not_without_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "\u{feff}{}").unwrap();
        assert_eq!(content(file.path()).unwrap(), "{}");
        let error = content(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero has more than 16 MiB");
    }
}
