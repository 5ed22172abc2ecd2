//! The item of an annotation, sorted by its time. Knows nothing of the device, room or home that the annotation is
//! about.

use super::attribute::{ABOUT, TEXT, UNTIL};
use super::form::{At, Maybe, Text};
use super::kind::kind;
use domain::Annotation;

kind! { Annotation = Annotation(id) {
    to: Maybe<At> = UNTIL,
    about: Text = ABOUT,
    text: Text = TEXT,
} }
