//! The result of sending, and its fields of the log event. Sends nothing.

use domain::Timestamp;
use runtime::telemetry::{WideEvent, chain};
use table::{StoreError, UnreadableItem};

/// The log field for the age of the oldest undelivered message: how long a channel has failed, or a due message has
/// been left. Zero is logged too, because the alarm rings if the field is missing, as when the function no longer runs.
const UNDELIVERED: &str = "alerting.undelivered_seconds";
/// The largest number of damaged messages of a channel that a log event names.
const MAX_NAMED: usize = 10;

/// The result of serving one channel.
#[derive(Debug, Default)]
pub(crate) struct ChannelResult {
    /// The number of messages that were sent.
    pub(crate) messages: usize,
    /// The number of messages that were dropped, because nobody needs them any more.
    pub(crate) dropped: usize,
    /// Damaged messages, which cannot be sent.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Why a request to the channel failed.
    pub(crate) failure: Option<String>,
    /// When the channel began to fail.
    pub(crate) failing_since: Option<Timestamp>,
    /// When the oldest message that was read became due.
    pub(crate) due_since: Option<Timestamp>,
    /// Whether some waiting messages were not read.
    pub(crate) is_unread: bool,
    /// Whether messages that could be sent are left to the next round: the time ran out, or others go first.
    pub(crate) is_cut: bool,
    /// The table's error.
    pub(crate) error: Option<StoreError>,
}

/// The result of serving all channels.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    /// The number of channels; `None` if they could not be read.
    channels: Option<usize>,
    messages: usize,
    dropped: usize,
    cut: usize,
    undelivered_since: Option<Timestamp>,
    /// Whether a message that was not read may be older than `undelivered_since`.
    is_unread: bool,
    failures: Vec<String>,
    /// The damaged messages, each with its channel.
    pub(crate) damaged: Vec<String>,
    error: Option<StoreError>,
}

impl AllSent {
    /// Adds up the results of channels, each with its id.
    pub(crate) fn of(served: Vec<(String, ChannelResult)>) -> Self {
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
            all.damaged.extend(damaged.map(|message| format!("{channel}: {}", chain(message))));
            if let Some(error) = sent.error {
                all.failures.push(format!("{channel}: {}", chain(&error)));
                all.error = Some(error);
            }
        }
        all
    }

    /// The result if the channels could not be read.
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
        self.damaged.extend(later.damaged);
        self.damaged.sort_unstable();
        self.damaged.dedup();
        self.error = later.error;
        if later.channels.is_some() {
            self.channels = later.channels;
            self.cut = later.cut;
            self.undelivered_since = later.undelivered_since;
            self.is_unread = later.is_unread;
        }
    }

    /// Notes the result in the log event. Returns the table's error.
    pub(crate) fn note(self, now: Timestamp, log: &mut WideEvent) -> Option<StoreError> {
        if let Some(channels) = self.channels {
            // An unknown age is not logged: the alarm counts a missing value as undelivered.
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

        self.error
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
        let all = AllSent::of(vec![(
            "phone".to_owned(),
            ChannelResult { unreadable, ..ChannelResult::default() },
        )]);
        let [damaged] = &all.damaged[..] else { panic!("one: {:?}", all.damaged) };
        assert!(
            damaged.starts_with("phone: the item ALERT#WAITING phone#r#device:d#1"),
            "{damaged}"
        );
    }
}
