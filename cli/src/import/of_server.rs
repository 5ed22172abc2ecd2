//! Imports a running InfluxDB, window by window, and saves its progress. Reads no file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::Timestamp;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::args::ImportArgs;
use super::comparison::{Comparison, GoesOn, Import, Places};
use super::of_source::{self, Wanted, print_counts};
use super::points::{Counts, Sent, United, Watched, beside_no_means, send};
use super::resume::{Resume, Witness};
use super::session::{self, Compared, after_upload};
use super::sort;
use super::sources::influxdb::{self, Context, Server, Windows};
use super::sources::{Notes, Point, Source, Units};
use crate::client::{self, Client, without_login};
use crate::interrupted::stop_on_ctrl_c;
use crate::output::{counted, escaped, print};
use crate::progress;
use crate::progress_file::{self, HeldProgress};

/// The progress of an import: all points before it are stored or refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Progress {
    /// The server and the target, for people. Absent in a file of an earlier version.
    #[serde(default)]
    of: Option<String>,
    /// Identifies the requested points and options.
    asked: String,
    database: String,
    policy: String,
    measurement: String,
    /// The end of the last stored window, in nanoseconds.
    until: i64,
    witness: Option<Witness>,
    /// The number of points that were refused.
    #[serde(default)]
    refused: u64,
    /// The start of the first run, in milliseconds; relative times are counted from there. Absent in a file of an
    /// earlier version.
    #[serde(default)]
    began: Option<i64>,
}

impl Progress {
    /// The name of the last stored window.
    fn window(&self) -> String {
        format!("{} {} {} {}", self.database, self.policy, self.measurement, self.until)
    }

    fn is_of(&self, context: &Context) -> bool {
        (&self.database, &self.policy) == (&context.database, &context.policy)
    }
}

/// Imports the databases of a server, or reports what an import would do.
pub(super) fn import(args: &ImportArgs, address: &str, now: Timestamp) -> anyhow::Result<ExitCode> {
    let source_token = args.source_token.as_deref().map(client::token).transpose()?;
    let server = Arc::new(Server::connect(address, source_token.as_deref())?);
    let notes = Notes::default();
    let contexts = influxdb::contexts(&server, &args.database, |text| notes.say(text))?;
    let bar = progress::spinner();
    if args.dry_run {
        let points = Box::new(all_points(server, contexts, Wanted::of(args, now)?.span()));
        let units = Units::default();
        return of_source::import(args, Source { points, notes, units }, &bar, now);
    }
    let wanted = Wanted::of(args, now)?;
    let of = of(args, &server, &contexts);
    let asked = format!("{of} {}", wanted.asked(args));
    let path = args.state.clone().unwrap_or_else(|| beside(&server, ".roomtide-import"));
    progress_file::ensure_ours::<Progress>(&path)?;
    let progress_lock = Some(Arc::new(HeldProgress::take(&path)?));
    let client = args.target.client(args.token.as_deref())?;
    let kept = kept(&path, &of, args.again)?;
    let known = kept.filter(|known| known.asked == asked);
    let import = Import::begun(&asked, &of, now);
    let begins = GoesOn::No((known.is_none() && !args.again).then_some(&import));
    let mut progress = still_true(known, &client)?;
    let has_begun = progress.is_some();
    let began = progress.as_ref().and_then(|known| Timestamp::from_millis(known.began?).ok());
    let began = began.unwrap_or(now);
    let wanted = wanted.counted_from(args, began)?;
    stop_on_ctrl_c(client.interrupted());
    let head = session::head(args, server.shown(), now);
    let places = Places::of(args.report.as_deref(), Some(&beside(&server, "")))?;
    let kept = progress_file::with_suffix(&path, "-before");
    let reached_window = progress.as_ref().map(Progress::window);
    let goes_on = reached_window.as_deref().map_or(begins, GoesOn::After);
    let comparison = Comparison::begin(&client, Some(kept), goes_on, now)?;
    if progress.is_none() {
        session::tell_of_sample_home(&client);
    }
    let compared = Compared { comparison, head, places, _held: progress_lock };
    let comparison = &compared.comparison;
    let refused_before = progress.as_ref().map_or(0, |known| known.refused);
    let mut run = Run {
        args,
        client: &client,
        comparison,
        wanted,
        notes,
        bar,
        now,
        sent: Sent::after_refusals(refused_before),
        counts: Counts::default(),
    };
    let mut reached = progress.clone();
    // Windows before the progress, and points outside the requested span, are not read.
    let is_all_read = reached.is_none() && args.from.is_none() && args.to.is_none();
    let place = progress.as_ref().and_then(|known| contexts.iter().position(|it| known.is_of(it)));
    progress = progress.filter(|_| place.is_some());
    let from = place.unwrap_or_default();
    for context in &contexts[from..] {
        let after = progress.take().map(|known| (known.measurement, known.until));
        let result = Windows::new(Arc::clone(&server), context.clone(), after, run.wanted.span())
            .and_then(|windows| {
                for window in windows {
                    let window = window?;
                    let (measurement, until) = (window.measurement, window.until);
                    run.show(&measurement, until);
                    let witness = run.store(window.points)?;
                    let witness = witness.or_else(|| reached.take().and_then(|it| it.witness));
                    let (asked, Context { database, policy }) = (asked.clone(), context.clone());
                    let (of, refused) = (Some(of.clone()), run.refused());
                    let known = Progress {
                        of,
                        asked,
                        database,
                        policy,
                        measurement,
                        until,
                        witness,
                        refused,
                        began: Some(began.as_millis()),
                    };
                    comparison.end_window(&known.window())?;
                    progress_file::replace(&path, &serde_json::to_vec(&known)?)
                        .with_context(|| progress_file::cannot_write(&path))?;
                    reached = Some(known);
                }
                anyhow::Ok(())
            });
        if let Err(error) = result {
            run.bar.finish_and_clear();
            compared.stopped(&client)?;
            return Err(stopped(error, run.sent.stored, reached.as_ref()));
        }
    }
    run.bar.finish_and_clear();
    // If the file cannot be removed, the next import finds everything done, which is true.
    drop(std::fs::remove_file(&path));
    run.print();
    if let Some(said) = run.wanted.map().not_met().filter(|_| is_all_read) {
        print(said);
    }
    let is_rolled_up = after_upload(&client, run.sent.stored, has_begun);
    let Sent { refusals, refused_before, .. } = run.sent;
    compared.finish(is_rolled_up, &refusals, refused_before)
}

/// Adds the progress to the error of an import, if a window was stored.
fn stopped(error: anyhow::Error, stored: u64, reached: Option<&Progress>) -> anyhow::Error {
    let Some(known) = reached else { return error };
    error.context(format!(
        "stopped; {} stored, the same command continues after {} until {}",
        counted(stored, "point"),
        known.measurement,
        shown(known.until)
    ))
}

/// Identifies an import by its source, target and options, so that an import never continues the progress of another.
fn of(args: &ImportArgs, server: &Server, contexts: &[Context]) -> String {
    let names: Vec<String> = contexts.iter().map(Context::to_string).collect();
    let ImportArgs { from, to, only, except, csv, .. } = args;
    let mut options = String::new();
    let one = [("--from", from), ("--to", to)];
    let one =
        one.into_iter().flat_map(|(name, value)| value.iter().map(move |value| (name, value)));
    let many = [("--only", only), ("--except", except), ("--map", &csv.map)];
    let many = many.into_iter().flat_map(|(name, all)| all.iter().map(move |value| (name, value)));
    for (name, value) in one.chain(many) {
        options.extend([" ", name, " ", value]);
    }
    let target = without_login(args.target.name());
    format!("the import of {} of {}{options} into {target}", names.join(", "), server.shown())
}

/// The saved progress of the same import, unless the import is to start over.
fn kept(path: &Path, of: &str, is_again: bool) -> anyhow::Result<Option<Progress>> {
    let kept: Option<Progress> = earlier(path).filter(|_| !is_again);
    let kept_of = kept.as_ref().and_then(|known| known.of.as_deref());
    progress_file::ensure_same(path, kept_of, of)?;
    Ok(kept)
}

/// Returns the points of all windows of all databases.
fn all_points(
    server: Arc<Server>,
    contexts: Vec<Context>,
    span: (i64, i64),
) -> impl Iterator<Item = anyhow::Result<Point>> {
    contexts.into_iter().flat_map(move |context| {
        let (windows, error) = match Windows::new(Arc::clone(&server), context, None, span) {
            Ok(windows) => (Some(windows), None),
            Err(error) => (None, Some(Err(error))),
        };
        let points = windows.into_iter().flatten().flat_map(|window| match window {
            Ok(window) => window.points.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        points.chain(error)
    })
}

/// A running import.
struct Run<'a> {
    args: &'a ImportArgs,
    client: &'a Client,
    comparison: &'a Comparison<'a>,
    wanted: Wanted,
    notes: Notes,
    bar: ProgressBar,
    now: Timestamp,
    sent: Sent,
    counts: Counts,
}

impl Run<'_> {
    /// Reports the stored and the refused points.
    fn print(&self) {
        print(&self.sent);
        print_counts(self.counts);
        print(&self.notes);
        let refusals = self.sent.refusals.to_string();
        if !refusals.is_empty() {
            print(refusals.trim_start_matches('\n'));
        }
    }

    /// Shows the window that is being stored.
    fn show(&self, measurement: &str, until: i64) {
        let (stored, measurement) = (self.sent.stored, escaped(&measurement));
        self.bar.set_message(format!("{stored} points, {measurement} until {}", shown(until)));
    }

    /// The number of refused points, including earlier runs.
    const fn refused(&self) -> u64 {
        self.sent.refused_before + self.sent.refusals.count()
    }

    /// Stores the points of a window. Returns one stored point.
    fn store(&mut self, points: Vec<Point>) -> anyhow::Result<Option<Witness>> {
        let Self { args, client, comparison, wanted, notes, bar, now, .. } = self;
        let points =
            wanted.clone().of_points(points.into_iter().map(Ok), notes.clone(), Units::default());
        let sorted = sort::sorted(points, sort::RUN, &ProgressBar::hidden())?;
        let refusals = notes.take_refusals();
        if let (true, Some(first)) = (args.strict, refusals.first()) {
            bail!("{first}");
        }
        self.sent.refusals.append(refusals);

        let mut united = United::new(sorted);
        let options = args.upload_options();
        // No progress within a window: after a failure, the whole window is sent again.
        let mut resume = Resume::of(Path::new("-"), None, "", false)?;
        let groups = beside_no_means(united.by_ref(), comparison, notes.clone(), *now);
        let watched = Watched::new(groups, Some(comparison), *now);
        let sent = send(watched, client, options, &mut resume, bar)?;
        self.sent.add(sent);
        self.counts.add(united.counts());
        Ok(resume.witness().cloned())
    }
}

/// A file of the import in the current directory, named after the server: the progress, or another one.
fn beside(server: &Server, suffix: &str) -> PathBuf {
    let host = server.shown().split("://").last().unwrap_or_default();
    let name: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    PathBuf::from(format!("{name}{suffix}"))
}

fn earlier(path: &Path) -> Option<Progress> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Returns the progress, and announces it, if the table still has what was stored.
fn still_true(progress: Option<Progress>, client: &Client) -> anyhow::Result<Option<Progress>> {
    let Some(known) = progress else { return Ok(None) };
    if let Some(why) = session::missing(known.witness.as_ref(), client)? {
        print(format_args!("{why}; starting over"));
        return Ok(None);
    }
    let (measurement, at) = (&known.measurement, shown(known.until));
    print(format_args!("continuing after {measurement} until {at} (--again starts over)"));
    Ok(Some(known))
}

fn shown(nanos: i64) -> String {
    Timestamp::from_millis(nanos.div_euclid(1_000_000))
        .map_or_else(|_| "?".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::import::fake_server::{self, Reply};
    use crate::import::target::Target;
    use crate::tests::parsed;

    /// A server with one point a day from 2024-10-05 on, for seven days.
    fn influxdb() -> fake_server::Server {
        influxdb_from(20_001)
    }

    /// A server with one point a day for seven days, the first on a day since 1970.
    fn influxdb_from(first: i64) -> fake_server::Server {
        fake_server::serve(move |_, request| {
            if request.path == "/ping" {
                return Reply::with(204, "x-influxdb-version: 1.8.10\r\n", "");
            }
            let (_, query) = request.path.split_once('?').unwrap();
            let (_, q) =
                form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "q").unwrap();
            let day = 86_400_000_000_000_i64;
            let series = |rows: &str| {
                format!(
                    r#"{{"results":[{{"series":[{{"name":"m","tags":{{"host":"a"}},"columns":[],"values":[{rows}]}}]}}]}}"#
                )
            };
            let body = if q.starts_with("SHOW DATABASES") {
                series(r#"["home"]"#)
            } else if q.starts_with("SHOW RETENTION") {
                series(r#"["autogen","0s",true]"#)
            } else if q.starts_with("SHOW FIELD") {
                series(r#"["v","float"]"#)
            } else if q.contains("LIMIT 1") {
                series(&format!(
                    "[{},1]",
                    if q.contains("ASC") { first * day } else { (first + 6) * day }
                ))
            } else {
                let bound = |name: &str| {
                    q.split(name).nth(1).unwrap().split(' ').next().unwrap().parse::<i64>().unwrap()
                };
                let (begin, end) = (bound("time >= "), bound("time < "));
                let days = (1..8).filter(|n| (begin..end).contains(&((first - 1 + n) * day)));
                series(
                    &days
                        .map(|n| format!("[{},{n}]", (first - 1 + n) * day))
                        .collect::<Vec<_>>()
                        .join(","),
                )
            };
            Reply::of(200, &body)
        })
    }

    /// What a table answers that has the lines of these bodies.
    fn told(path: &str, bodies: &[String]) -> Reply {
        const HEADER: &str = "timestamp,partial,coverage,v.count,v.sum";
        let value = |line: &str| line.split(['=', ' ']).nth(3)?.parse::<u64>().ok();
        let values: Vec<u64> = bodies.iter().flat_map(|it| it.lines()).filter_map(value).collect();
        let (count, sum) = (values.len(), values.iter().sum::<u64>());
        match path {
            "/health?details=1" => Reply::of(
                200,
                r#"{"rollups": {"tz": "UTC", "at": "2026-02-01T00:00:00Z", "folded_until": "2026-02-01T00:00:00Z"}}"#,
            ),
            "/ready" => Reply::of(200, r#"{"status": "ready", "up": "0s"}"#),
            "/rooms?limit=1" => Reply::of(200, r#"{"data": []}"#),
            "/devices/a::m" => Reply::of(200, r#"{"metrics": {"v": {"kind": "gauge"}}}"#),
            path if path.contains("/readings?") => Reply::of(
                200,
                r#"{"data": [{"device_id": "a::m", "timestamp": "2024-10-05T00:00:00Z", "v": 1}]}"#,
            ),
            path if path.contains("every=1d") => Reply::of(200, HEADER),
            _ if values.is_empty() => Reply::of(404, "{}"),
            _ => Reply::of(200, &format!("{HEADER}\n2024-10-01T00:00:00Z,,,{count},{sum}\n")),
        }
    }

    #[tokio::test]
    async fn an_interrupted_import_goes_on_behind_its_last_window() {
        let influxdb = influxdb();
        let (broken, bodies) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (is_broken, seen) = (Arc::clone(&broken), Arc::clone(&bodies));
        let roomtide = fake_server::serve(move |_, request| {
            if request.method == "GET" {
                return told(&request.path, &seen.lock().unwrap());
            }
            if is_broken.load(Ordering::Acquire) && request.body.contains("v=2 ") {
                return Reply::of(401, "{}");
            }
            seen.lock().unwrap().push(request.body);
            Reply::of(204, "")
        });
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let report = directory.path().join("report");
        let url = roomtide.url.replace("://", "://me:secret@");
        let words = ["import", &influxdb.url, "--url", &url, "--state", state.to_str().unwrap()];
        let words = words.into_iter().chain(["--report", report.to_str().unwrap()]);
        let mut args: ImportArgs = parsed(words.chain(["--from", "-833d"])).unwrap();
        args.target = Target::Server(url.clone());
        // The relative time would be another instant in each run, days after the first points.
        let seconds = AtomicI64::new(1_800_000_000);
        let run = |args: &ImportArgs| {
            let millis = 1_000 * seconds.fetch_add(4 * 86_400, Ordering::AcqRel);
            import(args, &influxdb.url, Timestamp::from_millis(millis).unwrap())
        };
        let error = format!("{:#}", run(&args).unwrap_err());
        let expected = "stopped; 1 point stored, the same command continues after m until 2024-10-06T00:00:00.000Z";
        assert!(error.starts_with(expected), "{error}");

        let kept = std::fs::read_to_string(&state).unwrap();
        assert!(!kept.contains("secret"), "{kept}");
        args.target = Target::Server("http://127.0.0.1:1".to_owned());
        let error = run(&args).unwrap_err().to_string();
        let expected = format!(" into {} came, and ", roomtide.url);
        assert!(error.contains(&expected) && error.contains("--again"), "{error}");
        assert_eq!(
            std::fs::read_to_string(&state).unwrap(),
            kept,
            "the progress into another target"
        );

        args.target = Target::Server(url);
        broken.store(false, Ordering::Release);
        assert_eq!(run(&args).unwrap(), ExitCode::SUCCESS);
        let all = bodies.lock().unwrap().concat();
        let values: Vec<&str> = all.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(values, ["v=1", "v=2", "v=3", "v=4", "v=5", "v=6", "v=7"], "each once");
        let compared = std::fs::read_to_string(report).unwrap();
        let expected = "a::m,v,2024-10,7,28,7,28,0,0,equal\n";
        assert!(compared.contains(expected), "of both runs: {compared}");
        let expected = "take_back readings --from 2024-10-05T00:00:00.000Z --to 2024-10-11T00:00:00.001Z \"$@\" -- a::m\n";
        assert!(compared.contains(expected), "{compared}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the report alone");
        assert!(!state.exists());
    }

    /// Points of the last three days before 1970 and of four days of it.
    #[tokio::test]
    async fn points_of_times_that_no_reading_has_are_counted_and_end_a_strict_import() {
        let influxdb = influxdb_from(-3);
        let roomtide = fake_server::serve(|_, request| match &*request.method {
            "GET" if request.path == "/ready" => {
                Reply::of(200, r#"{"status": "ready", "up": "0s"}"#)
            }
            "GET" => Reply::of(404, "{}"),
            _ => Reply::of(204, ""),
        });
        let directory = tempfile::tempdir().unwrap();
        let run = |more: &[&str]| {
            let words = ["import", &influxdb.url, "--url", &roomtide.url];
            let files = ["state", "report"].map(|name| {
                directory.path().join(format!("{name}{}", more.concat())).display().to_string()
            });
            let words = words.into_iter().chain(["--state", &files[0], "--report", &files[1]]);
            let mut args: ImportArgs = parsed(words.chain(more.iter().copied())).unwrap();
            args.target = Target::Server(roomtide.url.clone());
            import(&args, &influxdb.url, Timestamp::from_millis(1_800_000_000_000).unwrap())
        };
        assert_eq!(run(&[]).unwrap(), ExitCode::from(3));

        let error = format!("{:#}", run(&["--strict"]).unwrap_err());
        assert!(error.contains("m,host=a: the time in milliseconds"), "{error}");
    }

    #[test]
    fn an_import_is_named_by_all_that_chooses_its_points() {
        let influxdb = influxdb();
        let server = Server::connect(&influxdb.url, None).unwrap();
        let name = |database: &str, more: &[&str]| {
            let words = ["import", &influxdb.url].into_iter().chain(more.iter().copied());
            let args: ImportArgs = parsed(words).unwrap();
            let (database, policy) = (database.to_owned(), "autogen".to_owned());
            of(&args, &server, &[Context { database, policy }])
        };
        let home = name("home", &[]);
        assert!(home.starts_with("the import of home.autogen of http://127.0.0.1:"), "{home}");
        assert_ne!(name("office", &[]), home);
        for options in [["--from", "-1d"], ["--to", "-1d"], ["--only", "m"], ["--except", "m"]] {
            assert_ne!(name("home", &options), home, "{options:?}");
        }
    }
}
