//! Reads members of JSON that people write. Knows no member by name.

use domain::MemberError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The members that every source may have.
pub(crate) const COMMON: [&str; 7] = ["kind", "room", "rooms", "every", "on", "since", "secrets"];

/// Refuses a member that is not one of a kind.
pub(crate) fn ensure_known<'a>(
    members: &Map<String, Value>,
    kind: &str,
    of_kind: impl IntoIterator<Item = &'a str>,
) -> Result<(), MemberError> {
    let known: Vec<_> = COMMON.into_iter().chain(of_kind).collect();
    let unknown = members.keys().find(|name| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |unknown| {
        let why = format!("is not known for the kind {kind}; known are {}", known.join(", "));
        Err(MemberError::of(unknown, why))
    })
}

/// Reads members; the error names the one that is wrong.
pub(crate) fn read<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, MemberError> {
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner().to_string());
        let prefix = if path == "." { String::new() } else { format!("{path}.") };

        if let Some(missing) = why.strip_prefix("missing field `") {
            let name = missing.split('`').next().unwrap_or_default();
            return MemberError::of(&format!("{prefix}{name}"), "is missing");
        }
        MemberError::of(if path == "." { "source" } else { &path }, without_value(&why))
    })
}

/// Removes the given value from serde's message, because it may be a secret.
fn without_value(why: &str) -> String {
    match why.split_once(", expected ") {
        Some((found, expected)) if !found.starts_with("unknown field") => {
            format!("must be {expected}")
        }
        _ => why.to_owned(),
    }
}
