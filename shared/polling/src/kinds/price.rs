//! The day-ahead price of electricity of a zone, each quarter of an hour.
//!
//! Source: <https://api.energy-charts.info/>; the licence differs by zone and is in its answer.

use chrono::TimeDelta;
use serde_json::Value;

use crate::kind::{Own, PLAIN, SourceKind, SourceMember, SourceMemberForm};
use crate::time_window::HistoryWindow;

pub(super) const PRICE: SourceKind = SourceKind {
    name: "price",
    title: "Energy-Charts",
    hint: "No key is needed. Zones are those of the market, such as DE-LU, AT, FR, NL, DK1, SE3.",
    credit: Some("Prices by Energy-Charts.info (Fraunhofer ISE)"),
    members: &[SourceMember {
        name: "zone",
        about: "the bidding zone, such as DE-LU",
        form: SourceMemberForm::Text(is_zone, "must be a bidding zone such as DE-LU"),
        is_needed: true,
    }],
    every: TimeDelta::hours(1),
    least_every: TimeDelta::minutes(15),
    history: Some(HistoryWindow { back: TimeDelta::days(1), ahead: TimeDelta::days(2) }),
    recipe: r#"[{
        "url": "https://api.energy-charts.info/price?bzn={zone}&start={from_unix}&end={to_unix}",
        "time": "/unix_seconds",
        "device": "price-{zone}",
        "fill": "15m",
        "metrics": {"price": {"at": "/price", "times": 0.001, "unit": "EUR/kWh", "kind": "gauge"}}
    }]"#,
    judge,
    ..PLAIN
};

fn is_zone(text: &str) -> bool {
    let is_of_zone = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    (2..=16).contains(&text.len()) && text.bytes().all(is_of_zone)
}

/// A range without data is answered with 404: <https://github.com/mampfes/ha_epex_spot/issues/302>.
fn judge(status: u16, _: &Value) -> Option<Own> {
    (status == 404).then_some(Own::Nothing)
}
