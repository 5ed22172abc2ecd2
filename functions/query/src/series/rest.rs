//! What meters measured and no device behind them did. Decides for no device whether it counts.

use std::collections::BTreeSet;
use std::ops::Range;

use domain::{DeviceId, Exact, TimeRange, Timestamp};
use serde::Serialize;
use series::{Amount, LeftOut, RowEnergy, intersection, sum};

use super::sums::Metered;

/// The devices of a sum that is shown device by device.
pub(super) struct Rest<'a> {
    /// Those that count in the sum.
    counting: &'a [&'a Metered<'a>],
    /// Those that measure consumption and have nothing behind them.
    last: Vec<&'a Metered<'a>>,
    /// The meters that others of the sum are behind.
    meters: Vec<&'a Metered<'a>>,
    /// What meters in the same rooms measure too.
    left_out: &'a [LeftOut<'a>],
    rows: &'a [TimeRange],
}

/// The rest in one row.
#[derive(Debug, Serialize)]
pub(super) struct RestRow {
    timestamp: Timestamp,
    kwh: Option<Exact>,
}

impl<'a> Rest<'a> {
    /// That of the devices that are shown; `above` are the meters that any of them is behind.
    pub(super) fn of(
        shown: &'a [Metered<'a>],
        counting: &'a [&'a Metered<'a>],
        above: &BTreeSet<&DeviceId>,
        (left_out, rows): (&'a [LeftOut<'a>], &'a [TimeRange]),
    ) -> Self {
        let consuming = shown.iter().filter(|(_, meter)| meter.other_role.is_none());
        let (meters, last) = consuming.partition(|(it, _)| above.contains(it.device.id()));
        Self { counting, last, meters, left_out, rows }
    }

    /// The sum of the devices that nothing is behind, in some rows.
    pub(super) fn counted(&self, places: impl Iterator<Item = usize> + Clone) -> Option<Exact> {
        bought(&self.last, places).map(|it| it.shown())
    }

    /// What is left of the sum without these, in some rows; `None` where a meter measured nothing.
    pub(super) fn left(&self, places: &Range<usize>) -> Option<Exact> {
        let total = bought(self.counting, places.clone())?.shown();
        let left = match self.counted(places.clone()) {
            Some(counted) => &total - &counted,
            None => total,
        };
        // What is behind a meter that is elsewhere counts itself, and leaves nothing.
        let is_known = |meter: &&Metered<'_>| {
            bought(&[*meter], places.clone()).is_some()
                || !places.clone().any(|place| self.is_there(meter.0.device.id(), self.rows[place]))
        };
        self.meters.iter().all(is_known).then_some(left)
    }

    /// Whether a meter takes the place of a device in some of a row.
    fn is_there(&self, meter: &DeviceId, row: TimeRange) -> bool {
        let mut behind = self.left_out.iter().filter(|it| it.behind() == Some(meter));
        behind.any(|it| {
            let during = it.during();
            during.is_empty() || during.iter().any(|it| intersection(*it, row).is_some())
        })
    }

    /// Whether there is a meter with something behind it.
    pub(super) fn is_meant(&self) -> bool {
        !self.meters.is_empty()
    }

    /// The rest row by row.
    pub(super) fn rows(&self) -> Vec<RestRow> {
        let row = |(place, range): (usize, &TimeRange)| RestRow {
            timestamp: range.from(),
            kwh: self.left(&(place..place + 1)),
        };
        self.rows.iter().enumerate().map(row).collect()
    }
}

/// What devices bought in some rows.
fn bought(devices: &[&Metered<'_>], places: impl Iterator<Item = usize>) -> Option<Amount> {
    let sum = places.fold(RowEnergy::default(), |mut all, place| {
        all.add(&sum(devices.iter().copied(), place));
        all
    });
    sum.bought
}
