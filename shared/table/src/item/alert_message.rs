//! A message's items: among all that was told, and among what a channel is to send. Writes no text.

use super::alert_rule::{put_rule, to_rule};
use super::attribute::{ATTEMPTS, JUDGED_AT, LEASE, LINK_KEY, MESSAGE, NEXT, STORM};
use super::fields::{other_kind, parse_key, put, text, timestamp, whole_number};
use super::json::{object, put_object};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::{self, Key};
use crate::{AlertKey, TOLD_KEPT, ToldMessage, WAITING_KEPT, WaitingMessage};
use alerts::LinkKey;
use chrono::TimeDelta;
use domain::Timestamp;

/// The item of a message that was told.
#[must_use]
pub fn from_told(told: &ToldMessage) -> Item {
    let mut item = key(&Key::AlertTold(told.key()));
    put_message(&mut item, told, TOLD_KEPT);
    item
}

/// The item of a message that waits.
#[must_use]
pub fn from_waiting(waiting: &WaitingMessage) -> Item {
    let mut item = key(&Key::AlertWaiting(waiting.key()));
    put_message(&mut item, &waiting.told, WAITING_KEPT);
    put(&mut item, JUDGED_AT, Some(waiting.told.at.to_string()));
    item.insert(ATTEMPTS.to_owned(), Attribute::number(waiting.attempts));
    put(&mut item, NEXT, Some(waiting.next.to_string()));
    put(&mut item, LEASE, waiting.lease.map(|at| at.to_string()));
    item.extend(waiting.storm.map(|devices| (STORM.to_owned(), Attribute::number(devices))));
    put(&mut item, LINK_KEY, waiting.key.as_ref().map(|key| key.as_str().to_owned()));
    item
}

fn put_message(item: &mut Item, told: &ToldMessage, kept: TimeDelta) {
    let seconds = told.at.saturating_add(kept).as_millis() / 1_000;
    item.insert(keys::TTL.to_owned(), Attribute::number(seconds));
    put_rule(item, &told.rule);
    put_object(item, MESSAGE, &told.message);
}

fn to_message(
    item: &mut Item,
    alert: AlertKey,
    at: Timestamp,
    number: u64,
) -> Result<ToldMessage, ItemError> {
    let message: alerts::Message = object(item, MESSAGE)?;
    if message.number != number {
        return Err(ItemError::Missing(MESSAGE));
    }
    Ok(ToldMessage { alert, at, rule: to_rule(item)?, message })
}

impl Decode for ToldMessage {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertTold(key) = parse_key(&item)? else { return Err(other_kind(&item)) };
        to_message(&mut item, key.alert, key.at, key.number)
    }
}

impl Decode for WaitingMessage {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertWaiting(key) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let at = timestamp(&mut item, JUDGED_AT)?.ok_or(ItemError::Missing(JUDGED_AT))?;
        Ok(Self {
            channel: key.channel,
            told: to_message(&mut item, key.alert, at, key.number)?,
            attempts: whole_number(&mut item, ATTEMPTS)?.ok_or(ItemError::Missing(ATTEMPTS))?,
            next: timestamp(&mut item, NEXT)?.ok_or(ItemError::Missing(NEXT))?,
            lease: timestamp(&mut item, LEASE)?,
            storm: whole_number(&mut item, STORM)?,
            key: text(&mut item, LINK_KEY).map(LinkKey::of),
        })
    }
}

#[cfg(test)]
mod tests {
    use alerts::News;

    use super::*;
    use crate::given;

    fn told() -> ToldMessage {
        let now = Timestamp::parse_absolute("2026-01-11T16:00:00Z").expect("a timestamp");
        ToldMessage {
            alert: given::alert_key("r", "d"),
            at: now,
            rule: given::alert_rule("r", now).rule,
            message: given::message(u64::MAX, News::TakenBack),
        }
    }

    #[test]
    fn a_message_comes_back_from_either_side_and_expires() {
        let told = told();
        let item = from_told(&told);
        let expires = told.at.as_millis() / 1_000 + 90 * 86_400;
        assert_eq!(item[keys::TTL], Attribute::number(expires));
        assert_eq!(ToldMessage::decode(item).expect("a message"), told);
        let key = Some(LinkKey::new([7; 16]));
        for (lease, storm, key) in [(None, None, None), (Some(Timestamp::MAX), Some(21), key)] {
            let channel = given::channel_id("c");
            let new = WaitingMessage::new(channel, told.clone(), Timestamp::MIN);
            let waiting = WaitingMessage { attempts: 7, lease, storm, key: key.clone(), ..new };
            let item = from_waiting(&waiting);
            assert!(item.contains_key(keys::TTL) && !item.contains_key(keys::ROOM));
            assert_eq!(WaitingMessage::decode(item).expect("a message"), waiting);
        }
    }

    #[test]
    fn a_damaged_message_is_an_error_that_names_what_is_wrong() {
        let waiting = WaitingMessage::new(given::channel_id("c"), told(), Timestamp::MIN);
        let whole = from_waiting(&waiting);
        for name in [MESSAGE, JUDGED_AT, ATTEMPTS, NEXT] {
            let mut item = whole.clone();
            item.remove(name);
            let why = WaitingMessage::decode(item).expect_err(name).to_string();
            assert!(why.contains(name), "{why}");
        }
        let mut item = from_told(&told());
        item.extend(key(&Key::AlertTold(crate::ToldKey { number: 1, ..told().key() })));
        assert!(ToldMessage::decode(item).is_err(), "another number than its key");
    }

    #[test]
    fn a_message_is_free_when_its_time_has_come_and_its_lease_is_over() {
        let now = told().at;
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
            let new = WaitingMessage::new(given::channel_id("c"), told(), after(next));
            let waiting = WaitingMessage { lease: lease.map(after), ..new };
            assert_eq!(waiting.is_free(now), is_free, "{next} {lease:?}");
        }
        let ahead = WaitingMessage::new(given::channel_id("c"), told(), now);
        assert!(ahead.is_free(after(-5 * 60)), "judged by a clock that was ahead");
    }
}
