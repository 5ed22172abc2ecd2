//! A room's item. Says nothing of the devices and readings in the room.

use super::attribute::{FIRST_SEEN, HOME, NAME, OUTSIDE};
use super::form::{At, Maybe, Said, Text};
use super::kind::kind;
use domain::Room;

kind! { Room = Room(id) {
    name: Maybe<Text> = NAME,
    home: Maybe<Text> = HOME,
    outside: Maybe<Said> = OUTSIDE,
    first_seen: At = FIRST_SEEN,
} }
