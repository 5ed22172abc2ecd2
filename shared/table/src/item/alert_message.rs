//! The items of a message: its entry in the log of messages, and the message that a channel is to send. Writes no text.

use super::attribute::{ATTEMPTS, JUDGED_AT, LEASE, LINK_KEY, MESSAGE, NEXT, STORM};
use super::fields::{other_kind, parse_key};
use super::form::{At, Form, Maybe, Seconds, Text, Whole, part};
use super::json::Json;
use super::kind::take;
use super::{Attribute, Attributes, FromItem, Group as _, Item, ItemError, Kind, NamedAttribute};
use crate::keys::{Key, TTL};
use crate::{AlertKey, LOG_KEPT, LoggedMessage, WAITING_KEPT, WaitingMessage};
use alerts::{LinkKey, Message, Rule};
use chrono::TimeDelta;
use domain::Timestamp;

impl Kind for LoggedMessage {
    fn key(&self) -> Key {
        Key::AlertTold(Self::key(self))
    }
}

impl Attributes for LoggedMessage {
    fn attributes(&self) -> Vec<NamedAttribute> {
        message_attributes(self, LOG_KEPT)
    }
}

impl Kind for WaitingMessage {
    fn key(&self) -> Key {
        Key::AlertWaiting(Self::key(self))
    }
}

impl Attributes for WaitingMessage {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let mut attributes = message_attributes(&self.logged, WAITING_KEPT);
        attributes.extend([
            (JUDGED_AT, part::<At, _>(&self.logged.at)),
            (ATTEMPTS, part::<Whole, _>(&self.attempts)),
            (NEXT, part::<At, _>(&self.next)),
            (LEASE, part::<Maybe<At>, _>(&self.lease)),
            (STORM, part::<Maybe<Whole>, _>(&self.storm)),
            (LINK_KEY, self.key.as_ref().map(|key| Attribute::S(key.as_str().to_owned()))),
        ]);
        attributes
    }
}

fn message_attributes(logged: &LoggedMessage, kept: TimeDelta) -> Vec<NamedAttribute> {
    let mut attributes = logged.rule.attributes();
    attributes.push((TTL, Seconds::attribute(&logged.at.saturating_add(kept))));
    attributes.push((MESSAGE, part::<Json, _>(&logged.message)));
    attributes
}

/// Decodes the attributes that [`message_attributes`] makes. The caller knows `alert`, `at` and `number`.
fn take_message(
    item: &mut Item,
    alert: AlertKey,
    at: Timestamp,
    number: u64,
) -> Result<LoggedMessage, ItemError> {
    let message: Message = take::<Json, _>(item, MESSAGE)?;
    if message.number != number {
        return Err(ItemError::Missing(MESSAGE));
    }
    Ok(LoggedMessage { alert, at, rule: Rule::take(item)?, message })
}

impl FromItem for LoggedMessage {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let Key::AlertTold(key) = parse_key(&item)? else { return Err(other_kind(&item)) };
        take_message(&mut item, key.alert, key.at, key.number)
    }
}

impl FromItem for WaitingMessage {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let Key::AlertWaiting(key) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let at = take::<At, _>(&mut item, JUDGED_AT)?;
        Ok(Self {
            channel: key.channel,
            logged: take_message(&mut item, key.alert, at, key.number)?,
            attempts: take::<Whole, _>(&mut item, ATTEMPTS)?,
            next: take::<At, _>(&mut item, NEXT)?,
            lease: take::<Maybe<At>, _>(&mut item, LEASE)?,
            storm: take::<Maybe<Whole>, _>(&mut item, STORM)?,
            key: take::<Maybe<Text>, Option<String>>(&mut item, LINK_KEY)?.map(LinkKey::of),
        })
    }
}

#[cfg(test)]
mod tests {
    use alerts::News;

    use super::*;
    use crate::item::{Decode as _, key};
    use crate::{MessageKey, given};

    fn logged() -> LoggedMessage {
        let now = Timestamp::parse_absolute("2026-01-11T16:00:00Z").expect("a timestamp");
        LoggedMessage {
            alert: given::alert_key("r", "d"),
            at: now,
            rule: given::alert_rule("r", now).definition,
            message: given::message(u64::MAX, News::TakenBack),
        }
    }

    #[test]
    fn a_message_of_another_number_than_that_of_its_key_is_an_error() {
        let mut item = logged().item();
        item.extend(key(&Key::AlertTold(MessageKey { number: 1, ..logged().key() })));
        assert!(LoggedMessage::decode(item).is_err());
    }

    #[test]
    fn a_message_is_free_when_its_time_has_come_and_its_lease_is_over() {
        let now = logged().at;
        let after = |minutes| now.saturating_add(TimeDelta::minutes(minutes));
        for (next, lease, is_free) in [
            (0, None, true),
            (1, None, false),
            (24 * 60, None, false),
            (26 * 60, None, true),
            (0, Some(0), true),
            (0, Some(5), false),
            (0, Some(6), true),
            (1, Some(-1), false),
        ] {
            let new = WaitingMessage::new(given::channel_id("c"), logged(), after(next));
            let waiting = WaitingMessage { lease: lease.map(after), ..new };
            assert_eq!(waiting.is_due(now) && !waiting.is_leased(now), is_free, "{next} {lease:?}");
        }
        let ahead = WaitingMessage::new(given::channel_id("c"), logged(), now);
        assert!(ahead.is_due(after(-5 * 60)), "judged by a clock that was ahead");
        let postponed = WaitingMessage::new(given::channel_id("c"), logged(), after(1));
        assert!(postponed.is_due(after(-5 * 60)), "postponed by a clock that was ahead");
    }
}
