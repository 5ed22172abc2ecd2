//! The requests that deliver messages, one form for each kind of channel. Sends nothing.
//!
//! Names in a text come from senders, so a text is plain everywhere: it mentions nobody, formats nothing and shows no
//! preview of an address.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Decimal, RuleId, Timestamp, Unit};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Uri;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fit::{Form, bytes, plain, utf16_units};
use crate::message::Message;
use crate::message_text::{Names, devices};
use crate::rule::{DemandLimit, Rule, Watch};
use crate::secret::{Destination, Secret};
use crate::url::Url;

/// A message and what it is about.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// The rule's id.
    pub rule_id: &'a RuleId,
    /// The rule.
    pub rule: &'a Rule,
    /// The device's or the room's id.
    pub subject_id: &'a str,
    /// What the text names.
    pub names: Names<'a>,
    /// The message.
    pub message: &'a Message,
}

/// One message, or the messages of a minute, as they are sent to one channel.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// The messages: one at least.
    pub notices: &'a [Notice<'a>],
    /// The rules that storm, each with the number of devices of its last messages: they are told by their count.
    pub storms: &'a BTreeMap<RuleId, usize>,
    /// The address that shows more, and where they are acknowledged.
    pub link: &'a str,
    /// Whether an attempt before had no answer: it may have arrived.
    pub is_repeated: bool,
    /// When it is sent, for the signature.
    pub now: Timestamp,
}

/// What has to be done to deliver.
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
    /// The topic, a secret.
    pub topic_arn: String,
    /// The subject: fewer than 100 characters of ASCII on one line.
    pub subject: String,
    /// The text.
    pub text: String,
}

/// A request by HTTP. Its address, headers and body are secret; `Debug` shows none of them.
#[derive(Clone)]
pub struct Request {
    maker: &'static str,
    /// The member of the channel that the address comes from.
    field: &'static str,
    method: &'static str,
    url: Url,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// Texts that must be in no reason, beside the address.
    secrets: Vec<String>,
}

impl Post<'_> {
    /// What has to be done to deliver by a channel.
    #[must_use]
    pub fn by(&self, secret: &Secret) -> Outgoing {
        let request = match &secret.0 {
            Destination::Ntfy { server, topic, token } => {
                self.ntfy(server, topic, token.as_deref())
            }
            Destination::Telegram { server, token, chat } => self.telegram(server, token, chat),
            Destination::Slack { address } => self.slack(address),
            Destination::Discord { address } => self.discord(address),
            Destination::HomeAssistant { address } => self.home_assistant(address),
            Destination::Webhook { address, key } => self.webhook(address, key),
            Destination::Email { topic_arn } => return Outgoing::Email(self.email(topic_arn)),
        };
        Outgoing::Http(request)
    }

    /// <https://docs.ntfy.sh/publish/#publish-as-json>: to the root, not to the topic. A message over 4,096 bytes
    /// becomes an attachment, and JSON of twice that is refused; quotation marks count twice there, so 3,000 are
    /// within both.
    fn ntfy(&self, server: &Url, topic: &str, token: Option<&str>) -> Request {
        let body = json!({
            "topic": topic,
            "title": Form { limit: 250, measure: bytes, write: plain }.fit_line(&self.title()),
            "message": self.text(Form { limit: 3_000, measure: bytes, write: plain }, ""),
            "priority": if self.is_firing() { 4 } else { 3 },
            "tags": [if self.is_firing() { "warning" } else { "white_check_mark" }],
            "click": self.link,
        });
        let url = server.with_path(&format!("{}/", server.base()));
        let mut request = Request::json("ntfy", "server", url, &body);
        if let Some(token) = token {
            request.headers.push(("authorization", format!("Bearer {token}")));
            request.secrets.push(token.to_owned());
        }
        request.secrets.push(topic.to_owned());
        request
    }

    /// <https://core.telegram.org/bots/api#sendmessage>: 4,096 characters, as UTF-16 counts them. Without `parse_mode`
    /// nothing is formatted, but `@name` is still a mention; an invisible word joiner behind the `@` prevents it.
    fn telegram(&self, server: &Url, token: &str, chat: &str) -> Request {
        let write = |c: char, text: &mut String| {
            text.push(c);
            if c == '@' {
                text.push('\u{2060}');
            }
        };
        let text = self.full_text(Form { limit: 4_096, measure: utf16_units, write }, self.link);
        let body = json!({
            "chat_id": chat,
            "text": text,
            "link_preview_options": { "is_disabled": true },
        });
        let url = server.with_path(&format!("{}/bot{token}/sendMessage", server.base()));
        let mut request = Request::json("Telegram", "server", url, &body);
        request.secrets.extend([token.to_owned(), chat.to_owned()]);
        request
    }

    /// <https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>: `mrkdwn` off. A mention is written
    /// `<!here>` or `<@id>`, so the three characters that Slack names are escaped
    /// (<https://docs.slack.dev/messaging/formatting-message-text>). It advises 4,000 characters and splits beyond.
    fn slack(&self, address: &Url) -> Request {
        let form = Form { limit: 4_000, measure: utf16_units, write: slack_character };
        let mut link = String::new();
        self.link.chars().for_each(|c| slack_character(c, &mut link));
        let body = json!({
            "text": self.full_text(form, &link),
            "mrkdwn": false,
            "link_names": false,
            "unfurl_links": false,
            "unfurl_media": false,
        });
        Request::json("Slack", "address", address.clone(), &body)
    }

    /// <https://discord.com/developers/docs/resources/webhook#execute-webhook>: 2,000 characters; `parse` of nothing
    /// mentions nobody; the flag 4 shows no previews; with `wait`, a message that is not stored is an error. The text
    /// is Markdown, where a backslash makes a punctuation mark plain.
    fn discord(&self, address: &Url) -> Request {
        let write = |c: char, text: &mut String| {
            if c.is_ascii_punctuation() && !".,:;%/+'\"()".contains(c) {
                text.push('\\');
            }
            text.push(c);
        };
        let body = json!({
            "content": self.full_text(Form { limit: 2_000, measure: utf16_units, write }, self.link),
            "allowed_mentions": { "parse": [] },
            "flags": 4,
        });
        let path = address.uri().path();
        let url = match address.uri().query() {
            Some(query) => address.with_path(&format!("{path}?{query}&wait=true")),
            None => address.with_path(&format!("{path}?wait=true")),
        };
        Request::json("Discord", "address", url, &body)
    }

    /// The webhook of an automation (<https://www.home-assistant.io/docs/automation/trigger/#webhook-trigger>), with
    /// the JSON of a generic webhook; `trigger.json.text` is the text.
    ///
    /// Not the service `notify`: it needs a token that may do everything that its user may, and the name of a phone's
    /// service. An automation with a webhook is made in a minute, its address is copied from the same dialog and can
    /// do nothing else, and it reaches phones, lamps and speakers alike.
    fn home_assistant(&self, address: &Url) -> Request {
        let body = self.generic();
        Request::new("Home Assistant", "address", address.clone(), body)
    }

    /// Signed as Standard Webhooks has it
    /// (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>): its libraries
    /// verify it. The id is the same in each attempt, so that a receiver can leave out a message that it has.
    fn webhook(&self, address: &Url, key: &[u8]) -> Request {
        let body = self.generic();
        let (id, seconds) = (self.id(), self.now.as_millis().div_euclid(1_000));
        let signature = signature(key, &id, seconds, &body);
        let mut request = Request::new("the webhook", "address", address.clone(), body);
        request.headers.extend([
            ("webhook-id", id),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signature),
        ]);
        request
    }

    fn email(&self, topic_arn: &str) -> Email {
        let write = |c: char, text: &mut String| text.push(if c.is_ascii() { c } else { '?' });
        let subject: String = self.title().chars().filter(|c| !c.is_control()).collect();
        let subject = Form { limit: 80, measure: bytes, write }.fit_line(&subject);
        // The mark of a cut is not ASCII.
        let subject = format!("Roomtide: {}", subject.replace('…', "..."));
        let text = self.full_text(Form { limit: 200_000, measure: bytes, write: plain }, self.link);
        Email { topic_arn: topic_arn.to_owned(), subject, text }
    }

    /// The JSON of a webhook. It has one form, whether there is one message or several.
    fn generic(&self) -> String {
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
        let form = Form { limit: 16_000, measure: bytes, write: plain };
        let body = Body {
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

    /// What it is about, in one line.
    fn title(&self) -> String {
        match (self.notices, self.the_storm()) {
            ([first, ..], Some(number)) => format!("{}: {}", first.rule.name, devices(number)),
            ([one], None) => one.names.headline(one.rule),
            (all, _) => format!("{} messages", all.len()),
        }
    }

    /// The number of devices, if all messages are of one rule that storms.
    fn the_storm(&self) -> Option<usize> {
        let first = self.notices.first()?.rule_id;
        let is_one = self.notices.iter().all(|it| it.rule_id == first);
        self.storms.get(first).copied().filter(|_| is_one)
    }

    /// The lines of a text below the title.
    fn text(&self, form: Form, end: &str) -> String {
        let lines = match (self.notices, self.the_storm()) {
            ([one], None) => vec![one.message.line(one.rule, one.names)],
            _ => self.lines(),
        };
        self.fit(form, &lines, end)
    }

    /// The lines of a text that has no title.
    fn full_text(&self, form: Form, end: &str) -> String {
        self.fit(form, &self.lines(), end)
    }

    /// A line for each message; of a rule that storms, one for all its messages with the same news.
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

    /// The line of all messages that have the rule and the news of `first`.
    fn count_line(&self, first: &Notice<'_>, number: usize) -> String {
        let is_same =
            |it: &&Notice<'_>| it.rule_id == first.rule_id && it.message.news == first.message.news;
        let mut subjects: Vec<&str> =
            self.notices.iter().filter(is_same).map(|notice| notice.names.subject).collect();
        // A device may have several steps. Its messages follow each other by time, with others between them.
        let mut seen = BTreeSet::new();
        subjects.retain(|subject| seen.insert(*subject));
        let line = first.names.counted(first.rule, first.message.news, &subjects);
        let all = if subjects.len() < number {
            format!("; {} in the last ten minutes", devices(number))
        } else {
            String::new()
        };
        format!("{}: {line}{all}", first.rule.name)
    }

    fn fit(&self, form: Form, lines: &[String], end: &str) -> String {
        let repeated = "(sent again; it may have arrived before)";
        match (self.is_repeated, end) {
            (false, end) => form.fit(lines, end),
            (true, "") => form.fit(lines, repeated),
            (true, end) => form.fit(lines, &format!("{repeated}\n{end}")),
        }
    }

    fn is_firing(&self) -> bool {
        self.notices.iter().any(|it| it.message.news.is_firing())
    }

    /// The id of the post: that of the same messages is the same, and it has no full stop.
    fn id(&self) -> String {
        match self.notices {
            [one] => one.id(),
            all => digest(&all.iter().map(Notice::id).collect::<Vec<_>>().join("\n")),
        }
    }
}

impl Notice<'_> {
    /// The message's id: that of the same message is the same in each attempt.
    fn id(&self) -> String {
        let Message { number, fired, .. } = self.message;
        digest(&format!("{}\n{}\n{number}\n{fired}", self.rule_id, self.subject_id))
    }
}

fn signature(key: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn digest(text: &str) -> String {
    Sha256::digest(text)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Request {
    /// The request that says that the system is alive: most services of heartbeats want a `GET`.
    #[must_use]
    pub fn heartbeat(address: &Url) -> Self {
        let request = Self::new("the heartbeat", "address", address.clone(), String::new());
        Self { method: "GET", headers: Vec::new(), ..request }
    }

    fn json(maker: &'static str, field: &'static str, url: Url, body: &Value) -> Self {
        Self::new(maker, field, url, body.to_string())
    }

    fn new(maker: &'static str, field: &'static str, url: Url, body: String) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { maker, field, method: "POST", url, headers, body, secrets: Vec::new() }
    }

    /// Who answers, as a text names it.
    #[must_use]
    pub const fn maker(&self) -> &'static str {
        self.maker
    }

    /// The member of the channel that the address comes from.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// The address.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        self.url.uri()
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether a text of the server repeats something secret: servers like to name the path that they do not know.
    #[must_use]
    pub fn is_part_of(&self, text: &str) -> bool {
        /// A shorter part of a path is a word rather than a password.
        const SHORTEST: usize = 6;
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let is_in = |part: &str| text.contains(part) || text.contains(&decode(part));
        let uri = self.uri();
        let parts = uri.path().split('/').chain(uri.query().unwrap_or_default().split(['&', '=']));
        self.secrets.iter().any(|secret| is_in(secret))
            || uri.path().len() > 1 && is_in(uri.path())
            || uri.host().is_some_and(is_in)
            || parts.filter(|part| part.len() >= SHORTEST).any(is_in)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", self.maker)
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email")
    }
}

#[derive(Serialize)]
struct Body<'a> {
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

/// The limit in the words of the rule; each kind of rule has its own members.
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
            above: limits.above().map(|edge| &edge.limit),
            below: limits.below().map(|edge| &edge.limit),
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

fn slack_character(c: char, text: &mut String) {
    match c {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        c => text.push(c),
    }
}

#[cfg(test)]
pub(crate) mod tests;
