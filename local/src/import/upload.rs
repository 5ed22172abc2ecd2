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
    let stop = AtomicBool::new(false);
    let (batches, waiting) = mpsc::sync_channel::<Batch>(IN_FLIGHT);
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
            let (waiting, results, target, stop) = (&waiting, results.clone(), target, &stop);
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(batch) = next else { return };
                    let result = send(target, &batch, stop);
                    let failed = result.is_err();
                    stop.fetch_or(failed, Ordering::Relaxed);
                    if results.send(result).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(results);
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
                if stop.load(Ordering::Relaxed) {
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

/// What the server says, of which a part is there.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    rejected: Vec<Refusal>,
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
fn send(target: &Target, batch: &Batch, stop: &AtomicBool) -> anyhow::Result<Sent> {
    let body: String =
        batch.records.iter().flat_map(|record| [record.json.as_str(), "\n"]).collect();
    let mut pause = Duration::from_millis(250);
    let mut last = anyhow::anyhow!("not sent");
    for _ in 0..ATTEMPTS {
        if stop.load(Ordering::Relaxed) {
            bail!("another request failed");
        }
        let mut request = target.agent.post(&target.url).content_type("application/x-ndjson");
        if let Some(authorization) = &target.authorization {
            request = request.header("authorization", authorization);
        }
        let mut asked_to_wait = None;
        match request.send(&body) {
            Ok(mut response) => {
                let status = response.status().as_u16();
                asked_to_wait = response
                    .headers()
                    .get("retry-after")
                    .and_then(|value| value.to_str().ok()?.parse().ok())
                    .map(Duration::from_secs);
                let text = response.body_mut().read_to_string().unwrap_or_default();
                let answer: Answer = serde_json::from_str(&text).unwrap_or_default();
                match status {
                    201 | 207 => return Ok(settled(batch, &answer.rejected)),
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
                // Nothing listens and nothing was stored yet: no reason to wait for it.
                if batch.first == 0 {
                    return Err(last);
                }
            }
        }
        thread::sleep(asked_to_wait.unwrap_or(pause).min(LONGEST_PAUSE));
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
