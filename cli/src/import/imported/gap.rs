//! The time between the end of an imported history and the first reading of a live sender. Fills nothing.

use std::fmt;

use domain::{DeviceId, Timestamp};

/// The maximum number of gaps that are shown.
const MAX_SHOWN: usize = 20;

/// A time without readings after a device's history.
#[derive(Debug)]
struct Gap {
    device: DeviceId,
    from: Timestamp,
    to: Timestamp,
}

/// The gaps of all devices.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    shown: Vec<Gap>,
    count: usize,
    earliest: Option<Timestamp>,
    /// The number of devices without a later reading.
    open: usize,
}

impl Gaps {
    /// Notes the end of a device's history, the next reading, and the usual distance of the device's readings in
    /// milliseconds.
    pub(super) fn add(
        &mut self,
        device: &DeviceId,
        last: Timestamp,
        next: Option<Timestamp>,
        usual: Option<i64>,
    ) {
        let Some(next) = next else {
            self.open += 1;
            return;
        };
        if usual.is_some_and(|usual| next.since(last).num_milliseconds() <= usual) {
            return;
        }
        self.count += 1;
        self.earliest = Some(self.earliest.map_or(last, |earliest| earliest.min(last)));
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(Gap { device: device.clone(), from: last, to: next });
        }
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(earliest) = self.earliest {
            write!(
                f,
                "\na gap is between the history and the live readings; to fill it, run the command once more with \
                 what the source has since then, from {earliest} on"
            )?;
        }

        for Gap { device, from, to } in &self.shown {
            write!(f, "\n  {device}: nothing between {from} and {to}")?;
        }
        if self.count > self.shown.len() {
            write!(f, "\n  and {} more", self.count - self.shown.len())?;
        }

        if self.open > 0 {
            let have = if self.open == 1 {
                "1 device has"
            } else {
                &format!("{} devices have", self.open)
            };
            write!(f, "\n{have} no reading after the history: nothing sends to them yet")?;
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_longer_than_the_usual_distance() {
        let at = |second: i64| Timestamp::from_millis(second * 1_000).unwrap();
        let device = "d".parse().unwrap();
        let text = |next: Option<i64>, usual: Option<i64>| {
            let mut gaps = Gaps::default();
            gaps.add(&device, at(100), next.map(at), usual);
            gaps.to_string()
        };
        assert_eq!(text(Some(160), Some(60_000)), "");
        let named = text(Some(161), Some(60_000));
        assert!(
            named.ends_with(
                "d: nothing between 1970-01-01T00:01:40.000Z and 1970-01-01T00:02:41.000Z"
            ),
            "{named}"
        );
        assert!(named.contains("from 1970-01-01T00:01:40.000Z on"), "{named}");
        assert!(text(Some(101), None).contains("a gap"), "nobody knows what is usual");
        assert_eq!(
            text(None, Some(1)),
            "\n1 device has no reading after the history: nothing sends to them yet"
        );
    }
}
