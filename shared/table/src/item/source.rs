//! The two items of a source: its settings with its status, and its secrets. Knows no maker.

use polling::SecretTexts;

use super::Attribute;
use super::attribute::{
    CLAIM, DESTINATION, LACKS_SECRETS, LEASE, NEXT, RUN, SECRET, SETTINGS, SPENT, STATUS, VERSION,
};
use super::form::{At, ByPresence, Damage, Form, Maybe, OrDefault, Text, Whole};
use super::json::JsonText;
use super::kind::kind;
use crate::{SourceSecrets, StoredSource};

kind! { StoredSource = Source(id) {
    version: Whole = VERSION,
    settings: JsonText = SETTINGS,
    lacks_secrets: ByPresence = LACKS_SECRETS,
    next: At = NEXT,
    lease: Maybe<At> = LEASE,
    claim: Maybe<Whole> = CLAIM,
    run: OrDefault<Whole> = RUN,
    spent: OrDefault<JsonText> = SPENT,
    status: OrDefault<JsonText> = STATUS,
} }

// The struct has no id. The caller puts its item under the id of the source.
kind! { SourceSecrets = SourceSecrets(_) {
    destination: OrDefault<Text> = DESTINATION,
    texts: Secrets = SECRET,
} }

/// Secrets by their names, as JSON in a text.
struct Secrets;

impl Form<SecretTexts> for Secrets {
    fn attribute(secrets: &SecretTexts) -> Option<Attribute> {
        JsonText::attribute(secrets.to_stored())
    }

    fn value(attribute: Option<Attribute>) -> Result<SecretTexts, Damage> {
        JsonText::value(attribute).map(SecretTexts::of)
    }
}
