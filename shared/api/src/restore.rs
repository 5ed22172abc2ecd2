//! Turns an answer of `GET` about a device into the edit that restores the device. Edits nothing.

use domain::{DevicePatch, MemberError};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::body;

/// The members of a device and of its metrics that nobody can set.
const ONLY_SHOWN: &[&str] = &["device_id", "first_seen", "latest", "not_of_room", "room_pinned"];

/// Reads the JSON of a device. An error names the wrong member by its path.
pub fn restored_device(json: &RawValue) -> Result<DevicePatch, MemberError> {
    #[derive(Deserialize)]
    struct Pinned {
        room_pinned: Option<bool>,
    }

    let patch: DevicePatch = body::value_without(json, ONLY_SHOWN)?;
    let pinned = serde_json::from_str(json.get());
    let is_room_chosen = pinned.map_or(true, |Pinned { room_pinned }| room_pinned != Some(false));
    Ok(patch.restoring(is_room_chosen))
}
