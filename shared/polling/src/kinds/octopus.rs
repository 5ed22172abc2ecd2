//! Octopus Energy in Great Britain: the half hours of an electricity meter, about a day late.
//!
//! Source: <https://developer.octopus.energy/rest/guides/endpoints>. The energy of a half hour is stored as its mean
//! power, which is valid for the half hour.

use chrono::TimeDelta;
use serde_json::Value;

use crate::kind::{Own, PLAIN, SourceKind, SourceMember, SourceMemberForm};
use crate::time_window::HistoryWindow;

pub(super) const OCTOPUS: SourceKind = SourceKind {
    name: "octopus",
    title: "Octopus Energy",
    hint: "The account page has the API key, and the MPAN and the serial number of the meter.",
    members: &[
        SourceMember::secret("key", "the API key, sk_live_..."),
        SourceMember::needed(
            "mpan",
            "the MPAN, 13 digits",
            SourceMemberForm::Text(is_mpan, "must be the 13 digits of an MPAN"),
        ),
        SourceMember::needed(
            "serial",
            "the serial number of the meter",
            SourceMemberForm::Text(is_serial, "must be a serial number such as 11L1111111"),
        ),
    ],
    every: TimeDelta::hours(3),
    least_every: TimeDelta::minutes(15),
    history: Some(HistoryWindow { back: TimeDelta::days(10), ahead: TimeDelta::zero() }),
    has_meter: true,
    recipe: r#"[{
        "url": "https://api.octopus.energy/v1/electricity-meter-points/{mpan}/meters/{serial}/consumption/?period_from={from}&period_to={to}&page_size=1500&order_by=period",
        "basic": {"user": "{key}", "password": ""},
        "each": "/results",
        "time": "/interval_start",
        "metrics": {"current_w": {"at": "/consumption", "times": 2000, "unit": "W", "kind": "gauge", "hold": "30m"}}
    }]"#,
    judge,
    ..PLAIN
};

fn is_mpan(text: &str) -> bool {
    text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_serial(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Recognizes an answer with further pages. The half hours of 31 days, at most 1,490, fit into one page.
fn judge(_: u16, body: &Value) -> Option<Own> {
    let has_next = body.get("next").is_some_and(|next| !next.is_null());
    has_next.then(|| Own::Failing("answers in smaller pages than were asked for".to_owned()))
}
