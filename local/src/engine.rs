//! The embedded engine: its file, its lock, its threads and its table. Knows no reading and no function.
//!
//! The engine speaks `DynamoDB`'s own protocol over HTTP on a port of the loopback interface. The functions reach the
//! engine through the same SDK that reaches AWS, and so may any other tool that has the access key. Each start makes a
//! new key.
//!
//! # What a crash may lose
//!
//! Every write is part of one transaction in `SQLite`'s write-ahead log with `synchronous=NORMAL`. The engine
//! acknowledges a write after the commit. The transaction of a `BatchWriteItem` holds all items of the request, and of
//! other requests that waited at the same time (see `writer`). When the process is killed, no acknowledged write is
//! lost: the operating system has the log by then. When the machine itself stops (power, kernel), the file stays sound,
//! but the last writes may be missing if the operating system had not yet put them on the disk. `synchronous=FULL`
//! would close that gap for one sync to the disk per transaction. The local system does without: a lost reading can be
//! sent again.

mod directory_lock;
mod endpoint;
mod load;
mod queue;
mod range;
mod stream;
mod stream_positions;
mod throttle;
mod writer;

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws::{Credentials, StoreConfig};
use dynoxide::Database;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::types::AttributeValue;
use rusqlite::{Connection, ErrorCode};
use serde_json::Value;
use table::keys::{ALERT_RUNNING, CONDITIONS, LATE, READING_PREFIX, STATE};
use table::layout::{Index, Layout};
use tempfile::TempDir;
use tokio::sync::{Mutex, oneshot};

pub(crate) use load::{Load, NewItem, Unchanged};
pub(crate) use queue::{Queue, QueuedMessage};
pub(crate) use stream::{Stream, StreamRecord};

use crate::table_definition::{create_request, expiry_request, index_request};
use crate::warning::warn;
use crate::{Burst, Data, private};
use directory_lock::{DirectoryLock, LOCK};
use endpoint::Operations;
use range::Ranges;
use throttle::Throttle;
use writer::{Turns, Writer, WriterConnection};

/// The table's name on this machine.
const TABLE: &str = "roomtide";
/// The prefix of the names of the system's own files in a data directory, except the lock and the address.
pub(crate) const OWN_PREFIX: &str = "roomtide.";
/// The file from which other processes of this user read the engine's address and access key.
const ADDRESS: &str = "engine-address";
/// The number of checks of a directory in which another process is starting or ending, and the pause between them.
const CHECKS: u32 = 100;
const CHECK_PAUSE: Duration = Duration::from_millis(50);
/// After this number of checks, a process warns that it waits.
const CHECKS_BEFORE_WARNING: u32 = 20;

/// A running engine with its table.
pub struct Engine {
    database: Database,
    file: PathBuf,
    endpoint: String,
    key: String,
    stream: Arc<Stream>,
    turns: Turns,
    stop: oneshot::Sender<()>,
    threads: [JoinHandle<()>; 2],
    lock: DirectoryLock,
    scratch: Option<TempDir>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts an engine without the rest of the system, for tests and tools that need only tables. The data end with
    /// the engine. Blocks.
    pub fn in_memory() -> anyhow::Result<Self> {
        Self::start(&Data::Memory, None)
    }

    /// Opens or creates the data, makes the table if it is missing, and begins to answer requests.
    ///
    /// With a `burst`, requests beyond the deployed table's provisioned units are refused.
    pub(crate) fn start(data: &Data, burst: Option<Burst>) -> anyhow::Result<Self> {
        let (directory, scratch) = match data {
            // A temporary file, not SQLite's `:memory:`: a database in memory cannot be opened twice, and the stream
            // needs a connection of its own.
            Data::Memory => {
                let scratch = scratch().context("cannot make a temporary directory")?;
                (scratch.path().to_owned(), Some(scratch))
            }
            Data::Dir(directory) => (directory.clone(), None),
        };

        private::make_directory(&directory)
            .with_context(|| format!("cannot create the data directory {}", directory.display()))?;
        let lock = lock(&directory)?;
        ensure_not_emptied(&directory, &lock)?;
        forget_address(&directory).context("cannot remove the address of the last engine")?;
        make_private(&directory)?;

        let file = database_file(&directory);
        let database = open(&file).map_err(|error| explain(&error, &file))?;
        ensure_table(&database).context("cannot make the table")?;
        lock.mark_used().context("cannot note that there is data")?;

        let turns = Arc::new(Mutex::new(WriterConnection::open(file.clone())?));
        let stream = Arc::new(Stream::open(&database, Arc::clone(&turns), TABLE)?);
        let key = new_key()?;

        let (writer, writing) = Writer::start(Arc::clone(&turns))?;
        let throttle = burst.map(Throttle::new);
        let turns_of_others = Arc::clone(&turns);
        let ranges = Ranges::open(&file, TABLE).context("cannot read the file")?;
        let operations = Operations {
            database: database.clone(),
            ranges,
            writer,
            turns: turns_of_others,
            throttle,
        };
        let (endpoint, stop, serving) = serve(operations, key.clone())?;
        let threads = [serving, writing];

        // Written only under the lock, because `running` trusts the address in a locked directory.
        let address = format!("{endpoint}\n{key}\n{}\n", std::process::id());
        write_private(&directory.join(ADDRESS), &address)
            .context("cannot write the engine's address")?;

        Ok(Self { database, file, endpoint, key, stream, turns, stop, threads, lock, scratch })
    }

    /// Makes or removes an index.
    pub(crate) fn set_index(&self, index: &Index, wanted: bool) -> anyhow::Result<()> {
        if self.has_index(index)? != wanted {
            self.database.update_table(request(index_request(TABLE, index, wanted))?)?;
        }
        Ok(())
    }

    /// Whether the table has an index.
    pub(crate) fn has_index(&self, index: &Index) -> anyhow::Result<bool> {
        let known =
            self.database.get_table_metadata(TABLE)?.and_then(|metadata| metadata.gsi_definitions);
        let indexes: Vec<Value> = match known {
            Some(text) => serde_json::from_str(&text).context("the table's indexes")?,
            None => Vec::new(),
        };
        Ok(indexes.iter().any(|known| known["IndexName"] == index.name))
    }

    /// The address at which the engine answers.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The engine's file, with the table, the stream and the queues.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The settings with which a store reaches the table.
    pub fn store_config(&self) -> StoreConfig {
        store_config(self.endpoint.clone(), self.key.clone())
    }

    /// The table's stream.
    pub(crate) fn stream(&self) -> Arc<Stream> {
        Arc::clone(&self.stream)
    }

    /// The writer of many items at once.
    pub(crate) fn load(&self) -> Load {
        Load { database: self.database.clone(), turns: Arc::clone(&self.turns), table: TABLE }
    }

    /// The queue called `name`; made if it is missing.
    pub(crate) fn queue(&self, name: &str) -> anyhow::Result<Arc<Queue>> {
        Queue::open(Arc::clone(&self.turns), name)
    }

    /// Whether the table holds only items that the functions write by themselves, such as their state, late marks and
    /// the schema of the conditions index.
    pub(crate) fn is_empty(&self) -> anyhow::Result<bool> {
        let others = ScanRequest {
            table_name: TABLE.to_owned(),
            filter_expression: Some("NOT pk IN (:state, :late, :conditions, :running)".to_owned()),
            expression_attribute_values: Some(
                [
                    (":state", STATE),
                    (":late", LATE),
                    (":conditions", CONDITIONS),
                    (":running", ALERT_RUNNING),
                ]
                .map(|(name, pk)| (name.to_owned(), AttributeValue::S(pk.to_owned())))
                .into(),
            ),
            ..ScanRequest::default()
        };

        Ok(self.database.scan(others)?.count == 0)
    }

    /// Whether the table holds a reading.
    pub(crate) fn has_readings(&self) -> anyhow::Result<bool> {
        let prefix = AttributeValue::S(READING_PREFIX.to_owned());
        let mut after = None;

        loop {
            let readings = ScanRequest {
                table_name: TABLE.to_owned(),
                filter_expression: Some("begins_with(sk, :prefix)".to_owned()),
                expression_attribute_values: Some([(":prefix".to_owned(), prefix.clone())].into()),
                exclusive_start_key: after,
                ..ScanRequest::default()
            };

            let page = self.database.scan(readings)?;
            after = page.last_evaluated_key;
            if page.count > 0 || after.is_none() {
                return Ok(page.count > 0);
            }
        }
    }

    /// Returns a function that deletes expired items. The engine itself never deletes them.
    pub(crate) fn sweeper(&self) -> impl Fn() -> anyhow::Result<usize> + Send + Sync + 'static {
        let database = self.database.clone();
        move || Ok(database.sweep_ttl()?)
    }

    /// Answers the requests under way, then closes the file. Blocks.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Self { database, stream, turns, stop, threads, lock, scratch, .. } = self;
        // Fails only if the thread has already ended, which the join below reports.
        let _ = stop.send(());
        drop((database, stream, turns));
        let failed = threads.map(JoinHandle::join).iter().any(Result::is_err);
        drop((lock, scratch));
        if failed {
            bail!("a thread of the engine failed");
        }
        Ok(())
    }
}

/// The time limit of one attempt: as long as that of the whole operation, so that there is no second attempt.
/// Connections within one machine do not go stale. A second attempt would also be wrong: the first may succeed
/// meanwhile, and then a conditional write fails because of its own first attempt.
const ATTEMPT_TIMEOUT: Duration = table::MAX_OPERATION;

/// The settings with which a store reaches the table of an engine.
fn store_config(endpoint: String, key: String) -> StoreConfig {
    StoreConfig {
        table: TABLE.to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: Some(endpoint),
        // The engine checks only the access key in a signature.
        credentials: Credentials {
            access_key_id: key,
            secret_access_key: "local".to_owned(),
            session_token: None,
        },
        ca_bundle: None,
        attempt_timeout: ATTEMPT_TIMEOUT,
    }
}

/// An engine that another process runs.
pub(crate) struct RunningEngine {
    /// The settings with which a store reaches its table.
    pub(crate) store: StoreConfig,
    /// The engine's address file, with a shared lock. While the file is open, a command that runs the engine does not
    /// end.
    pub(crate) in_use: File,
}

/// The engine that another process runs in this directory. Waits for an engine that is starting, which has the lock
/// but no address yet, and for the end of an engine that is ending.
pub(crate) fn running(directory: &Path) -> Option<RunningEngine> {
    for _ in 0..CHECKS {
        if !directory_lock::is_taken(directory) {
            return None;
        }

        let address_file = File::open(directory.join(ADDRESS)).ok();
        let in_use = address_file.filter(|file| file.try_lock_shared().is_ok());
        if let Some(in_use) = in_use
            && let [Some(endpoint), Some(key), _] = address(&in_use)
        {
            return Some(RunningEngine { store: store_config(endpoint, key), in_use });
        }

        thread::sleep(CHECK_PAUSE);
    }
    None
}

/// Waits until no other process uses the engine with this database file. Warns if that takes a while. No process can
/// begin to use the engine while the returned file is open. Blocks.
pub(crate) fn wait_until_unused(database_file: &Path) -> anyhow::Result<File> {
    let address_file = File::open(database_file.with_file_name(ADDRESS))
        .context("cannot see whether another process uses the data")?;

    let mut looks = 0;
    while let Err(error) = address_file.try_lock() {
        if let TryLockError::Error(error) = error {
            return Err(error.into());
        }

        looks += 1;
        if looks == CHECKS_BEFORE_WARNING {
            let file = database_file.display();
            warn(format_args!("another roomtide still uses {file} through this one; waits for it"));
        }

        thread::sleep(CHECK_PAUSE);
    }
    Ok(address_file)
}

/// The address, access key and process of an engine, as far as the file has them.
fn address(file: &File) -> [Option<String>; 3] {
    let text = std::io::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().map(str::to_owned);
    [lines.next(), lines.next(), lines.next()]
}

/// A random access key, so that other users and web pages cannot use the engine.
fn new_key() -> anyhow::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).context("the operating system has no randomness")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}

/// The file in a data directory that holds the table.
pub(crate) fn database_file(directory: &Path) -> PathBuf {
    directory.join(format!("{OWN_PREFIX}db"))
}

/// A temporary directory for data that end with the process. A killed process leaves the directory behind, so it is as
/// private as a data directory.
fn scratch() -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.prefix("roomtide-").tempdir()
}

/// Lets only the owner access the data, also if an earlier start or a wide umask let others read them.
///
/// A directory with other files keeps its mode, because somebody may share it on purpose.
fn make_private(directory: &Path) -> anyhow::Result<()> {
    // SQLite gives the mode of the database file to the write-ahead log and its index.
    let file = database_file(directory);
    let made = private::options().create(true).append(true).open(&file);
    made.with_context(|| format!("cannot write {}", file.display()))?;

    let tighten = |path: &Path| {
        private::tighten(path)
            .with_context(|| format!("cannot keep other users out of {}", path.display()))
    };

    let (mut was_open, mut is_shared) = (false, false);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(OWN_PREFIX) || name == LOCK || name == ADDRESS {
            was_open |= tighten(&entry.path())?;
        } else {
            is_shared = true;
        }
    }

    if !is_shared {
        was_open |= tighten(directory)?;
    }

    if was_open {
        let directory = directory.display();
        warn(format_args!("other users are kept out of {directory} from now on"));
    }
    Ok(())
}

/// Removes the address file of an engine that was killed: nobody listens there any more, or another program does.
fn forget_address(directory: &Path) -> std::io::Result<()> {
    unless_gone(fs::remove_file(directory.join(ADDRESS)))
}

/// Turns the error for a missing file into success, for removals.
pub(crate) fn unless_gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory has the files of an engine.
pub(crate) fn has_files(directory: &Path) -> bool {
    database_file(directory).exists() || directory.join(LOCK).exists()
}

/// Removes the files of an engine that has ended. Returns `false` and removes nothing if the engine still runs.
pub(crate) fn remove_files(directory: &Path) -> std::io::Result<bool> {
    let Some(_lock) = DirectoryLock::take(directory)? else { return Ok(false) };
    // The lock goes last: a directory with only a lock counts as one without data.
    for name in file_names() {
        unless_gone(fs::remove_file(directory.join(name)))?;
    }
    Ok(true)
}

/// The names of an engine's files in a data directory, the lock last.
fn file_names() -> [String; 6] {
    let [table, log, index, journal] =
        ["db", "db-wal", "db-shm", "db-journal"].map(|ending| format!("{OWN_PREFIX}{ending}"));
    [table, log, index, journal, ADDRESS.to_owned(), LOCK.to_owned()]
}

/// Whether a path, however it is written, is an engine's file in a directory with data.
pub(crate) fn is_own_file(path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let has_data = database_file(directory.unwrap_or(Path::new("."))).exists();

    let name = path.file_name().and_then(|name| name.to_str());
    has_data && name.is_some_and(|name| file_names().iter().any(|own| own == name))
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    private::options().create_new(true).open(path)?.write_all(text.as_bytes())
}

/// Locks the directory for this process alone. Waits for a command that ends within seconds.
fn lock(directory: &Path) -> anyhow::Result<DirectoryLock> {
    for _ in 0..CHECKS {
        let lock = DirectoryLock::take(directory);
        let lock =
            lock.with_context(|| format!("cannot lock {}", directory.join(LOCK).display()))?;
        if let Some(lock) = lock {
            return Ok(lock);
        }
        thread::sleep(CHECK_PAUSE);
    }

    let file = File::open(directory.join(ADDRESS)).ok();
    let process = file.and_then(|file| address(&file)[2].take());
    let process = process.map_or(String::new(), |process| {
        format!(", process {process} (`ps -p {process} -o args` shows its command)")
    });

    bail!(
        "{} is in use by another roomtide{process}; stop it, or choose another directory with --data-dir",
        directory.display()
    )
}

/// Refuses an empty database file where there was a table. A power loss may leave such a file, and `SQLite` would begin
/// a new database in it. An empty file of a first start that ended early is accepted: then neither the lock's mark nor
/// the address exists.
fn ensure_not_emptied(directory: &Path, lock: &DirectoryLock) -> anyhow::Result<()> {
    let file = database_file(directory);
    let is_empty = fs::metadata(&file).is_ok_and(|metadata| metadata.len() == 0);
    let log = directory.join(format!("{OWN_PREFIX}db-wal"));
    let has_log = || fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0);
    if is_empty && (lock.is_used()? || directory.join(ADDRESS).exists() || has_log()) {
        bail!(
            "{} is empty, but there was data in this directory; put a copy of the file in its place, \
             delete it to begin with an empty table, or choose another directory with --data-dir",
            file.display()
        );
    }
    Ok(())
}

/// Opens the file for the engine.
fn open(file: &Path) -> anyhow::Result<Database> {
    let connection = Connection::open(file)?;
    // Finds damaged pages now and names the file, instead of failing in some later request.
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        bail!("{verdict}");
    }

    // Refuses the database of another program: the engine would add its own tables to it.
    let tables =
        "SELECT min(name), total(name = '_tables') FROM sqlite_master WHERE type = 'table'";
    let (first, own): (Option<String>, f64) =
        connection.query_row(tables, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some(first) = first.filter(|_| own < 1.0) {
        bail!("it has tables of another program, such as {first}");
    }

    let database = Database::new(file.to_str().context("its path is not Unicode")?)?;
    database.disable_bulk_loading()?;
    Ok(database)
}

fn explain(error: &anyhow::Error, file: &Path) -> anyhow::Error {
    let is_of_disk =
        error.chain().filter_map(|cause| cause.downcast_ref::<rusqlite::Error>()).any(|cause| {
            matches!(
                cause.sqlite_error_code(),
                Some(
                    ErrorCode::DiskFull
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::ReadOnly
                        | ErrorCode::CannotOpen
                        | ErrorCode::PermissionDenied
                )
            )
        });

    let file = file.display();
    if is_of_disk {
        anyhow::anyhow!("cannot open {file}: {error:#}")
    } else {
        anyhow::anyhow!(
            "{file} is damaged, or is no data of roomtide ({error:#}); \
             move it away to begin with an empty table, or choose another directory with --data-dir"
        )
    }
}

fn ensure_table(database: &Database) -> anyhow::Result<()> {
    if database.get_table_metadata(TABLE)?.is_some() {
        return Ok(());
    }
    database.create_table(request(create_request(TABLE, Layout::default()))?)?;
    database.update_time_to_live(request(expiry_request(TABLE))?)?;
    Ok(())
}

fn request<T: serde::de::DeserializeOwned>(body: Value) -> anyhow::Result<T> {
    serde_json::from_value(body).context("the engine does not understand the table")
}

/// Serves the engine from a thread and runtime of its own, because its handlers block and would delay the functions.
/// One thread is enough: the engine handles one request at a time anyway.
fn serve(
    operations: Operations,
    key: String,
) -> anyhow::Result<(String, oneshot::Sender<()>, JoinHandle<()>)> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on 127.0.0.1")?;
    listener.set_nonblocking(true)?;
    let endpoint = format!("http://{}", listener.local_addr()?);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::Builder::new().name("engine".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it does not block");
            endpoint::serve(listener, operations, key, stopped).await;
        });
    })?;
    Ok((endpoint, stop, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(directory: &Path) -> anyhow::Result<Engine> {
        Engine::start(&Data::Dir(directory.to_owned()), None)
    }

    #[test]
    fn a_second_process_is_told_who_holds_the_data() {
        let directory = tempfile::tempdir().unwrap();
        let first = start(directory.path()).unwrap();
        let error = start(directory.path()).err().unwrap().to_string();
        assert!(error.contains("in use") && error.contains("--data-dir"), "{error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        first.stop().unwrap();
        start(directory.path()).unwrap().stop().unwrap();
    }

    #[test]
    fn a_process_that_is_starting_or_ending_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        start(directory.path()).unwrap().stop().unwrap();
        forget_address(directory.path()).unwrap();
        let starting = DirectoryLock::take(directory.path()).unwrap().unwrap();

        thread::scope(|scope| {
            let found = scope.spawn(|| running(directory.path()));
            thread::sleep(CHECK_PAUSE * 3);
            write_private(&directory.path().join(ADDRESS), "http://127.0.0.1:1\nk\n7\n").unwrap();
            let found = found.join().unwrap().unwrap();
            assert_eq!(found.store.endpoint.as_deref(), Some("http://127.0.0.1:1"));
        });

        thread::scope(|scope| {
            let started = scope.spawn(|| start(directory.path()));
            thread::sleep(CHECK_PAUSE * 3);
            drop(starting);
            started.join().unwrap().unwrap().stop().unwrap();
        });
    }

    #[test]
    fn an_engine_that_others_use_is_waited_for_and_then_closed_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let engine = start(directory.path()).unwrap();
        let used = running(directory.path()).unwrap();
        let file = engine.file().to_owned();

        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_until_unused(&file));
            thread::sleep(CHECK_PAUSE * 3);
            assert!(!waiting.is_finished(), "it is used");
            drop(used);
            let _closed = waiting.join().unwrap().unwrap();

            let next = scope.spawn(|| start(directory.path()));
            let none = scope.spawn(|| running(directory.path()));
            thread::sleep(CHECK_PAUSE * 3);
            assert!(!none.is_finished(), "nobody begins to use it");
            engine.stop().unwrap();
            next.join().unwrap().unwrap().stop().unwrap();
        });
    }

    #[test]
    fn an_empty_file_is_a_new_table_only_where_there_was_none() {
        let emptied = |beside: &[&str]| {
            let directory = tempfile::tempdir().unwrap();
            for name in beside {
                fs::write(directory.path().join(name), "x").unwrap();
            }
            fs::write(directory.path().join("roomtide.db"), "").unwrap();
            directory
        };

        // A first start that was ended early, and a file of somebody else.
        for beside in [&[][..], &["notes.txt"]] {
            start(emptied(beside).path()).unwrap().stop().unwrap();
        }

        let early = emptied(&[]);
        fs::write(early.path().join("lock"), "").unwrap();
        start(early.path()).unwrap().stop().unwrap();

        // That start has made a table; and so had those that left these files.
        fs::write(early.path().join("roomtide.db"), "").unwrap();
        for directory in [early, emptied(&["engine-address"]), emptied(&["roomtide.db-wal"])] {
            let error = start(directory.path()).err().unwrap().to_string();
            assert!(error.contains("roomtide.db is empty, but there was data"), "{error}");
            assert!(error.contains("delete it") && error.contains("--data-dir"), "{error}");
            fs::remove_file(directory.path().join("roomtide.db")).unwrap();
            start(directory.path()).unwrap().stop().unwrap();
        }
    }

    #[test]
    fn a_damaged_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        start(directory.path()).unwrap().stop().unwrap();
        let file = directory.path().join("roomtide.db");
        let mut bytes = fs::read(&file).unwrap();

        for damage in [0, 4_096] {
            bytes[damage..damage + 512].fill(0xA5);
            fs::write(&file, &bytes).unwrap();
            let error = start(directory.path()).err().unwrap().to_string();
            assert!(error.contains("roomtide.db") && error.contains("damaged"), "{error}");

            bytes[0..512].copy_from_slice(
                &{
                    let fresh = tempfile::tempdir().unwrap();
                    start(fresh.path()).unwrap().stop().unwrap();
                    fs::read(fresh.path().join("roomtide.db")).unwrap()
                }[0..512],
            );
        }
    }

    #[test]
    fn the_database_of_another_program_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("roomtide.db");
        let other = Connection::open(&file).unwrap();
        other
            .execute_batch("CREATE TABLE songs (name TEXT); INSERT INTO songs VALUES ('a')")
            .unwrap();
        drop(other);
        let before = fs::read(&file).unwrap();
        let error = start(directory.path()).err().unwrap().to_string();
        assert!(error.contains("tables of another program, such as songs"), "{error}");
        assert!(error.contains("roomtide.db") && error.contains("--data-dir"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), before);
    }

    #[cfg(unix)]
    #[test]
    fn other_users_can_neither_read_the_data_nor_learn_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("data");
        for _ in 0..2 {
            let engine = start(&directory).unwrap();
            assert_eq!((mode(&directory), mode(&directory.join(ADDRESS))), (0o700, 0o600));
            engine.stop().unwrap();
        }
    }

    #[test]
    fn a_table_survives_a_restart_and_memory_does_not() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let engine = start(directory.path()).unwrap();
            assert!(engine.is_empty().unwrap());
            engine.stop().unwrap();
        }
        let engine = Engine::in_memory().unwrap();
        let file = engine.file().to_owned();
        assert!(file.exists());
        engine.stop().unwrap();
        assert!(!file.exists());
    }
}
