//! Makes answers small: cuts lists, says what was cut, and writes times in the home's local time. Asks nothing.
//!
//! A model reads the whole answer, so a long answer costs more than it is worth.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use domain::{Timestamp, Zone};
use serde_json::{Map, Value, json};

/// The maximum size of an answer's rows, in bytes.
const MAX_BYTES: usize = 40_000;
/// The maximum number of entries in a list beside the rows, such as the devices of a sum.
const MAX_BESIDE: usize = 20;

/// The number of rows that fit into an answer. The first row always fits.
pub(super) fn fitting(rows: &[Value]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&Value| {
        bytes += row.to_string().len() + 1;
        bytes <= MAX_BYTES
    };
    rows.iter().take_while(fits).count().max(1).min(rows.len())
}

/// Keeps at most `limit` rows from `offset` on, and says how to get the rest.
///
/// The hint repeats the range in absolute times, because a relative range would have moved on.
pub(super) fn cut_rows(answer: &mut Map<String, Value>, offset: usize, limit: usize) {
    let Some(Value::Array(mut rows)) = answer.remove("data") else { return };
    let all = rows.len();
    let mut wanted: Vec<Value> = rows.drain(offset.min(all)..).take(limit).collect();
    wanted.truncate(fitting(&wanted));
    let next = offset + wanted.len();

    if next < all && !wanted.is_empty() {
        let range = |name: &str| answer.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        let range = range("from").zip(range("to"));
        let range = range.map_or_else(String::new, |(from, to)| format!(", from {from}, to {to}"));
        let how = format!(
            "These are {} of {all} rows. For the next ones call the tool again with the same arguments and offset \
             {next}{range}; a longer unit or fewer metrics make fewer rows.",
            wanted.len()
        );
        answer.insert("more".to_owned(), json!({"rows": all, "offset": next, "how": how}));
    }

    answer.insert("rows".to_owned(), Value::Array(wanted));
}

/// Cuts long lists beside the rows, and notes the length of each list before the cut.
pub(super) fn cut_beside(answer: &mut Map<String, Value>) {
    let mut cut = Map::new();
    for (name, value) in answer.iter_mut().filter(|(name, _)| *name != "rows") {
        if let Value::Array(entries) = value
            && entries.len() > MAX_BESIDE
        {
            cut.insert(name.clone(), json!(entries.len()));
            entries.truncate(MAX_BESIDE);
        }
    }

    if !cut.is_empty() {
        answer.insert("cut_lists".to_owned(), Value::Object(cut));
    }
}

/// Writes every timestamp in the local time of a zone, with the offset. Instants stay the same, but days begin where
/// people expect.
pub(super) fn localise(value: &mut Value, zone: Zone) {
    match value {
        Value::String(text) => {
            if let Some(at) = timestamp(text) {
                *text = local(at, zone);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|value| localise(value, zone)),
        Value::Object(members) => members.values_mut().for_each(|value| localise(value, zone)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Parses a timestamp, if it has exactly the API's form.
fn timestamp(text: &str) -> Option<Timestamp> {
    let at = (text.len() == 24).then(|| Timestamp::parse_absolute(text).ok())??;
    (at.to_string() == text).then_some(at)
}

/// A timestamp with the offset of a zone.
pub(super) fn local(at: Timestamp, zone: Zone) -> String {
    let offset = zone.offset(at.as_millis().div_euclid(1_000));
    let offset = i32::try_from(offset).ok().and_then(FixedOffset::east_opt);
    let utc = DateTime::from_timestamp_millis(at.as_millis());
    match utc.zip(offset) {
        Some((utc, offset)) => {
            utc.with_timezone(&offset).to_rfc3339_opts(SecondsFormat::AutoSi, true)
        }
        None => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given;

    fn answer(rows: usize) -> Map<String, Value> {
        let rows: Vec<Value> = (0..rows).map(|n| json!({"n": n})).collect();
        json!({"data": rows, "from": "a", "to": "b"}).as_object().expect("an object").clone()
    }

    #[test]
    fn rows_are_cut_and_the_rest_is_found_by_what_is_said() {
        let (mut seen, mut offset) = (Vec::new(), 0);
        loop {
            let mut answer = answer(250);
            cut_rows(&mut answer, offset, 100);
            seen.extend(answer["rows"].as_array().expect("rows").clone());
            let Some(more) = answer.get("more") else { break };
            assert_eq!(more["rows"], 250);
            offset = usize::try_from(more["offset"].as_u64().expect("a number")).expect("small");
            let how = more["how"].as_str().expect("text");
            assert!(how.contains(&format!("offset {offset}, from a, to b")), "{how}");
        }
        assert_eq!(seen, (0..250).map(|n| json!({"n": n})).collect::<Vec<_>>());
        let mut whole = answer(100);
        cut_rows(&mut whole, 0, 100);
        assert!(!whole.contains_key("more"));
        let mut behind = answer(3);
        cut_rows(&mut behind, 5, 100);
        assert_eq!((behind["rows"].clone(), behind.get("more")), (json!([]), None));
    }

    #[test]
    fn long_rows_are_fewer_and_one_is_always_there() {
        let long = |bytes: usize| json!("x".repeat(bytes));
        assert_eq!(fitting(&vec![long(9_997); 7]), 4);
        assert_eq!(fitting(&vec![long(MAX_BYTES); 2]), 1);
        assert_eq!(fitting(&[]), 0);
    }

    #[test]
    fn lists_beside_the_rows_are_cut_with_their_length() {
        let answer = json!({"rows": vec![0; 50], "devices": vec![0; 30], "left_out": [1]});
        let mut answer = answer.as_object().expect("an object").clone();
        cut_beside(&mut answer);
        let length = |name: &str| answer[name].as_array().expect("a list").len();
        assert_eq!((length("rows"), length("devices"), length("left_out")), (50, MAX_BESIDE, 1));
        assert_eq!(answer["cut_lists"], json!({"devices": 30}));
    }

    #[test]
    fn times_are_those_of_the_home_and_other_texts_stay() {
        let zone: Zone = given::zone("Europe/Berlin");
        let mut value = json!({
            "winter": "2026-01-10T23:00:00.000Z",
            "summer": ["2026-06-30T22:00:00.000Z", {"at": "2026-06-30T22:00:00.125Z"}],
            "text": "2026-01-10T23:00:00Z, about",
            "number": 1,
        });
        localise(&mut value, zone);
        assert_eq!(
            value,
            json!({
                "winter": "2026-01-11T00:00:00+01:00",
                "summer": ["2026-07-01T00:00:00+02:00", {"at": "2026-07-01T00:00:00.125+02:00"}],
                "text": "2026-01-10T23:00:00Z, about",
                "number": 1,
            })
        );
        let utc = Timestamp::from_millis(0).expect("a timestamp");
        assert_eq!(local(utc, Zone::UTC), "1970-01-01T00:00:00Z");
    }
}
