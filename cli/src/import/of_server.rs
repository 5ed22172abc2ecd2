//! Imports a running InfluxDB: fetches its points into a file, and imports the file. Knows no query.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use domain::Timestamp;

use super::args::ImportArgs;
use super::of_source;
use super::points::Selection;
use super::session;
use super::spool::Spool;
use crate::client;
use crate::moment::shown_nanos;
use crate::output::print;
use crate::progress;
use history::influxdb::{Context, NanosecondRange, Server};
use history::line_protocol::{LineFile, TimePrecision};
use history::notes::Notes;
use history::source::HistorySource;

/// Imports the databases of a server, or estimates the import in a dry run.
pub(super) fn import(args: &ImportArgs, address: &str, now: Timestamp) -> anyhow::Result<ExitCode> {
    let token = args.source_token.as_deref().map(client::token).transpose()?;
    let server = Arc::new(Server::connect(address, token.as_deref())?);
    let notes = Notes::default();
    let contexts = server.contexts(&args.database, |text| notes.say(text))?;

    let (from, to) = Selection::of(args, now)?.span();
    let span = NanosecondRange { from, to };
    let file = file(args, &server, &contexts);
    let mut spool = if args.dry_run {
        Spool::without_name(span)?
    } else {
        Spool::open(&file, &name(args, &server, &contexts), span, args.again)?
    };

    let bar = progress::spinner();
    spool.continuing().into_iter().for_each(print);
    spool.fetch(&server, &contexts, &bar)?;

    let precision = TimePrecision::NANOSECONDS;
    let points = LineFile::new(spool.lines()?, precision, Vec::new(), notes.clone());
    let source = HistorySource::of_points(Box::new(points), notes);
    // Relative times are those of the first run.
    let from = args.from.as_ref().map(|_| shown_nanos(spool.span().from));
    let to = args.to.as_ref().map(|_| shown_nanos(spool.span().to));
    let args = ImportArgs { file, from, to, ..args.clone() };
    let code = of_source::import(&args, source, &bar, now)?;
    let said = spool.end(code == session::some_refused())?;
    said.into_iter().for_each(print);
    Ok(code)
}

/// The file of the fetched points, named after the server and its databases: beside the progress, or in the current
/// directory.
fn file(args: &ImportArgs, server: &Server, contexts: &[Context]) -> PathBuf {
    let host = server.shown().split("://").last().unwrap_or_default();
    let databases: Vec<String> = contexts.iter().map(Context::to_string).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let name: String = format!("{host}-{}", databases.join("-"))
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    let directory = args.state.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    directory.join(format!("{name}.lp.gz"))
}

/// The name of an import's points, so that an import never continues with the points of another.
fn name(args: &ImportArgs, server: &Server, contexts: &[Context]) -> String {
    let mut name: Vec<String> = contexts.iter().map(Context::to_string).collect();
    name.extend(["of".to_owned(), server.shown().to_owned()]);
    for (option, value) in [("--from", &args.from), ("--to", &args.to)] {
        name.extend(value.iter().map(|value| format!("{option} {value}")));
    }
    name.join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::client::Client;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;

    const DAY: i64 = 86_400_000_000_000;

    /// A server with one point a day for seven days, the first on a day since 1970. While it is broken, it answers
    /// nothing about points from the fourth day on.
    fn influxdb(first: i64, is_broken: Arc<AtomicBool>) -> fake_server::FakeRoomtide {
        fake_server::serve(move |_, request| {
            if request.path == "/ping" {
                return Reply::with(204, "x-influxdb-version: 1.8.10\r\n", "");
            }
            let Some((_, query)) = request.path.split_once('?') else {
                return Reply::of(404, "{}");
            };
            let (_, q) =
                form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "q").unwrap();
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
                let day = if q.contains("ASC") { first } else { first + 6 };
                series(&format!("[{},1]", day * DAY))
            } else {
                let bound = |name: &str| {
                    q.split(name).nth(1).unwrap().split(' ').next().unwrap().parse::<i64>().unwrap()
                };
                let (begin, end) = (bound("time >= "), bound("time < "));
                if is_broken.load(Ordering::Acquire) && end > (first + 3) * DAY {
                    return Reply::of(401, "{}");
                }
                let days = (0..7).filter(|n| (begin..end).contains(&((first + n) * DAY)));
                let rows: Vec<String> =
                    days.map(|n| format!("[{},{}]", (first + n) * DAY, n + 1)).collect();
                series(&rows.join(","))
            };
            Reply::of(200, &body)
        })
    }

    /// A server that stores points and answers no question.
    fn roomtide(bodies: &Arc<Mutex<Vec<String>>>) -> fake_server::FakeRoomtide {
        let seen = Arc::clone(bodies);
        fake_server::serve(move |_, request| match &*request.path {
            "/ready" => Reply::of(200, r#"{"status": "ready", "up": "0s"}"#),
            _ if request.method == "GET" => Reply::of(404, "{}"),
            _ => {
                let reply = Reply::stored(&request);
                seen.lock().unwrap().push(request.body);
                reply
            }
        })
    }

    /// The values that were sent, in the order of the requests.
    fn values(bodies: &Mutex<Vec<String>>) -> Vec<u64> {
        let all = bodies.lock().unwrap().concat();
        let lines =
            all.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter_map(|reading| reading["v"].as_u64()).collect()
    }

    #[tokio::test]
    async fn an_interrupted_fetch_goes_on_behind_its_last_window_and_sends_each_point_once() {
        let is_broken = Arc::new(AtomicBool::new(true));
        let influxdb = influxdb(20_001, Arc::clone(&is_broken));
        let bodies = Arc::default();
        let roomtide = roomtide(&bodies);
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let url = roomtide.url.replace("://", "://me:secret@");
        let words = ["import", &influxdb.url, "--url", &url, "--state", state.to_str().unwrap()];
        let mut args: ImportArgs = parsed(words.into_iter().chain(["--from", "-833d"])).unwrap();
        args.client = Some(Arc::new(Client::new(&url, None).unwrap()));
        // The relative time would be another instant in each run, days after the first points.
        let seconds = AtomicI64::new(1_800_000_000);
        let run = || {
            let millis = 1_000 * seconds.fetch_add(4 * 86_400, Ordering::AcqRel);
            import(&args, &influxdb.url, Timestamp::from_millis(millis).unwrap())
        };
        let error = format!("{:#}", run().unwrap_err());
        assert!(error.contains("the same command continues after m until 2024-10-0"), "{error}");
        assert_eq!(values(&bodies), [0; 0], "nothing is sent before all is fetched");

        is_broken.store(false, Ordering::Release);
        assert_eq!(run().unwrap(), ExitCode::SUCCESS);
        assert_eq!(values(&bodies), [1, 2, 3, 4, 5, 6, 7], "each once");
        let left = std::fs::read_dir(directory.path()).unwrap();
        let left: Vec<String> =
            left.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        assert!(left.iter().all(|name| name.ends_with("-report")), "{left:?}");
    }

    /// Points of the last three days before 1970 and of four days of it.
    #[tokio::test]
    async fn points_of_times_that_no_reading_has_are_counted_and_their_file_stays() {
        let influxdb = influxdb(-3, Arc::default());
        let roomtide = roomtide(&Arc::default());
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state").display().to_string();
        let words = ["import", &influxdb.url, "--url", &roomtide.url, "--state", &state];
        let mut args: ImportArgs = parsed(words).unwrap();
        args.client = Some(Arc::new(Client::new(&roomtide.url, None).unwrap()));
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        for run in 1..3 {
            assert_eq!(import(&args, &influxdb.url, now).unwrap(), ExitCode::from(3), "{run}");
        }

        let files = std::fs::read_dir(directory.path()).unwrap();
        let is_spool = |name: &str| name.starts_with("127.0.0.1-") && name.ends_with(".lp.gz");
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| is_spool(name)).count(), 1);
    }

    #[test]
    fn points_are_named_by_all_that_chooses_them() {
        let influxdb = influxdb(20_001, Arc::default());
        let server = Server::connect(&influxdb.url, None).unwrap();
        let named = |database: &str, more: &[&str]| {
            let words = ["import", &influxdb.url].into_iter().chain(more.iter().copied());
            let args: ImportArgs = parsed(words).unwrap();
            let (database, policy) = (database.to_owned(), "autogen".to_owned());
            name(&args, &server, &[Context { database, policy }])
        };
        let home = named("home", &[]);
        assert!(home.starts_with("home.autogen of http://127.0.0.1:"), "{home}");
        assert_ne!(named("office", &[]), home);
        for options in [["--from", "-1d"], ["--to", "-1d"]] {
            assert_ne!(named("home", &options), home, "{options:?}");
        }
    }
}
