//! Opens a database of SQLite, even while another program writes to it, and reads ahead of the import. Knows no table.

mod mounts;
mod output;

use std::fs::File;
use std::io::ErrorKind::{QuotaExceeded, StorageFull};
use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, bail};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use crate::notes::Notes;
use crate::source::HistorySource;
use crate::temporary::{ensure_room, with_room};
use mounts::network_drive;
pub(crate) use output::PointOutput;

/// The first bytes of a SQLite database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";
/// Copies all pages in one step. With several steps the copy would start over at each write of another program; Home
/// Assistant writes every five seconds: <https://sqlite.org/c3ref/backup_finish.html>.
const ALL_PAGES: i32 = -1;

/// The number of points that are read ahead.
const AHEAD: usize = 4_096;

/// An open database. If it is a temporary copy, also the directory of the copy.
pub struct Database {
    pub(crate) connection: Connection,
    /// The name of the file that the user named.
    pub(crate) name: String,
    /// The directory of the copy and of SQLite's files beside it. Removed when the database is closed.
    _copy: Option<TempDir>,
}

/// The file name of a copy.
const COPY: &str = "copy.db";

impl Database {
    /// Opens a database. SQLite itself copies a database in use into the directory, because a copy of the file alone
    /// would lose the content of its write-ahead log.
    pub fn open(path: &Path, directory: TempDir) -> anyhow::Result<Self> {
        let shown = path.display();
        if let Some(kind) = network_drive(path) {
            bail!(
                "{shown} is on a network drive ({kind}), where SQLite's locks do not hold; import a backup, or run \
                 this command on the machine that has the file"
            );
        }

        let context = || format!("{shown} cannot be read as a database");
        let source = read_only(path).with_context(context)?;

        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = Path::new(&log);
        if !log.exists() {
            source
                .query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
                .with_context(context)?;
            return Ok(Self { connection: source, name: shown.to_string(), _copy: None });
        }

        let bytes =
            [path, log].map(|file| std::fs::metadata(file).map_or(0, |metadata| metadata.len()));
        let taken_by = format_args!("{shown} is in use; a copy");
        ensure_room(taken_by, bytes.iter().sum())?;

        let no_copy = || format!("{shown} is in use and cannot be copied to a file");
        let mut target = Connection::open(directory.path().join(COPY))?;
        let copied = Backup::new(&source, &mut target).and_then(|backup| backup.step(ALL_PAGES));
        with_room(copied.map_err(Into::into), no_copy)?;
        Ok(Self { connection: target, name: shown.to_string(), _copy: Some(directory) })
    }

    /// Opens a database that comes from a reader, such as a compressed file, and unpacks it into the directory.
    pub fn unpack(mut reader: impl Read, shown: &Path, directory: TempDir) -> anyhow::Result<Self> {
        let cannot = || format!("{} cannot be unpacked into a file", shown.display());
        let file = File::create(directory.path().join(COPY)).map_err(Into::into);
        let mut file = with_room(file, cannot)?;

        match std::io::copy(&mut reader, &mut file) {
            // The file is cut, for example, so another directory would not help.
            Err(error) if !matches!(error.kind(), StorageFull | QuotaExceeded) => {
                return Err(error).with_context(|| format!("{} cannot be read", shown.display()));
            }
            unpacked => with_room(unpacked.map_err(Into::into), cannot)?,
        };
        Self::in_directory(directory, COPY, shown)
    }

    /// Opens a database in a directory, which is removed when the database is closed.
    pub(crate) fn in_directory(
        directory: TempDir,
        copy: &str,
        shown: &Path,
    ) -> anyhow::Result<Self> {
        let connection = read_only(&directory.path().join(copy))?;
        Ok(Self { connection, name: shown.display().to_string(), _copy: Some(directory) })
    }
}

/// Makes a source of the points that `read` sends from a database. A query borrows its connection, so `read` runs in a
/// thread of its own, and the points come through a channel.
pub(crate) fn source(
    database: Database,
    notes: Notes,
    read: impl FnOnce(&Connection, &PointOutput) -> anyhow::Result<()> + Send + 'static,
) -> HistorySource {
    let (points, taken) = mpsc::sync_channel(AHEAD);
    let output = PointOutput { points, notes: notes.clone() };
    thread::spawn(move || {
        // Moves the whole database: otherwise the closure would take the connection alone, and the copy would be
        // removed while it is read.
        let held = database;
        let context = || format!("{} cannot be read; is the database damaged?", held.name);
        if let Err(error) = read(&held.connection, &output).with_context(context) {
            drop(output.points.send(Err(error)));
        }
    });
    HistorySource::of_points(Box::new(taken.into_iter()), notes)
}

fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use tempfile::tempdir;

    use super::*;

    impl Database {
        /// Wraps an open connection.
        pub(crate) const fn of(connection: Connection) -> Self {
            Self { connection, name: String::new(), _copy: None }
        }
    }

    #[test]
    fn a_copy_stays_until_it_is_read() {
        let directory = tempdir().unwrap();
        let place = directory.path().to_owned();
        let connection = Connection::open_in_memory().unwrap();
        let database = Database { connection, name: String::new(), _copy: Some(directory) };
        let (permit, allowed) = mpsc::channel();
        let copy = place.clone();
        let source = source(database, Notes::default(), move |_, _| {
            allowed.recv()?;
            ensure!(copy.exists(), "the copy was removed before it was read");
            Ok(())
        });
        permit.send(()).unwrap();
        let points: anyhow::Result<Vec<_>> = source.into_points().0.collect();
        assert_eq!(points.unwrap(), []);
        assert!(!place.exists());
    }
}
