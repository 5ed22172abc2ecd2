//! Builds the request that delivers messages to a channel. Sends nothing.

use std::collections::BTreeMap;

use alerts::{AlertSubject, Names, Notice, Outgoing, Post, Secret};
use domain::{RuleId, Timestamp, Zone};
use table::WaitingMessage;

use crate::names::RegisteredNames;

/// The largest length of a link's fragment in bytes. A message of Discord has at most 2,000 characters, and its text
/// needs the rest.
const MAX_FRAGMENT: usize = 1_000;

/// The parts that all messages of the system share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope<'a> {
    /// The address of the page; empty if there is no page.
    pub(crate) page_url: &'a str,
    /// The time zone of the times in messages.
    pub(crate) zone: Zone,
    /// The rules that fire for many devices at once, each with the number of devices that its messages say.
    pub(crate) storms: &'a BTreeMap<RuleId, usize>,
}

impl Envelope<'_> {
    /// Builds one request to a channel, with all messages.
    pub(crate) fn outgoing(
        self,
        messages: &[WaitingMessage],
        registered: &RegisteredNames,
        secret: &Secret,
        is_repeated: bool,
        now: Timestamp,
    ) -> Outgoing {
        let notices = messages.iter().map(|message| self.notice(message, registered, now));
        let notices: Vec<Notice<'_>> = notices.collect();
        let link = link(self.page_url, messages);
        let (notices, storms) = (notices.as_slice(), self.storms);
        Post { notices, storms, link: &link, is_repeated, now }.by(secret)
    }

    fn notice<'a>(
        self,
        message: &'a WaitingMessage,
        registered: &'a RegisteredNames,
        now: Timestamp,
    ) -> Notice<'a> {
        let (alert, rule) = (&message.logged.alert, &message.logged.rule);
        let (subject, unit) =
            (registered.name(&alert.subject), registered.unit(&alert.subject, rule));
        let names = Names { subject, unit, zone: self.zone, now };
        let subject_id = match &alert.subject {
            AlertSubject::Device(id) => id.as_str(),
            AlertSubject::Room(id) => id.as_str(),
        };
        Notice { rule_id: &alert.rule, rule, subject_id, names, message: &message.logged.message }
    }
}

/// The address of the page. Its fragment, which no browser sends to a server, has the keys that acknowledge the
/// episodes. If the keys do not fit, the link opens the list of alerts.
fn link(page_url: &str, messages: &[WaitingMessage]) -> String {
    if page_url.is_empty() {
        return String::new();
    }

    let keys: Vec<String> = messages
        .iter()
        .filter_map(|message| {
            let alert = &message.logged.alert;
            Some(message.key.as_ref()?.fragment(&alert.rule, &alert.subject))
        })
        .collect();
    let fragment = Some(keys.join("&")).filter(|keys| (1..=MAX_FRAGMENT).contains(&keys.len()));
    let fragment = fragment.unwrap_or_else(|| "alerts".to_owned());
    page_url.trim_end_matches('/').to_owned() + "/#" + &fragment
}
