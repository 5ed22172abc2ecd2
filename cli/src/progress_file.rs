//! A file that is replaced as a whole, as one that keeps how far a command came. Chooses no place for it, and replaces
//! nothing that is of others.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use local::{DataDirectory, private};
use serde::de::DeserializeOwned;

/// Writes the file. Only the owner can read the file. A crash, also of the machine, leaves either the old file or the
/// new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = new_beside(path);
    let replaced = write(&new, bytes).and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // On a full disk each attempt would leave one more. What is wrong with the disk is said by the first error.
        let _ = fs::remove_file(&new);
    }
    replaced
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private::options().create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Checks that the file can be written, before anything is done whose progress it keeps. Leaves it as it is.
pub(crate) fn ensure_writable(path: &Path) -> io::Result<()> {
    let new = new_beside(path);
    private::options().create(true).truncate(true).open(&new)?;
    fs::remove_file(&new)
}

/// Progress that no other process of this program keeps in the same file meanwhile, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldProgress {
    lock: File,
    lock_path: PathBuf,
}

impl HeldProgress {
    /// Locks a file beside that of the progress, which is replaced again and again. Fails if another process has it.
    pub(crate) fn take(progress: &Path) -> anyhow::Result<Self> {
        let lock_path = with_suffix(progress, "-lock");
        loop {
            let lock = private::options().create(true).truncate(false).open(&lock_path);
            let lock = lock.with_context(|| cannot_write(progress))?;
            // Where a drive knows no locks, no other process gets one either.
            if let Err(TryLockError::WouldBlock) = lock.try_lock() {
                bail!(
                    "{} keeps how far another command comes that is under way; {ELSEWHERE}",
                    progress.display()
                );
            }

            let held = Self { lock, lock_path: lock_path.clone() };
            // The process that held it before may have removed its name meanwhile.
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

    /// A file that is open keeps its name.
    #[cfg(not(unix))]
    const fn has_name(&self) -> bool {
        true
    }
}

impl Drop for HeldProgress {
    fn drop(&mut self) {
        // If another process takes it at once, it finds no name and takes the next one.
        if self.has_name() {
            drop(fs::remove_file(&self.lock_path));
        }
    }
}

/// Checks that nothing is lost if a path is replaced by a file: what is no file is left as it is, and so are a link and
/// the files of a data directory.
pub(crate) fn ensure_file(path: &Path) -> anyhow::Result<()> {
    // What cannot be looked at cannot be written either, which says more.
    let is_other = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
    ensure!(!is_other, "{} is no regular file, and is not replaced", path.display());

    let is_data = DataDirectory::has_file(path);
    ensure!(!is_data, "{} is of Roomtide's own data, and is not replaced", path.display());
    Ok(())
}

/// Checks that progress of the form `T` can be kept in a file, before anything is done: what is there is such progress,
/// or empty, and not of others.
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

/// Checks that a file keeps no progress of something else, which would be lost. `kept` is what the file says of its
/// progress; that of an earlier version says nothing.
pub(crate) fn ensure_same(path: &Path, kept: Option<&str>, wanted: &str) -> anyhow::Result<()> {
    if let Some(kept) = kept.filter(|kept| *kept != wanted) {
        bail!(
            "{} keeps how far {kept} came, and {wanted} does not replace it; {ELSEWHERE}, and --again gives it up",
            path.display()
        );
    }
    Ok(())
}

/// Part of an error: the progress cannot be kept.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; {ELSEWHERE}", path.display())
}

const ELSEWHERE: &str = "--state FILE keeps it elsewhere";

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
            let expected = format!("{} is no regular file", place(name).display());
            assert!(error.contains(&expected) && error.contains("--state"), "{error}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 10, "nothing is left behind");
    }
}
