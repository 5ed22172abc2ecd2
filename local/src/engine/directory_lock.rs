//! The lock of a data directory, held while an engine runs there.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;

use crate::private;

/// The name of the locked file. The file contains [`USED`] once the directory has a table.
pub(super) const LOCK: &str = "lock";
const USED: &[u8] = b"used\n";

/// The lock of a data directory; the operating system releases it when the process ends.
#[derive(Debug)]
pub(super) struct DirectoryLock(File);

impl DirectoryLock {
    /// Locks the directory for this process; `None` if another process has the lock.
    pub(super) fn take(directory: &Path) -> io::Result<Option<Self>> {
        let file = private::options().create(true).truncate(false).open(directory.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns whether the directory has ever had a table.
    pub(super) fn is_used(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.len() > 0)
    }

    /// Notes that the directory has a table.
    pub(super) fn mark_used(&self) -> io::Result<()> {
        if self.is_used()? { Ok(()) } else { (&self.0).write_all(USED) }
    }
}

impl Drop for DirectoryLock {
    /// Unlocks explicitly: closing the file is not enough. A child process that was started at this moment still has
    /// the file open. `flock(2)` keeps the lock until all copies are closed, or until one copy is unlocked.
    fn drop(&mut self) {
        // If unlocking fails, the lock ends with the process.
        let _ = self.0.unlock();
    }
}

/// Returns whether an engine holds the lock of this directory.
pub(super) fn is_taken(directory: &Path) -> bool {
    directory.join(LOCK).exists() && matches!(DirectoryLock::take(directory), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_process_with_the_file_keeps_nobody_out() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::take(directory.path()).unwrap().unwrap();
        let of_child = lock.0.try_clone().unwrap();
        assert!(is_taken(directory.path()));
        assert!(DirectoryLock::take(directory.path()).unwrap().is_none());

        drop(lock);
        assert!(!is_taken(directory.path()));
        assert!(DirectoryLock::take(directory.path()).unwrap().is_some());
        drop(of_child);
    }
}
