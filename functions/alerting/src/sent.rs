//! What was sent, and what the log event says of it. Sends nothing.

use domain::Timestamp;
use runtime::telemetry::{WideEvent, chain};
use table::{StoreError, StoreResult};

/// For how long the channel fails that has failed longest. It is told at zero too: an alarm tells if messages are not
/// delivered, and if nobody is there to deliver them.
const UNDELIVERED: &str = "alerting.undelivered_seconds";

/// What was done for a channel.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Messages that were sent.
    pub(crate) messages: usize,
    /// Messages that nobody needs any more.
    pub(crate) dropped: usize,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Since when it fails.
    pub(crate) failing_since: Option<Timestamp>,
    /// Whether the time did not suffice.
    pub(crate) is_cut: bool,
}

/// What was done for all channels.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    channels: usize,
    messages: usize,
    dropped: usize,
    cut: usize,
    failing_since: Option<Timestamp>,
    failures: Vec<String>,
    error: Option<StoreError>,
}

impl AllSent {
    /// The sum of what was done for channels, each with its id.
    pub(crate) fn of(served: Vec<(String, StoreResult<Sent>)>) -> Self {
        let mut all = Self { channels: served.len(), ..Self::default() };
        for (channel, sent) in served {
            match sent {
                Ok(sent) => {
                    all.messages += sent.messages;
                    all.dropped += sent.dropped;
                    all.cut += usize::from(sent.is_cut);
                    all.failing_since =
                        [all.failing_since, sent.failing_since].into_iter().flatten().min();
                    all.failures.extend(sent.failure.map(|why| format!("{channel}: {why}")));
                }
                Err(error) => {
                    all.failures.push(format!("{channel}: {}", chain(&error)));
                    all.error = Some(error);
                }
            }
        }
        all
    }

    /// Takes a later round in: which channels fail, it knows better.
    pub(crate) fn append(&mut self, later: Self) {
        self.channels = later.channels;
        self.messages += later.messages;
        self.dropped += later.dropped;
        self.cut = later.cut;
        self.failing_since = later.failing_since;
        self.failures.extend(later.failures);
        self.error = later.error.or(self.error.take());
    }

    /// Notes it in the log event. Returns whether all channels were served, and what was wrong with the table.
    pub(crate) fn note(self, now: Timestamp, log: &mut WideEvent) -> (bool, Option<StoreError>) {
        let seconds = self.failing_since.map_or(0, |it| now.since(it).num_seconds());
        log.seconds(UNDELIVERED, seconds.max(0));
        log.set("alerting.channels", self.channels);
        log.set("alerting.messages", self.messages);
        log.set("alerting.dropped", self.dropped);
        log.set("alerting.channels_left", self.cut);
        if !self.failures.is_empty() {
            log.set("alerting.failures", self.failures);
        }
        (self.error.is_none(), self.error)
    }
}
