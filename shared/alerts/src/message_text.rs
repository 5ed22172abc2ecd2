//! The plain text of a message, the same for every channel.

use chrono::{DateTime, TimeDelta};
use domain::{Decimal, Timestamp, Unit, Zone, duration};

use crate::UNITS;
use crate::message::{Message, News};
use crate::rule::{Limits, NoData, Rule, Scope, Watch};

/// The largest number of devices that a text names. The text counts the rest.
const MAX_NAMED: usize = 5;

/// The names that a text uses beside the rule's.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The name of the device or room.
    pub subject: &'a str,
    /// The unit of the metric.
    pub unit: Option<&'a Unit>,
    /// The time zone of the clock times in the text.
    pub zone: Zone,
    /// When the text is written. A time on another day is written with its date.
    pub now: Timestamp,
}

impl Message {
    /// The text, on one line.
    pub fn text(&self, rule: &Rule, names: Names<'_>) -> String {
        format!("{}: {}", names.headline(rule), self.line(rule, names))
    }

    /// The text without its headline.
    pub(crate) fn line(&self, rule: &Rule, names: Names<'_>) -> String {
        let what = self.what(rule, names);
        let since = names.clock(self.since);

        let line = match self.news {
            News::Fired => format!("{what} since {since}"),
            News::Repeated => format!("still {what} since {since}"),
            News::Passed => {
                let ended = self.ended.unwrap_or(self.fired);
                format!("was {what} from {since} to {}", names.clock(ended))
            }
            News::Recovered => match self.ended {
                Some(ended) => format!("over since {}: {what} from {since}", names.clock(ended)),
                None => format!("over: {what} from {since}"),
            },
            News::TakenBack => {
                let cause = match rule.scope {
                    Scope::RoomMean(_) => {
                        "by readings that came late or were changed, or a device that moved"
                    }
                    _ => "by readings that came late or were changed",
                };
                format!("taken back: {what} since {since} was wrong, {cause}")
            }
            News::Edited if self.value.is_none() => {
                format!("over, because the rule was changed; it fired since {since}")
            }
            News::Edited => format!("over, because the rule was changed: {what} since {since}"),
            News::Test => return "this is a test; alerts reach you here".to_owned(),
        };

        let value = self.shown_value(rule, names);
        format!("{line}{value}")
    }

    /// What happens to the subject, in the words of the rule.
    fn what(&self, rule: &Rule, names: Names<'_>) -> String {
        // If the silence is over, the newest reading ended the silence, and is not the last reading before.
        let is_over = matches!(self.news, News::Recovered | News::Passed);
        match (self.tells_silence(rule), self.seen) {
            (true, Some(seen)) if !is_over => {
                format!("no reading, the last at {},", names.clock(seen))
            }
            (true, _) => "no reading".to_owned(),
            (false, _) => names.watched(rule),
        }
    }

    /// Whether the message is about silence: the rule watches silence, or counts it as a breach while the device is silent.
    fn tells_silence(&self, rule: &Rule) -> bool {
        let is_breach = self.is_silent && rule.no_data() == NoData::Fire;
        matches!(rule.watch, Watch::Silence { .. }) || is_breach && self.news.is_firing()
    }

    fn shown_value(&self, rule: &Rule, names: Names<'_>) -> String {
        match (&rule.watch, &self.value) {
            (Watch::Metric { .. }, Some(value)) if !self.tells_silence(rule) => {
                format!("; now {}", names.quantity(value))
            }
            _ => String::new(),
        }
    }
}

pub(crate) fn devices(number: usize) -> String {
    if number == 1 { "1 device".to_owned() } else { format!("{number} devices") }
}

impl Names<'_> {
    /// The name of the rule, and of the subject.
    pub(crate) fn headline(self, rule: &Rule) -> String {
        format!("{}: {}", rule.name, self.subject)
    }

    /// What the rule watches, with its limits.
    fn watched(self, rule: &Rule) -> String {
        match &rule.watch {
            Watch::Metric { metric, limits } => {
                let lasting = match rule.breach_time {
                    none if none <= TimeDelta::zero() => String::new(),
                    time => format!(" for {}", duration::text(time, UNITS)),
                };
                format!("{metric} {}{lasting}", self.limits(limits))
            }
            Watch::Silence { .. } => "no reading".to_owned(),
            Watch::Budget { kwh, per } => format!("more than {kwh} kWh in {}", per.as_str()),
            Watch::Demand { period, .. } => format!("demand of {} too high", period.as_str()),
            Watch::Counter { metric, .. } => format!("{metric} has an odd step"),
        }
    }

    /// One text for the same news about several devices, without the rule's name.
    pub(crate) fn counted(self, rule: &Rule, news: News, subjects: &[&str]) -> String {
        let what = self.watched(rule);
        let line = match news {
            News::Fired | News::Test => what,
            News::Repeated => format!("still {what}"),
            News::Passed => format!("was {what}, and is over"),
            News::Recovered => format!("over: {what}"),
            News::TakenBack => format!("taken back: {what}"),
            News::Edited => format!("over, because the rule was changed: {what}"),
        };

        let shown = &subjects[..subjects.len().min(MAX_NAMED)];
        let more = match subjects.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}: {line}: {}{more}", devices(subjects.len()), shown.join(", "))
    }

    fn quantity(self, value: &Decimal) -> String {
        self.unit.map_or_else(|| value.to_string(), |unit| format!("{value} {unit}"))
    }

    fn limits(self, limits: &Limits) -> String {
        let limit = |threshold: &crate::Threshold| self.quantity(&threshold.limit);
        match (limits.below().map(limit), limits.above().map(limit)) {
            (Some(below), Some(above)) => format!("outside {below} to {above}"),
            (None, Some(above)) => format!("above {above}"),
            (Some(below), None) => format!("below {below}"),
            (None, None) => String::new(),
        }
    }

    /// The local time at an instant, with the date if it is another day.
    fn clock(self, at: Timestamp) -> String {
        let second = at.as_millis().div_euclid(1_000);
        let shown = DateTime::from_timestamp(second + self.zone.offset(second), 0);
        let time = shown.map(|time| time.format("%H:%M").to_string()).unwrap_or_default();
        let (date, today) = (self.zone.date(at), self.zone.date(self.now));
        if date == today { time } else { format!("{date} {time}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{at, cases, zone};

    fn text(rule: &str, news: News, is_silent: bool) -> String {
        let value = serde_json::from_str(rule).expect("JSON");
        let rule = Rule::from_json(value, Timestamp::MIN).expect("a rule");
        let message = Message {
            number: 1,
            news,
            since: at("2026-01-11T13:05:00Z"),
            fired: at("2026-01-11T13:15:00Z"),
            ended: matches!(news, News::Recovered | News::Passed)
                .then(|| at("2026-01-11T13:40:00Z")),
            value: Decimal::parse("9.1").ok(),
            seen: Some(at("2026-01-10T13:39:00Z")),
            is_silent,
        };
        let unit = "°C".parse().expect("a unit");
        let names = Names {
            subject: "Deep freezer",
            unit: Some(&unit),
            zone: zone("Europe/Berlin"),
            now: at("2026-01-11T13:41:00Z"),
        };
        message.text(&rule, names)
    }

    /// A case is what is told, `fired silent` where the device is silent, and the rule.
    #[test]
    fn a_text_says_what_since_when_and_what_is_now() {
        for case in cases(include_str!("message_text.txt")) {
            let (told, rule) = case.given.split_once(": ").expect("NEWS: RULE");
            let (news, is_silent) = match told.strip_suffix(" silent") {
                Some(news) => (news, true),
                None => (told, false),
            };
            let news = News::parse(news).expect("news");
            assert_eq!(text(rule, news, is_silent), case.answer(), "{case}");
        }
    }
}
