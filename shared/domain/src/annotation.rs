//! Annotations: people's notes about a device, a room or a home at some time. No I/O; no sum depends on an annotation.

use std::fmt;
use std::str::FromStr;

use chrono::TimeDelta;
use smol_str::SmolStr;

use super::{DeviceId, HomeId, IdError, Label, RoomId, TimeRange, Timestamp, excerpt};

/// The longest time of one annotation, and how far before its range a list looks for annotations.
pub const MAX_ANNOTATED: TimeDelta = TimeDelta::days(31);
/// The largest number of characters of an id after its time.
const MAX_SUFFIX: usize = 64;

/// The id of an annotation: the time at which it begins, and a suffix that tells apart annotations of the same time.
///
/// Its text is like `2026-01-11T16:00:00.000Z-kettle`. Texts sort by time, so the table finds an annotation, or the
/// annotations of a range, by the id alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnnotationId {
    at: Timestamp,
    suffix: SmolStr,
}

/// The text is not the id of an annotation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the id of an annotation; expected its time to the millisecond in UTC, a hyphen and 1 to {MAX_SUFFIX} \
     letters, digits or - _ . :, such as 2026-01-11T16:00:00.000Z-kettle"
)]
pub struct AnnotationIdError(String);

impl AnnotationId {
    /// When the annotation begins.
    pub const fn at(&self) -> Timestamp {
        self.at
    }
}

impl FromStr for AnnotationId {
    type Err = AnnotationIdError;

    fn from_str(text: &str) -> Result<Self, AnnotationIdError> {
        let parse = || {
            let (time, suffix) = text.split_once("Z-")?;
            let time = format!("{time}Z");
            // Of the texts that mean the same time, only the text in UTC to the millisecond is accepted.
            let at = Timestamp::parse_absolute(&time).ok().filter(|at| at.to_string() == time)?;
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            let is_suffix = (1..=MAX_SUFFIX).contains(&suffix.len());
            (is_suffix && suffix.chars().all(is_allowed))
                .then(|| Self { at, suffix: suffix.into() })
        };
        parse().ok_or_else(|| AnnotationIdError(excerpt(text)))
    }
}

impl fmt::Display for AnnotationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.suffix)
    }
}

impl<'de> serde::Deserialize<'de> for AnnotationId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for AnnotationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const DEVICE: &str = "device";
const ROOM: &str = "room";
const HOME: &str = "home";

/// The subject of an annotation.
///
/// Written as `device:`, `room:` or `home:`, followed by the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotated {
    /// A device.
    Device(DeviceId),
    /// A room.
    Room(RoomId),
    /// A home.
    Home(HomeId),
}

/// The reasons for which a text is not an [`Annotated`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnotatedError {
    /// The text does not begin with a kind of subject.
    #[error("{0:?} is neither device:<id>, room:<id> nor home:<id>")]
    Kind(String),
    /// The id is not valid.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl FromStr for Annotated {
    type Err = AnnotatedError;

    fn from_str(text: &str) -> Result<Self, AnnotatedError> {
        match text.split_once(':') {
            Some((DEVICE, id)) => Ok(Self::Device(id.parse()?)),
            Some((ROOM, id)) => Ok(Self::Room(id.parse()?)),
            Some((HOME, id)) => Ok(Self::Home(id.parse()?)),
            _ => Err(AnnotatedError::Kind(excerpt(text))),
        }
    }
}

impl fmt::Display for Annotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(id) => write!(f, "{DEVICE}:{id}"),
            Self::Room(id) => write!(f, "{ROOM}:{id}"),
            Self::Home(id) => write!(f, "{HOME}:{id}"),
        }
    }
}

/// A person's note about some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The id, which contains the time at which the annotation begins.
    pub id: AnnotationId,
    /// The first timestamp after the annotation; `None` if the annotation is about a single moment.
    pub to: Option<Timestamp>,
    /// The subject.
    pub about: Annotated,
    /// The note.
    pub text: Label,
}

/// The reasons for which the end of an annotation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationEndError {
    /// The end is not after the begin.
    #[error("is {0}, not after its begin {1}")]
    NotBehind(Timestamp, Timestamp),
    /// The annotation is longer than [`MAX_ANNOTATED`].
    #[error("is more than {} days after its begin", MAX_ANNOTATED.num_days())]
    TooLong,
}

impl Annotation {
    /// Refuses an end that is not after the begin, or more than [`MAX_ANNOTATED`] later.
    pub fn check_end(id: &AnnotationId, to: Timestamp) -> Result<(), AnnotationEndError> {
        match to.since(id.at) {
            time if time <= TimeDelta::zero() => Err(AnnotationEndError::NotBehind(to, id.at)),
            time if time > MAX_ANNOTATED => Err(AnnotationEndError::TooLong),
            _ => Ok(()),
        }
    }

    /// Whether a part of the annotation is in the range.
    pub fn overlaps(&self, range: TimeRange) -> bool {
        let from = self.id.at;
        range.contains(from) || from < range.from() && self.to.is_some_and(|to| range.from() < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, device, label};

    fn id(text: &str) -> AnnotationId {
        text.parse().expect("an id")
    }

    #[test]
    fn ids_are_in_the_order_of_time() {
        assert!(id("2026-01-11T16:00:00.000Z-b") < id("2026-01-11T16:00:00.001Z-a"));
    }

    #[test]
    fn an_annotation_ends_after_its_begin_and_soon() {
        let id = id("2026-01-11T16:00:00.000Z-x");
        let after = |time| id.at().saturating_add(time);
        let check = |time| Annotation::check_end(&id, after(time));
        assert_eq!(check(TimeDelta::milliseconds(1)), Ok(()));
        assert_eq!(check(MAX_ANNOTATED), Ok(()));
        let longer = MAX_ANNOTATED + TimeDelta::milliseconds(1);
        assert_eq!(check(longer), Err(AnnotationEndError::TooLong));
        for time in [TimeDelta::zero(), TimeDelta::hours(-1)] {
            assert!(matches!(check(time), Err(AnnotationEndError::NotBehind(..))), "{time}");
        }
    }

    #[test]
    fn it_overlaps_a_range_that_has_a_part_of_it() {
        let id = id("2026-01-11T16:00:00.000Z-x");
        let at = |minute| id.at().saturating_add(TimeDelta::minutes(minute));
        let annotation = |to: Option<i64>| Annotation {
            id: id.clone(),
            to: to.map(at),
            about: Annotated::Device(device("d")),
            text: label("x"),
        };
        for (to, from, until, expected) in [
            (None, 0, 1, true),
            (None, -1, 0, false),
            (None, 1, 2, false),
            (Some(10), 5, 6, true),
            (Some(10), 10, 11, false),
            (Some(10), -5, 20, true),
            (Some(10), -5, 0, false),
        ] {
            let range = given::range(at(from), at(until));
            assert_eq!(annotation(to).overlaps(range), expected, "{to:?} {from} {until}");
        }
    }
}
