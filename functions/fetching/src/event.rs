//! The events that invoke the function: its schedule, and the test of a source. Handles none.

use domain::PolledSourceId;
use polling::SecretTexts;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An event that invokes the function.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "source")]
pub enum Event {
    /// The minute's schedule.
    #[serde(rename = "aws.events")]
    Schedule,
    /// A person tries a source and waits for the answer.
    #[serde(rename = "roomtide.test")]
    Test(Box<SourceTest>),
}

/// A source to try before it is saved. `Debug` shows no secret.
#[derive(Debug, Clone, Deserialize)]
pub struct SourceTest {
    /// The id of the source, saved or not.
    pub id: PolledSourceId,
    /// The settings, as a person writes them.
    pub settings: Map<String, Value>,
    /// The secrets. If absent, the stored secrets are used.
    #[serde(default, deserialize_with = "secrets")]
    pub secrets: Option<SecretTexts>,
}

fn secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretTexts>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    SecretTexts::read(value).map_err(serde::de::Error::custom)
}
