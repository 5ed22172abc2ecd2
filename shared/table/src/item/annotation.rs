//! An annotation's item, under its time. Says nothing of the device, room or home that it is about.

use super::attribute::{ABOUT, TEXT, UNTIL};
use super::form::{At, Maybe, Text};
use super::kind::kind;
use domain::Annotation;

kind! { Annotation = Annotation(id) {
    to: Maybe<At> = UNTIL,
    about: Text = ABOUT,
    text: Text = TEXT,
} }
