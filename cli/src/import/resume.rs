//! The progress of an import, saved in a small file beside the imported one. Sends nothing.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, ensure};
use domain::{Reading, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::output::counted;
use crate::progress_file::{self, HeldProgress};

/// The progress: the number of lines at the beginning of a file that are processed, that is stored or refused.
#[derive(Debug)]
pub(super) struct Resume {
    /// The file of the progress; `None` for a stream, which cannot be read again.
    path: Option<PathBuf>,
    /// The lock on the progress file, taken when the target is known.
    held: Option<Arc<HeldProgress>>,
    state: State,
    /// The number of refused readings in lines that do not count as processed yet.
    refused_beyond: u64,
    /// The name of another import whose progress the file has.
    kept: Option<String>,
    /// Whether the import starts over, whatever an earlier import did.
    is_anew: bool,
    /// Whether an earlier import processed lines of a different version of the file, or with other options.
    has_changed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    /// The file and the target, for people. Absent in a file of an earlier version.
    #[serde(default)]
    of: Option<String>,
    /// The fingerprint of the file and of the options for reading it.
    fingerprint: String,
    acknowledged: u64,
    witness: Option<Witness>,
    /// The number of readings that the server refused.
    #[serde(default)]
    refused: u64,
    /// The digest of the processed lines. Absent in a file of an earlier version.
    #[serde(default)]
    passed: Option<String>,
    /// The start of the first run, in milliseconds. Absent in a file of an earlier version.
    #[serde(default)]
    began: Option<i64>,
}

impl State {
    const fn new(fingerprint: String) -> Self {
        Self {
            of: None,
            fingerprint,
            acknowledged: 0,
            witness: None,
            refused: 0,
            passed: None,
            began: None,
        }
    }

    /// Returns the progress of the same import before its first line.
    fn emptied(&self) -> Self {
        let Self { of, began, fingerprint, .. } = self.clone();
        Self { of, began, ..Self::new(fingerprint) }
    }
}

/// A hash of the lines from the first one on, because their order may change although the file does not.
#[derive(Debug, Clone, Default)]
pub(super) struct Passed(Sha256);

impl Passed {
    /// Adds the next processed line to the hash.
    pub(super) fn add(&mut self, line: &str) {
        self.0.update(line.len().to_be_bytes());
        self.0.update(line);
    }

    /// Returns the digest of the lines so far.
    pub(super) fn digest(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

/// The error of an import that continues, if its first lines are not the processed ones. The import starts over.
#[derive(Debug)]
pub(super) struct OrderChanged;

impl fmt::Display for OrderChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is imported begins with other lines than those that are processed")
    }
}

impl std::error::Error for OrderChanged {}

/// A stored reading. If the table has it, the processed lines are taken to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Witness {
    pub(super) device: String,
    pub(super) timestamp: String,
    pub(super) metrics: Vec<String>,
}

impl From<&Reading> for Witness {
    fn from(reading: &Reading) -> Self {
        Self {
            device: reading.device.to_string(),
            timestamp: reading.at.to_string(),
            metrics: reading.metrics().keys().map(ToString::to_string).collect(),
        }
    }
}

/// The number of bytes at the beginning of a file that are part of its fingerprint.
const FINGERPRINTED: u64 = 1 << 20;

impl Resume {
    /// Reads the progress of an interrupted import of the same file to the same server. Starts over with `again`, or
    /// without such progress.
    ///
    /// The progress is saved in `state`, or else beside the file.
    pub(super) fn of(
        file: &Path,
        state: Option<&Path>,
        asked: &str,
        again: bool,
    ) -> anyhow::Result<Self> {
        // Reading from a pipe would consume the input.
        let (path, fingerprint) = if file == Path::new("-") || !file.is_file() {
            ensure!(
                state.is_none(),
                "--state: {} cannot be read again, so its import keeps no progress",
                file.display()
            );
            (None, String::new())
        } else {
            let path = state.map_or_else(
                || progress_file::with_suffix(file, ".roomtide-import"),
                Path::to_owned,
            );
            (Some(path), fingerprint_of(file, asked)?)
        };
        if let Some(path) = &path {
            progress_file::ensure_ours::<State>(path)?;
        }
        let read = |path: &PathBuf| -> Option<State> {
            serde_json::from_slice(&fs::read(path).ok()?).ok()
        };
        let earlier = path.as_ref().filter(|_| !again).and_then(read);
        let kept = earlier.as_ref().and_then(|state| state.of.clone());
        let is_other = |state: &State| state.fingerprint != fingerprint;
        let has_changed =
            earlier.as_ref().is_some_and(|earlier| is_other(earlier) && earlier.acknowledged > 0);
        let earlier = earlier.filter(|state| !is_other(state));
        let state = earlier.unwrap_or_else(|| State::new(fingerprint));
        Ok(Self { path, held: None, state, refused_beyond: 0, kept, is_anew: again, has_changed })
    }

    /// Notes the file and the target. Fails if the progress file belongs to another import, whose progress would be
    /// lost, or if another import is using it.
    pub(super) fn into_target(mut self, file: &Path, target: &str) -> anyhow::Result<Self> {
        let Some(path) = &self.path else { return Ok(self) };
        let name = fs::canonicalize(file);
        let name = name.with_context(|| format!("cannot find {}", file.display()))?;
        let of = format!("the import of {} into {target}", name.display());
        progress_file::ensure_same(path, self.kept.as_deref(), &of)?;
        self.held = Some(Arc::new(HeldProgress::take(path)?));
        self.state.of = Some(of);
        Ok(self)
    }

    /// Returns the start of the first run; `now` in the first run. All runs count relative times from it, and so see
    /// the same lines.
    pub(super) fn began(&mut self, now: Timestamp) -> Timestamp {
        let millis = *self.state.began.get_or_insert(now.as_millis());
        Timestamp::from_millis(millis).unwrap_or(now)
    }

    /// Saves the start of the first run before the first line is sent, because a killed run may have stored lines
    /// without saving any progress.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        if self.state.acknowledged > 0 { Ok(()) } else { self.write() }
    }

    /// Returns the number of processed lines.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.state.acknowledged
    }

    /// Adds to the error of a stopped import how much was stored and where the next run continues. Adds nothing if
    /// nothing was stored, unless the reason is --strict.
    pub(super) fn stopped(
        &self,
        error: anyhow::Error,
        (stored, noun): (u64, &str),
        is_strict: bool,
    ) -> anyhow::Error {
        let processed = self.acknowledged();
        if stored == 0 && !is_strict && !(processed > 0 && self.is_kept()) {
            return error;
        }
        let stored = format!("stopped; {} stored", counted(stored, noun));
        error.context(match processed {
            _ if !self.is_kept() => stored,
            0 => format!("{stored}, the same command starts over"),
            lines => {
                format!("{stored}, the same command continues after {}", counted(lines, "line"))
            }
        })
    }

    /// Returns a stored reading of the processed lines.
    pub(super) const fn witness(&self) -> Option<&Witness> {
        self.state.witness.as_ref()
    }

    /// Returns whether an earlier import processed a different version of the file, or used other options. Then this
    /// import starts over.
    pub(super) const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Returns the file and the target, for people.
    pub(super) fn import(&self) -> Option<&str> {
        self.state.of.as_deref()
    }

    /// Returns the fingerprint, unless the import starts over.
    pub(super) fn asked(&self) -> Option<&str> {
        (!self.is_anew).then_some(&*self.state.fingerprint)
    }

    /// Returns whether the progress is saved for a later run.
    pub(super) const fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Returns the lock that keeps other imports from the progress file.
    pub(super) fn held(&self) -> Option<Arc<HeldProgress>> {
        self.held.clone()
    }

    /// Returns the name of a file beside the progress file, if there is one.
    pub(super) fn beside(&self, suffix: &str) -> Option<PathBuf> {
        self.path.as_ref().map(|path| progress_file::with_suffix(path, suffix))
    }

    /// Returns whether the progress has a digest of the processed lines. Progress of an earlier version has none.
    pub(super) const fn tells_lines(&self) -> bool {
        self.state.passed.is_some()
    }

    /// Checks that this import begins with the processed lines. Otherwise the import starts over, but keeps what is
    /// known of the time before the first run.
    pub(super) fn ensure_same(&mut self, lines: u64, passed: &Passed) -> anyhow::Result<()> {
        if lines == self.state.acknowledged && self.state.passed == Some(passed.digest()) {
            return Ok(());
        }
        self.forget()?;
        Err(OrderChanged.into())
    }

    /// Starts over at the first line.
    pub(super) fn restart(&mut self) {
        self.state = self.state.emptied();
        self.is_anew = true;
    }

    /// Starts over at the first line, but keeps what is known of the time before the first run.
    pub(super) fn forget(&mut self) -> anyhow::Result<()> {
        self.state = self.state.emptied();
        self.write()
    }

    /// Returns the number of refused readings in the processed lines, which are not sent again.
    pub(super) const fn refused(&self) -> u64 {
        self.state.refused
    }

    /// Records that the lines before `end` are processed, with their digest, one stored reading of them, and the number
    /// of newly refused readings.
    pub(super) fn acknowledge(
        &mut self,
        end: u64,
        stored: Option<&Reading>,
        refused: u64,
        passed: &str,
    ) -> anyhow::Result<()> {
        self.refused_beyond += refused;
        if end <= self.state.acknowledged {
            return Ok(());
        }
        let before = self.state.clone();
        self.state.acknowledged = end;
        self.state.refused += std::mem::take(&mut self.refused_beyond);
        self.state.passed = Some(passed.to_owned());
        if let Some(stored) = stored {
            self.state.witness = Some(stored.into());
        }
        // If the progress cannot be saved, the next run must not count on it.
        self.write().inspect_err(|_| self.state = before)
    }

    fn write(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        progress_file::replace(path, &serde_json::to_vec(&self.state)?)
            .with_context(|| progress_file::cannot_write(path))
    }

    /// Removes the progress file, because the import is complete or has stored nothing.
    pub(super) fn remove(&self) {
        // If the file cannot be removed, the next import finds all lines processed, which is true.
        if let Some(path) = &self.path {
            drop(fs::remove_file(path));
        }
    }
}

fn fingerprint_of(file: &Path, asked: &str) -> anyhow::Result<String> {
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
    hash.update(asked.as_bytes());
    Ok(format!("{length}-{}", hex(&hash.finalize())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        let now = Timestamp::MAX;
        local::read_reading(r#"{"device_id":"d","timestamp":1768147200,"t":1}"#, now).unwrap()
    }

    /// A directory with the file of an import in it.
    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("readings.csv");
        fs::write(&file, "a").unwrap();
        (directory, file)
    }

    fn resume_of(file: &Path) -> Resume {
        Resume::of(file, None, "x", false).unwrap()
    }

    #[test]
    fn what_is_processed_is_skipped_until_the_import_is_complete() {
        let (directory, file) = file();
        let mut resume = resume_of(&file);
        resume.acknowledge(500, Some(&reading()), 2, "").unwrap();
        // A round whose lines have a rest in the next one.
        resume.acknowledge(500, None, 1, "").unwrap();
        resume.acknowledge(1_000, None, 2, "").unwrap();
        let resumed = resume_of(&file);
        assert_eq!((resumed.acknowledged(), resumed.refused()), (1_000, 5));
        assert_eq!(resumed.witness(), Some(&Witness::from(&reading())), "the last that was stored");
        assert_eq!(
            Resume::of(&file, None, "y", false).unwrap().acknowledged(),
            0,
            "another mapping"
        );
        assert_eq!(Resume::of(&file, None, "x", true).unwrap().acknowledged(), 0, "again");
        resume.remove();
        assert_eq!(resume_of(&file).acknowledged(), 0, "complete");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn relative_times_are_counted_from_the_beginning_of_the_first_run() {
        let (_directory, file) = file();
        let [first, second] = [1_000, 2_000].map(|millis| Timestamp::from_millis(millis).unwrap());
        let resume = || resume_of(&file);

        assert_eq!(resume().began(first), first);
        assert_eq!(resume().began(second), second, "the first run sent nothing");
        let mut killed = resume();
        assert_eq!(killed.began(first), first);
        killed.keep().unwrap();
        assert_eq!(resume().began(second), first, "no line of it is acknowledged");

        resume().acknowledge(500, None, 0, "").unwrap();
        assert_eq!(resume().began(second), first);
        resume().forget().unwrap();
        assert_eq!(resume().began(second), first, "the lines of this run are counted from it too");
        assert_eq!(Resume::of(&file, None, "x", true).unwrap().began(second), second, "again");
    }

    #[test]
    fn it_is_kept_where_it_is_asked_for_and_for_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let (file, state) = (directory.path().join("readings.csv"), directory.path().join("state"));
        fs::write(&file, "a").unwrap();
        Resume::of(&file, Some(&state), "x", false).unwrap().acknowledge(500, None, 0, "").unwrap();
        assert!(state.exists());
        let resume = || Resume::of(&file, Some(&state), "x", false).unwrap();
        assert_eq!((resume().acknowledged(), resume().has_changed()), (500, false));
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!((resume().acknowledged(), resume().has_changed()), (0, true), "written since");
    }

    #[test]
    fn progress_of_another_file_or_into_another_target_is_named_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().canonicalize().unwrap().join(name);
        let (file, other, state) = (place("a.csv"), place("b.csv"), place("state"));
        fs::write(&file, "a").unwrap();
        fs::write(&other, "b").unwrap();
        let resume = |file: &Path, asked: &str, again| {
            Resume::of(file, Some(&state), asked, again)?.into_target(file, asked)
        };
        resume(&file, "one", false).unwrap().acknowledge(500, None, 0, "").unwrap();
        let kept = fs::read(&state).unwrap();

        for (file, target) in [(&file, "another"), (&other, "one")] {
            let error = resume(file, target, false).unwrap_err().to_string();
            let of = format!("the import of {} into one", place("a.csv").display());
            let state = state.display().to_string();
            for expected in [state.as_str(), of.as_str(), "--state", "--again"] {
                assert!(error.contains(expected), "{expected} is not in {error}");
            }
        }
        assert_eq!(fs::read(&state).unwrap(), kept);
        assert_eq!(resume(&file, "one", false).unwrap().acknowledged(), 500);
        assert_eq!(resume(&other, "one", true).unwrap().acknowledged(), 0, "again");
    }

    #[test]
    fn two_imports_at_once_do_not_share_their_progress() {
        let (directory, file) = file();
        let resume = |target: &str| resume_of(&file).into_target(&file, target);
        let first = resume("one").unwrap();
        for target in ["one", "another"] {
            let error = resume(target).unwrap_err().to_string();
            assert!(error.contains("under way") && error.contains("--state"), "{error}");
        }

        // The comparison goes on when the progress is done with.
        let held = first.held();
        drop(first);
        resume("another").unwrap_err();
        drop(held);
        drop(resume("another").unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn other_lines_than_the_processed_ones_start_the_import_over() {
        let (_directory, file) = file();
        let passed = |lines: &[&str]| {
            let mut passed = Passed::default();
            lines.iter().for_each(|line| passed.add(line));
            passed
        };
        let resume = || resume_of(&file);
        for (lines, position, is_same) in [
            (&["a", "b"], 2, true),
            (&["b", "a"], 2, false),
            (&["ab", ""], 2, false),
            (&["a", "b"], 3, false),
        ] {
            let known = passed(&["a", "b"]).digest();
            resume().acknowledge(2, Some(&reading()), 1, &known).unwrap();
            let mut again = resume();
            assert!(again.tells_lines());
            match again.ensure_same(position, &passed(lines)) {
                Ok(()) => assert!(is_same, "{lines:?}"),
                Err(error) => assert!(!is_same && error.is::<OrderChanged>(), "{lines:?}: {error}"),
            }
            assert_eq!(resume().acknowledged(), if is_same { 2 } else { 0 });
            assert_eq!(
                resume().asked(),
                Some(&*again.state.fingerprint),
                "what was before is kept"
            );
        }
    }

    #[test]
    fn the_progress_of_an_earlier_version_does_not_tell_its_lines() {
        let (directory, file) = file();
        let fingerprint = fingerprint_of(&file, "x").unwrap();
        let text = format!(r#"{{"fingerprint":"{fingerprint}","acknowledged":7,"witness":null}}"#);
        fs::write(directory.path().join("readings.csv.roomtide-import"), text).unwrap();
        let mut resume = resume_of(&file);
        assert_eq!((resume.acknowledged(), resume.tells_lines()), (7, false));
        resume.forget().unwrap();
        assert_eq!(resume_of(&file).acknowledged(), 0);
    }

    /// Before anything is sent.
    #[test]
    fn progress_that_cannot_be_kept_is_refused() {
        let (directory, file) = file();
        let state = directory.path().join("state");
        fs::create_dir(&state).unwrap();
        for state in [state, directory.path().join("missing").join("state"), file.join("state")] {
            let error = Resume::of(&file, Some(&state), "x", false).unwrap_err();
            let (error, state) = (format!("{error:#}"), state.display().to_string());
            assert!(error.contains(&state) && error.contains("--state"), "{error}");
        }
        resume_of(&file);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_file_that_is_no_progress_is_not_taken_for_it() {
        let (_directory, file) = file();
        let error = Resume::of(&file, Some(&file), "x", false).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(file).unwrap(), "a");
    }

    #[test]
    fn a_stream_is_not_looked_into() {
        let resume = Resume::of(Path::new("-"), None, "x", false).unwrap();
        assert!(!resume.is_kept());
        let state = Some(Path::new("state"));
        let error = Resume::of(Path::new("-"), state, "x", false).unwrap_err().to_string();
        assert!(error.contains("cannot be read again"), "{error}");
    }
}
