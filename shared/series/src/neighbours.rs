//! The nearest values of counters and powers outside of a range, however far. Folds nothing.
//!
//! The search looks at the day before if this day has been read, at a few readings, and then at rollups. The first and
//! last values of rollups are those of readings, so that far neighbours cost only a few read units.

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
/// The number of readings that one query reads where there are no rollups.
const FURTHER: usize = 10_000;
/// The search reads this much time of quarters before it reads days.
const QUARTERS: TimeDelta = TimeDelta::days(2);
/// The limits of the queries for days, one after the other.
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
    let mut found: BTreeMap<MetricName, Neighbours> = BTreeMap::new();

    let mut search = Search {
        session,
        question,
        order: Order::Descending,
        missing: rules.iter().filter(|(_, rule)| **rule != MetricRule::Gauge).collect(),
        found: BTreeMap::new(),
        left: None,
        has_rolled: false,
        refoldable: MAX_READ,
    };

    if let Some(day) = day_before.filter(|day| !search.is_mixed(day)) {
        search.has_rolled = true;
        search.see_rollup(day, range.from());
    }

    search.run(range.from()).await?;

    let from = search.reached(range.from());
    for (name, sample) in std::mem::take(&mut search.found) {
        found.entry(name).or_default().before = Some(sample);
    }

    search.order = Order::Ascending;
    // A power is cut at the end of the range. If the range ends after now, the power is cut at now, unless a value
    // follows that is after now.
    let has_after = |rule: &MetricRule| match rule {
        MetricRule::Counter(_) => true,
        MetricRule::Power(_) => range.to() > question.now,
        MetricRule::Gauge => false,
    };
    search.missing = rules.iter().filter(|(_, rule)| has_after(rule)).collect();

    (search.has_rolled, search.left) = (false, None);
    search.run(range.to()).await?;

    let to = search.reached(range.to());
    for (name, sample) in search.found {
        found.entry(name).or_default().after = Some(sample);
    }

    let reach = TimeRange::new(from, to).expect("it holds the range");
    Ok(RangeNeighbours { values: found, reach, left: search.left })
}

/// A search in one direction: back in time if the order is descending.
struct Search<'a, S> {
    session: Session<'a, S>,
    question: &'a DeviceQuestion<'a>,
    order: Order,
    missing: BTreeMap<&'a MetricName, &'a MetricRule>,
    found: BTreeMap<MetricName, Sample>,
    left: Option<Timestamp>,
    /// Whether rollups were searched.
    has_rolled: bool,
    /// The length of time whose readings may still replace outdated rollups.
    refoldable: TimeDelta,
}

impl<S: Store> Search<'_, S> {
    /// Searches outwards from an edge. A value at the edge counts only in a forward search.
    async fn run(&mut self, edge: Timestamp) -> Result<(), SeriesError> {
        let Some(mut next) = self.read(edge, self.end(edge), NEAREST).await? else { return Ok(()) };
        loop {
            // A power whose values no longer hold at the edge is not searched any more.
            let is_back = self.order == Order::Descending;
            self.missing.retain(|_, rule| match rule {
                MetricRule::Power(hold) if is_back => next > edge.saturating_add(-*hold),
                _ => true,
            });
            if self.missing.is_empty() {
                break;
            }
            match self.stride(next).await? {
                Some(further) => next = further,
                None => break,
            }
        }
        Ok(())
    }

    /// The farthest time at which a missing value matters, because the value of a power holds only for a limited time.
    fn end(&self, edge: Timestamp) -> Timestamp {
        if self.order == Order::Ascending {
            return Timestamp::MAX;
        }
        let holds = self.missing.values().map(|rule| match rule {
            MetricRule::Power(hold) => edge.saturating_add(-*hold),
            _ => Timestamp::MIN,
        });
        holds.min().unwrap_or(edge)
    }

    /// How far from the edge the search used rollups.
    fn reached(&self, edge: Timestamp) -> Timestamp {
        let found = self.found.values().map(|sample| sample.at);
        match self.order {
            _ if !self.has_rolled => edge,
            // A value that was not found may yet be stored anywhere.
            Order::Descending if !self.missing.is_empty() => Timestamp::MIN,
            Order::Ascending if !self.missing.is_empty() => Timestamp::MAX,
            Order::Descending => found.min().unwrap_or(Timestamp::MIN).min(edge),
            Order::Ascending => found.max().unwrap_or(Timestamp::MAX).max(edge),
        }
    }

    /// The range between two times; `near` comes first in the direction of the search.
    fn span(&self, near: Timestamp, far: Timestamp) -> Option<TimeRange> {
        match self.order {
            Order::Ascending => TimeRange::new(near, far).ok(),
            Order::Descending => TimeRange::new(far, near).ok(),
        }
    }

    /// A time that is farther in the direction of the search.
    fn farther(&self, at: Timestamp, by: TimeDelta) -> Timestamp {
        at.saturating_add(if self.order == Order::Ascending { by } else { -by })
    }

    /// Searches up to `limit` readings between two times. Returns the time from which to go on, if there are more.
    async fn read(
        &mut self,
        near: Timestamp,
        far: Timestamp,
        limit: usize,
    ) -> Result<Option<Timestamp>, SeriesError> {
        let Some(range) = self.span(near, far).filter(|_| !self.missing.is_empty()) else {
            return Ok(None);
        };

        let query = RangeQuery { range, order: self.order, after: None, limit, consistent: false };
        let device = self.question.device.id();
        let page = self.session.device_readings(device, &query).await?;

        for reading in &page.items {
            if !self.question.is_about(reading.room.as_ref()) {
                self.left.get_or_insert(reading.at);
                self.missing.clear();
            }
            for name in reading.metrics().keys() {
                let rule = self.missing.get(name);
                if let Some(sample) = rule.and_then(|rule| rule.sample(reading, name)) {
                    self.see(name, &sample);
                }
            }
        }

        let last = page.items.last().filter(|_| page.has_more);
        Ok(last.map(|last| match self.order {
            Order::Ascending => last.at.saturating_add(TimeDelta::milliseconds(1)),
            Order::Descending => last.at,
        }))
    }

    async fn read_all(&mut self, near: Timestamp, far: Timestamp) -> Result<(), SeriesError> {
        let mut next = Some(near);
        while let Some(near) = next {
            next = self.read(near, far, FURTHER).await?;
        }
        Ok(())
    }

    /// Whether readings are read in place of these rollups, because at least one rollup has older settings.
    fn is_refolded(&mut self, range: TimeRange, stored: &[StoredRollup]) -> bool {
        let length = range.length();
        let is_refolded = stored.iter().any(|rollup| self.question.is_outdated(rollup))
            && stored.iter().all(|rollup| rollup.has_readings(self.question.now))
            && length <= self.refoldable;
        if is_refolded {
            self.refoldable -= length;
        }
        is_refolded
    }

    /// Takes a value as the neighbour of its metric, if the neighbour is still missing.
    fn see(&mut self, name: &MetricName, sample: &Sample) {
        if self.missing.remove(name).is_some() {
            self.found.insert(name.clone(), sample.clone());
        }
    }

    /// Searches the next stretch from `at` on. Returns the time from which to go on, or `None` at the end of the
    /// search.
    async fn stride(&mut self, at: Timestamp) -> Result<Option<Timestamp>, SeriesError> {
        let rolled_up = self.question.horizon.rolled_up(self.question.device.id());
        let is_back = self.order == Order::Descending;

        match rolled_up {
            Some(rolled) if is_back && rolled.from() < at && at <= rolled.to() => {
                Ok(self.roll(at, rolled.from()).await?.then_some(rolled.from()))
            }
            Some(rolled) if !is_back && rolled.contains(at) => {
                Ok(self.roll(at, rolled.to()).await?.then_some(rolled.to()))
            }
            Some(rolled) if is_back && rolled.to() < at => {
                self.read_all(at, rolled.to()).await?;
                Ok(Some(rolled.to()))
            }
            Some(rolled) if !is_back && at < rolled.from() => {
                let far = rolled.from().min(self.farther(at, MAX_READ));
                self.read_all(at, far).await?;
                // Of the time beyond `far`, only one page is read. If readings remain unread there, they may be nearer
                // than any rollup, so the search ends.
                let unread = self.read(far, rolled.from(), FURTHER).await?;
                Ok(unread.is_none().then_some(rolled.from()))
            }
            Some(rolled) if !is_back && rolled.to() <= at => {
                self.read_all(at, self.farther(at, MAX_READ)).await?;
                Ok(None)
            }
            _ => {
                self.read(at, self.farther(at, MAX_READ), FURTHER).await?;
                Ok(None)
            }
        }
    }

    /// Searches the rollups from `at` to their end: the rest of the quarter in readings, two days of quarters, then
    /// days. Returns whether all were searched.
    async fn roll(&mut self, at: Timestamp, end: Timestamp) -> Result<bool, SeriesError> {
        self.has_rolled = true;
        let is_back = self.order == Order::Descending;
        let edge = if is_back { QuarterHour::of(at).start() } else { ceiling(at) };
        self.read(at, edge, FURTHER).await?;
        let far = self.farther(edge, QUARTERS);
        let far = if is_back { far.max(end) } else { far.min(end) };
        self.read_quarters(edge, far, at).await?;
        if !self.read_days(far, end, at).await? {
            return Ok(false);
        }

        // The days at this end are not whole: they may have no rollups yet, or never get any.
        let rest = self.farther(end, -QUARTERS);
        let rest = if is_back { rest.min(far) } else { rest.max(far) };
        self.read_quarters(rest, end, at).await?;
        Ok(true)
    }

    async fn read_quarters(
        &mut self,
        near: Timestamp,
        far: Timestamp,
        at: Timestamp,
    ) -> Result<(), SeriesError> {
        let Some(range) = self.span(near, far).filter(|_| !self.missing.is_empty()) else {
            return Ok(());
        };
        let device = self.question.device.id();
        let mut found = self.session.quarters(device, range, false).await?;

        if self.is_refolded(range, &found) {
            return self.read_all(near, far).await;
        }
        if self.order == Order::Descending {
            found.reverse();
        }

        for quarter in &found {
            if self.missing.is_empty() {
                break;
            }
            if self.is_mixed(quarter) {
                let (near, far) = self.in_order(quarter.range, at);
                self.read(near, far, FURTHER).await?;
                // Values that are farther away are beyond a reading in another room.
                self.missing.clear();
            } else {
                self.see_rollup(quarter, at);
            }
        }
        Ok(())
    }

    /// Whether a rollup has readings both in the requested rooms and elsewhere. Only the next finer level tells them
    /// apart.
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

    /// Whether the day may have values later than those of its rollup, which are nearer in a backward search.
    fn is_part(&self, day: &StoredRollup) -> bool {
        self.order == Order::Descending && day.range.to() < self.whole(day).to()
    }

    /// The near and the far end of a bucket in the direction of the search, cut at `at`.
    fn in_order(&self, bucket: TimeRange, at: Timestamp) -> (Timestamp, Timestamp) {
        match self.order {
            Order::Ascending => (bucket.from().max(at), bucket.to()),
            Order::Descending => (bucket.to().min(at), bucket.from()),
        }
    }

    /// Searches daily rollups. Returns false if days remain unread and a value is still missing.
    async fn read_days(
        &mut self,
        near: Timestamp,
        far: Timestamp,
        at: Timestamp,
    ) -> Result<bool, SeriesError> {
        let zone = self.question.horizon.zone();
        let (mut next, last) = (zone.date(near), zone.date(far));
        for limit in DAYS {
            let dates = next.min(last)..=next.max(last);
            if self.missing.is_empty() {
                return Ok(true);
            }

            let device = self.question.device.id();
            let days = self.session.days(device, dates, self.order, limit);
            let days = days.await?;
            for day in &days {
                if self.missing.is_empty() {
                    break;
                }
                let (near, far) = self.in_order(self.whole(day), at);
                if self.is_refolded(self.whole(day), std::slice::from_ref(day)) {
                    self.read_all(near, far).await?;
                } else if self.is_mixed(day) || self.is_part(day) {
                    Box::pin(self.read_quarters(near, far, at)).await?;
                } else {
                    self.see_rollup(day, at);
                }
            }

            match days.last().map(|day| day.key.bucket) {
                Some(Bucket::Day(date)) if days.len() == limit => next = date,
                _ => return Ok(true),
            }
        }

        Ok(self.missing.is_empty())
    }

    /// Takes the nearest values of a rollup that lie beyond `at`.
    fn see_rollup(&mut self, stored: &StoredRollup, at: Timestamp) {
        if self.question.is_outdated(stored) {
            self.question.note_outdated(stored);
        }

        let mut rooms = stored.rollup.rooms.iter();
        if rooms.any(|room| !self.question.is_about(room.as_ref())) {
            self.missing.clear();
        }

        for (name, metric) in &stored.rollup.metrics {
            match self.order {
                Order::Descending if metric.last.at < at => self.see(name, &metric.last),
                Order::Ascending if metric.first.at >= at => self.see(name, &metric.first),
                _ => {}
            }
        }
    }
}
