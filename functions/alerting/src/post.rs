//! Makes of messages what has to be done to deliver them. Sends nothing.

use alerts::{Names, Notice, Outgoing, Post, Secret, Subject};
use domain::{Timestamp, Zone};
use table::WaitingMessage;

use crate::names::Registered;

/// What all messages of a system have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The address of the page; empty if there is no page.
    pub(crate) page_url: &'a str,
    /// The zone whose clock tells when.
    pub(crate) zone: Zone,
}

impl Sender<'_> {
    /// One message of all, for one channel.
    pub(crate) fn outgoing(
        self,
        messages: &[WaitingMessage],
        registered: &Registered,
        secret: &Secret,
        is_repeated: bool,
        now: Timestamp,
    ) -> Outgoing {
        let notices: Vec<Notice<'_>> = messages
            .iter()
            .map(|it| {
                let (alert, rule) = (&it.told.alert, &it.told.rule);
                let names = Names {
                    subject: registered.name(&alert.subject),
                    unit: registered.unit(&alert.subject, rule),
                    zone: self.zone,
                    now,
                };
                let subject_id = match &alert.subject {
                    Subject::Device(id) => id.as_str(),
                    Subject::Room(id) => id.as_str(),
                };
                Notice { rule_id: &alert.rule, rule, subject_id, names, message: &it.told.message }
            })
            .collect();
        let link = link(self.page_url, messages);
        Post { notices: &notices, link: &link, is_repeated, now }.by(secret)
    }
}

/// The address of the page. Its fragment, which no browser sends to a server, has a key for each episode that may be
/// acknowledged by it.
fn link(page_url: &str, messages: &[WaitingMessage]) -> String {
    if page_url.is_empty() {
        return String::new();
    }
    let keys: Vec<String> = messages
        .iter()
        .filter_map(|it| {
            let alert = &it.told.alert;
            Some(it.key.as_ref()?.fragment(&alert.rule, &alert.subject))
        })
        .collect();
    let fragment = if keys.is_empty() { "alerts".to_owned() } else { keys.join("&") };
    page_url.trim_end_matches('/').to_owned() + "/#" + &fragment
}
