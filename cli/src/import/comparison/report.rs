//! The report of an import is a shell script: its comments have the counts and sums, and its commands take the import
//! back. Compares nothing.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use domain::{DeviceId, MetricName, Month, Timestamp, Zone};
use local::private;

use super::outcome::Outcome;
use super::take_back::quoted;
use super::tally::Totals;
use crate::progress_file;

/// The suffix of a report's name.
const SUFFIX: &str = ".roomtide-report";
/// The suffix of the report's name if the import stopped.
const STOPPED: &str = "-stopped";
/// The number sign (`#`), which begins a comment of a shell.
const COMMENT: char = 0x23 as char;
/// The maximum number of reports of one file, and the error for more.
const MAX_REPORTS: usize = 10_000;
const TOO_MANY: &str = "--report: too many reports are there";

/// The comparison of a month of a metric, as a line of the report.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) device: DeviceId,
    pub(super) metric: MetricName,
    pub(super) month: Month,
    pub(super) source: Totals,
    pub(super) before: Totals,
    pub(super) table: Totals,
    pub(super) outcome: Outcome,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, metric, month, source, before, table, outcome } = self;
        let values = |it: &Totals| format!("{} with the sum {}", it.count, it.sum);
        write!(f, "{device} {metric} {month}: source {}, table {}", values(source), values(table))?;
        if before.count > 0 {
            write!(f, ", before {}", values(before))?;
        }
        write!(f, ": {}: {}", outcome.as_str(), outcome.reason())
    }
}

/// The beginning of a report.
#[derive(Debug, Clone)]
pub(in crate::import) struct Head {
    /// The source of the import.
    pub(in crate::import) source: String,
    /// The target: a server or a directory.
    pub(in crate::import) target: String,
    /// The address of the server that the report's commands use.
    pub(in crate::import) url: String,
    pub(in crate::import) began: Timestamp,
}

/// The text of a report so far.
#[derive(Debug)]
pub(super) struct Report(String);

impl Report {
    pub(super) fn new(head: &Head, zone: Option<Zone>) -> Self {
        let Head { source, target, url, began } = head;
        let mut report = Self(String::new());
        report.comment(format_args!("What roomtide import stored from {source} into {target}."));
        report.comment(format_args!("Begun {began}."));
        report.comment(
            "Run with sh, this file takes the import back. The server may want an admin's token:",
        );
        report.comment("  sh THIS-FILE --token @FILE");
        if target != url {
            report.comment(format_args!(
                "A server of {target} has to run at {url}; change that address below for another."
            ));
        }
        report.comment("ROOMTIDE names the program if it is not in the path.");
        report.comment("Readings that others wrote into the same spans since are deleted, too. What the import taught");
        report.comment("of devices that were there before stays: metrics, units, names.");
        writeln!(
            report.0,
            "take_back() {{ \"${{ROOMTIDE:-roomtide}}\" delete --yes --url {url} \"$@\" || failed=1; }}",
            url = quoted(url)
        )
        .expect("a text takes everything");
        if let Some(zone) = zone {
            report.comment(format_args!("Counts and sums, by months of {}:", zone.name()));
            report.comment(
                "device,metric,month,source count,source sum,table count,table sum,before count,before sum,result",
            );
        }
        report
    }

    /// Adds a comment.
    pub(super) fn comment(&mut self, text: impl fmt::Display) {
        let text = text.to_string();
        for line in text.split('\n') {
            self.0.push_str(format!("{COMMENT} {line}").trim_end());
            self.0.push('\n');
        }
    }

    /// Adds the counts and sums of a month.
    pub(super) fn row(&mut self, row: &Row) {
        let Row { device, metric, month, source, before, table, outcome } = row;
        let values = |it: &Totals| format!("{},{}", it.count, it.sum);
        self.comment(format_args!(
            "{device},{metric},{month},{},{},{},{}",
            values(source),
            values(table),
            values(before),
            outcome.as_str()
        ));
    }

    /// Adds a shell command.
    pub(super) fn line(&mut self, line: &str) {
        writeln!(self.0, "{line}").expect("a text takes everything");
    }

    /// Writes the report to a new file, with a number in its name if another import has just taken the name. Returns
    /// the file's name.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let context = || format!("cannot write the report {}", path.display());
        let text = format!("{}exit ${{failed:-0}}\n", self.0);
        for name in names(path) {
            match private::options().create_new(true).open(&name) {
                Ok(_) => {
                    progress_file::replace(&name, text.as_bytes()).with_context(context)?;
                    return Ok(name);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(context),
            }
        }
        bail!(TOO_MANY)
    }
}

/// The files for reports; `None` if there is no place for them.
#[derive(Debug, Default)]
pub(in crate::import) struct Places {
    pub(super) report: Option<PathBuf>,
    pub(super) if_stopped: Option<PathBuf>,
}

impl Places {
    /// Returns the requested file, or else files beside the imported one.
    pub(in crate::import) fn of(
        asked: Option<&Path>,
        beside: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let Some(beside) = beside.or(asked) else { return Ok(Self::default()) };
        let report = place(asked, beside)?;
        let if_stopped = Some(progress_file::with_suffix(&report, STOPPED));
        Ok(Self { report: Some(report), if_stopped })
    }
}

/// The file of the report: the requested one, or else a new one beside the source. Earlier reports stay, because their
/// commands take earlier imports back.
fn place(asked: Option<&Path>, beside: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = asked {
        ensure!(
            !path.exists(),
            "--report: {} is there; it may have the lines that take an earlier import back",
            path.display()
        );
    }
    let path = asked.map_or_else(|| progress_file::with_suffix(beside, SUFFIX), Path::to_owned);
    let free = names(&path).find(|path| !path.exists()).context(TOO_MANY)?;
    let context = || format!("cannot write {}; --report FILE keeps it elsewhere", free.display());
    progress_file::ensure_file(&free).with_context(context)?;
    progress_file::ensure_writable(&free).with_context(context)?;
    Ok(path)
}

/// The path itself, then the path with increasing numbers.
fn names(path: &Path) -> impl Iterator<Item = PathBuf> {
    (1..MAX_REPORTS).map(move |n| match n {
        1 => path.to_owned(),
        n => progress_file::with_suffix(path, &format!("-{n}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_report_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.lp");
        let shown = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let head = Head {
            source: "a.lp".to_owned(),
            target: "data".to_owned(),
            url: "http://h".to_owned(),
            began: Timestamp::MIN,
        };
        let report = Report::new(&head, None);
        // Two imports begin before one of them ends.
        let places = [0, 1].map(|_| Places::of(None, Some(&file)).unwrap());
        let written = places.map(|it| report.write(&it.report.unwrap()).unwrap());
        let first = written[0].clone();
        assert_eq!(written.map(shown), ["a.lp.roomtide-report", "a.lp.roomtide-report-2"]);
        let third = place(None, &file).unwrap();
        assert_eq!(shown(report.write(&third).unwrap()), "a.lp.roomtide-report-3");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
        let error = place(Some(&first), &file).unwrap_err().to_string();
        assert!(error.contains("is there"), "{error}");
        let other = directory.path().join("other");
        assert_eq!(place(Some(&other), &file).unwrap(), other);
        assert!(place(Some(&directory.path().join("no/such/x")), &file).is_err());
    }

    #[test]
    fn a_name_with_a_line_break_stays_in_its_comment() {
        let head = Head {
            source: "a\nrm -rf x".to_owned(),
            target: "data".to_owned(),
            url: "http://h/$(rm x)".to_owned(),
            began: Timestamp::MIN,
        };
        let Report(text) = Report::new(&head, Some(Zone::UTC));
        assert!(text.contains("\n# rm -rf x into"), "{text}");
        assert!(text.contains(" --url 'http://h/$(rm x)' "), "{text}");
    }
}
