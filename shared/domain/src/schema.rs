//! The JSON schemas of ids, texts, numbers and timestamps, for the API's document. Functions are built without them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    AnnotationId, AttributeName, AttributeValues, Decimal, DeviceId, Exact, HomeId, Label,
    LocalDate, MetricName, PolledSourceId, RoomId, RuleId, TariffId, Timestamp, Unit,
};

/// Gives some types the same schema, which is written out wherever one of the types is used.
macro_rules! schema {
    ($($name:ident)+ = $schema:tt) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

schema! { DeviceId HomeId PolledSourceId RoomId RuleId TariffId = {"$ref": "#/components/schemas/Id"} }
schema! { AttributeName MetricName = {"type": "string"} }
schema! { AnnotationId = {"type": "string", "examples": ["2026-01-11T16:00:00.000Z-kettle"]} }
schema! { Label Unit = {"type": "string", "minLength": 1, "maxLength": 100} }
schema! { Decimal Exact = {"type": "number"} }
schema! { LocalDate = {"type": "string", "format": "date"} }
schema! { Timestamp = {"type": "string", "format": "date-time"} }
schema! { AttributeValues = {
    "type": ["string", "number", "array"],
    "items": {"type": ["string", "number"]},
} }
