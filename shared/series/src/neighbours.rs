//! The nearest values of counters and powers outside of a range, at any distance. Folds nothing.
//!
//! The search uses the day before the range if it has been read, then a few readings, then rollups. A rollup has the
//! first and last values of its readings, so far neighbours cost only a few read units.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{
    Bucket, MetricName, MetricRule, Neighbours, Order, QuarterHour, Sample, TimeRange, Timestamp,
};
use table::{RangeQuery, Session, StoredRollup};

use super::error::SeriesError;
use super::gather::{DeviceQuestion, MAX_READ};
use super::horizon::ceiling;
use crate::ports::Store;

/// The number of readings that the first query reads.
const NEAREST: usize = 10;
/// The number of readings that a further query reads.
const FURTHER: usize = 10_000;
/// The length of time that is searched by quarters, before days are searched.
const QUARTERS: TimeDelta = TimeDelta::days(2);
/// The largest number of days of the first query for days, and of the second.
const DAYS: [usize; 2] = [31, 366];

/// The neighbours of a range.
#[derive(Debug)]
pub(crate) struct RangeNeighbours {
    /// The neighbours by metric.
    pub values: BTreeMap<MetricName, Neighbours>,
    /// The range, extended by the time in which rollups were searched.
    pub reach: TimeRange,
    /// The device's first reading in another room after the range, if the search has met such a reading.
    pub left: Option<Timestamp>,
}

/// Finds the neighbours of the question's range, by metric. Only counters and powers have neighbours.
///
/// If the question is about rooms, the search ends at the first reading in another room: the device came from there, or
/// went there.
pub(crate) async fn neighbours(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    rules: &BTreeMap<MetricName, MetricRule>,
    day_before: Option<&StoredRollup>,
) -> Result<RangeNeighbours, SeriesError> {
    let range = question.grid.range();
    let mut before = NeighbourSearch {
        session,
        question,
        order: Order::Descending,
        at: range.from(),
        missing: rules.iter().filter(|(_, rule)| **rule != MetricRule::Gauge).collect(),
        found: BTreeMap::new(),
        left: None,
        has_rolled: false,
        refoldable: MAX_READ,
    };
    if let Some(day) = day_before.filter(|day| !before.is_mixed(day)) {
        before.has_rolled = true;
        before.take_rollup(day);
    }
    let from = before.run().await?;

    // Without a next value, a power counts up to the end of the range, at most up to now. A next value changes that
    // only if the range ends after now, so only then is it searched.
    let has_after = |rule: &MetricRule| match rule {
        MetricRule::Counter(_) => true,
        MetricRule::Power(_) => range.to() > question.now,
        MetricRule::Gauge => false,
    };
    let mut after = NeighbourSearch {
        order: Order::Ascending,
        at: range.to(),
        missing: rules.iter().filter(|(_, rule)| has_after(rule)).collect(),
        found: BTreeMap::new(),
        left: None,
        has_rolled: false,
        ..before
    };
    let to = after.run().await?;

    let reach = TimeRange::new(from, to).expect("it holds the range");
    let mut values: BTreeMap<MetricName, Neighbours> = BTreeMap::new();
    for (name, sample) in before.found {
        values.entry(name).or_default().before = Some(sample);
    }

    for (name, sample) in after.found {
        values.entry(name).or_default().after = Some(sample);
    }
    Ok(RangeNeighbours { values, reach, left: after.left })
}

/// A search in one direction: back in time if the order is descending.
struct NeighbourSearch<'a, S> {
    session: Session<'a, S>,
    question: &'a DeviceQuestion<'a>,
    order: Order,
    /// The time that the search has reached. At first this is the edge of the range.
    at: Timestamp,
    missing: BTreeMap<&'a MetricName, &'a MetricRule>,
    found: BTreeMap<MetricName, Sample>,
    left: Option<Timestamp>,
    /// Whether rollups were searched.
    has_rolled: bool,
    /// The length of time for which readings may still replace outdated rollups.
    refoldable: TimeDelta,
}

/// A stretch of time that a search goes through, from `near` to `far`.
#[derive(Clone, Copy)]
struct Stretch {
    near: Timestamp,
    far: Timestamp,
}

impl<S: Store> NeighbourSearch<'_, S> {
    /// Searches outwards from the edge of the range. A value at the edge counts only in a forward search. First reads
    /// the nearest ten readings, then goes on in steps while there are more and values are missing. Returns the time up
    /// to which later changes could change the result ([`reached`](Self::reached)).
    async fn run(&mut self) -> Result<Timestamp, SeriesError> {
        let edge = self.at;
        let is_back = self.order == Order::Descending;
        // The value of a power before the range matters only if it is still valid at the edge.
        let earliest = |rule: &MetricRule| match rule {
            MetricRule::Power(hold) => edge.saturating_add(-*hold),
            _ => Timestamp::MIN,
        };

        let end = self.missing.values().map(|rule| earliest(rule)).min().unwrap_or(edge);
        let end = if is_back { end } else { Timestamp::MAX };
        let mut next = self.read(self.until(end), NEAREST).await?;
        while let Some(at) = next {
            self.at = at;
            self.missing.retain(|_, rule| !is_back || earliest(rule) < at);
            if self.missing.is_empty() {
                break;
            }
            next = self.step().await?;
        }

        Ok(self.reached(edge))
    }

    /// The farthest time at which a change of rollups could change the result: any time while a value is missing, and
    /// only the edge if no rollups were searched.
    fn reached(&self, edge: Timestamp) -> Timestamp {
        let found = self.found.values().map(|sample| sample.at);
        match self.order {
            _ if !self.has_rolled => edge,
            // A value that was not found may still be stored later, at any timestamp.
            Order::Descending if !self.missing.is_empty() => Timestamp::MIN,
            Order::Ascending if !self.missing.is_empty() => Timestamp::MAX,
            Order::Descending => found.min().unwrap_or(Timestamp::MIN).min(edge),
            Order::Ascending => found.max().unwrap_or(Timestamp::MAX).max(edge),
        }
    }

    /// The stretch of time from where the search is to `far`.
    const fn until(&self, far: Timestamp) -> Stretch {
        Stretch { near: self.at, far }
    }

    /// The part of a bucket that is not searched yet.
    fn rest_of(&self, bucket: TimeRange) -> Stretch {
        match self.order {
            Order::Ascending => Stretch { near: bucket.from().max(self.at), far: bucket.to() },
            Order::Descending => Stretch { near: bucket.to().min(self.at), far: bucket.from() },
        }
    }

    /// The range of a stretch. `None` if the stretch is empty, or if all neighbours are found.
    fn range_to_search(&self, Stretch { near, far }: Stretch) -> Option<TimeRange> {
        let range = match self.order {
            Order::Ascending => TimeRange::new(near, far).ok(),
            Order::Descending => TimeRange::new(far, near).ok(),
        };
        range.filter(|_| !self.missing.is_empty())
    }

    /// A time that is farther in the direction of the search.
    fn farther(&self, at: Timestamp, by: TimeDelta) -> Timestamp {
        at.saturating_add(if self.order == Order::Ascending { by } else { -by })
    }

    /// Searches the next stretch. Returns the time from which to go on, or `None` at the end of the search.
    async fn step(&mut self) -> Result<Option<Timestamp>, SeriesError> {
        match (self.question.horizon.rolled_up(self.question.device.id()), self.order) {
            (Some(rolled_up), Order::Descending) => self.step_back(rolled_up).await,
            (Some(rolled_up), Order::Ascending) => self.step_forward(rolled_up).await,
            (None, _) => self.read_last_page().await,
        }
    }

    /// Goes back: through the time that is not rolled up yet, through the rollups, to the readings before them.
    async fn step_back(&mut self, rolled_up: TimeRange) -> Result<Option<Timestamp>, SeriesError> {
        if rolled_up.to() < self.at {
            self.read_all(self.until(rolled_up.to())).await?;
            return Ok(Some(rolled_up.to()));
        }
        if rolled_up.from() < self.at {
            return self.search_rollups(rolled_up.from()).await;
        }
        self.read_last_page().await
    }

    /// Goes forward: through the readings before the rollups, through the rollups, to the readings after them.
    async fn step_forward(
        &mut self,
        rolled_up: TimeRange,
    ) -> Result<Option<Timestamp>, SeriesError> {
        let month = self.until(self.farther(self.at, MAX_READ));
        if self.at < rolled_up.from() {
            let month_end = rolled_up.from().min(month.far);
            self.read_all(self.until(month_end)).await?;

            // Beyond a month, only one page is read. If readings remain unread after it, they may be nearer than any
            // rollup, so the search ends.
            let unread =
                self.read(Stretch { near: month_end, far: rolled_up.from() }, FURTHER).await?;
            return Ok(unread.is_none().then_some(rolled_up.from()));
        }

        if self.at < rolled_up.to() {
            return self.search_rollups(rolled_up.to()).await;
        }
        self.read_all(month).await?;
        Ok(None)
    }

    /// Ends the search with one page of readings.
    async fn read_last_page(&mut self) -> Result<Option<Timestamp>, SeriesError> {
        self.read(self.until(self.farther(self.at, MAX_READ)), FURTHER).await?;
        Ok(None)
    }

    /// Searches up to `limit` readings of a stretch. Returns the time from which to go on, if there are more.
    async fn read(
        &mut self,
        stretch: Stretch,
        limit: usize,
    ) -> Result<Option<Timestamp>, SeriesError> {
        let Some(range) = self.range_to_search(stretch) else { return Ok(None) };
        let query = RangeQuery { range, order: self.order, after: None, limit, consistent: false };
        let page = self.session.device_readings(self.question.device.id(), &query).await?;

        for reading in &page.items {
            if !self.question.is_about(reading.room.as_ref()) {
                self.left.get_or_insert(reading.at);
                self.missing.clear();
            }
            for name in reading.metrics().keys() {
                let rule = self.missing.get(name);
                if let Some(sample) = rule.and_then(|rule| rule.sample(reading, name)) {
                    self.take(name, &sample);
                }
            }
        }

        let last = page.items.last().filter(|_| page.has_more);
        Ok(last.map(|last| match self.order {
            Order::Ascending => last.at.saturating_add(TimeDelta::milliseconds(1)),
            Order::Descending => last.at,
        }))
    }

    async fn read_all(&mut self, mut stretch: Stretch) -> Result<(), SeriesError> {
        while let Some(near) = self.read(stretch, FURTHER).await? {
            stretch.near = near;
        }
        Ok(())
    }

    /// Searches up to `end`: the rest of the quarter in readings, then two days by quarters, then days, then the last
    /// days by quarters again. Returns `end`, or `None` if days remain unread.
    async fn search_rollups(&mut self, end: Timestamp) -> Result<Option<Timestamp>, SeriesError> {
        self.has_rolled = true;
        let is_back = self.order == Order::Descending;
        let quarters_from =
            if is_back { QuarterHour::of(self.at).start() } else { ceiling(self.at) };
        self.read(self.until(quarters_from), FURTHER).await?;

        let days_from = self.farther(quarters_from, QUARTERS);
        let days_from = if is_back { days_from.max(end) } else { days_from.min(end) };
        self.search_quarters(Stretch { near: quarters_from, far: days_from }).await?;
        if !self.search_days(Stretch { near: days_from, far: end }).await? {
            return Ok(None);
        }

        // `end` may be inside of a day. Such a day may have no rollup yet, or never get one.
        let last_from = self.farther(end, -QUARTERS);
        let last_from = if is_back { last_from.min(days_from) } else { last_from.max(days_from) };
        self.search_quarters(Stretch { near: last_from, far: end }).await?;
        Ok(Some(end))
    }

    async fn search_quarters(&mut self, stretch: Stretch) -> Result<(), SeriesError> {
        let Some(range) = self.range_to_search(stretch) else { return Ok(()) };
        let mut quarters = self.session.quarters(self.question.device.id(), range, false).await?;
        if self.claim_readings(range, &quarters) {
            return self.read_all(stretch).await;
        }

        if self.order == Order::Descending {
            quarters.reverse();
        }

        for quarter in &quarters {
            if self.missing.is_empty() {
                break;
            }
            if self.is_mixed(quarter) {
                self.read(self.rest_of(quarter.range), FURTHER).await?;
                // Values that are farther away are beyond a reading in another room.
                self.missing.clear();
            } else {
                self.take_rollup(quarter);
            }
        }

        Ok(())
    }

    /// Searches daily rollups. Returns false if days remain unread and a value is still missing.
    async fn search_days(&mut self, stretch: Stretch) -> Result<bool, SeriesError> {
        let zone = self.question.horizon.zone();
        let mut next = zone.date(stretch.near);
        let last = zone.date(stretch.far);

        for limit in DAYS {
            if self.missing.is_empty() {
                return Ok(true);
            }
            let (device, dates) = (self.question.device.id(), next.min(last)..=next.max(last));
            let days = self.session.days(device, dates, self.order, limit).await?;
            for day in &days {
                self.search_day(day).await?;
            }

            match days.last().map(|day| day.key.bucket) {
                Some(Bucket::Day(date)) if days.len() == limit => next = date,
                _ => return Ok(true),
            }
        }
        Ok(self.missing.is_empty())
    }

    /// Searches a day in its rollup, or in finer items if the rollup is not exact enough.
    async fn search_day(&mut self, day: &StoredRollup) -> Result<(), SeriesError> {
        let whole = self.whole(day);
        // The rest of the day may have later values. In a backward search these are nearer.
        let is_part = self.order == Order::Descending && day.range.to() < whole.to();

        if self.missing.is_empty() {
            return Ok(());
        }

        if self.claim_readings(whole, std::slice::from_ref(day)) {
            return self.read_all(self.rest_of(whole)).await;
        }
        if is_part || self.is_mixed(day) {
            return Box::pin(self.search_quarters(self.rest_of(whole))).await;
        }
        self.take_rollup(day);
        Ok(())
    }

    /// Whether readings are read in place of these rollups, because at least one rollup has older settings. If so,
    /// subtracts the length of the range from `refoldable`.
    fn claim_readings(&mut self, range: TimeRange, stored: &[StoredRollup]) -> bool {
        let is_claimed = stored.iter().any(|rollup| self.question.is_outdated(rollup))
            && stored.iter().all(|rollup| rollup.still_has_readings(self.question.now))
            && range.length() <= self.refoldable;
        if is_claimed {
            self.refoldable -= range.length();
        }
        is_claimed
    }

    /// Whether a rollup has readings both in the requested rooms and elsewhere. Only the next finer level can tell
    /// which.
    fn is_mixed(&self, stored: &StoredRollup) -> bool {
        let Some(rooms) = self.question.rooms else { return false };
        stored.rollup.may_be_of(rooms) && !stored.rollup.is_only_of(rooms)
    }

    /// The whole local day of a daily rollup. The rollup may cover only a part of the day, if the day was open at the
    /// fold.
    fn whole(&self, day: &StoredRollup) -> TimeRange {
        let Bucket::Day(date) = day.key.bucket else { return day.range };
        self.question.horizon.zone().day(date).unwrap_or(day.range)
    }

    /// Takes a rollup's nearest values that lie beyond the time which the search has reached. A rollup of another room
    /// ends the search: the device was elsewhere.
    fn take_rollup(&mut self, stored: &StoredRollup) {
        self.question.note_use(stored);
        let mut rooms = stored.rollup.rooms.iter();
        if rooms.any(|room| !self.question.is_about(room.as_ref())) {
            self.missing.clear();
            return;
        }

        for (name, metric) in &stored.rollup.metrics {
            match self.order {
                Order::Descending if metric.last.at < self.at => self.take(name, &metric.last),
                Order::Ascending if metric.first.at >= self.at => self.take(name, &metric.first),
                _ => {}
            }
        }
    }

    /// Takes a value as the neighbour of its metric, if the neighbour is still missing.
    fn take(&mut self, name: &MetricName, sample: &Sample) {
        if self.missing.remove(name).is_some() {
            self.found.insert(name.clone(), sample.clone());
        }
    }
}
