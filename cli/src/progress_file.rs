//! A file that is always replaced as a whole, such as a command's progress. Chooses no path, and never replaces a file
//! of another program.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use local::{DataDirectory, private};
use serde::de::DeserializeOwned;

/// Writes the file, readable only for its owner. A crash, even of the machine, leaves either the old file or the new
/// one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = new_beside(path);
    let replaced = write(&new, bytes).and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // On a full disk each attempt would leave another file. The first error describes the disk's problem.
        let _ = fs::remove_file(&new);
    }
    replaced
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private::options().create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Checks that the file can be written, before the work begins whose progress it keeps. Leaves the file unchanged.
pub(crate) fn ensure_writable(path: &Path) -> io::Result<()> {
    let new = new_beside(path);
    private::options().create(true).truncate(true).open(&new)?;
    fs::remove_file(&new)
}

/// A lock on a progress file: until it is dropped, no other process of this program uses the same file.
#[derive(Debug)]
pub(crate) struct HeldProgress {
    lock: File,
    lock_path: PathBuf,
}

impl HeldProgress {
    /// Locks a separate file, because the progress file is replaced again and again. Fails if another process has the
    /// lock.
    pub(crate) fn take(progress: &Path) -> anyhow::Result<Self> {
        let lock_path = with_suffix(progress, "-lock");
        loop {
            let lock = private::options().create(true).truncate(false).open(&lock_path);
            let lock = lock.with_context(|| cannot_write(progress))?;
            // On a drive without locks, no other process gets a lock either.
            if let Err(TryLockError::WouldBlock) = lock.try_lock() {
                bail!(
                    "{} keeps how far another command comes that is under way; {ELSEWHERE}",
                    progress.display()
                );
            }

            let held = Self { lock, lock_path: lock_path.clone() };
            // The previous holder may have removed the lock file after it was opened here.
            if held.has_name() {
                return Ok(held);
            }
        }
    }

    #[cfg(unix)]
    fn has_name(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;

        let inode = |found: fs::Metadata| (found.dev(), found.ino());
        self.lock.metadata().map(inode).ok() == fs::metadata(&self.lock_path).map(inode).ok()
    }

    /// On this system, an open file cannot lose its name.
    #[cfg(not(unix))]
    const fn has_name(&self) -> bool {
        true
    }
}

impl Drop for HeldProgress {
    fn drop(&mut self) {
        // A process that locks the file at this moment notices that the name is gone, and tries again.
        if self.has_name() {
            drop(fs::remove_file(&self.lock_path));
        }
    }
}

/// Checks that a path may be replaced by a file without a loss. Refuses everything that is not a regular file, links,
/// and the files of a data directory.
pub(crate) fn ensure_file(path: &Path) -> anyhow::Result<()> {
    // A path that cannot be inspected cannot be written either, and that error says more.
    let is_other = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
    ensure!(!is_other, "{} is not a regular file, and is not replaced", path.display());

    let is_data = DataDirectory::has_file(path);
    ensure!(!is_data, "{} is of Roomtide's own data, and is not replaced", path.display());
    Ok(())
}

/// Checks that a file may keep progress of the form `T`, before the work begins: the file has such progress, or is
/// empty or absent.
pub(crate) fn ensure_ours<T: DeserializeOwned>(path: &Path) -> anyhow::Result<()> {
    ensure_file(path).context(ELSEWHERE)?;
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read {}; {ELSEWHERE}", path.display()));
        }
        Ok(file) => {
            let mut values =
                serde_json::Deserializer::from_reader(BufReader::new(file)).into_iter::<T>();
            if let Some(Err(_)) = values.next() {
                bail!(
                    "{} has something else than the progress of this command, and is not replaced; {ELSEWHERE}",
                    path.display()
                );
            }
        }
    }

    ensure_writable(path).with_context(|| cannot_write(path))
}

/// Checks that a file does not keep the progress of another command, which would be lost. `kept` is the command that
/// the file names; a file of an earlier version names none.
pub(crate) fn ensure_same(path: &Path, kept: Option<&str>, wanted: &str) -> anyhow::Result<()> {
    if let Some(kept) = kept.filter(|kept| *kept != wanted) {
        bail!(
            "{} keeps how far {kept} came, and {wanted} does not replace it; {ELSEWHERE}, and --again gives it up",
            path.display()
        );
    }
    Ok(())
}

/// The start of an error: the progress cannot be saved.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; {ELSEWHERE}", path.display())
}

const ELSEWHERE: &str = "--state FILE keeps it elsewhere";

/// The name of the temporary file. It differs between processes that write the same file.
fn new_beside(path: &Path) -> PathBuf {
    with_suffix(path, &format!("-new{}", std::process::id()))
}

/// Appends a suffix to the file name of a path.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir_all(path.join("by a directory")).unwrap();
        replace(&path, b"[1]").unwrap_err();
        let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left, [path]);
    }

    #[test]
    fn progress_that_another_command_keeps_is_named_until_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let held = HeldProgress::take(&path).unwrap();
        let error = HeldProgress::take(&path).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        assert!(error.contains("under way") && error.contains("--state"), "{error}");

        drop(held);
        drop(HeldProgress::take(&path).unwrap());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_progress_stays_as_it_is_and_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let check = |name: &str| ensure_ours::<Vec<u8>>(&place(name));
        for (name, text) in [("a.csv", "timestamp,t\n1,2\n"), ("b.json", "{\"a\": 1}"), ("c", "[1")]
        {
            fs::write(place(name), text).unwrap();
            let error = format!("{:#}", check(name).unwrap_err());
            let expected = format!("{} has something else", place(name).display());
            assert!(error.starts_with(&expected) && error.contains("--state"), "{error}");
            assert_eq!(fs::read_to_string(place(name)).unwrap(), text);
        }
        for (name, text) in [("ours", "[1, 2]"), ("lines", "[1]\n{}\n"), ("empty", "")] {
            fs::write(place(name), text).unwrap();
            check(name).unwrap();
            assert_eq!(fs::read_to_string(place(name)).unwrap(), text);
        }
        check("new").unwrap();
        fs::create_dir(place("directory")).unwrap();
        std::os::unix::fs::symlink(place("ours"), place("link")).unwrap();
        std::os::unix::fs::symlink(place("nothing"), place("broken")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(place("fifo")).status().unwrap();
        assert!(made.success());
        for name in ["directory", "link", "broken", "fifo"] {
            let error = format!("{:#}", check(name).unwrap_err());
            let expected = format!("{} is not a regular file", place(name).display());
            assert!(error.contains(&expected) && error.contains("--state"), "{error}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 10, "nothing is left behind");
    }
}
