//! A server's answers about alerts, as text for people. Sends no request.

use std::fmt::Write as _;

use serde_json::Value;

use crate::answer_text::{columns, elements, list, shown, text};
use crate::output::counted;

/// The rules, one per line.
pub(super) fn rules(answer: &Value) -> String {
    let rules = list(answer);
    if rules.is_empty() {
        return "no rules; roomtide alerts set --help says how to make one".to_owned();
    }

    let rows = rules.iter().map(|rule| {
        [text(rule, "id").to_owned(), status(rule), text(rule, "name").to_owned(), what(rule)]
    });
    let mut lines = columns(&rows.collect::<Vec<_>>());
    for channel in elements(answer, "channels") {
        if let Some(since) = channel["failing_since"].as_str() {
            let id = text(channel, "id");
            let failure = failure(channel, since);
            writeln!(lines, "channel {id} {failure}").unwrap_or_default();
        }
    }

    lines
}

/// The text of a rule with its states.
pub(super) fn rule(rule: &Value) -> String {
    let (id, name) = (text(rule, "id"), text(rule, "name"));
    let mut lines = format!("{id}  {}\n  {name}: {}\n", status(rule), what(rule));

    let known = [
        "for",
        "clear_for",
        "no_data",
        "repeat",
        "recovery",
        "ignores_quiet_hours",
        "paused_until",
    ];

    let members = known.iter().filter_map(|name| Some((name, shown(rule.get(*name)?))));
    let members: Vec<String> = members.map(|(name, value)| format!("{name} {value}")).collect();
    writeln!(lines, "  {}", members.join(", ")).unwrap_or_default();
    if let Some(seconds) = rule["silent_after"].as_f64() {
        writeln!(lines, "  silent after {} minutes", seconds / 60.0).unwrap_or_default();
    }

    let states = rule["states"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = states.iter().map(state).collect();
    lines + &columns(&rows).lines().map(|line| format!("  {line}\n")).collect::<String>()
}

fn state(state: &Value) -> [String; 4] {
    let since = state["since"].as_str().or(state["last"].as_str());
    let mut more = Vec::new();
    more.extend(state["value"].as_str().map(|value| format!("value {value}")));
    more.extend(state["silent"].as_bool().map(|_| "silent".to_owned()));
    if state["acknowledged"] == true {
        more.push("acknowledged".to_owned());
    }

    [
        text(state, "subject").to_owned(),
        text(state, "phase").to_owned(),
        since.map_or(String::new(), |since| format!("since {since}")),
        more.join(", "),
    ]
}

/// The sent messages, one per line.
pub(super) fn history(answer: &Value) -> String {
    let rows = list(answer);
    if rows.is_empty() {
        return "nothing was told".to_owned();
    }
    rows.iter().fold(String::new(), |lines, row| {
        format!("{lines}{}  {}\n", text(row, "at"), text(row, "text"))
    })
}

/// The episodes of a preview, one per line.
pub(super) fn preview(answer: &Value) -> String {
    let count = counted(answer["episodes"].as_u64().unwrap_or_default(), "episode");
    let mut lines = format!("{count} from {} to {}\n", text(answer, "from"), text(answer, "to"));
    let mut rows = Vec::new();
    for subject in elements(answer, "subjects") {
        for episode in elements(subject, "episodes") {
            rows.push([
                format!("  {}", text(subject, "subject")),
                text(episode, "since").to_owned(),
                episode["ended"].as_str().unwrap_or("lasts").to_owned(),
                episode["value"].as_str().unwrap_or_default().to_owned(),
            ]);
        }
    }

    lines += &columns(&rows);
    if elements(answer, "subjects").any(|subject| subject["by"] == "extremes") {
        lines += "of a part of it the readings have expired, and extremes of 15 minutes answer\n";
    }

    if answer.get("rollups_lack").is_some() {
        lines += "late readings are not rolled up yet; what they change may be missing\n";
    }

    if answer["has_more_subjects"] == true {
        lines += "and further subjects; --subject asks for one\n";
    }
    lines
}

/// The channels, one per line.
pub(super) fn channels(answer: &Value) -> String {
    let channels = list(answer);
    if channels.is_empty() {
        return "no channels; roomtide alerts set-channel --help says how to make one".to_owned();
    }
    columns(&channels.iter().map(channel_row).collect::<Vec<_>>())
}

pub(super) fn channel(channel: &Value) -> String {
    columns(&[channel_row(channel)])
}

fn channel_row(channel: &Value) -> [String; 4] {
    let mut more = Vec::new();
    more.extend(channel["quiet_hours"].as_str().map(|hours| format!("quiet {hours}")));
    more.extend(channel["failing_since"].as_str().map(|since| failure(channel, since)));
    let waiting = channel["waiting"].as_u64().unwrap_or_default();
    if waiting > 0 {
        more.push(format!("{} waiting", counted(waiting, "message")));
    }

    [
        text(channel, "id").to_owned(),
        text(channel, "kind").to_owned(),
        text(channel, "name").to_owned(),
        more.join(", "),
    ]
}

/// Since when a channel fails, when it is tried again, and where the reason is: the table does not have it.
fn failure(channel: &Value, since: &str) -> String {
    let next = channel["next"].as_str().map(|next| format!(" and is tried again at {next}"));
    let next = next.unwrap_or_default();
    format!("fails since {since}{next}; alerting.failures in the log of the server says why")
}

/// The status of a rule, in a word or two.
fn status(rule: &Value) -> String {
    let count = |name: &str| rule[name].as_u64().unwrap_or_default();
    match (count("firing"), count("pending")) {
        _ if rule["on"] == false => "off".to_owned(),
        (0, 0) => "normal".to_owned(),
        (0, pending) => format!("pending {pending}"),
        (firing, _) => format!("firing {firing}"),
    }
}

/// The subject of a rule, in the rule's own words.
fn what(rule: &Value) -> String {
    let known = [
        "device",
        "room",
        "kind",
        "tag",
        "mean_of_room",
        "metric",
        "above",
        "below",
        "silent_for",
        "budget_kwh",
        "per",
        "demand_kw",
        "period",
        "counter",
    ];

    let mut members = Vec::new();
    for name in known {
        let Some(value) = rule.get(name) else { continue };
        members.push(format!("{name} {}", shown(value)));
        members.extend(clear_of(rule, name));
    }
    members.join(" ")
}

/// The clearing limit of a limit, if it differs, by the name that a person writes.
fn clear_of(rule: &Value, limit: &str) -> Option<String> {
    let of_band = format!("clear_{limit}");
    let clear = rule.get(&of_band).filter(|clear| Some(*clear) != rule.get(limit))?;
    let is_band = rule.get("above").is_some() && rule.get("below").is_some();
    let name = if is_band { &of_band } else { "clear" };
    Some(format!("{name} {}", shown(clear)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_stand_below_one_another_and_say_what_fires() {
        let answer = json!({
            "data": [
                {"id": "freezer", "name": "Freezer", "on": true, "firing": 1, "pending": 0,
                 "device": "f", "metric": "temperature", "above": "-12", "clear_above": "-15"},
                {"id": "air", "name": "Air", "on": true, "firing": 0, "pending": 0, "room": "bed", "metric": "humidity",
                 "above": "60", "clear_above": "55", "below": "40", "clear_below": "40"},
                {"id": "leak", "name": "Leak", "on": false, "firing": 0, "pending": 0, "tag": "water",
                 "counter": ["reset", "suspect"]},
            ],
            "channels": [{"id": "phone", "failing_since": "x", "next": "y"}, {"id": "mail"}],
        });
        assert_eq!(
            rules(&answer),
            "freezer  firing 1  Freezer  device f metric temperature above -12 clear -15\n\
             air      normal    Air      room bed metric humidity above 60 clear_above 55 below 40\n\
             leak     off       Leak     tag water counter reset,suspect\n\
             channel phone fails since x and is tried again at y; alerting.failures in the log of the server says why\n"
        );
        assert!(rules(&json!({"data": []})).starts_with("no rules"));
    }

    #[test]
    fn a_rule_is_shown_with_its_states() {
        let answer = json!({
            "id": "r", "name": "Gone", "on": true, "firing": 0, "pending": 1, "tag": "t", "silent_for": "usual",
            "for": "0s", "recovery": true, "silent_after": 2400,
            "states": [
                {"subject": "device:a", "phase": "pending", "since": "x", "value": "5", "acknowledged": false},
                {"subject": "device:bc", "phase": "firing", "since": "y", "silent": true, "acknowledged": true},
            ],
        });
        assert_eq!(
            rule(&answer),
            "r  pending 1\n  Gone: tag t silent_for usual\n  for 0s, recovery true\n  silent after 40 minutes\n  \
             device:a   pending  since x  value 5\n  device:bc  firing   since y  silent, acknowledged\n"
        );
    }

    #[test]
    fn a_preview_has_a_line_for_each_episode() {
        let answer = json!({
            "episodes": 2, "from": "x", "to": "y", "has_more_subjects": true,
            "rollups_lack": {"changes_since": "z"},
            "subjects": [
                {"subject": "device:a", "by": "extremes", "episodes": [{"since": "1", "ended": "2"}]},
                {"subject": "device:bc", "by": "readings", "episodes": [{"since": "3", "ended": null, "value": "5"}]},
            ],
        });
        assert_eq!(
            preview(&answer),
            "2 episodes from x to y\n  device:a   1  2\n  device:bc  3  lasts  5\n\
             of a part of it the readings have expired, and extremes of 15 minutes answer\n\
             late readings are not rolled up yet; what they change may be missing\n\
             and further subjects; --subject asks for one\n"
        );
    }

    #[test]
    fn a_channel_says_what_waits() {
        let answer = json!({"data": [{"id": "phone", "kind": "ntfy", "name": "Phone", "waiting": 2,
            "quiet_hours": "22:00-07:00", "failing_since": "x"}]});
        assert_eq!(
            channels(&answer),
            "phone  ntfy  Phone  quiet 22:00-07:00, fails since x; alerting.failures in the log of the server says why, \
             2 messages waiting\n"
        );
        assert_eq!(
            history(&json!({"data": [{"at": "x", "text": "Freezer: warm"}]})),
            "x  Freezer: warm\n"
        );
        assert_eq!(history(&json!({"data": []})), "nothing was told");
    }
}
