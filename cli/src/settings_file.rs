//! A file of settings: read from where a person names it, be it standard input, and written in its place. Knows no setting.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::Value;

use crate::output::print;
use crate::progress_file;

/// A file of JSON.
pub(crate) fn json(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    serde_json::from_str(&content(path)?).with_context(|| format!("{name} is not JSON"))
}

/// The text of a file.
pub(crate) fn content(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {name}"))
}

/// Writes what is exported to a file, else to standard output.
pub(crate) fn export(to: Option<&Path>, text: &str) -> anyhow::Result<ExitCode> {
    match to {
        Some(to) => write(to, text.as_bytes())?,
        None => print(text.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a file: the old one stays where the new one cannot be written. A device, a pipe or a link stays what it is.
fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let is_replaced = fs::symlink_metadata(to).map_or(true, |found| found.is_file());
    let written = if is_replaced {
        progress_file::ensure_file(to)?;
        progress_file::replace(to, bytes)
    } else {
        fs::write(to, bytes)
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

        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        write(Path::new("/dev/full"), b"new").unwrap_err();
    }
}
