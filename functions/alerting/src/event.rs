//! The events that invoke the function: its schedule, and the hint that something waits. Does nothing.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// An event that invokes the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The schedule is due.
    Schedule,
    /// Messages were stored a moment ago.
    Hint,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            source: Option<String>,
        }
        match Probe::deserialize(deserializer)?.source.as_deref() {
            Some("aws.events") => Ok(Self::Schedule),
            Some("roomtide.hint") => Ok(Self::Hint),
            other => {
                let other = other.unwrap_or("no source");
                Err(D::Error::custom(format_args!(
                    "the event is of {other}; expected aws.events or roomtide.hint"
                )))
            }
        }
    }
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
            (json!({"source": "aws.ec2"}), "of aws.ec2; expected"),
            (json!({}), "of no source; expected"),
        ] {
            let error = read(event).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
