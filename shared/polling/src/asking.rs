//! A request with placeholders, and how its answer is read, in the JSON that people write. Sends nothing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{MemberError, MetricName};
use outgoing::{Reach, Request, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::members;
use crate::placeholder::{TextTemplate, Values, in_json, in_url};
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
const OF_CLIENT: &str =
    "accept-encoding connection content-length expect host te transfer-encoding upgrade";

/// One request with placeholders, and how its answer is read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asking {
    /// The name of a flag among the source's members. The request is made unless the flag is false.
    #[serde(rename = "if")]
    pub(crate) only_with: Option<String>,
    #[serde(default)]
    method: Method,
    url: TextTemplate,
    #[serde(default)]
    headers: BTreeMap<String, TextTemplate>,
    basic: Option<Basic>,
    body: Option<Value>,
    /// The format of a payload, by the name that ingest has for it.
    pub(crate) format: Option<String>,
    /// The JSON pointer to the payload in the answer.
    pub(crate) at: Option<Pointer>,
    /// The JSON pointer to an array whose elements are rows.
    pub(crate) each: Option<Pointer>,
    /// The JSON pointer to a value that a row must have. Rows without the value are skipped.
    pub(crate) only: Option<Pointer>,
    /// The JSON pointer to a row's time, or to an array with the times of all rows.
    pub(crate) time: Option<Pointer>,
    /// The device of a row: its id, or the JSON pointer to the id.
    pub(crate) device: Option<TextTemplate>,
    /// The interval at which each row is repeated until the next row.
    pub(crate) fill: Option<RowFill>,
    #[serde(default)]
    pub(crate) metrics: BTreeMap<MetricName, MetricPointer>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Post,
}

/// A user and a password for Basic authorization (RFC 7617).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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

        if asking.method == Method::Get && asking.body.is_some() {
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
        let of_table = [
            ("metrics", !self.metrics.is_empty()),
            ("each", self.each.is_some()),
            ("time", self.time.is_some()),
            ("fill", self.fill.is_some()),
        ];
        let (has_format, count) = (self.format.is_some(), self.metrics.len());
        match of_table.into_iter().find(|(_, is_given)| *is_given && has_format) {
            Some((name, _)) => {
                Err(MemberError::of(name, "is given beside format; write one of them"))
            }
            None if self.at.is_some() && !has_format => {
                Err(MemberError::of("at", "is for format; a table of metrics has each"))
            }
            None if count > MAX_METRICS => {
                Err(MemberError::of("metrics", "has more than 64 members"))
            }
            None => Ok(()),
        }
    }

    /// The URL with a letter in the place of each placeholder.
    fn example_url(&self, reach: Reach) -> Result<Url, String> {
        let names = self.url.names().map(|name| (name.to_owned(), "x".to_owned())).collect();
        let filled = self.url.fill_as(&names, in_url)?;
        Url::parse(&filled, reach).map_err(|why| why.to_string())
    }

    /// The host of the URL, with its port if there is one.
    pub(crate) fn host(&self) -> Option<String> {
        let url = self.example_url(Reach::Local).ok()?;
        url.uri().authority().map(ToString::to_string)
    }

    /// Checks the URL. Its host must have no placeholder, so that a person who may edit a value cannot choose where a
    /// secret goes.
    fn check_url(&self, reach: Reach) -> Result<(), MemberError> {
        let wrong = |why: &dyn std::fmt::Display| MemberError::of("url", why);
        let text = self.url.as_str();
        let host = text.find("://").map_or(0, |scheme| scheme + 3);
        let path = text[host..].find(['/', '?', '\\']).map_or(text.len(), |path| host + path);
        if text[..path].contains('{') {
            return Err(wrong(&"has a placeholder before its path"));
        }

        let url = self.example_url(reach).map_err(|why| wrong(&why))?;
        let query = text.split_once('?').map_or("", |(_, query)| query);
        // A parameter whose name says that it is a secret must have a placeholder as its value.
        let written_secret = query.split('&').find(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            is_of_secret(name) && !has_placeholder(value)
        });
        match written_secret {
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
                return wrong("is not the name of a header");
            }
            if OF_CLIENT.split(' ').any(|own| own.eq_ignore_ascii_case(name)) {
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
            // Without a password, the user is the secret.
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
        let basic = self.basic.as_ref().map(|basic| [basic.user.as_str(), basic.password.as_str()]);
        let headers: Vec<_> = self.headers.values().map(TextTemplate::as_str).collect();
        let request = json!([self.url.as_str(), headers, basic, self.body]);
        TextTemplate::of(request.to_string()).names().map(str::to_owned).collect()
    }

    /// The request with the values of its placeholders. `maker` names the server in texts.
    pub(crate) fn request(
        &self,
        maker: &'static str,
        values: &Values,
        secrets: &SecretTexts,
        reach: Reach,
    ) -> Result<Request, String> {
        let url = self.url.fill_as(values, in_url)?;
        let url = Url::parse(&url, reach).map_err(|why| format!("url {why}"))?;

        let mut request = match self.method {
            Method::Get => Request::get(maker, "url", url),
            Method::Post => Request::post(maker, "url", url, self.body(values)?),
        };
        for (name, value) in &self.headers {
            request = request.with_headers([(name.clone(), value.fill(values)?)]);
        }

        if let Some(Basic { user, password }) = &self.basic {
            let user = user.fill(values)?;
            let credentials = format!("{user}:{}", password.fill(values)?);
            let value = format!("Basic {}", STANDARD.encode(credentials));
            request = request.with_headers([("authorization", value)]);
        }

        Ok(request.with_secrets(secrets.texts()))
    }

    /// Whether the body is a form of HTML, whose values are percent-encoded as in a URL.
    fn is_form(&self) -> bool {
        let mut of_body =
            self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        of_body.any(|(_, value)| value.as_str().starts_with("application/x-www-form-urlencoded"))
    }

    fn body(&self, values: &Values) -> Result<String, String> {
        match &self.body {
            None => Ok(String::new()),
            Some(Value::String(text)) if self.is_form() => {
                TextTemplate::of(text.clone()).fill_as(values, in_url)
            }
            Some(Value::String(text)) => TextTemplate::of(text.clone()).fill(values),
            Some(body) => TextTemplate::of(body.to_string()).fill_as(values, in_json),
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
