//! The day-ahead price of electricity in a bidding zone, each quarter of an hour.
//!
//! Source: <https://api.energy-charts.info/>, with the zones that its clients list. The licence differs by zone and is
//! in the answer.

use chrono::TimeDelta;
use serde_json::Value;

use crate::kind::{Own, PLAIN, SourceKind, SourceMember, SourceMemberForm};
use crate::time_window::HistoryWindow;

pub(super) const PRICE: SourceKind = SourceKind {
    name: "price",
    title: "Energy-Charts",
    hint: "No key is needed. Zones are those of the market.",
    credit: Some("Prices by Energy-Charts.info (Fraunhofer ISE)"),
    members: &[SourceMember::needed("zone", "the bidding zone", SourceMemberForm::Choice(ZONES))],
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

/// The bidding zones.
const ZONES: &str = "AT BE BG CH CZ DE-LU DK1 DK2 EE ES FI FR GR HR HU IT-Calabria IT-Centre-North \
                     IT-Centre-South IT-North IT-SACOAC IT-SACODC IT-Sardinia IT-Sicily IT-South LT LV ME NL \
                     NO1 NO2 NO2NSL NO3 NO4 NO5 PL PT RO RS SE1 SE2 SE3 SE4 SI SK";

/// Recognizes 404 as a range without data: <https://github.com/mampfes/ha_epex_spot/issues/302>.
fn judge(status: u16, _: &Value) -> Option<Own> {
    (status == 404).then_some(Own::Nothing)
}
