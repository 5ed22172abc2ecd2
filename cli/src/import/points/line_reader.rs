//! Reads lines of line protocol into readings, with the code and the settings of a live write. Sends nothing.

use std::borrow::Cow;

use domain::Timestamp;
use local::{LineRules, PointsRead};

use crate::import::sources::Way;

/// A reader of lines.
#[derive(Debug, Clone)]
pub(in crate::import) struct LineReader {
    /// The time of reception.
    pub(in crate::import) now: Timestamp,
    /// How ordinary lines become devices, such as the settings of the token of a live sender.
    pub(in crate::import) rules: LineRules,
}

impl LineReader {
    /// Reads lines together, as those of one write.
    pub(in crate::import) fn read(&self, lines: &str, way: Way) -> anyhow::Result<PointsRead> {
        let rules = match way {
            Way::Plain => Cow::Borrowed(&self.rules),
            Way::Entity | Way::Device => {
                let (device_tags, room_tag) = way.tags();
                Cow::Owned(LineRules {
                    device_tags: device_tags.iter().map(ToString::to_string).collect(),
                    room_tag: room_tag.map(ToOwned::to_owned),
                    prefix: self.rules.prefix.clone(),
                })
            }
        };
        local::read_points(lines.as_bytes(), self.now, &rules)
            .map_err(|problem| anyhow::anyhow!("{}", problem.detail))
    }
}
