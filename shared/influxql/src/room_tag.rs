//! The tag `room` of a series: the text that stands for the room of a reading. Knows no reading.

use std::collections::BTreeMap;

use domain::text_id::{id_of, may_be_made_of};
use domain::{Device, Label, Room, RoomId};

/// The name of the tag that may differ between the readings of a series.
pub(crate) const ROOM: &str = "room";

/// The registered rooms, each with its text in line protocol.
#[derive(Debug, Default)]
pub struct RoomTexts<'a>(BTreeMap<&'a RoomId, &'a str>);

impl<'a> RoomTexts<'a> {
    /// The texts of the registry's rooms. If the room's id was made of its name, as line protocol does, the text is the
    /// name. Otherwise the text is the id.
    pub fn of(rooms: impl Iterator<Item = &'a Room>) -> Self {
        let text = |room: &'a Room| {
            let name = room.name.as_ref().map(Label::as_str);
            name.filter(|name| room_of(name).as_ref() == Some(&room.id)).unwrap_or(room.id.as_str())
        };
        Self(rooms.map(|room| (&room.id, text(room))).collect())
    }

    /// The rooms, each with its text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a RoomId, &'a str)> {
        self.0.iter().map(|(room, text)| (*room, *text))
    }
}

/// The room whose id line protocol would make of a text.
pub(crate) fn room_of(text: &str) -> Option<RoomId> {
    id_of(text).ok().map(|(room, _)| room)
}

/// A room, with the text that names the room in the device's first line.
#[derive(Debug)]
pub(crate) struct TaughtRoom<'a> {
    pub(crate) id: RoomId,
    text: &'a str,
}

/// How the tag `room` of a series shows the rooms of its readings.
#[derive(Debug)]
pub(crate) enum RoomTag<'a> {
    /// The tag is the same for the whole series, or absent, so it does not show the rooms of readings.
    OfSeries,
    /// By the room's id.
    ById,
    /// By a text of line protocol: the device's own text for the room, else the text of the registered room.
    ByText { taught: Vec<TaughtRoom<'a>>, others: &'a RoomTexts<'a> },
}

impl<'a> RoomTag<'a> {
    /// The tag of a series that line protocol wrote. If the device's id was made of the tag, all readings have the text
    /// of the first line.
    pub(crate) fn of(device: &'a Device, others: &'a RoomTexts<'a>) -> Self {
        let text = device.source().tags.get(ROOM);
        let taught = text.and_then(|text| Some(TaughtRoom { id: room_of(text)?, text }));
        match taught.filter(|room| !may_be_made_of(device.id().as_str(), room.text)) {
            Some(room) => Self::ByText { taught: vec![room], others },
            None => Self::OfSeries,
        }
    }

    /// Whether the tag has the room of each reading.
    pub(crate) const fn is_of_readings(&self) -> bool {
        !matches!(self, Self::OfSeries)
    }

    /// The text of a reading's room.
    pub(crate) fn text<'t>(&'t self, room: &'t RoomId) -> Option<&'t str> {
        match self {
            Self::OfSeries => None,
            Self::ById => Some(room.as_str()),
            Self::ByText { taught, others } => {
                let own = taught.iter().find(|known| known.id == *room).map(|known| known.text);
                let of_room = || others.0.get(room).copied().unwrap_or(room.as_str());
                Some(own.unwrap_or_else(of_room))
            }
        }
    }

    /// The rooms for which a device has a text of its own.
    pub(crate) fn taught(&self) -> &[TaughtRoom<'a>] {
        match self {
            Self::ByText { taught, .. } => taught,
            Self::OfSeries | Self::ById => &[],
        }
    }

    /// Adds the texts of another device of the series.
    pub(crate) fn join(&mut self, other: Self) {
        if let (Self::ByText { taught, .. }, Self::ByText { taught: more, .. }) = (self, other) {
            taught.extend(more);
        }
    }
}
