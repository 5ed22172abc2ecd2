//! A rule's item, and a rule within another item. Judges nothing.

use alerts::Rule;
use serde_json::Value;

use super::attribute::{RULE, RULE_CHANGED, VERSION};
use super::fields::invalid;
use super::form::{At, Whole, part};
use super::json::Json;
use super::kind::{kind, take};
use super::{Attributes, Group, Item, ItemError, NamedAttribute};
use crate::StoredRule;

kind! { StoredRule = AlertRule(id) {
    version: Whole = VERSION,
    definition: Rule,
} }

/// The members of a rule are in a map. If `room` were an attribute of the item, the rule would be in the room index.
impl Attributes for Rule {
    fn attributes(&self) -> Vec<NamedAttribute> {
        vec![(RULE_CHANGED, part::<At, _>(&self.changed)), (RULE, part::<Json, _>(&self.to_json()))]
    }
}

impl Group for Rule {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let changed = take::<At, _>(item, RULE_CHANGED)?;
        let members = take::<Json, Value>(item, RULE)?;
        Self::from_json(members, changed).map_err(invalid(RULE))
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::item::{Attribute, Decode as _, Kind as _};

    fn rule(members: Value) -> StoredRule {
        let rule = Rule::from_json(members, Timestamp::MAX).expect("a rule");
        StoredRule { id: "r".parse().expect("an id"), version: 3, definition: rule }
    }

    #[test]
    fn each_kind_of_rule_comes_back() {
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
            assert_eq!(StoredRule::decode(stored.item()).expect("a rule"), stored);
        }
    }

    #[test]
    fn a_rule_without_members_is_an_error() {
        let mut item = rule(json!({"name": "Gone", "tag": "t", "silent_for": "2h"})).item();
        item.insert(RULE.to_owned(), Attribute::M(Item::new()));
        let why = StoredRule::decode(item);
        assert!(matches!(why, Err(ItemError::Invalid { attribute: RULE, .. })));
    }
}
