//! The text of messages, and the requests that deliver them. Knows no kind of channel, and sends nothing.
//!
//! Names in a text come from senders. So a text is always plain: it mentions nobody, has no markup and previews no
//! address.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use domain::{Decimal, RuleId, Timestamp, Unit};
use outgoing::Request;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::fit::{TextForm, bytes, plain};
use crate::message::Message;
use crate::message_text::{Names, devices};
use crate::rule::{DemandLimit, Rule, Watch};

/// A message and what it is about.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// The rule's id.
    pub rule_id: &'a RuleId,
    /// The rule.
    pub rule: &'a Rule,
    /// The id of the device or the room.
    pub subject_id: &'a str,
    /// The names that the text uses.
    pub names: Names<'a>,
    /// The message.
    pub message: &'a Message,
}

/// What one request delivers to a channel: one message, or the messages of a minute.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// The messages, at least one.
    pub notices: &'a [Notice<'a>],
    /// Rules for which many devices fire at once, so that messages are counted and not listed. Each has its number of
    /// devices, with messages of the last ten minutes or with older messages that waited.
    pub storms: &'a BTreeMap<RuleId, usize>,
    /// The address of the page that shows more, and on which an alert is acknowledged.
    pub link: &'a str,
    /// Whether an earlier attempt got no answer, so that the messages may have arrived already.
    pub is_repeated: bool,
    /// The time of sending, which the signature contains.
    pub now: Timestamp,
}

/// How a post is delivered.
#[derive(Debug)]
pub enum Outgoing {
    /// A request by HTTP.
    Http(Request),
    /// A publication to a topic of Amazon SNS.
    Email(Email),
}

/// An e-mail, as Amazon SNS takes it (<https://docs.aws.amazon.com/sns/latest/api/API_Publish.html>).
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    /// The ARN of the topic, which is a secret.
    pub topic_arn: String,
    /// The subject: fewer than 100 ASCII characters on one line.
    pub subject: String,
    /// The text.
    pub text: String,
}

impl Post<'_> {
    /// The JSON body of a webhook. One message and several have the same form.
    pub(crate) fn generic(&self) -> String {
        let messages = self.notices.iter().map(|notice| NoticeBody {
            id: notice.id(),
            rule: Named { id: notice.rule_id.as_str(), name: notice.rule.name.as_str() },
            subject: Named { id: notice.subject_id, name: notice.names.subject },
            news: notice.message.news.as_str(),
            is_firing: notice.message.news.is_firing(),
            value: notice.message.value.as_ref(),
            unit: notice.names.unit,
            limit: limit(notice.rule),
            since: notice.message.since,
            ended: notice.message.ended,
            text: notice.message.text(notice.rule, notice.names),
        });

        let form = TextForm { limit: 16_000, measure: bytes, write: plain };
        let body = MessageBody {
            kind: "alerts",
            title: self.title(),
            text: self.full_text(form, ""),
            link: self.link,
            is_firing: self.is_firing(),
            is_repeated: self.is_repeated,
            messages: messages.collect(),
        };
        serde_json::to_string(&body).expect("texts and numbers can be written")
    }

    /// The title: one line that says what happened.
    pub(crate) fn title(&self) -> String {
        match (self.notices, self.the_storm()) {
            ([first, ..], Some(number)) => format!("{}: {}", first.rule.name, devices(number)),
            ([one], None) => one.names.headline(one.rule),
            (all, _) => format!("{} messages", all.len()),
        }
    }

    /// The number of devices, if all messages belong to one rule whose messages are counted.
    fn the_storm(&self) -> Option<usize> {
        let first = self.notices.first()?.rule_id;
        let is_one = self.notices.iter().all(|notice| notice.rule_id == first);
        self.storms.get(first).copied().filter(|_| is_one)
    }

    /// The lines of a text below its title.
    pub(crate) fn text(&self, form: TextForm, end: &str) -> String {
        let lines = match (self.notices, self.the_storm()) {
            ([one], None) => vec![one.message.line(one.rule, one.names)],
            _ => self.lines(),
        };
        self.fit(form, &lines, end)
    }

    /// The lines of a text without a title.
    pub(crate) fn full_text(&self, form: TextForm, end: &str) -> String {
        self.fit(form, &self.lines(), end)
    }

    /// A line for each message. A rule whose messages are counted has one line for all messages with the same news.
    fn lines(&self) -> Vec<String> {
        let (mut lines, mut counted) = (Vec::new(), BTreeSet::new());
        for notice in self.notices {
            let Some(number) = self.storms.get(notice.rule_id) else {
                lines.push(notice.message.text(notice.rule, notice.names));
                continue;
            };
            if counted.insert((notice.rule_id, notice.message.news)) {
                lines.push(self.count_line(notice, *number));
            }
        }
        lines
    }

    /// The line that counts all messages with the rule and the news of `first`.
    fn count_line(&self, first: &Notice<'_>, number: usize) -> String {
        let is_same = |notice: &&Notice<'_>| {
            notice.rule_id == first.rule_id && notice.message.news == first.message.news
        };

        // A device may have several messages, with those of other devices between them. The device is counted once.
        let mut seen = BTreeSet::new();
        let once =
            self.notices.iter().filter(is_same).filter(|notice| seen.insert(notice.subject_id));
        let subjects: Vec<&str> = once.map(|notice| notice.names.subject).collect();

        let line = first.names.counted(first.rule, first.message.news, &subjects);
        let all = if subjects.len() < number {
            format!("; {} in all", devices(number))
        } else {
            String::new()
        };
        format!("{}: {line}{all}", first.rule.name)
    }

    fn fit(&self, form: TextForm, lines: &[String], end: &str) -> String {
        let repeated = "(sent again; it may have arrived before)";
        match (self.is_repeated, end) {
            (false, end) => form.fit(lines, end),
            (true, "") => form.fit(lines, repeated),
            (true, end) => form.fit(lines, &format!("{repeated}\n{end}")),
        }
    }

    pub(crate) fn is_firing(&self) -> bool {
        self.notices.iter().any(|notice| notice.message.news.is_firing())
    }

    /// The id of the post, derived from its messages: a repeated post has the same id. The id contains no full stop,
    /// because a full stop separates the parts of a signed text.
    pub(crate) fn id(&self) -> String {
        match self.notices {
            [one] => one.id(),
            all => digest(&all.iter().map(Notice::id).collect::<Vec<_>>().join("\n")),
        }
    }
}

impl Notice<'_> {
    /// The id of the message, which is the same in each attempt.
    fn id(&self) -> String {
        let Message { number, fired, .. } = self.message;
        digest(&format!("{}\n{}\n{number}\n{fired}", self.rule_id, self.subject_id))
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email")
    }
}

#[derive(Serialize)]
struct MessageBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: String,
    text: String,
    link: &'a str,
    is_firing: bool,
    is_repeated: bool,
    messages: Vec<NoticeBody<'a>>,
}

#[derive(Serialize)]
struct NoticeBody<'a> {
    id: String,
    rule: Named<'a>,
    subject: Named<'a>,
    news: &'static str,
    is_firing: bool,
    value: Option<&'a Decimal>,
    unit: Option<&'a Unit>,
    limit: Option<LimitBody<'a>>,
    since: Timestamp,
    ended: Option<Timestamp>,
    text: String,
}

#[derive(Serialize)]
struct Named<'a> {
    id: &'a str,
    name: &'a str,
}

/// The rule's limit with the members that its kind of rule has.
#[derive(Default, Serialize)]
struct LimitBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    above: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_kwh: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demand_kw: Option<&'a Decimal>,
}

fn limit(rule: &Rule) -> Option<LimitBody<'_>> {
    let none = LimitBody::default();
    match &rule.watch {
        Watch::Metric { limits, .. } => Some(LimitBody {
            above: limits.above().map(|threshold| &threshold.limit),
            below: limits.below().map(|threshold| &threshold.limit),
            ..none
        }),
        Watch::Budget { kwh, .. } => Some(LimitBody { budget_kwh: Some(kwh), ..none }),
        Watch::Demand { limit: DemandLimit::Kilowatts(kilowatts), .. } => {
            Some(LimitBody { demand_kw: Some(kilowatts), ..none })
        }
        Watch::Demand { limit: DemandLimit::Peak, .. }
        | Watch::Silence { .. }
        | Watch::Counter { .. } => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
