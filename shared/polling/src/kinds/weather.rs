//! The weather of a place by weather models, each quarter of an hour.
//!
//! Source: <https://open-meteo.com/en/docs>. Outside Europe and North America, the quarters are interpolated.

use chrono::TimeDelta;
use serde_json::Value;

use crate::kind::{Own, PLAIN, SourceKind, SourceMember, SourceMemberForm};
use crate::time_window::HistoryWindow;

pub(super) const WEATHER: SourceKind = SourceKind {
    name: "weather",
    title: "Open-Meteo",
    hint: "No key is needed. The service is free for use that is not commercial.",
    credit: Some("Weather data by Open-Meteo.com (CC BY 4.0)"),
    members: &[
        SourceMember::needed(
            "latitude",
            "the latitude in degrees",
            SourceMemberForm::Number(-90, 90),
        ),
        SourceMember::needed(
            "longitude",
            "the longitude in degrees",
            SourceMemberForm::Number(-180, 180),
        ),
    ],
    every: TimeDelta::hours(1),
    least_every: TimeDelta::minutes(15),
    history: Some(HistoryWindow { back: TimeDelta::hours(1), ahead: TimeDelta::zero() }),
    room: Some("outdoors"),
    recipe: r#"[{
        "url": "https://api.open-meteo.com/v1/forecast?latitude={latitude}&longitude={longitude}&minutely_15=temperature_2m,relative_humidity_2m,dew_point_2m,pressure_msl,wind_speed_10m,precipitation,shortwave_radiation&wind_speed_unit=ms&timeformat=unixtime&start_minutely_15={from_minute}&end_minutely_15={to_minute}",
        "time": "/minutely_15/time",
        "device": "outdoors",
        "metrics": {
            "temperature": "/minutely_15/temperature_2m",
            "humidity": "/minutely_15/relative_humidity_2m",
            "dew_point": {"at": "/minutely_15/dew_point_2m", "unit": "°C"},
            "sea_level_pressure": {"at": "/minutely_15/pressure_msl", "unit": "hPa"},
            "wind_speed": {"at": "/minutely_15/wind_speed_10m", "unit": "m/s"},
            "precipitation": {"at": "/minutely_15/precipitation", "unit": "mm"},
            "solar_radiation": {"at": "/minutely_15/shortwave_radiation", "unit": "W/m²"}
        }
    }]"#,
    judge,
    ..PLAIN
};

/// Recognizes the limit, which comes with 429 or 400 and counts by the sender's address:
/// <https://github.com/open-meteo/open-meteo/issues/832>.
fn judge(_: u16, body: &Value) -> Option<Own> {
    let reason = body.get("reason").and_then(Value::as_str).filter(|_| body["error"] == true)?;
    reason.contains("limit exceeded").then(|| {
        let why = "has no request left for this address; on AWS others share it";
        Own::Limited(why.to_owned())
    })
}
