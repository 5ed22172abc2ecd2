//! Reads what people write as members of JSON. Knows none of them.

use domain::MemberError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads members; the error names the one that is wrong.
pub(crate) fn read<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, MemberError> {
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| {
        let path = error.path().to_string();
        MemberError::of(if path == "." { "source" } else { &path }, error.inner())
    })
}
