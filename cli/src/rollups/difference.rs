//! Compares a stored rollup with a computed one, metric by metric. Reads no table.

use std::collections::BTreeSet;
use std::fmt;

use domain::{Bucket, DeviceId, MetricName, MetricRollup, OfKind, Rollup, RoomId};

/// A metric of a bucket whose stored rollup is not the one computed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) device: DeviceId,
    pub(super) bucket: Bucket,
    /// The metric, or the rooms of the readings.
    pub(super) what: String,
    pub(super) stored: String,
    pub(super) computed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, bucket, what, stored, computed } = self;
        match bucket {
            Bucket::Quarter(quarter) => write!(f, "{device}  {}", quarter.start())?,
            Bucket::Day(date) => write!(f, "{device}  {date}")?,
        }
        write!(f, "  {what}\n  stored    {stored}\n  computed  {computed}")
    }
}

/// Returns the differences between the rollup that is stored, if one is, and the one computed. No rollup and
/// the rollup of nothing are equal.
pub(super) fn differences(
    device: &DeviceId,
    bucket: Bucket,
    stored: Option<&Rollup>,
    computed: &Rollup,
) -> Vec<Difference> {
    let nothing = Rollup::default();
    let rollup = stored.unwrap_or(&nothing);
    let mut found = Vec::new();
    let mut note = |what: &str, stored: String, computed: String| {
        let (device, what) = (device.clone(), what.to_owned());
        found.push(Difference { device, bucket, what, stored, computed });
    };
    if rollup.rooms != computed.rooms {
        note("rooms", rooms(stored), rooms(Some(computed)));
    }
    let names: BTreeSet<&MetricName> =
        rollup.metrics.keys().chain(computed.metrics.keys()).collect();
    for name in names {
        let (stored, computed) = (rollup.metrics.get(name), computed.metrics.get(name));
        if stored != computed {
            note(name.as_str(), described(stored), described(computed));
        }
    }
    found
}

fn rooms(rollup: Option<&Rollup>) -> String {
    let Some(rollup) = rollup else { return "no rollup".to_owned() };
    if rollup.rooms.is_empty() {
        return "no reading".to_owned();
    }
    let room =
        |it: &Option<RoomId>| it.as_ref().map_or_else(|| "no room".into(), RoomId::to_string);
    rollup.rooms.iter().map(room).collect::<Vec<_>>().join(", ")
}

fn described(metric: Option<&MetricRollup>) -> String {
    let Some(MetricRollup { count, sum, min, max, first, last, of_kind }) = metric else {
        return "nothing".to_owned();
    };
    let mut text = format!("count {count}, sum {sum}, min {min}, max {max}");
    text += &format!(", first {} at {}", first.value, first.at);
    text += &format!(", last {} at {}", last.value, last.at);
    match of_kind {
        OfKind::Gauge => {}
        OfKind::Counter { increase, flags } => {
            text += &format!(", increase {increase}");
            flags.iter().for_each(|flag| text += &format!(", {}", flag.as_str()));
        }
        OfKind::Power { area, held } => {
            text += &format!(", area {area} over {} ms", held.num_milliseconds());
        }
    }
    text
}
