//! The events that invoke the function: its schedule, and hints that messages wait. Handles none.

use serde::Deserialize;

/// An event that invokes the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "source")]
pub enum Event {
    /// The minute's schedule.
    #[serde(rename = "aws.events")]
    Schedule,
    /// Messages were stored a moment ago.
    #[serde(rename = "roomtide.hint")]
    Hint,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_source_of_an_event_says_which_it_is() {
        let read = |event| serde_json::from_value::<Event>(event);
        let due = json!({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}});
        assert_eq!(read(due).expect("due"), Event::Schedule);
        assert_eq!(read(json!({"source": "roomtide.hint"})).expect("a hint"), Event::Hint);
        for (event, why) in [
            (
                json!({"source": "aws.ec2"}),
                "unknown variant `aws.ec2`, expected `aws.events` or `roomtide.hint`",
            ),
            (json!({}), "missing field `source`"),
        ] {
            let error = read(event).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
