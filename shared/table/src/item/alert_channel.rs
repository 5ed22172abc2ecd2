//! The two items of a channel: its visible settings, and its secret. Knows no kind of channel.

use super::attribute::{CREATED, FAILING_SINCE, NEXT, QUIET_HOURS, SECRET, SETTINGS, VERSION};
use super::form::{At, Form as _, Maybe, Text, Whole};
use super::json::Json;
use super::kind::{kind, take};
use super::{Attributes, Group, Item, ItemError, NamedAttribute};
use crate::{ChannelSecret, Failing, StoredChannel};

kind! { StoredChannel = AlertChannel(id) {
    version: Whole = VERSION,
    settings: Json = SETTINGS,
    quiet_hours: Maybe<Text> = QUIET_HOURS,
    created: Maybe<At> = CREATED,
    failing: Option<Failing>,
} }

/// Both attributes, or neither of them.
impl Attributes for Option<Failing> {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let since = self.and_then(|failing| At::attribute(&failing.since));
        let next = self.and_then(|failing| At::attribute(&failing.next));
        vec![(FAILING_SINCE, since), (NEXT, next)]
    }
}

impl Group for Option<Failing> {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let since = take::<Maybe<At>, _>(item, FAILING_SINCE)?;
        let next = take::<Maybe<At>, _>(item, NEXT)?;
        match (since, next) {
            (None, None) => Ok(None),
            (Some(since), Some(next)) => Ok(Some(Failing { since, next })),
            (None, Some(_)) => Err(ItemError::Missing(FAILING_SINCE)),
            (Some(_), None) => Err(ItemError::Missing(NEXT)),
        }
    }
}

// The struct has no id. The caller puts its item under the id of the channel.
kind! { ChannelSecret = AlertSecret(_) { 0: Json = SECRET } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_to_nobody() {
        assert_eq!(format!("{:?}", ChannelSecret(serde_json::Map::new())), "ChannelSecret(..)");
    }
}
