//! What was sent, and what the log event says of it. Sends nothing.

use domain::Timestamp;
use runtime::telemetry::{WideEvent, chain};
use table::{StoreError, StoreResult, UnreadableItem};

/// For how long the channel fails that has failed longest, or a message is due that is left to the next round. Zero is
/// logged too: an alarm rings if messages are not delivered, and if nobody is there to deliver them.
const UNDELIVERED: &str = "alerting.undelivered_seconds";
/// The most damaged messages of a channel that a log event names.
const MAX_NAMED: usize = 10;

/// What was done for a channel.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Messages that were sent.
    pub(crate) messages: usize,
    /// Messages that nobody needs any more.
    pub(crate) dropped: usize,
    /// Messages that cannot be read, and so not sent.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Since when it fails.
    pub(crate) failing_since: Option<Timestamp>,
    /// Since when the oldest of the messages that were read is due.
    pub(crate) due_since: Option<Timestamp>,
    /// Whether some of the messages that wait were not read.
    pub(crate) is_unread: bool,
    /// Whether the time did not suffice.
    pub(crate) is_cut: bool,
    /// What was wrong with the table.
    pub(crate) error: Option<StoreError>,
}

/// What was done for all channels.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    /// Their number; `None` if they could not be read.
    channels: Option<usize>,
    messages: usize,
    dropped: usize,
    cut: usize,
    undelivered_since: Option<Timestamp>,
    /// Whether an unread message may be due for longer.
    is_unread: bool,
    failures: Vec<String>,
    error: Option<StoreError>,
}

impl AllSent {
    /// The sum of what was done for channels, each with its id.
    pub(crate) fn of(served: Vec<(String, Sent)>) -> Self {
        let mut all = Self { channels: Some(served.len()), ..Self::default() };
        for (channel, sent) in served {
            all.messages += sent.messages;
            all.dropped += sent.dropped;
            all.cut += usize::from(sent.is_cut);

            let is_left = sent.is_cut || sent.error.is_some();
            let left_since = sent.due_since.filter(|_| is_left);
            let since = [all.undelivered_since, sent.failing_since, left_since];
            all.undelivered_since = since.into_iter().flatten().min();
            all.is_unread |= sent.is_unread;

            all.failures.extend(sent.failure.map(|why| format!("{channel}: {why}")));
            let damaged = sent.unreadable.iter().take(MAX_NAMED);
            all.failures.extend(damaged.map(|message| format!("{channel}: {}", chain(message))));
            if let Some(error) = sent.error {
                all.failures.push(format!("{channel}: {}", chain(&error)));
                all.error = Some(error);
            }
        }
        all
    }

    /// Nothing was done: the channels could not be read.
    pub(crate) fn without_channels(error: StoreError) -> Self {
        let failures = vec![format!("the channels: {}", chain(&error))];
        Self { failures, error: Some(error), ..Self::default() }
    }

    /// Whether a channel was not served to the end, so that another round may do more.
    pub(crate) const fn is_unfinished(&self) -> bool {
        self.cut > 0 || self.error.is_some()
    }

    /// Adds a later round, which has served all channels again. Only the later round says what is left.
    pub(crate) fn append(&mut self, later: Self) {
        self.messages += later.messages;
        self.dropped += later.dropped;
        self.failures.extend(later.failures);
        self.error = later.error;
        if later.channels.is_some() {
            self.channels = later.channels;
            self.cut = later.cut;
            self.undelivered_since = later.undelivered_since;
            self.is_unread = later.is_unread;
        }
    }

    /// Notes it in the log event. An error is what was wrong with the table.
    pub(crate) fn note(self, now: Timestamp, log: &mut WideEvent) -> StoreResult<()> {
        if let Some(channels) = self.channels {
            // Nothing is logged where nobody knows: the alarm counts that as undelivered.
            if self.undelivered_since.is_some() || !self.is_unread {
                let seconds =
                    self.undelivered_since.map_or(0, |since| now.since(since).num_seconds());
                log.seconds(UNDELIVERED, seconds.max(0));
            }
            log.set("alerting.channels", channels);
        }

        log.set("alerting.messages", self.messages);
        log.set("alerting.dropped", self.dropped);
        log.set("alerting.channels_left", self.cut);
        if !self.failures.is_empty() {
            log.set("alerting.failures", self.failures);
        }

        self.error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use table::item::ItemError;

    use super::*;

    #[test]
    fn a_message_that_cannot_be_read_is_named() {
        let (pk, sk) = ("ALERT#WAITING".to_owned(), "phone#r#device:d#1".to_owned());
        let unreadable = vec![UnreadableItem { pk, sk, why: ItemError::Missing("message") }];
        let all = AllSent::of(vec![("phone".to_owned(), Sent { unreadable, ..Sent::default() })]);
        let [failure] = &all.failures[..] else { panic!("one: {:?}", all.failures) };
        assert!(
            failure.starts_with("phone: the item ALERT#WAITING phone#r#device:d#1"),
            "{failure}"
        );
    }
}
