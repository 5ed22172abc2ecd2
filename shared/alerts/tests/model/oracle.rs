//! What is true of readings, minute by minute, in integers. Shares no code with the fold.

use std::collections::BTreeMap;

/// A rule as the oracle knows it; times are minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain {
    /// A value above is a breach; a rule about silence has no limit.
    pub(crate) above: Option<i64>,
    /// A value up to it is clear.
    pub(crate) clear: i64,
    pub(crate) breach_time: i64,
    pub(crate) clear_time: i64,
    /// -1 clears, 0 keeps, 1 fires.
    pub(crate) no_data: i64,
    pub(crate) silent_after: i64,
}

/// What is true at a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Truth {
    /// `normal`, `pending`, `firing` or `recovering`.
    pub(crate) phase: &'static str,
    /// The first breach of the episode.
    pub(crate) since: i64,
    /// Each turn: whether it fires, and when.
    pub(crate) turns: Vec<(bool, i64)>,
}

/// The truth at `end`, of readings up to `newest`.
pub(crate) fn truth(readings: &BTreeMap<i64, Option<i64>>, rule: Plain, end: i64) -> Truth {
    let mut truth = Truth { phase: "normal", since: 0, turns: Vec::new() };
    // The minute of the first clear value, and that of the newest reading.
    let (mut clear_since, mut newest) = (0, None);
    let Some((&first, _)) = readings.first_key_value() else { return truth };
    for minute in first..=end {
        let lasted = |truth: &mut Truth, clear_since: i64| {
            if truth.phase == "pending" && minute - truth.since >= rule.breach_time {
                truth.phase = "firing";
                truth.turns.push((true, minute));
            }
            if truth.phase == "recovering" && minute - clear_since >= rule.clear_time {
                truth.phase = "normal";
                truth.turns.push((false, minute));
            }
        };
        lasted(&mut truth, clear_since);
        // 1 is a breach, -1 is clear, 0 says nothing.
        let mut says = Vec::new();
        if newest.is_some_and(|newest: i64| minute - newest == rule.silent_after) {
            says.push(match (rule.above, rule.no_data) {
                (None, _) | (_, 1) => 1,
                (_, -1) => -1,
                _ => {
                    match truth.phase {
                        "pending" => truth.phase = "normal",
                        "recovering" => truth.phase = "firing",
                        _ => {}
                    }
                    0
                }
            });
        }
        if let Some(value) = readings.get(&minute) {
            newest = Some(minute);
            says.push(match (rule.above, value) {
                (None, _) => -1,
                (Some(above), Some(value)) if *value > above => 1,
                (Some(_), Some(value)) if *value <= rule.clear => -1,
                _ => 0,
            });
        }
        for say in says {
            match (truth.phase, say) {
                ("normal", 1) => (truth.phase, truth.since) = ("pending", minute),
                ("recovering", 1) => truth.phase = "firing",
                ("pending", -1) => truth.phase = "normal",
                ("firing", -1) => (truth.phase, clear_since) = ("recovering", minute),
                _ => {}
            }
            lasted(&mut truth, clear_since);
        }
    }
    truth
}
