//! A request with placeholders, and how its answer is read, in the JSON that people write. Sends nothing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{MemberError, MetricName};
use outgoing::{Reach, Request, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::members;
use crate::placeholder::{NoValue, TextTemplate, Values, fill_json, texts_of};
use crate::pointer::{MetricPointer, Pointer, RowFill};
use crate::secrets::SecretTexts;

/// The maximum numbers of headers and metrics of a request.
const MAX_HEADERS: usize = 16;
const MAX_METRICS: usize = 64;

/// Parts of names that mean a secret. The value of such a header or parameter must be a placeholder.
const OF_SECRETS: [&str; 8] =
    ["key", "token", "secret", "auth", "cookie", "password", "sign", "credential"];

/// The message about a secret in clear text, where everybody who edits the source would read it.
const IS_SECRET: &str = "is a secret; write a placeholder such as {key} and give secrets.key";

/// The members of the kind `json`.
const MEMBERS: [&str; 13] = [
    "method", "url", "headers", "basic", "body", "format", "at", "each", "only", "time", "device",
    "fill", "metrics",
];

/// Headers that are the client's own.
const OF_CLIENT: [&str; 8] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// One request with placeholders, and how its answer is read.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asking {
    /// The name of a flag among the source's members. The request is made unless the flag is false.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub(crate) only_with: Option<String>,
    #[serde(default, skip_serializing_if = "Method::is_get")]
    method: Method,
    url: TextTemplate,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, TextTemplate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    basic: Option<Basic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    /// The format of a payload, by the name that ingest has for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    /// The JSON pointer to the payload in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Pointer>,
    /// The JSON pointer to an array whose elements are rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) each: Option<Pointer>,
    /// The JSON pointer to a value that a row must have. Rows without the value are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) only: Option<Pointer>,
    /// The JSON pointer to a row's time, or to an array with the times of all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Pointer>,
    /// The device of a row: its id, or the JSON pointer to the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<TextTemplate>,
    /// How often each row is repeated until the next row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fill: Option<RowFill>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metrics: BTreeMap<MetricName, MetricPointer>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Post,
}

impl Method {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    const fn is_get(&self) -> bool {
        matches!(self, Self::Get)
    }
}

/// A user and a password for Basic authorization (RFC 7617).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Basic {
    user: TextTemplate,
    password: TextTemplate,
}

impl Asking {
    /// Reads the request of a source of kind `json`.
    pub(crate) fn read(members: Map<String, Value>, reach: Reach) -> Result<Self, MemberError> {
        members::ensure_known(&members, "json", MEMBERS)?;
        let asking: Self = members::read(members)?;
        asking.check_reader()?;
        asking.check_url(reach)?;
        asking.check_headers()?;
        asking.check_basic_and_body()?;
        if asking.device.as_ref().is_some_and(|device| device.names().next().is_some()) {
            return Err(MemberError::of("device", "has a placeholder; write a text or a pointer"));
        }
        if asking.method.is_get() && asking.body.is_some() {
            return Err(MemberError::of("body", "needs \"method\": \"POST\""));
        }

        Ok(asking)
    }

    /// Whether the request says how its answer is read. A request that is only tested need not say this.
    pub(crate) fn has_reader(&self) -> bool {
        self.format.is_some() || !self.metrics.is_empty()
    }

    /// Checks that the answer is read as a payload of a format or as a table of metrics, not both.
    fn check_reader(&self) -> Result<(), MemberError> {
        let wrong = |member: &str, why: &str| Err(MemberError::of(member, why));
        match (&self.format, self.metrics.len()) {
            (None, 0) => Ok(()),
            (Some(_), 1..) => wrong("metrics", "is given beside format; write one of them"),
            (None, ..=MAX_METRICS) if self.at.is_some() => {
                wrong("at", "is for format; a table of metrics has each")
            }
            (None, ..=MAX_METRICS) => Ok(()),
            (None, _) => wrong("metrics", "has more than 64 members"),
            (Some(_), 0) => {
                let of_metrics = [
                    ("each", self.each.is_some()),
                    ("time", self.time.is_some()),
                    ("fill", self.fill.is_some()),
                ];
                let given = of_metrics.into_iter().find(|(_, is_given)| *is_given);
                given.map_or(Ok(()), |(name, _)| wrong(name, "is for metrics, and format is given"))
            }
        }
    }

    /// The host of the URL, with its port if there is one.
    pub(crate) fn host(&self) -> &str {
        let (before_path, _) = self.url.as_str().split_at(self.path_start());
        before_path.split_once("://").map_or(before_path, |(_, host)| host)
    }

    /// The index at which the scheme and the host of the URL end.
    fn path_start(&self) -> usize {
        let text = self.url.as_str();
        let behind = text.find("://").map_or(0, |scheme| scheme + 3);
        text[behind..].find(['/', '?', '\\']).map_or(text.len(), |end| behind + end)
    }

    /// Checks the URL. Its host must have no placeholder, so that a person who may edit a value cannot choose where a
    /// secret goes.
    fn check_url(&self, reach: Reach) -> Result<(), MemberError> {
        let wrong = |why: &dyn std::fmt::Display| MemberError::of("url", why);
        let text = self.url.as_str();
        let (before_path, _) = text.split_at(self.path_start());
        if before_path.contains('{') {
            return Err(wrong(&"has a placeholder before its path"));
        }

        let names = self.url.names().map(|name| (name.to_owned(), "x".to_owned())).collect();
        let filled = self.url.fill_url(&names).map_err(|why| wrong(&why))?;
        let url = Url::parse(&filled, reach).map_err(|why| wrong(&why))?;

        let query = text.split_once('?').map_or("", |(_, query)| query);
        let bare = query.split('&').find(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            is_of_secret(name) && !has_placeholder(value)
        });
        match bare {
            Some(pair) if url.uri().query().is_some() => {
                let name = pair.split('=').next().unwrap_or_default();
                let why = format!(
                    "has a secret as the parameter {name}; write {name}={{key}} and give secrets.key"
                );
                Err(wrong(&why))
            }
            _ => Ok(()),
        }
    }

    fn check_headers(&self) -> Result<(), MemberError> {
        if self.headers.len() > MAX_HEADERS {
            return Err(MemberError::of("headers", "has more than 16 members"));
        }

        for (name, value) in &self.headers {
            let wrong = |why: &str| Err(MemberError::of(&format!("headers.{name}"), why));
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                return wrong("is no name of a header");
            }
            if OF_CLIENT.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                return wrong("is a header that cannot be set");
            }
            if !value.as_str().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
                return wrong("has a character that is not printable ASCII");
            }
            if is_of_secret(name) && !has_placeholder(value.as_str()) {
                return wrong(IS_SECRET);
            }
        }
        Ok(())
    }

    fn check_basic_and_body(&self) -> Result<(), MemberError> {
        if let Some(Basic { user, password }) = &self.basic {
            // Without a password the user is the key.
            let (member, secret) = match password.as_str() {
                "" => ("basic.user", user.as_str()),
                password => ("basic.password", password),
            };
            if is_bare(secret) {
                return Err(MemberError::of(member, IS_SECRET));
            }
        }
        match self.body.as_ref().and_then(bare_secret_of) {
            Some(name) => Err(MemberError::of(&format!("body.{name}"), IS_SECRET)),
            None => Ok(()),
        }
    }

    /// The names of all placeholders in the request.
    pub(crate) fn placeholders(&self) -> Vec<String> {
        let mut templates = vec![self.url.clone()];
        templates.extend(self.headers.values().cloned());
        templates.extend(self.body.iter().flat_map(texts_of));
        templates.extend(
            self.basic.iter().flat_map(|basic| [basic.user.clone(), basic.password.clone()]),
        );
        templates.iter().flat_map(TextTemplate::names).map(str::to_owned).collect()
    }

    /// The request with the values of its placeholders. `maker` is who answers, as a text names it.
    pub(crate) fn request(
        &self,
        maker: &'static str,
        values: &Values,
        secrets: &SecretTexts,
        reach: Reach,
    ) -> Result<Request, String> {
        let filled = |why: NoValue| why.to_string();
        let url = self.url.fill_url(values).map_err(filled)?;
        let url = Url::parse(&url, reach).map_err(|why| format!("url {why}"))?;

        let mut request = match self.method {
            Method::Get => Request::get(maker, "url", url),
            Method::Post => Request::post(maker, "url", url, self.body(values).map_err(filled)?),
        };
        for (name, value) in &self.headers {
            request = request.with_headers([(name.clone(), value.fill(values).map_err(filled)?)]);
        }
        if let Some(Basic { user, password }) = &self.basic {
            let user = user.fill(values).map_err(filled)?;
            let credentials = format!("{user}:{}", password.fill(values).map_err(filled)?);
            let value = format!("Basic {}", STANDARD.encode(credentials));
            request = request.with_headers([("authorization", value)]);
        }

        Ok(request.with_secrets(secrets.texts()))
    }

    fn body(&self, values: &Values) -> Result<String, NoValue> {
        match &self.body {
            None => Ok(String::new()),
            Some(Value::String(text)) => TextTemplate::of(text.clone()).fill(values),
            Some(body) => Ok(fill_json(body, values)?.to_string()),
        }
    }
}

fn is_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OF_SECRETS.iter().any(|part| name.contains(part))
}

/// Whether the value of a secret is written in clear text, without a placeholder.
fn is_bare(secret: &str) -> bool {
    !secret.is_empty() && !has_placeholder(secret)
}

/// The name of a member, at any depth, whose secret stands in clear text.
fn bare_secret_of(body: &Value) -> Option<&str> {
    match body {
        Value::Object(members) => members.iter().find_map(|(name, value)| match value {
            Value::String(text) => (is_of_secret(name) && is_bare(text)).then_some(name.as_str()),
            within => bare_secret_of(within),
        }),
        Value::Array(values) => values.iter().find_map(bare_secret_of),
        _ => None,
    }
}

fn has_placeholder(text: &str) -> bool {
    TextTemplate::of(text.to_owned()).names().next().is_some()
}
