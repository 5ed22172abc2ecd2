//! The items of rechecks, and of the note that says when the system last ran. Judges nothing.

use super::attribute::{AFTER, AT, PAUSES, SINCE, TOUCH, VERSION};
use super::form::{At, List, Listed, Maybe, Text, Whole};
use super::kind::kind;
use crate::{Recheck, RunningNote};

kind! { Recheck = AlertRecheck(target) {
    since: At = SINCE,
    after: Maybe<Text> = AFTER,
    touch: Whole = TOUCH,
} }

kind! { RunningNote = AlertRunning {
    version: Whole = VERSION,
    at: At = AT,
    pauses: Listed<List> = PAUSES,
} }
