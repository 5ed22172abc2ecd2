//! A reference to a schema.

use serde_json::{Value, json};

/// The reference to the schema of that name.
pub(super) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}
