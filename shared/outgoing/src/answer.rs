//! The answer of a server, and the verdict on an attempt. Sends nothing.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use domain::{Timestamp, excerpt};
use serde_json::Value;

use crate::request::Request;

/// The answer to a request that delivers a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The beginning of the body, if the status is not a success.
    pub text: String,
}

/// The whole answer to a request that fetches data.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The headers that say what time it is and when to ask again, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The headers of an answer that say what time it is and when to ask again.
pub const HEADERS_OF_LIMITS: [&str; 6] = [
    "date",
    "retry-after",
    "x-rate-limit-reset",
    "x-rate-limit-remaining",
    "ratelimit-reset",
    "ratelimit-remaining",
];

impl Fetched {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The time of the answer, by the server's own clock.
    pub fn date(&self) -> Option<Timestamp> {
        let date = http_date(self.header("date")?)?;
        Timestamp::from_millis(date.timestamp_millis()).ok()
    }

    /// The pause that the server asks for by `Retry-After`. `now` is the time of the server's clock.
    pub fn retry_after(&self, now: Timestamp) -> Option<TimeDelta> {
        retry_after(self.header("retry-after")?, now)
    }
}

/// Shows no header and no body: they may contain secrets, and a person's measurements.
impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetched({}, {} bytes)", self.status, self.body.len())
    }
}

/// The verdict on an attempt to deliver.
///
/// Every failed attempt is followed by another, for a day, because a person may mend the cause in the meantime. The
/// verdicts differ in what people are told about the channel in this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerVerdict {
    /// 2xx. The body is ignored: each maker's errors have a status of their own. Home Assistant answers 200 even if no
    /// automation has the webhook, so that nobody can guess a webhook. Only a test message shows that messages arrive.
    Delivered,
    /// A retry may well help: no answer, 408, 425, 429 and 5xx. People are told only if the failure lasts.
    Later {
        /// The pause that the server asks for.
        retry_after: Option<TimeDelta>,
    },
    /// A person has to mend something, so the channel is failing at once. The status is any other 4xx, for example if a
    /// topic or chat does not exist or a token was revoked. Or it is 3xx: redirects are not followed, because they
    /// would carry secrets to an address that nobody wrote.
    Failing {
        /// The pause that the server asks for.
        retry_after: Option<TimeDelta>,
    },
}

impl AnswerVerdict {
    /// The verdict on an attempt without an answer.
    pub const UNANSWERED: Self = Self::Later { retry_after: None };
}

impl Answer {
    /// Whether the request may have arrived although it failed: a proxy in between got no answer, or only a part.
    ///
    /// Source: <https://www.rfc-editor.org/rfc/rfc9110#section-15.6.3> and the section of 504 after it.
    pub const fn may_have_arrived(&self) -> bool {
        matches!(self.status, 502 | 504)
    }

    /// The verdict on the answer, which came at `now`.
    pub fn verdict(&self, now: Timestamp) -> AnswerVerdict {
        let retry_after = self.pause(now);
        match self.status {
            200..=299 => AnswerVerdict::Delivered,
            408 | 425 | 429 | 500..=599 => AnswerVerdict::Later { retry_after },
            _ => AnswerVerdict::Failing { retry_after },
        }
    }

    /// The answer as a sentence that people may see. It contains nothing of the request.
    pub fn reason(&self, request: &Request) -> String {
        let (maker, status) = (request.maker(), self.status);
        if (300..=399).contains(&status) {
            let field = request.field();
            return format!(
                "{maker} answers {status}; redirects are not followed, so write where it leads to as {field}"
            );
        }
        match self.said().filter(|said| !request.is_part_of(said)) {
            Some(said) => format!("{maker} answers {status}: {}", excerpt(said.trim())),
            None => format!("{maker} answers {status}"),
        }
    }

    /// The pause that the server asks for, at most a day: by the header, else by the body of Telegram or Discord
    /// (<https://core.telegram.org/bots/api#responseparameters>,
    /// <https://discord.com/developers/docs/topics/rate-limits>).
    fn pause(&self, now: Timestamp) -> Option<TimeDelta> {
        if let Some(header) = &self.retry_after {
            return retry_after(header, now);
        }
        let body: Value = serde_json::from_str(&self.text).ok()?;
        let seconds = [&body["parameters"]["retry_after"], &body["retry_after"]];
        let seconds = seconds.into_iter().find_map(Value::as_f64)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast saturates; an hour is the most"
        )]
        let seconds = seconds.ceil() as i64;
        seconds_of(seconds)
    }

    /// The server's own text: the description in an error of Telegram, ntfy or Discord, else the whole text. `None` for
    /// other JSON and for HTML.
    fn said(&self) -> Option<String> {
        let body: Option<Value> = serde_json::from_str(&self.text).ok();
        let described = body.as_ref().and_then(|body| {
            ["description", "error", "message"].iter().find_map(|field| body[*field].as_str())
        });
        let said = match (described, &body) {
            (Some(described), _) => described,
            (None, Some(_)) => return None,
            (None, None) => &self.text,
        };
        // The beginning of an HTML page says nothing.
        (!said.trim().is_empty() && !said.trim_start().starts_with('<')).then(|| said.to_owned())
    }
}

/// Reads `Retry-After`, which is seconds or a date (RFC 9110, 10.2.3).
fn retry_after(text: &str, now: Timestamp) -> Option<TimeDelta> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().and_then(seconds_of);
    }
    seconds_of(http_date(text)?.timestamp() - now.as_millis().div_euclid(1_000))
}

/// Reads a date in one of the three forms of RFC 9110, 5.6.7.
fn http_date(text: &str) -> Option<DateTime<Utc>> {
    let utc = |format| NaiveDateTime::parse_from_str(text, format).ok().map(|at| at.and_utc());
    DateTime::parse_from_rfc2822(text)
        .ok()
        .map(|at| at.to_utc())
        .or_else(|| utc("%A, %d-%b-%y %H:%M:%S GMT"))
        .or_else(|| utc("%a %b %e %H:%M:%S %Y"))
}

fn seconds_of(seconds: i64) -> Option<TimeDelta> {
    (seconds >= 0).then(|| TimeDelta::seconds(seconds.min(86_400)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Reach;
    use crate::url::Url;
    use domain::given::at;

    fn now() -> Timestamp {
        at("2026-01-11T16:00:00Z")
    }

    fn answer(status: u16, retry_after: Option<&str>, text: &str) -> Answer {
        Answer { status, retry_after: retry_after.map(str::to_owned), text: text.to_owned() }
    }

    #[test]
    fn a_status_decides() {
        for status in 100..=599 {
            let verdict = answer(status, None, "").verdict(now());
            match status {
                200..=299 => assert_eq!(verdict, AnswerVerdict::Delivered),
                408 | 425 | 429 | 500.. => {
                    assert_eq!(verdict, AnswerVerdict::UNANSWERED, "{status}");
                }
                _ => assert_eq!(verdict, AnswerVerdict::Failing { retry_after: None }, "{status}"),
            }
        }
    }

    #[test]
    fn a_server_says_how_long_to_wait_in_seconds_or_as_a_date_or_in_its_body() {
        for (header, body, seconds) in [
            (Some("120"), "", Some(120)),
            (Some(" 0 "), "", Some(0)),
            (Some("99999999999"), "", Some(86_400)),
            (Some("99999999999999999999999"), "", None),
            (Some("-5"), "", None),
            (Some("soon"), "", None),
            (Some(""), "", None),
            (Some("Sun, 11 Jan 2026 16:02:00 GMT"), "", Some(120)),
            (Some("Sunday, 11-Jan-26 16:02:00 GMT"), "", Some(120)),
            (Some("Sun Jan 11 16:02:00 2026"), "", Some(120)),
            (Some("Sun, 11 Jan 2026 15:00:00 GMT"), "", None),
            (None, r#"{"ok": false, "parameters": {"retry_after": 35}}"#, Some(35)),
            (None, r#"{"message": "limited", "retry_after": 64.57, "global": false}"#, Some(65)),
            (None, r#"{"retry_after": 1e300}"#, Some(86_400)),
            (None, r#"{"retry_after": "x"}"#, None),
            (None, "[]", None),
            (Some("10"), r#"{"retry_after": 64.57}"#, Some(10)),
        ] {
            let retry_after = seconds.map(TimeDelta::seconds);
            let verdict = answer(429, header, body).verdict(now());
            assert_eq!(verdict, AnswerVerdict::Later { retry_after }, "{header:?} {body}");
        }
    }

    #[test]
    fn a_reason_says_who_answered_what() {
        let post = |maker, field, address: &str| {
            let url = Url::parse(address, Reach::Local).expect("an address");
            Request::post(maker, field, url, String::new())
        };
        let address = "https://api.telegram.org/bot123:geheim/sendMessage";
        let telegram = post("Telegram", "server", address).with_secrets(["123:geheim"]);
        let address = "http://homeassistant.local:8123/api/webhook/gehe%69m-1";
        let webhook = post("Home Assistant", "address", address);
        for (request, status, text, reason) in [
            (
                &telegram,
                401,
                r#"{"ok": false, "error_code": 401, "description": "Unauthorized"}"#,
                "Telegram answers 401: Unauthorized",
            ),
            (&telegram, 404, r#"{"ok": false}"#, "Telegram answers 404"),
            (&telegram, 500, "", "Telegram answers 500"),
            (&telegram, 500, "<html><body>no", "Telegram answers 500"),
            (&telegram, 500, " \u{1b}[31m no\n", "Telegram answers 500: \\u{1b}[31m no"),
            (&telegram, 404, "no method /bot123:geheim/sendMessage", "Telegram answers 404"),
            (&webhook, 404, "Cannot POST /api/webhook/gehe%69m-1", "Home Assistant answers 404"),
            (&webhook, 404, "no webhook geheim-1 here", "Home Assistant answers 404"),
            (
                &webhook,
                405,
                "405: Method Not Allowed",
                "Home Assistant answers 405: 405: Method Not Allowed",
            ),
            (
                &webhook,
                301,
                "",
                "Home Assistant answers 301; redirects are not followed, so write where it leads to as address",
            ),
        ] {
            assert_eq!(answer(status, None, text).reason(request), reason);
        }
        let long = answer(500, None, &"x".repeat(4_096)).reason(&telegram);
        assert!(long.len() < 100, "{long}");
    }
}
