//! A source's two items: its settings with what is kept between runs, and what is secret. Knows no maker.

use polling::SecretTexts;

use super::Attribute;
use super::attribute::{
    CLAIM, LACKS_SECRETS, LEASE, NEXT, RUN, SECRET, SETTINGS, SPENT, STATUS, VERSION,
};
use super::form::{At, ByPresence, Damage, Form, Maybe, OrDefault, Whole};
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

// No export has what is secret, and its item is put under the source's id.
kind! { SourceSecrets = SourceSecrets(_) { 0: Secrets = SECRET } }

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
