//! The points of a running InfluxDB in a file of line protocol, which is then imported like any other. Sends nothing to
//! Roomtide.
//!
//! The file has one gzip member for each window of points. The last line of a member is a comment that says how far the
//! points go, so an interrupted fetch continues after the last whole member.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use flate2::Compression;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;
use indicatif::ProgressBar;
use local::private;
use serde::{Deserialize, Serialize};

use crate::moment::shown_nanos;
use crate::output::{counted, escaped};
use crate::progress_file::{self, HeldProgress};
use history::influxdb::{Context, NanosecondRange, Server, Windows};
use history::point::COMMENT;
use history::point::Point;
use history::text_lines::TextLines;

/// The start of a comment that says how far the points go, after the number sign.
const MARK: &str = " roomtide ";

/// The points of an import, fetched or being fetched.
pub(in crate::import) struct Spool {
    file: File,
    /// The name of the file; `None` in a dry run, whose file has no name and leaves nothing.
    path: Option<PathBuf>,
    /// The requested span in nanoseconds. Relative times are those of the first run.
    span: NanosecondRange,
    reached: Option<Reached>,
    is_whole: bool,
    /// The number of points that this run fetched.
    fetched: u64,
    /// Keeps other imports from the file.
    #[expect(dead_code, reason = "it is dropped with the file")]
    held: Option<HeldProgress>,
}

/// How far the points of a file go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Mark {
    /// No point yet.
    Begun { of: String, span: NanosecondRange },
    /// All points of a measurement before a time, and of the measurements and databases before it.
    Reached(Reached),
    /// All points.
    Whole,
    /// All points, and they were imported. The next import fetches them anew.
    Imported,
}

/// The end of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reached {
    context: String,
    measurement: String,
    /// In nanoseconds, exclusive.
    until: i64,
}

impl Spool {
    /// Opens the file of an import, which an earlier run may have begun. `of` names the import, so that a file of
    /// another one is refused.
    pub(in crate::import) fn open(
        path: &Path,
        of: &str,
        span: NanosecondRange,
        is_again: bool,
    ) -> anyhow::Result<Self> {
        progress_file::ensure_file(path)?;
        let held = Some(HeldProgress::take(path)?);
        let open = || private::options().read(true).open(path);
        if let Ok(file) = open()
            && let Some(kept) = Self::kept(file, path, of, is_again)?
        {
            return Ok(Self { held, ..kept });
        }

        let begun = member(&[], &Mark::Begun { of: of.to_owned(), span })?;
        progress_file::replace(path, &begun).with_context(|| cannot_write(path))?;
        let mut file = open()?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { held, ..Self::of(file, Some(path.to_owned()), span) })
    }

    /// A file without a name, for a dry run.
    pub(in crate::import) fn without_name(span: NanosecondRange) -> anyhow::Result<Self> {
        Ok(Self::of(tempfile::tempfile()?, None, span))
    }

    const fn of(file: File, path: Option<PathBuf>, span: NanosecondRange) -> Self {
        Self { file, path, span, reached: None, is_whole: false, fetched: 0, held: None }
    }

    /// Reads how far an earlier run came, and cuts off an unfinished member. Returns `None` if the points are to be
    /// fetched anew, because they were imported or a person asks for it.
    fn kept(mut file: File, path: &Path, of: &str, is_again: bool) -> anyhow::Result<Option<Self>> {
        let (marks, end) = read_marks(&file)?;
        let Some(Mark::Begun { of: kept, span }) = marks.first() else {
            bail!("{} was not fetched by this command, and is not replaced", path.display());
        };
        if is_again || marks.last() == Some(&Mark::Imported) {
            return Ok(None);
        }

        ensure!(
            kept == of,
            "{} has the points of {kept}, and {of} does not replace them; --state FILE fetches into FILE's directory, and \
             --again gives them up",
            path.display()
        );

        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        let mut spool = Self::of(file, Some(path.to_owned()), *span);
        spool.is_whole = marks.last() == Some(&Mark::Whole);
        spool.reached = marks.into_iter().rev().find_map(|mark| match mark {
            Mark::Reached(reached) => Some(reached),
            _ => None,
        });
        Ok(Some(spool))
    }

    /// Says where a fetch continues. `None` if it begins.
    pub(in crate::import) fn continuing(&self) -> Option<String> {
        if self.is_whole {
            let name = self.path.as_deref().unwrap_or(Path::new("")).display();
            return Some(format!("{name} has all points already (--again asks for them anew)"));
        }
        self.reached.as_ref().map(|reached| format!("continuing after {reached}"))
    }

    /// Fetches the points that the file does not have yet.
    pub(in crate::import) fn fetch(
        &mut self,
        server: &Arc<Server>,
        contexts: &[Context],
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        if self.is_whole {
            return Ok(());
        }

        let fetched = self.fetch_windows(server, contexts, bar);
        fetched.map_err(|error| match (&self.reached, &self.path) {
            (Some(reached), Some(path)) => error.context(format!(
                "stopped; {} fetched into {}, the same command continues after {reached}",
                counted(self.fetched, "point"),
                path.display()
            )),
            _ => error,
        })?;

        self.append(&[], &Mark::Whole)
    }

    fn fetch_windows(
        &mut self,
        server: &Arc<Server>,
        contexts: &[Context],
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        let mut after = self.reached.clone();
        let is_reached = |context: &Context| {
            after.as_ref().is_some_and(|reached| reached.context == context.to_string())
        };
        let first = contexts.iter().position(is_reached).unwrap_or_default();

        for context in &contexts[first..] {
            let done = after.take().map(|reached| (reached.measurement, reached.until));
            for window in Windows::new(Arc::clone(server), context.clone(), done, self.span)? {
                let window = window?;
                let reached = Reached {
                    context: context.to_string(),
                    measurement: window.measurement,
                    until: window.until,
                };
                self.append(&window.points, &Mark::Reached(reached.clone()))?;

                self.fetched += window.points.len() as u64;
                bar.set_message(format!("{} points fetched, {reached}", self.fetched));
                self.reached = Some(reached);
            }
        }
        Ok(())
    }

    /// Appends a member. A kill in between leaves a member without an end, which the next run cuts off.
    fn append(&mut self, points: &[Point], mark: &Mark) -> anyhow::Result<()> {
        let member = member(points, mark)?;
        let written = self.file.write_all(&member).and_then(|()| self.file.sync_data());
        written.with_context(|| cannot_write(self.path.as_deref().unwrap_or(Path::new("TMPDIR"))))
    }

    /// Returns the span of the first run.
    pub(in crate::import) const fn span(&self) -> NanosecondRange {
        self.span
    }

    /// The lines of the file.
    pub(in crate::import) fn lines(&self) -> anyhow::Result<TextLines<Box<dyn BufRead + Send>>> {
        // The clone shares its position with the file, so `end` seeks before it appends.
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        let lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
        Ok(TextLines::new(Box::new(lines)))
    }

    /// Removes the file after its points were imported. If some were refused, the file stays, because the refusals name
    /// its lines. Returns a remark about a file that stays.
    pub(in crate::import) fn end(mut self, is_needed: bool) -> anyhow::Result<Option<String>> {
        let Some(path) = self.path.take() else { return Ok(None) };
        if is_needed {
            self.file.seek(SeekFrom::End(0))?;
            self.append(&[], &Mark::Imported)?;
            return Ok(Some(format!(
                "{} stays, because the refusals name its lines",
                path.display()
            )));
        }
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(None)
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} until {}", escaped(&self.measurement), shown_nanos(self.until))
    }
}

fn cannot_write(path: &Path) -> String {
    format!(
        "cannot write the points into {}; --state FILE fetches into FILE's directory",
        path.display()
    )
}

/// Points as lines, and the mark after them, compressed.
fn member(points: &[Point], mark: &Mark) -> anyhow::Result<Vec<u8>> {
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    for point in points {
        writeln!(member, "{}", point.text())?;
    }
    writeln!(member, "{COMMENT}{MARK}{}", serde_json::to_string(mark)?)?;
    Ok(member.finish()?)
}

/// Reads the marks of all whole members. Returns the end of the last one, too.
fn read_marks(file: &File) -> anyhow::Result<(Vec<Mark>, u64)> {
    let mut file = BufReader::new(file);
    let (mut marks, mut end) = (Vec::new(), 0);
    while !file.fill_buf()?.is_empty() {
        // A member without an end is an error of the decoder.
        let Ok(line) = last_line(GzDecoder::new(&mut file)) else { break };
        let mark = line.strip_prefix(COMMENT).and_then(|line| line.strip_prefix(MARK));
        let Some(mark) = mark.and_then(|mark| serde_json::from_str(mark).ok()) else { break };
        marks.push(mark);
        end = file.stream_position()?;
    }
    Ok((marks, end))
}

fn last_line(member: impl io::Read) -> io::Result<String> {
    let mut lines = BufReader::new(member);
    let (mut line, mut last) = (Vec::new(), Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        std::mem::swap(&mut line, &mut last);
        line.clear();
    }
    String::from_utf8(last).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::point::Way;

    const SPAN: NanosecondRange = NanosecondRange { from: 0, to: 9 };

    fn point(value: &str) -> Point {
        Point {
            measurement: "m".to_owned(),
            tags: "host=a".to_owned(),
            fields: vec![("v".to_owned(), value.to_owned())],
            nanos: 5,
            line: 0,
            way: Way::Plain,
            hour: None,
        }
    }

    fn mark(until: i64) -> Mark {
        let (context, measurement) = ("home.autogen".to_owned(), "m".to_owned());
        Mark::Reached(Reached { context, measurement, until })
    }

    fn texts(spool: &Spool) -> Vec<String> {
        let mut lines = spool.lines().unwrap();
        let mut texts = Vec::new();
        while let Some(Ok(())) = lines.read().unwrap() {
            texts.push(String::from_utf8(lines.text.clone()).unwrap());
        }
        texts.retain(|text| !text.starts_with(COMMENT));
        texts
    }

    #[test]
    fn a_fetch_continues_behind_its_last_whole_window_wherever_it_was_killed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pi.lp.gz");
        let mut spool = Spool::open(&path, "home", SPAN, false).unwrap();
        spool.append(&[point("1")], &mark(3)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        spool.append(&[point("2"), point("\"a\nb\"")], &mark(7)).unwrap();
        drop(spool);
        let all = std::fs::read(&path).unwrap();

        for length in whole.len()..=all.len() {
            std::fs::write(&path, &all[..length]).unwrap();
            let later = NanosecondRange { from: 1, to: 2 };
            let spool = Spool::open(&path, "home", later, false).unwrap();
            let is_whole = length == all.len();
            let until = if is_whole { 7 } else { 3 };
            assert_eq!(spool.reached.as_ref().map(|it| it.until), Some(until), "{length}");
            assert_eq!(spool.span, SPAN, "that of the first run");
            assert_eq!(texts(&spool).len(), if is_whole { 4 } else { 1 });
        }
    }

    #[test]
    fn points_of_another_import_and_a_file_of_a_person_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pi.lp.gz");
        drop(Spool::open(&path, "home", SPAN, false).unwrap());
        let error = Spool::open(&path, "attic", SPAN, false).err().unwrap().to_string();
        assert!(error.contains("has the points of home, and attic does not replace"), "{error}");
        drop(Spool::open(&path, "attic", SPAN, true).unwrap());

        std::fs::write(&path, "m v=1 5\n").unwrap();
        for is_again in [false, true] {
            let error = Spool::open(&path, "home", SPAN, is_again).err().unwrap().to_string();
            assert!(error.contains("was not fetched by this command"), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"m v=1 5\n");
    }

    #[test]
    fn imported_points_are_removed_or_fetched_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pi.lp.gz");
        let mut spool = Spool::open(&path, "home", SPAN, false).unwrap();
        spool.append(&[point("1")], &mark(3)).unwrap();
        let said = spool.end(true).unwrap().unwrap();
        assert!(said.contains("pi.lp.gz stays"), "{said}");

        let spool = Spool::open(&path, "home", SPAN, false).unwrap();
        assert_eq!((spool.reached.as_ref(), texts(&spool).len()), (None, 0));
        assert_eq!(spool.end(false).unwrap(), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
