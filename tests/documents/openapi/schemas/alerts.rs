//! The shapes of rules of alerts, their states, channels and messages. Has no shape of readings.

use ::alerts::{CHANNEL_KINDS, ChannelMember, MemberForm};
use serde_json::{Value, json};

use super::super::reference::reference;

/// The schemas by name.
pub(super) fn schemas() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": "string"});
    let subject = subject();
    let several = json!({"type": "integer", "minimum": 0});
    let id = reference("Id");
    let mut schemas = json!({
        "AlertRule": {
            "type": "object",
            "required": ["name"],
            "properties": rule_members(),
            "description": "Exactly one of device, room, kind, tag and mean_of_room; and exactly one of: metric with above, below or both; silent_for; budget_kwh with per; demand_kw with period; metric with counter. What an Alert has beside these members is passed over.",
            "examples": [{"name": "Freezer warm", "device": "freezer", "metric": "temperature", "above": -12, "clear": -15, "for": "5m"}],
        },
        "AlertState": {"type": "object", "required": ["subject", "phase"], "properties": {
            "subject": subject,
            "phase": {"enum": ["normal", "pending", "firing", "recovering", "told"], "description": "told: a budget, a demand or a step of a counter was told"},
            "since": timestamp, "fired": timestamp, "clear": timestamp,
            "value": {"type": "string", "description": "The newest value, to the last digit"},
            "seen": timestamp, "told": timestamp, "judged": timestamp,
            "silent": {"const": true},
            "acknowledged": {"type": "boolean"},
            "last": timestamp, "count": several,
        }, "additionalProperties": false},
        "Alert": {
            "type": "object",
            "required": ["id", "name", "changed", "on", "states", "firing", "pending", "has_more_states"],
            "properties": rule_members(),
            "additionalProperties": false,
        },
        "Alerts": {"type": "object", "required": ["data", "channels", "firing", "pending"], "additionalProperties": false, "properties": {
            "data": {"type": "array", "items": reference("Alert")},
            "channels": {"type": "array", "items": reference("Channel")},
            "firing": several, "pending": several,
            "damaged": {"type": "array", "items": text, "description": "The rules, channels and states that cannot be read, and why: they are judged and told by nobody"},
        }},
        "AlertPause": {"type": "object", "required": ["until"], "additionalProperties": false, "properties": {
            "until": {"type": ["string", "number", "null"], "description": "A time, a duration such as 2h or 7d, or null to end the pause; at most a year ahead"},
        }},
        "AlertAcknowledgement": {"type": "object", "additionalProperties": false, "properties": {"subject": subject}},
        "LinkAcknowledgement": {"type": "object", "required": ["rule", "subject", "key"], "additionalProperties": false, "properties": {
            "rule": id, "subject": subject, "key": text,
        }},
        "Acknowledged": {"type": "object", "required": ["acknowledged", "since"], "additionalProperties": false, "properties": {
            "acknowledged": {"const": true}, "since": timestamp,
        }},
    });
    for further in [previews(), channels()] {
        for (name, schema) in further.as_object().expect("an object") {
            schemas[name] = schema.clone();
        }
    }
    let alert = &mut schemas["Alert"]["properties"];
    alert["id"] = id;
    alert["changed"] = timestamp;
    alert["states"] = json!({"type": "array", "items": reference("AlertState")});
    alert["firing"] = several.clone();
    alert["pending"] = several.clone();
    alert["has_more_states"] = json!({"type": "boolean"});
    alert["silent_after"] = json!({"type": "number", "description": "The seconds without a reading after which the device counts as silent"});
    alert["warnings"] = json!({"type": "array", "items": text, "description": "What is odd about a rule that was saved"});
    schemas
}

fn subject() -> Value {
    json!({"type": "string", "pattern": "^(device|room):", "description": "device:<id>, or room:<id> of a rule about a room's mean"})
}

/// What would have been told.
fn previews() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let subject = subject();
    let several = json!({"type": "integer", "minimum": 0});
    json!({
        "AlertTrial": {"type": "object", "required": ["rule"], "additionalProperties": false, "properties": {
            "rule": {"type": "object", "properties": rule_members(), "description": "As AlertRule; the name may be left out"},
            "from": {"type": ["string", "number"], "description": "At most 31 days before to; 7 days without it"},
            "to": {"type": ["string", "number"], "description": "Now without it"},
            "subject": subject,
        }},
        "AlertPreview": {"type": "object", "required": ["from", "to", "episodes", "subjects", "has_more_subjects"], "additionalProperties": false, "properties": {
            "from": timestamp, "to": timestamp, "episodes": several,
            "silent_after": {"type": "integer"},
            "has_more_subjects": {"type": "boolean"},
            "rollups_lack": reference("RollupsLack"),
            "warnings": {"type": "array", "items": {"type": "string"}, "description": "What is odd about the rule, such as a device without readings"},
            "subjects": {"type": "array", "items": {"type": "object", "required": ["subject", "by", "by_extremes", "episodes", "has_more"], "additionalProperties": false, "properties": {
                "subject": subject,
                "by": {"enum": ["readings", "extremes"], "description": "extremes: of a part of the range the readings have expired, and the extremes of quarters of an hour answer"},
                "by_extremes": {"type": "array", "items": {"type": "object", "properties": {"from": timestamp, "to": timestamp}}},
                "has_more": {"type": "boolean"},
                "episodes": {"type": "array", "items": {"type": "object", "required": ["since", "fired", "ended"], "additionalProperties": false, "properties": {
                    "since": timestamp, "fired": timestamp, "ended": {"type": ["string", "null"], "format": "date-time"},
                    "value": {"type": "string", "description": "Of a budget in kWh, of a demand in kW, of a step its size"},
                }}},
            }}},
        }},
    })
}

fn channels() -> Value {
    let timestamp = json!({"type": "string", "format": "date-time"});
    let text = json!({"type": "string"});
    let id = reference("Id");
    let several = json!({"type": "integer", "minimum": 0});
    json!({
        "Channel": {"type": "object", "required": ["id", "kind", "name"], "additionalProperties": false, "properties": {
            "id": id, "kind": kinds(), "name": text, "quiet_hours": text,
            "failing_since": timestamp, "next": timestamp, "waiting": several, "waiting_since": timestamp,
        }},
        "Channels": {"type": "object", "required": ["data"], "additionalProperties": false, "properties": {
            "data": {"type": "array", "items": reference("Channel")},
        }},
        "NewChannel": new_channel(),
        "Nothing": {"type": "object", "maxProperties": 0},
        "WaitingTest": {"type": "object", "required": ["waiting"], "additionalProperties": false, "properties": {"waiting": {"const": 1}}},
    })
}

fn kinds() -> Value {
    let names: Vec<_> = CHANNEL_KINDS.iter().map(|kind| kind.name).collect();
    json!({ "enum": names })
}

fn new_channel() -> Value {
    let quiet = "When its messages wait, by the home's clock, such as 22:00-07:00";
    let mut properties = json!({
        "kind": kinds(),
        "name": {"type": "string"},
        "quiet_hours": {"type": "string", "description": quiet},
    });
    let mut secret: Vec<&str> = Vec::new();
    for member in CHANNEL_KINDS.iter().flat_map(|kind| kind.members) {
        if !secret.contains(&member.name) {
            properties[member.name] = channel_member(member);
            secret.push(member.name);
        }
    }

    let secret = secret.join(", ");
    let description = format!(
        "{secret} are secret: they are in no answer, and where none of them is sent, what is stored stays"
    );
    json!({
        "type": "object",
        "required": ["kind", "name"],
        "properties": properties,
        "description": description,
    })
}

/// The schema of a channel's member, with its meaning in each kind.
fn channel_member(member: &ChannelMember) -> Value {
    let meanings = CHANNEL_KINDS.iter().filter_map(|kind| {
        let same = kind.members.iter().find(|same| same.name == member.name)?;
        Some(format!("{}: {}", kind.name, same.about))
    });
    let description = meanings.collect::<Vec<_>>().join("; ");
    let types = match member.form {
        MemberForm::TextOrNumber(..) => json!(["string", "integer"]),
        _ => json!("string"),
    };
    json!({"type": types, "description": description})
}

fn rule_members() -> Value {
    let number = |what: &str| json!({"type": ["number", "string"], "description": what});
    let text = |what: &str| json!({"type": "string", "description": what});
    let flag = |what: &str| json!({"type": "boolean", "description": what});
    let id = reference("Id");
    json!({
        "name": text("What messages begin with"),
        "device": id, "room": id, "mean_of_room": id,
        "kind": text("Each device of a kind"),
        "tag": text("Each device with a tag"),
        "metric": text("The metric"),
        "above": number("A value above it is a breach"),
        "below": number("A value below it is a breach"),
        "clear": number("Of one limit: where it is over; the limit itself without it"),
        "clear_above": number("The same for above"),
        "clear_below": number("The same for below"),
        "silent_for": text("usual, or a time such as 2h"),
        "budget_kwh": number("The energy that is too much"),
        "per": {"enum": ["day", "month"]},
        "demand_kw": number("The mean power of a period that is too much, or peak: this month's highest"),
        "period": {"enum": ["15m", "30m", "1h"]},
        "counter": {"type": "array", "items": {"enum": ["reset", "suspect", "ambiguous"]}, "minItems": 1},
        "for": text("How long a breach lasts before it fires, at most 12h"),
        "clear_for": text("How long it is clear before it is over, at most 12h"),
        "no_data": {"enum": ["keep", "fire", "clear"], "description": "What silence does to the state"},
        "repeat": text("After how long it is told again until it is acknowledged, 1h to 7d"),
        "recovery": flag("Whether the end is told"),
        "ignores_quiet_hours": flag("Whether its messages do not wait for quiet hours"),
        "on": flag("Whether it is judged"),
        "paused_until": text("Until when it tells nothing"),
    })
}
