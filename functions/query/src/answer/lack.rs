//! Names in a header what the rows of an answer in NDJSON or CSV lack. Finds nothing out.

use std::iter;

use api::Response;
use serde::Serialize;
use serde_json::Value;

/// The header of an answer in NDJSON or CSV that names what the rows lack.
const LACK: &str = "x-rows-lack";
/// The members of a JSON answer, next to its rows, that name the missing data of the rows.
const LACKING: [&str; 7] = [
    "rollups_lack",
    "rooms_lack",
    "without_room",
    "left_out",
    "moved_meters",
    "unsure",
    "incomplete",
];

/// Adds the header, if an answer in JSON would have members of `LACKING`. `about` has all members of that answer.
pub(crate) fn with_lack(response: Response, about: &impl Serialize) -> Response {
    let lacking = lacking(about);
    if lacking.is_empty() { response } else { response.with(LACK, lacking.join(", ")) }
}

/// The names of the members of `LACKING` that an answer, or a room of the answer, has.
fn lacking(about: &impl Serialize) -> Vec<&'static str> {
    let about = serde_json::to_value(about).expect("our own types have string keys");
    let rooms = about["rooms"].as_array().into_iter().flatten();
    let parts: Vec<&Value> = iter::once(&about).chain(rooms).collect();

    let is_said = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let is_in_any = |name: &&str| parts.iter().any(|part| is_said(&part[*name]));
    LACKING.into_iter().filter(is_in_any).collect()
}
