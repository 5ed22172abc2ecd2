//! A rule's item, and a rule within another item. Judges nothing.

use alerts::Rule;
use domain::Timestamp;
use serde_json::Value;

use super::attribute::{RULE, RULE_CHANGED, VERSION};
use super::fields::{invalid, other_kind, parse_key, put, timestamp, whole_number};
use super::json::{members, put_object};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::StoredRule;
use crate::keys::Key;

/// The item of a rule.
///
/// Its members are in a map: at the top, the index by room would hold a rule about a room.
#[must_use]
pub fn from_alert_rule(stored: &StoredRule) -> Item {
    let mut item = key(&Key::AlertRule(stored.id.clone()));
    item.insert(VERSION.to_owned(), Attribute::number(stored.version));
    put_rule(&mut item, &stored.rule);
    item
}

pub(super) fn put_rule(item: &mut Item, rule: &Rule) {
    put(item, RULE_CHANGED, Some(rule.changed.to_string()));
    put_object(item, RULE, &rule.to_json());
}

pub(super) fn to_rule(item: &mut Item) -> Result<Rule, ItemError> {
    let changed: Timestamp =
        timestamp(item, RULE_CHANGED)?.ok_or(ItemError::Missing(RULE_CHANGED))?;
    let members = members(item, RULE)?;
    Rule::from_json(Value::Object(members), changed).map_err(invalid(RULE))
}

impl Decode for StoredRule {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertRule(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let version = whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?;
        Ok(Self { id, version, rule: to_rule(&mut item)? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(members: Value) -> StoredRule {
        let rule = Rule::from_json(members, Timestamp::MAX).expect("a rule");
        StoredRule { id: "r".parse().expect("an id"), version: 3, rule }
    }

    #[test]
    fn each_kind_of_rule_comes_back_and_is_in_no_index() {
        for members in [
            json!({"name": "冷凍庫 ❄", "device": "f", "metric": "temperature", "above": "-12.5",
                "clear": "-15.000000000000000000000000000000000001", "for": "10m", "no_data": "fire",
                "repeat": "6h", "recovery": false, "ignores_quiet_hours": true,
                "paused_until": "2026-01-11T16:00:00Z", "on": false}),
            json!({"name": "Air", "mean_of_room": "bed", "metric": "humidity", "above": 60, "below": 40}),
            json!({"name": "Gone", "room": "cellar", "silent_for": "usual"}),
            json!({"name": "Day", "device": "meter", "budget_kwh": 10, "per": "day"}),
            json!({"name": "Peak", "device": "meter", "demand_kw": "peak", "period": "15m"}),
            json!({"name": "Meter", "tag": "m", "metric": "kwh", "counter": ["reset", "suspect"]}),
        ] {
            let stored = rule(members);
            let item = from_alert_rule(&stored);
            assert!(!item.contains_key(crate::keys::ROOM));
            assert_eq!(StoredRule::decode(item).expect("a rule"), stored);
        }
    }

    #[test]
    fn a_damaged_rule_is_an_error_that_names_what_is_wrong() {
        let whole = from_alert_rule(&rule(json!({"name": "Gone", "tag": "t", "silent_for": "2h"})));
        for name in [VERSION, RULE, RULE_CHANGED] {
            let mut item = whole.clone();
            item.remove(name);
            let why = StoredRule::decode(item).expect_err(name).to_string();
            assert!(why.contains(name), "{why}");
        }
        let mut item = whole.clone();
        item.insert(RULE.to_owned(), Attribute::M(Item::new()));
        assert!(matches!(
            StoredRule::decode(item),
            Err(ItemError::Invalid { attribute: RULE, .. })
        ));
        let mut item = whole;
        item.extend(key(&Key::AlertRunning));
        assert!(matches!(StoredRule::decode(item), Err(ItemError::Key(..))));
    }
}
