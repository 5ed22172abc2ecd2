//! Removes what a killed export left behind. Writes no export.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use domain::Timestamp;

/// The prefix of the names of unfinished files.
pub(super) const PREFIX: &str = ".roomtide-export-";
pub(super) const SUFFIX: &str = ".part";
/// The minimum age for a removal, in milliseconds, because some network drives know no locks.
const MIN_AGE: i64 = 3_600_000;

/// Removes unfinished files that no process has locked.
pub(super) fn remove_abandoned(directory: &Path, now: Timestamp) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| is_unfinished(&entry.file_name())) {
        // A failed removal does not hinder this export.
        drop(remove_if_abandoned(&entry.path(), now));
    }
}

fn is_unfinished(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

fn remove_if_abandoned(path: &Path, now: Timestamp) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let modified = i64::try_from(modified.as_millis()).map_err(io::Error::other)?;
    if now.as_millis().saturating_sub(modified) < MIN_AGE {
        return Ok(());
    }

    if !metadata.is_file() || File::open(path)?.try_lock().is_err() {
        return Ok(());
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_export_left_is_removed_and_what_is_held_or_young_stays() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let [abandoned, held, other] =
            [".roomtide-export-a.part", ".roomtide-export-b.part", "c.part"].map(place);
        for file in [&abandoned, &held, &other] {
            fs::write(file, "x").unwrap();
        }
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        let modified = fs::metadata(&abandoned).unwrap().modified().unwrap();
        let millis = modified.duration_since(UNIX_EPOCH).unwrap().as_millis();
        let after = |millis_later: i64| {
            Timestamp::from_millis(i64::try_from(millis).unwrap() + millis_later).unwrap()
        };
        let left = || fs::read_dir(directory.path()).unwrap().count();

        remove_abandoned(directory.path(), after(MIN_AGE / 2));
        assert_eq!(left(), 3, "all are young");

        remove_abandoned(directory.path(), after(2 * MIN_AGE));
        assert!(!abandoned.exists());
        assert_eq!(left(), 2, "the others stay");
    }
}
