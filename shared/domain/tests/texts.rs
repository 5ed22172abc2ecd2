//! Texts of timestamps, dates, numbers, names and ids: how each is read, or why it is refused.

use std::fmt::Display;
use std::str::FromStr;

use chrono::TimeDelta;
use domain::given::{at, cases};
use domain::{
    Annotated, AnnotationId, AttributeName, Decimal, Label, LocalDate, MetricName, Role,
    SearchCondition, Timestamp, Unit, duration,
};

const NOW: &str = "2026-01-11T16:00:00Z";

fn shown<T: Display, E: Display>(read: Result<T, E>) -> String {
    read.map_or_else(|error| format!("refused: {error}"), |value| value.to_string())
}

fn read<T: FromStr<Err: Display> + Display>(text: &str) -> String {
    shown(text.parse::<T>())
}

fn length(read: Option<TimeDelta>, text: impl Fn(TimeDelta) -> String) -> String {
    read.map_or("refused".to_owned(), text)
}

/// A case is `KIND TEXT`, the text in quotation marks. What is read is shown as it is written.
#[test]
fn each_text_is_read_as_its_case_says() {
    for case in cases(include_str!("texts.txt")) {
        let (kind, text) = case.given.split_once(' ').expect("KIND TEXT");
        let text: String = serde_json::from_str(text).expect("a text in quotation marks");
        let text = text.as_str();

        let found = match kind {
            "timestamp" => shown(Timestamp::parse(text, at(NOW))),
            "absolute" => shown(Timestamp::parse_absolute(text)),
            "date" => read::<LocalDate>(text),
            "decimal" => shown(Decimal::parse(text)),
            "metric" => read::<MetricName>(text),
            "attribute" => read::<AttributeName>(text),
            "label" => read::<Label>(text),
            "unit" => read::<Unit>(text),
            "annotation" => read::<AnnotationId>(text),
            "annotated" => read::<Annotated>(text),
            "condition" => read::<SearchCondition>(text),
            "role" => Role::of_name(text).map_or("none", Role::as_str).to_owned(),
            "hold" => length(duration::hold::parse(text), duration::hold::text),
            units => {
                let units = units.strip_prefix("duration:").expect("a kind of text");
                length(duration::parse(text, units), |length| duration::text(length, units))
            }
        };
        assert_eq!(found, case.answer(), "{case}");
    }
}

#[test]
fn no_time_is_a_duration_of_0_seconds() {
    assert_eq!(duration::text(TimeDelta::zero(), "smh"), "0s");
}
