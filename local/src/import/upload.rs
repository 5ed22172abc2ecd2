//! Batches of readings to `POST /readings`, several at once, again where the server says so. Reads no file.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde::Deserialize;
use shared::clock::Stopwatch;

use super::resume::Resume;
use super::source::Record;

/// How many requests are under way at once.
const IN_FLIGHT: usize = 4;
/// How often a batch is sent before the import gives up, and the longest pause between.
const ATTEMPTS: u32 = 8;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A server that asks for a longer pause than this is not waited for so long.
const LONGEST_ASKED: Duration = Duration::from_secs(120);
/// How many refusals are shown; all are counted.
const SHOWN: usize = 20;

/// Where readings go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

impl Target {
    pub(super) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            bail!("--url {url:?}: expected an address that begins with http:// or https://");
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .build();
        Ok(Self {
            agent: config.into(),
            url: format!("{}/readings", url.trim_end_matches('/')),
            authorization: token.map(|token| format!("Bearer {token}")),
        })
    }
}

/// What became of an import.
#[derive(Debug)]
pub(super) struct Done {
    stored: u64,
    pub(super) refused: u64,
    shown: Vec<String>,
    seconds: f64,
}

impl fmt::Display for Done {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.stored as f64 / self.seconds.max(0.001);
        write!(f, "{} readings stored in {:.1} s ({rate:.0} a second)", self.stored, self.seconds)?;
        for refusal in &self.shown {
            write!(f, "\n  {refusal}")?;
        }
        let hidden = self.refused.saturating_sub(self.shown.len() as u64);
        if hidden > 0 {
            write!(f, "\n  and {hidden} more refused")?;
        }
        Ok(())
    }
}

struct Batch {
    first: u64,
    records: Vec<Record>,
}

struct Sent {
    first: u64,
    end: u64,
    refusals: Vec<String>,
}

/// Sends all records that `resume` does not know to be stored.
pub(super) fn run(
    records: impl Iterator<Item = anyhow::Result<Record>>,
    target: &Target,
    batch: usize,
    mut resume: Resume,
    bar: &ProgressBar,
) -> anyhow::Result<Done> {
    let watch = Stopwatch::start();
    let skipped = resume.acknowledged();
    let mut done = Done { stored: 0, refused: 0, shown: Vec::new(), seconds: 0.0 };
    let course = Course::default();
    let (batches, waiting) = mpsc::sync_channel::<Batch>(IN_FLIGHT);
    // Held by the workers only: once all have ended, the feeder is told instead of waiting for them.
    let waiting = Arc::new(Mutex::new(waiting));
    let (results, sent) = mpsc::channel::<anyhow::Result<Sent>>();

    let mut note = |result: anyhow::Result<Sent>| -> anyhow::Result<()> {
        let sent = result?;
        let refused = sent.refusals.len() as u64;
        done.refused += refused;
        done.stored += sent.end - sent.first - refused;
        done.shown.extend(sent.refusals.into_iter().take(SHOWN - done.shown.len().min(SHOWN)));
        bar.set_message(format!("{} readings", done.stored));
        // What is refused is settled as well: sending it again would not store it.
        resume.acknowledge(sent.first, sent.end)
    };
    let ended = thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            let (waiting, results) = (Arc::clone(&waiting), results.clone());
            let course = &course;
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(batch) = next else { return };
                    let result = send(target, &batch, course);
                    let failed = result.is_err();
                    let unheard = results.send(result).is_err();
                    if failed {
                        // After its reason was sent, so that no other's end is taken for the reason.
                        course.stop.store(true, Ordering::Release);
                    }
                    if failed || unheard {
                        return;
                    }
                }
            });
        }
        drop((results, waiting));
        let feed = || -> anyhow::Result<()> {
            let mut next = Batch { first: skipped, records: Vec::with_capacity(batch) };
            for (n, record) in (0..).zip(records) {
                let record = record?;
                if n < skipped {
                    continue;
                }
                next.records.push(record);
                if next.records.len() == batch {
                    let first = next.first + next.records.len() as u64;
                    let full = std::mem::replace(&mut next, Batch { first, records: Vec::new() });
                    if batches.send(full).is_err() {
                        return Ok(()); // every worker has ended, each with an error
                    }
                    sent.try_iter().try_for_each(&mut note)?;
                }
                if course.is_stopped() {
                    return Ok(());
                }
            }
            if !next.records.is_empty() {
                drop(batches.send(next));
            }
            Ok(())
        };
        let mut outcome = feed();
        drop(batches);
        // What is under way is waited for even after an error: it may be stored and acknowledged.
        for result in &sent {
            let noted = note(result);
            outcome = outcome.and(noted);
        }
        outcome
    });
    if let Err(error) = ended {
        let stored = resume.acknowledged();
        if stored == 0 || !resume.is_kept() {
            return Err(error);
        }
        let text = "readings are stored; the same command goes on behind them";
        return Err(error).with_context(|| format!("stopped; the first {stored} {text}"));
    }
    done.seconds = watch.elapsed().as_secs_f64();
    resume.finish();
    Ok(done)
}

/// What the workers know of one another.
#[derive(Debug, Default)]
struct Course {
    /// The server has answered something.
    reached: AtomicBool,
    /// A request has failed for good.
    stop: AtomicBool,
}

impl Course {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits, but not for longer than the import goes on.
    fn pause(&self, pause: Duration) {
        let watch = Stopwatch::start();
        while !self.is_stopped() && watch.elapsed() < pause {
            let left = pause.saturating_sub(watch.elapsed());
            thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

/// What the server says of readings that it has stored.
#[derive(Debug, Deserialize)]
struct Receipt {
    #[serde(rename = "accepted")]
    _accepted: u64,
    #[serde(default)]
    rejected: Vec<Refusal>,
}

/// What the server says otherwise, of which a part is there.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    errors: Vec<Refusal>,
    #[serde(default)]
    detail: String,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    index: Option<usize>,
    field: Option<String>,
    message: String,
}

/// Sends one batch until it is stored. Sent twice it changes nothing.
fn send(target: &Target, batch: &Batch, course: &Course) -> anyhow::Result<Sent> {
    let body: String =
        batch.records.iter().flat_map(|record| [record.json.as_str(), "\n"]).collect();
    let mut pause = Duration::from_millis(250);
    let mut last = anyhow::anyhow!("not sent");
    for _ in 0..ATTEMPTS {
        if course.is_stopped() {
            bail!("another request failed");
        }
        let mut request = target.agent.post(&target.url).content_type("application/x-ndjson");
        if let Some(authorization) = &target.authorization {
            request = request.header("authorization", authorization);
        }
        let mut asked_to_wait = None;
        let answered = request.send(&body).and_then(|mut response| {
            let text = response.body_mut().read_to_string()?;
            Ok((response, text))
        });
        match answered {
            Ok((response, text)) => {
                course.reached.store(true, Ordering::Relaxed);
                let status = response.status().as_u16();
                asked_to_wait = response
                    .headers()
                    .get("retry-after")
                    .and_then(|value| value.to_str().ok()?.parse().ok())
                    .map(|seconds| Duration::from_secs(seconds).min(LONGEST_ASKED));
                let answer: Answer = serde_json::from_str(&text).unwrap_or_default();
                match status {
                    201 | 207 => {
                        let receipt: Receipt = serde_json::from_str(&text).with_context(|| {
                            format!("{} answers {status}, but not as Roomtide does", target.url)
                        })?;
                        return Ok(settled(batch, &receipt.rejected));
                    }
                    // None of the batch is valid, which is no reason to stop.
                    400 if !answer.errors.is_empty()
                        && answer.errors.iter().all(|e| e.index.is_some()) =>
                    {
                        return Ok(settled(batch, &answer.errors));
                    }
                    413 => {
                        bail!("the server answers 413: {} (try a smaller --batch)", answer.detail)
                    }
                    429 | 500 | 502 | 503 | 504 => {
                        last = anyhow::anyhow!("the server answers {status}: {}", answer.detail);
                    }
                    401 | 403 => {
                        bail!("the server answers {status}: {} (see --token)", answer.detail)
                    }
                    _ => bail!("{} answers {status}: {}", target.url, answer.detail),
                }
            }
            Err(error) => {
                let text = format!("cannot reach {}; is it running?", target.url);
                last = anyhow::Error::from(error).context(text);
                // It never answered: no reason to wait for it.
                if !course.reached.load(Ordering::Relaxed) {
                    return Err(last);
                }
            }
        }
        course.pause(asked_to_wait.unwrap_or(pause));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(last)
}

fn settled(batch: &Batch, refusals: &[Refusal]) -> Sent {
    let name = |refusal: &Refusal| {
        let line = refusal.index.and_then(|index| batch.records.get(index)).map_or(0, |r| r.line);
        let field = refusal.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        format!("line {line}: {field}{}", refusal.message)
    };
    Sent {
        first: batch.first,
        end: batch.first + batch.records.len() as u64,
        refusals: refusals.iter().map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;

    /// A server whose n-th request, from 0, is answered by `answer(n)`: what follows `HTTP/1.1 `, and the body.
    fn serve(
        answer: impl Fn(usize) -> (&'static str, &'static str) + Send + Sync + 'static,
    ) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new((answer, AtomicUsize::new(0)));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    read_request(&stream);
                    let (head, body) = (answer.0)(answer.1.fetch_add(1, Ordering::SeqCst));
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                    );
                    (&stream).write_all(answer.as_bytes()).unwrap();
                });
            }
        });
        Target::new(&url, None).unwrap()
    }

    fn read_request(stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
    }

    fn import(target: &Target, readings: u64, batch: usize) -> anyhow::Result<Done> {
        let records = (1..=readings).map(|line| Ok(Record { line, json: "{}".to_owned() }));
        let resume = Resume::of(Path::new("-"), None, "", false)?;
        run(records, target, batch, resume, &ProgressBar::hidden())
    }

    #[test]
    fn an_import_whose_requests_all_fail_ends_with_the_reason() {
        let target = serve(|_| {
            thread::sleep(Duration::from_millis(200));
            ("401 Unauthorized", r#"{"detail": "no token"}"#)
        });
        let error = format!("{:#}", import(&target, 1_000, 1).unwrap_err());
        assert!(error.contains("401") && error.contains("--token"), "{error}");
    }

    #[test]
    fn a_server_that_is_not_there_is_not_waited_for() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let target = Target::new(&format!("http://{address}"), None).unwrap();
        let error = format!("{:#}", import(&target, 1_000, 1).unwrap_err());
        assert!(error.contains("cannot reach") && error.contains("is it running?"), "{error}");
    }

    #[test]
    fn a_busy_server_is_asked_again_when_it_says_so() {
        let target = serve(|n| match n {
            0 => ("503 Service Unavailable\r\nretry-after: 1", r#"{"detail": "busy"}"#),
            _ => ("201 Created", r#"{"accepted": 2}"#),
        });
        let done = import(&target, 2, 2).unwrap();
        assert_eq!((done.stored, done.refused), (2, 0));
        assert!(done.seconds >= 1.0, "{done}");
    }

    #[test]
    fn refusals_are_named_by_their_lines() {
        let target = serve(|n| match n {
            0 => (
                "207 Multi-Status",
                r#"{"accepted": 1, "rejected": [{"index": 1, "field": "t", "message": "no number"}]}"#,
            ),
            _ => ("400 Bad Request", r#"{"errors": [{"index": 0, "message": "no device"}]}"#),
        });
        let done = import(&target, 2, 2).unwrap();
        assert_eq!((done.stored, done.refused), (1, 1));
        assert_eq!(done.shown, ["line 2: t: no number"]);
        assert_eq!(import(&target, 1, 2).unwrap().shown, ["line 1: no device"]);
    }

    #[test]
    fn another_server_s_yes_is_no_receipt() {
        let target = serve(|_| ("201 Created", "<html>"));
        let error = format!("{:#}", import(&target, 1, 1).unwrap_err());
        assert!(error.contains("not as Roomtide does"), "{error}");
    }
}
