//! Reads lines of line protocol into readings, with the code and the settings of a live write. Sends nothing.

use std::borrow::Cow;

use domain::Timestamp;
use ingest::{LineRules, PointsRead};

use crate::point::Way;

/// A reader of lines.
#[derive(Debug, Clone)]
pub struct LineReader {
    /// The time of reception.
    pub now: Timestamp,
    /// How ordinary lines become devices, such as the settings of the token of a live sender.
    pub rules: LineRules,
}

impl LineReader {
    /// Reads lines together, as those of one write.
    pub fn read(&self, lines: &str, way: Way) -> anyhow::Result<PointsRead> {
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
        ingest::read_points(lines.as_bytes(), self.now, &rules)
            .map_err(|problem| anyhow::anyhow!("{}", problem.detail))
    }
}
