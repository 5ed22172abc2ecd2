//! The words of the system: readings, devices, rooms, instants. No I/O, no AWS, no clock.

mod device;
mod id;
mod instant;
mod label;
mod metric;
mod number;
mod range;
mod reading;
mod room;
mod token;

pub use device::{
    Device, DevicePatch, Edit, Learned, MAX_INTRODUCED_ROOMS, MetricInfo, MetricPatch, Sighting,
    Stay,
};
pub use id::{DeviceId, IdError, RESERVED_IDS, RoomId};
pub use instant::{Instant, InstantError};
pub use label::{LabelError, check_label};
pub use metric::{MetricKind, MetricName, MetricNameError};
pub use number::{Number, NumberError};
pub use range::{Order, RangeError, TimeRange};
pub use reading::{MAX_METRICS, Reading, ReadingError};
pub use room::{Room, RoomPatch};
pub use token::{Scope, Token, TokenHash, TokenHashError};

/// A short form of something a client sent, safe to put into an error message.
///
/// At most 48 characters, what cannot be printed escaped, so that an error never echoes a megabyte or
/// moves a terminal's cursor, and so that ten thousand of them fit into one answer.
#[must_use]
pub fn excerpt(text: &str) -> String {
    const LONGEST: usize = 48;
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let shown: String =
            if matches!(c, '"' | '\'' | '\\') { c.into() } else { c.escape_debug().collect() };
        length += shown.chars().count();
        if length > LONGEST {
            out.push('…');
            break;
        }
        out.push_str(&shown);
    }
    out
}
