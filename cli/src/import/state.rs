//! The state of an import: its progress, and the state of devices before it. A file of JSON lines beside the imported
//! file, which becomes the import's report. Sends nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use domain::{DeviceId, MetricName, Reading, RoomId, Timestamp};
use local::private;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::output::counted;
use crate::progress_file::{self, HeldProgress};

/// The suffix of the file's name, and that of a report's.
const SUFFIX: &str = ".roomtide-import";
const REPORT: &str = ".roomtide-report";
/// The maximum number of reports of one file.
const MAX_REPORTS: usize = 10_000;
/// The number of bytes at the beginning of a file that are part of its fingerprint.
const FINGERPRINTED: u64 = 1 << 20;

/// The state of an import.
#[derive(Debug, Default)]
pub(super) struct ImportState {
    /// `None` for a stream without --state.
    path: Option<PathBuf>,
    /// The file, once this run has written to it.
    file: Option<File>,
    /// Keeps other imports from the file.
    lock: Option<HeldProgress>,
    known: ImportFacts,
    /// The number of refused readings in lines that do not count as stored yet.
    refused_beyond: u64,
    /// Whether an earlier import stored lines of a different version of the file, or with other options. A stream
    /// always counts as changed.
    pub(super) has_changed: bool,
    /// Whether an earlier run may have stored something.
    had_sent: bool,
}

/// The facts in the file. Each change of a fact is written to the file, too.
#[derive(Debug, Default, Clone)]
pub(super) struct ImportFacts {
    pub(super) import: ImportHead,
    pub(super) stored: StoredLines,
    /// The state of each device before the import.
    pub(super) devices: BTreeMap<DeviceId, DeviceBefore>,
    /// Whether each room is new: the registry did not have it before the import.
    pub(super) rooms: BTreeMap<RoomId, bool>,
    /// The newest reading of each device.
    pub(super) sent: BTreeMap<DeviceId, LastSent>,
    /// The time at which a take-back of the import ended.
    pub(super) taken_back: Option<Timestamp>,
    /// Whether a take-back has begun, so that some of the devices may be gone.
    pub(super) is_take_back_begun: bool,
}

impl Deref for ImportState {
    type Target = ImportFacts;

    fn deref(&self) -> &ImportFacts {
        &self.known
    }
}

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateLine {
    Import(ImportHead),
    Device {
        id: DeviceId,
        before: DeviceBefore,
    },
    Room {
        id: RoomId,
        is_new: bool,
    },
    /// The readings that are about to be sent.
    Sending(BTreeMap<DeviceId, LastSent>),
    Stored(StoredLines),
    /// A take-back that has begun, or that has ended at this time.
    TakeBack {
        ended: Option<Timestamp>,
    },
}

/// The first line of the file: which import it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ImportHead {
    /// The source and the target, for people.
    pub(super) of: String,
    /// The address of the server; `None` if the target is a directory.
    pub(super) url: Option<String>,
    /// Identifies the content of the file, and the options for reading it.
    fingerprint: String,
    /// The start of the first run. Relative times are counted from there.
    began: Option<Timestamp>,
}

/// The state of a device before the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeviceBefore {
    /// Whether the registry did not have the device.
    pub(super) is_new: bool,
    /// Whether it had readings before `from`.
    pub(super) has_past: bool,
    /// The time of the import's first reading, or the start of an earlier hour that the import asked about.
    pub(super) from: Timestamp,
    /// The first reading at or after `from` that was there before the import.
    pub(super) until: Option<Timestamp>,
}

/// The newest reading of a device that was sent, or is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastSent {
    pub(super) at: Timestamp,
    /// The first reading of the device that was sent, or is about to be sent. Older progress does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<Timestamp>,
    /// The longest of the newest distances between readings, in milliseconds.
    pub(super) usual_distance: Option<i64>,
}

/// The lines at the beginning of the source that are stored or refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredLines {
    pub(super) lines: u64,
    /// The digest of these lines.
    digest: String,
    /// The number of readings that the server refused. They are not sent again.
    pub(super) refused: u64,
    pub(super) witness: Option<Witness>,
}

/// A stored reading. If the table has it, the lines are taken to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Witness {
    pub(super) device: DeviceId,
    pub(super) timestamp: Timestamp,
    pub(super) metrics: Vec<MetricName>,
}

impl From<&Reading> for Witness {
    fn from(reading: &Reading) -> Self {
        Self {
            device: reading.device.clone(),
            timestamp: reading.at,
            metrics: reading.metrics().keys().cloned().collect(),
        }
    }
}

/// A hash of all lines from the first one on. The order of the lines may change although the file does not.
#[derive(Debug, Clone, Default)]
pub(super) struct Passed(Sha256);

impl Passed {
    /// Adds the next stored line to the hash.
    pub(super) fn add(&mut self, line: &str) {
        self.0.update(line.len().to_be_bytes());
        self.0.update(line);
    }

    /// Returns the digest of the lines so far.
    pub(super) fn digest(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

/// The error of an import that continues, if its first lines are not the stored ones. The import starts over.
#[derive(Debug, thiserror::Error)]
#[error("what is imported begins with other lines than those that are stored")]
pub(super) struct OrderChanged;

/// The import to which a state belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportName<'a> {
    pub(super) file: &'a Path,
    /// The file of the state, if a person names one.
    pub(super) state: Option<&'a Path>,
    /// The name of the target, and its address if it is a server.
    pub(super) target: &'a str,
    pub(super) url: Option<&'a str>,
    /// The options for reading the file.
    pub(super) options: &'a str,
}

impl ImportState {
    /// Reads the state of an interrupted import of the same file to the same target. If the file has changed since, or
    /// if the import is to start `again`, the import starts over, but keeps the state of devices before its first run.
    pub(super) fn of(name: ImportName<'_>, again: bool) -> anyhow::Result<Self> {
        // Reading from a pipe would consume the input.
        let is_file = name.file.is_file();
        let (of, fingerprint) = if is_file {
            let file = fs::canonicalize(name.file)
                .with_context(|| format!("cannot find {}", name.file.display()))?;
            (file.display().to_string(), fingerprint_of(name.file, name.options)?)
        } else {
            ("standard input".to_owned(), String::new())
        };

        let of = format!("the import of {of} into {}", name.target);
        let beside = is_file.then(|| progress_file::with_suffix(name.file, SUFFIX));
        let import = ImportHead { of, url: name.url.map(str::to_owned), fingerprint, began: None };

        let Some(path) = name.state.map(Path::to_owned).or(beside) else {
            return Ok(Self::begun(import));
        };

        progress_file::ensure_ours::<StateLine>(&path)?;
        let mut earlier = ImportFacts { import: import.clone(), ..ImportFacts::default() };
        read_lines(&path)?.into_iter().for_each(|line| earlier.apply(line));
        // Sent readings may be stored even if no round counts as stored, and only this file can take them back.
        if !again && !earlier.sent.is_empty() && earlier.taken_back.is_none() {
            progress_file::ensure_same(&path, Some(&earlier.import.of), &import.of)?;
        }
        let lock = HeldProgress::take(&path)?;

        if earlier.import.of != import.of {
            earlier = ImportFacts::default();
        }

        let is_unchanged = is_file && earlier.import.fingerprint == import.fingerprint;
        let mut state = Self {
            path: Some(path),
            lock: Some(lock),
            has_changed: is_file && !is_unchanged && earlier.stored.lines > 0,
            had_sent: !earlier.sent.is_empty(),
            known: ImportFacts { taken_back: None, is_take_back_begun: false, ..earlier },
            ..Self::default()
        };
        if again || !is_unchanged {
            (state.known.import, state.known.stored) = (import, StoredLines::default());
        }
        Ok(state)
    }

    fn begun(import: ImportHead) -> Self {
        Self { known: ImportFacts { import, ..ImportFacts::default() }, ..Self::default() }
    }

    /// Opens the state of an ended or interrupted import, which nobody else uses meanwhile.
    pub(super) fn open_file(path: &Path) -> anyhow::Result<Self> {
        // A link keeps leading to the file, which is replaced.
        let path =
            fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?;
        let lock = HeldProgress::take(&path)?;

        let mut lines = read_lines(&path)?.into_iter();
        let Some(StateLine::Import(import)) = lines.next() else {
            bail!("{} is neither the report of an import nor its progress", path.display());
        };
        let mut state = Self { path: Some(path), lock: Some(lock), ..Self::begun(import) };
        lines.for_each(|line| state.known.apply(line));
        Ok(state)
    }

    /// Returns the start of the first run; `now` in the first run. All runs count relative times from it, and so see
    /// the same lines.
    pub(super) fn began(&mut self, now: Timestamp) -> Timestamp {
        *self.known.import.began.get_or_insert(now)
    }

    /// Notes that a take-back begins, or has ended at this time. From its beginning on no line counts as stored.
    pub(super) fn note_take_back(&mut self, ended: Option<Timestamp>) -> anyhow::Result<()> {
        self.note(StateLine::TakeBack { ended })?;
        self.sync()
    }

    /// Notes the state of a device before the import.
    pub(super) fn note_device(
        &mut self,
        device: &DeviceId,
        before: DeviceBefore,
    ) -> anyhow::Result<()> {
        self.note(StateLine::Device { id: device.clone(), before })
    }

    /// Notes whether a room is new.
    pub(super) fn note_room(&mut self, room: &RoomId, is_new: bool) -> anyhow::Result<()> {
        self.note(StateLine::Room { id: room.clone(), is_new })
    }

    /// Notes the newest readings that are about to be sent: a killed run may have stored them.
    pub(super) fn note_sending(
        &mut self,
        sending: impl IntoIterator<Item = (DeviceId, LastSent)>,
    ) -> anyhow::Result<()> {
        let sending: BTreeMap<_, _> = sending.into_iter().collect();
        if sending.is_empty() {
            return Ok(());
        }
        self.note(StateLine::Sending(sending))?;
        self.sync()
    }

    /// Checks that this import begins with the stored lines. Otherwise the import starts over, but keeps the state of
    /// devices and rooms before the first run.
    pub(super) fn ensure_same(&mut self, lines: u64, passed: &Passed) -> anyhow::Result<()> {
        if lines == self.stored.lines && self.stored.digest == passed.digest() {
            return Ok(());
        }
        self.note(StateLine::Stored(StoredLines::default()))?;
        Err(OrderChanged.into())
    }

    /// Starts over at the first line, and forgets the state of devices and rooms before the import, because the table
    /// may be another one.
    pub(super) fn restart(&mut self) {
        let (path, lock, import) = (self.path.take(), self.lock.take(), self.import.clone());
        *self = Self { path, lock, ..Self::begun(import) };
    }

    /// Starts over at the first line, because the table cannot be asked whether it has the stored lines. Keeps the
    /// state of devices and rooms before the first run.
    pub(super) fn start_over(&mut self) {
        self.known.stored = StoredLines::default();
    }

    /// Records that the lines before `end` are stored, with their digest, one stored reading of them, and the number of
    /// newly refused readings.
    pub(super) fn acknowledge(
        &mut self,
        end: u64,
        stored: Option<&Reading>,
        refused: u64,
        passed: &str,
    ) -> anyhow::Result<()> {
        self.refused_beyond += refused;
        if end <= self.stored.lines {
            return Ok(());
        }

        let witness = stored.map(Witness::from).or_else(|| self.stored.witness.clone());
        let refused = self.stored.refused + self.refused_beyond;
        let stored = StoredLines { lines: end, digest: passed.to_owned(), refused, witness };
        self.note(StateLine::Stored(stored))?;
        self.refused_beyond = 0;
        self.sync()
    }

    /// Adds to the error of a stopped import how much was stored and where the next run continues. Adds nothing if
    /// nothing was stored.
    pub(super) fn stopped(&self, error: anyhow::Error, stored: u64) -> anyhow::Error {
        let lines = self.stored.lines;
        let is_kept = self.path.is_some() && !self.import.fingerprint.is_empty();
        if stored == 0 && !(lines > 0 && is_kept) {
            return error;
        }

        let stored = format!("stopped; {} stored", counted(stored, "reading"));
        error.context(match lines {
            _ if !is_kept => stored,
            0 => format!("{stored}, the same command starts over"),
            lines => {
                format!("{stored}, the same command continues after {}", counted(lines, "line"))
            }
        })
    }

    /// Gives up the file, which the caller removes. Returns its name, if it was written.
    pub(super) fn give_up(&mut self) -> Option<PathBuf> {
        let path = self.path.take()?;
        path.exists().then_some(path)
    }

    /// Forgets the readings that this run has sent, because the server refused all of them.
    pub(super) fn forget_refused(&mut self) {
        if !self.had_sent {
            self.known.sent.clear();
            self.known.devices.clear();
            self.known.rooms.clear();
        }
    }

    /// Removes the file of an import that sent nothing.
    pub(super) fn remove_if_unused(&mut self) {
        let has_sent = !self.sent.is_empty() || self.stored.lines > 0;
        if !has_sent && self.devices.is_empty() && self.rooms.is_empty() {
            self.give_up().into_iter().for_each(|path| drop(fs::remove_file(path)));
        }
    }

    /// Ends the import: its file becomes a report, which never replaces another. Returns the report's name.
    pub(super) fn into_report(mut self) -> anyhow::Result<Option<PathBuf>> {
        let Some(path) = self.path.clone() else { return Ok(None) };
        if self.devices.is_empty() && self.file.is_none() && !path.exists() {
            return Ok(None);
        }
        self.open()?;

        let beside = path.as_os_str().to_string_lossy();
        let stem = PathBuf::from(beside.strip_suffix(SUFFIX).unwrap_or(&beside));
        let stem = progress_file::with_suffix(&stem, REPORT);
        for n in 1..MAX_REPORTS {
            let number = if n == 1 { String::new() } else { format!("-{n}") };
            let report = progress_file::with_suffix(&stem, &number);
            match private::options().create_new(true).open(&report) {
                Ok(_) => {
                    let context = || format!("cannot write the report {}", report.display());
                    fs::rename(&path, &report).with_context(context)?;
                    return Ok(Some(report));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot write the report {}", report.display()));
                }
            }
        }

        bail!("too many reports are beside {}", path.display())
    }

    /// Appends a line to the file, and applies its fact.
    fn note(&mut self, line: StateLine) -> anyhow::Result<()> {
        if let Some((file, path)) = self.open()? {
            let text = serde_json::to_string(&line)? + "\n";
            file.write_all(text.as_bytes()).with_context(|| progress_file::cannot_write(path))?;
        }
        self.known.apply(line);
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        let Some((file, path)) = self.open()? else { return Ok(()) };
        file.sync_data().with_context(|| progress_file::cannot_write(path))
    }

    /// Opens the file for this run. Writes all facts anew, which removes a line that a crash cut off.
    fn open(&mut self) -> anyhow::Result<Option<(&mut File, &Path)>> {
        let Some(path) = self.path.as_deref() else { return Ok(None) };
        if self.file.is_none() {
            let mut text = String::new();
            for line in self.known.lines() {
                text += &(serde_json::to_string(&line)? + "\n");
            }
            let context = || progress_file::cannot_write(path);
            progress_file::replace(path, text.as_bytes()).with_context(context)?;
            self.file = Some(private::options().append(true).open(path).with_context(context)?);
        }
        Ok(self.file.as_mut().map(|file| (file, path)))
    }
}

impl ImportFacts {
    fn apply(&mut self, line: StateLine) {
        match line {
            StateLine::Import(import) => self.import = import,
            StateLine::Device { id, before } => drop(self.devices.insert(id, before)),
            StateLine::Room { id, is_new } => drop(self.rooms.insert(id, is_new)),
            StateLine::Sending(sent) => self.sent.extend(sent),
            StateLine::Stored(stored) => self.stored = stored,
            StateLine::TakeBack { ended } => {
                // Some stored lines may be deleted, and an import that continues would skip them.
                self.stored = StoredLines::default();
                self.taken_back = ended;
                self.is_take_back_begun = true;
            }
        }
    }

    /// The lines that hold all facts.
    fn lines(&self) -> Vec<StateLine> {
        let devices = self.devices.clone().into_iter();
        let rooms = self.rooms.clone().into_iter();
        let mut lines = vec![StateLine::Import(self.import.clone())];
        lines.extend(devices.map(|(id, before)| StateLine::Device { id, before }));
        lines.extend(rooms.map(|(id, is_new)| StateLine::Room { id, is_new }));
        lines.push(StateLine::Sending(self.sent.clone()));
        lines.push(StateLine::Stored(self.stored.clone()));
        lines
    }
}

/// The lines of a file. A crash may have cut off the last line, which is left out. Any other damaged line is an error,
/// because without it a take-back would not know everything that the import stored.
fn read_lines(path: &Path) -> anyhow::Result<Vec<StateLine>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };

    let mut lines = Vec::new();
    let mut texts = text.lines().peekable();
    while let Some(text) = texts.next() {
        match serde_json::from_str(text) {
            Ok(line) => lines.push(line),
            Err(_) if lines.is_empty() || texts.peek().is_none() => break,
            Err(error) => bail!(
                "line {} of {} is damaged, or of another version of roomtide: {error}",
                lines.len() + 1,
                path.display()
            ),
        }
    }

    Ok(lines)
}

fn fingerprint_of(file: &Path, options: &str) -> anyhow::Result<String> {
    let context = || format!("cannot read {}", file.display());
    let opened = File::open(file).with_context(context)?;
    let metadata = opened.metadata().with_context(context)?;
    let length = metadata.len();
    // A newer time of modification means another file, wherever the file was changed.
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());

    let mut beginning = Vec::new();
    opened.take(FINGERPRINTED).read_to_end(&mut beginning).with_context(context)?;

    let mut hash = Sha256::new();
    hash.update(&beginning);
    hash.update(modified.unwrap_or_default().as_nanos().to_be_bytes());
    hash.update(options.as_bytes());
    Ok(format!("{length}-{}", hex(&hash.finalize())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{at_second, device, room};

    fn reading() -> Reading {
        let now = Timestamp::MAX;
        history::read_reading(r#"{"device_id":"d","timestamp":1768147200,"t":1}"#, now).unwrap()
    }

    /// A directory with the file of an import in it.
    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("readings.csv");
        fs::write(&file, "a").unwrap();
        (directory, file)
    }

    fn name(file: &Path) -> ImportName<'_> {
        ImportName { file, state: None, target: "one", url: Some("http://one"), options: "x" }
    }

    fn state_of(file: &Path) -> ImportState {
        ImportState::of(name(file), false).unwrap()
    }

    const BEFORE: DeviceBefore = DeviceBefore {
        is_new: false,
        has_past: true,
        from: Timestamp::MIN,
        until: Some(Timestamp::MAX),
    };

    #[test]
    fn what_is_stored_is_passed_over_until_the_import_is_complete() {
        let (directory, file) = file();
        let mut state = state_of(&file);
        state.acknowledge(500, Some(&reading()), 2, "").unwrap();
        // A round whose lines have a rest in the next one.
        state.acknowledge(500, None, 1, "").unwrap();
        state.acknowledge(1_000, None, 2, "").unwrap();
        drop(state);
        let state = state_of(&file);
        assert_eq!((state.stored.lines, state.stored.refused), (1_000, 5));
        assert_eq!(
            state.stored.witness,
            Some(Witness::from(&reading())),
            "the last that was stored"
        );
        drop(state);

        let other = ImportState::of(ImportName { options: "y", ..name(&file) }, false).unwrap();
        assert_eq!((other.stored.lines, other.has_changed), (0, true), "another mapping");
        drop(other);
        let again = ImportState::of(name(&file), true).unwrap();
        assert_eq!(again.stored.lines, 0, "again");
        drop(again);

        let report = state_of(&file).into_report().unwrap().unwrap();
        assert_eq!(report, directory.path().join("readings.csv.roomtide-report"));
        let mut state = state_of(&file);
        assert_eq!(state.stored.lines, 0, "complete");
        state.note_device(&device("d"), BEFORE).unwrap();
        let report = state.into_report().unwrap().unwrap();
        assert!(report.to_str().unwrap().ends_with("-report-2"), "{report:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "the file and two reports");
    }

    #[test]
    fn what_was_there_before_is_known_however_the_import_goes_on() {
        let (_directory, file) = file();
        let mut state = state_of(&file);
        state.note_device(&device("d"), BEFORE).unwrap();
        state.note_room(&room("hall"), true).unwrap();
        let last =
            LastSent { at: at_second(5), first: Some(at_second(4)), usual_distance: Some(3) };
        state.note_sending([(device("d"), last)]).unwrap();
        state.acknowledge(7, None, 0, "").unwrap();
        let path = state.path.clone().unwrap();
        drop(state);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"{\"stored\":{\"lin"].concat()).unwrap();

        let is_known = |state: &ImportState| {
            assert_eq!(state.devices[&device("d")], BEFORE);
            assert!(state.rooms[&room("hall")]);
            assert_eq!(state.sent[&device("d")], last);
        };
        let state = state_of(&file);
        is_known(&state);
        assert_eq!(state.stored.lines, 7, "a line that was cut off is not read");
        drop(state);
        let changed = ImportState::of(ImportName { options: "y", ..name(&file) }, false).unwrap();
        is_known(&changed);
        drop(changed);
        is_known(&ImportState::of(name(&file), true).unwrap());
        is_known(&ImportState::open_file(&path).unwrap());

        let mut state = state_of(&file);
        state.start_over();
        assert_eq!((state.stored.lines, state.devices.len()), (0, 1), "it cannot be asked");
        state.restart();
        assert!(state.devices.is_empty() && state.sent.is_empty(), "another table");
        drop(state);
        let other = ImportState::of(ImportName { target: "two", ..name(&file) }, true).unwrap();
        assert!(other.devices.is_empty(), "another target");
    }

    #[test]
    fn what_is_taken_back_does_not_count_as_stored() {
        let (_directory, file) = file();
        let mut state = state_of(&file);
        state.note_device(&device("d"), BEFORE).unwrap();
        state.acknowledge(7, Some(&reading()), 0, "").unwrap();
        let path = state.path.clone().unwrap();
        let error = format!("{:#}", ImportState::open_file(&path).unwrap_err());
        assert!(error.contains("under way"), "{error}");
        drop(state);

        let mut state = ImportState::open_file(&path).unwrap();
        state.note_take_back(None).unwrap();
        drop(state);
        let state = state_of(&file);
        assert_eq!((state.stored.lines, state.devices[&device("d")]), (0, BEFORE));
        assert!(!state.has_changed);
        drop(state);

        let mut state = ImportState::open_file(&path).unwrap();
        assert_eq!(state.taken_back, None, "the take-back goes on");
        state.note_take_back(Some(at_second(9))).unwrap();
        drop(state);
        assert_eq!(ImportState::open_file(&path).unwrap().taken_back, Some(at_second(9)));
        state_of(&file).acknowledge(7, None, 0, "").unwrap();
        assert_eq!(ImportState::open_file(&path).unwrap().taken_back, None, "imported again");
    }

    #[test]
    fn a_file_with_a_damaged_line_is_refused_as_a_whole() {
        let (_directory, file) = file();
        let mut state = state_of(&file);
        state.note_device(&device("d"), BEFORE).unwrap();
        let path = state.path.clone().unwrap();
        drop(state);
        let text = fs::read_to_string(&path).unwrap();
        let (line, count) = (text.lines().last().unwrap(), text.lines().count());
        for damaged in [line.replace("from", "form"), "{\"later\":{}}".to_owned()] {
            fs::write(&path, text.replace(line, &damaged) + line + "\n").unwrap();
            let expected = format!("line {count} of {} is damaged", path.display());
            let read = ImportState::open_file(&path).map(drop);
            let continued = ImportState::of(name(&file), false).map(drop);
            for error in [read.unwrap_err(), continued.unwrap_err()] {
                assert!(error.to_string().starts_with(&expected), "{error}");
            }
        }
    }

    #[test]
    fn relative_times_are_counted_from_the_beginning_of_the_first_run() {
        let (_directory, file) = file();
        let [first, second] = [1_000, 2_000].map(|millis| Timestamp::from_millis(millis).unwrap());

        assert_eq!(state_of(&file).began(first), first);
        assert_eq!(state_of(&file).began(second), second, "the first run sent nothing");
        let mut killed = state_of(&file);
        assert_eq!(killed.began(first), first);
        killed.note_device(&device("d"), BEFORE).unwrap();
        drop(killed);
        assert_eq!(state_of(&file).began(second), first, "no line of it is stored");
        state_of(&file).acknowledge(500, None, 0, "").unwrap();
        assert_eq!(state_of(&file).began(second), first);
        assert_eq!(ImportState::of(name(&file), true).unwrap().began(second), second, "again");
    }

    #[test]
    fn it_is_kept_where_it_is_asked_for_and_for_the_file_as_it_was() {
        let (directory, file) = file();
        let path = directory.path().join("state");
        let of = || ImportState::of(ImportName { state: Some(&path), ..name(&file) }, false);
        of().unwrap().acknowledge(500, None, 0, "").unwrap();
        assert!(path.exists());
        let state = of().unwrap();
        assert_eq!((state.stored.lines, state.has_changed), (500, false));
        drop(state);
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        let state = of().unwrap();
        assert_eq!((state.stored.lines, state.has_changed), (0, true), "written since");
    }

    #[test]
    fn the_state_of_another_file_or_into_another_target_is_named_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().canonicalize().unwrap().join(name);
        let (file, other, path) = (place("a.csv"), place("b.csv"), place("state"));
        fs::write(&file, "a").unwrap();
        fs::write(&other, "b").unwrap();
        let of = |file: &Path, target: &str, again| {
            ImportState::of(ImportName { state: Some(&path), target, ..name(file) }, again)
        };
        let mut state = of(&file, "one", false).unwrap();
        let last = LastSent { at: at_second(20), first: None, usual_distance: None };
        state.note_sending([(device("d"), last)]).unwrap();
        drop(state);
        let kept = fs::read(&path).unwrap();

        for (file, target) in [(&file, "another"), (&other, "one")] {
            let error = of(file, target, false).unwrap_err().to_string();
            let import = format!("the import of {} into one", place("a.csv").display());
            let path = path.display().to_string();
            for expected in [path.as_str(), import.as_str(), "--state", "--again"] {
                assert!(error.contains(expected), "{expected} is not in {error}");
            }
        }
        assert_eq!(fs::read(&path).unwrap(), kept);
        assert_eq!(of(&file, "one", false).unwrap().sent.len(), 1);
        assert_eq!(of(&other, "one", true).unwrap().sent.len(), 0, "again");
        let mut state = ImportState::open_file(&path).unwrap();
        state.note_take_back(Some(at_second(30))).unwrap();
        drop(state);
        of(&other, "one", false).unwrap();
    }

    #[test]
    fn two_imports_at_once_do_not_share_their_state() {
        let (directory, file) = file();
        let first = state_of(&file);
        let error = ImportState::of(name(&file), false).unwrap_err().to_string();
        assert!(error.contains("under way") && error.contains("--state"), "{error}");
        drop(first);
        drop(state_of(&file));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn other_lines_than_the_stored_ones_start_the_import_over() {
        let (_directory, file) = file();
        let passed = |lines: &[&str]| {
            let mut passed = Passed::default();
            lines.iter().for_each(|line| passed.add(line));
            passed
        };
        for (lines, position, is_same) in [
            (&["a", "b"], 2, true),
            (&["b", "a"], 2, false),
            (&["ab", ""], 2, false),
            (&["a", "b"], 3, false),
        ] {
            let known = passed(&["a", "b"]).digest();
            let mut state = state_of(&file);
            state.note_device(&device("d"), BEFORE).unwrap();
            state.acknowledge(2, Some(&reading()), 1, &known).unwrap();
            drop(state);
            let mut again = state_of(&file);
            match again.ensure_same(position, &passed(lines)) {
                Ok(()) => assert!(is_same, "{lines:?}"),
                Err(error) => assert!(!is_same && error.is::<OrderChanged>(), "{lines:?}: {error}"),
            }
            drop(again);
            assert_eq!(state_of(&file).stored.lines, if is_same { 2 } else { 0 });
            assert_eq!(state_of(&file).devices.len(), 1, "what was before is known");
        }
    }

    /// Of a token that may only write, nothing else tells that some were sent.
    #[test]
    fn a_state_stays_once_readings_are_about_to_be_sent() {
        let (_directory, file) = file();
        let mut state = state_of(&file);
        let sent = LastSent { at: Timestamp::MIN, first: None, usual_distance: None };
        state.note_sending([(device("d"), sent)]).unwrap();
        state.remove_if_unused();
        drop(state);
        assert_eq!(state_of(&file).sent.len(), 1);
    }

    #[test]
    fn what_an_earlier_run_has_sent_stays_where_a_later_one_is_refused() {
        let (_directory, file) = file();
        let sent =
            [(device("d"), LastSent { at: Timestamp::MIN, first: None, usual_distance: None })];
        for is_first in [true, false] {
            let mut state = state_of(&file);
            state.note_sending(sent.clone()).unwrap();
            if is_first {
                state.forget_refused();
                state.remove_if_unused();
            }
            drop(state);
            assert_eq!(state_of(&file).sent.is_empty(), is_first);
        }
        let mut state = state_of(&file);
        state.forget_refused();
        assert_eq!(state.sent.len(), 1);
    }

    /// Before anything is sent.
    #[test]
    fn a_state_that_cannot_be_kept_is_refused() {
        let (directory, file) = file();
        let state = directory.path().join("state");
        fs::create_dir(&state).unwrap();
        for state in [state, directory.path().join("missing").join("state"), file.join("state")] {
            let name = ImportName { state: Some(&state), ..name(&file) };
            let error = ImportState::of(name, false).unwrap_err();
            let (error, state) = (format!("{error:#}"), state.display().to_string());
            assert!(error.contains(&state) && error.contains("--state"), "{error}");
        }
        drop(state_of(&file));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_file_that_is_no_state_is_not_taken_for_it() {
        let (_directory, file) = file();
        let name = ImportName { state: Some(&file), ..name(&file) };
        let error = ImportState::of(name, false).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(file).unwrap(), "a");
    }

    #[test]
    fn a_stream_has_a_report_where_its_state_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe.roomtide-import");
        let stream = name(Path::new("-"));
        let mut nowhere = ImportState::of(stream, false).unwrap();
        nowhere.note_device(&device("d"), BEFORE).unwrap();
        assert_eq!(nowhere.into_report().unwrap(), None);

        let mut state =
            ImportState::of(ImportName { state: Some(&path), ..stream }, false).unwrap();
        state.note_device(&device("d"), BEFORE).unwrap();
        state.acknowledge(5, None, 0, "").unwrap();
        drop(state);
        let state = ImportState::of(ImportName { state: Some(&path), ..stream }, false).unwrap();
        assert_eq!((state.stored.lines, state.devices.len()), (0, 1), "it is read anew");
        let report = state.into_report().unwrap().unwrap();
        assert_eq!(report, directory.path().join("pipe.roomtide-report"));
    }
}
