//! A data directory that a command makes, and removes again if no reading was stored. Opens no table.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::engine;

/// A directory that had no data before it was opened.
#[derive(Debug)]
pub struct NewDirectory {
    path: PathBuf,
    /// The directories that did not exist, the innermost first.
    missing: Vec<PathBuf>,
}

impl NewDirectory {
    /// Inspects a directory before it is opened; `None` if it has data or is a file.
    pub fn of(path: &Path) -> Option<Self> {
        // A broken link exists, too.
        let is_missing = |path: &Path| fs::symlink_metadata(path).is_err();
        if engine::has_files(path) || (!is_missing(path) && !path.is_dir()) {
            return None;
        }
        let named = path.ancestors().filter(|named| !named.as_os_str().is_empty());
        let missing = named.take_while(|named| is_missing(named)).map(Path::to_owned).collect();
        Some(Self { path: path.to_owned(), missing })
    }

    /// Removes the new data, and the new directories that contain nothing else. Returns `false` and removes no data if
    /// another process has opened them meanwhile.
    pub fn remove(self) -> anyhow::Result<bool> {
        if self.path.exists() {
            let cannot = || format!("cannot remove {}", self.path.display());
            if !engine::remove_files(&self.path).with_context(cannot)? {
                return Ok(false);
            }
        }

        for directory in &self.missing {
            match engine::unless_gone(fs::remove_dir(directory)) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => break,
                removed => {
                    removed.with_context(|| format!("cannot remove {}", directory.display()))?;
                }
            }
        }

        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_new_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.txt");
        fs::write(&file, "precious").unwrap();
        assert!(NewDirectory::of(&file).is_none());
        assert!(NewDirectory::of(&directory.path().join("missing")).is_some());
    }

    #[test]
    #[cfg(unix)]
    fn a_link_that_leads_nowhere_is_no_new_directory() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path().join("nowhere"), &link).unwrap();
        assert!(NewDirectory::of(&link).is_none());
        let within = NewDirectory::of(&link.join("data")).unwrap();
        assert_eq!(within.missing, [link.join("data")]);
    }
}
