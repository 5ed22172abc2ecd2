//! Gathers the rollups of one device in a range: from days, else from quarters of an hour, else from readings. Computes
//! no value of a row.
//!
//! A late reading is not in a rollup until the rollup is folded again (`unfolded.rs`).
//!
//! Readings are read for time without complete rollups, and for time before the first rollup. They also replace
//! quarters cut by the edge of a row, quarters with readings of several rooms, and quarters folded with older settings.

mod of_readings;
mod out_of_reach;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering as MemoryOrder;

use chrono::TimeDelta;
use domain::{
    CalendarUnit, Device, FoldRules, MetricName, MetricRule, Order, QuarterHour, Rollup, RoomId,
    TimeRange, Timestamp,
};
use rollups::is_closing;
use table::sizes::ItemSizes;
use table::{NearestReading, RangeQuery, Session, StoredRollup, at_once};

use super::error::SeriesError;
use super::grid::{Grid, joined, uncovered};
use super::horizon::Horizon;
use crate::ports::Store;
use of_readings::MAX_READINGS;
pub use of_readings::readings;
use out_of_reach::{readings_expired, too_long};

/// The longest time for which one request reads the readings of a device.
pub const MAX_READ: TimeDelta = TimeDelta::days(31);
/// The largest number of rollups of one device from which rows are made.
pub const MAX_ROLLUPS: usize = 45_000;
/// The smallest number of quarters that one query spans, so that years without readings take few queries. A request may
/// therefore read up to this many quarters beyond [`MAX_ROLLUPS`].
const MIN_QUARTERS: usize = 5_000;
/// The number of gaps between daily rollups that are read at once.
const GAP_CONCURRENCY: usize = 8;
/// Readings may replace quarters in the newest time without daily rollups, if this time began at most so long ago. It
/// spans the open day and the day before, whose rollup follows some minutes after its end.
const MAX_NEWEST: TimeDelta = TimeDelta::hours(50);

/// The largest number of a device's moves in one answer for which the first reading in the new room is looked up.
const MAX_MOVES: usize = 200;

domain::words! {
    /// The kinds of items from which rows are made, the finest first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        /// Each reading.
        Readings = "readings",
        /// Rollups of 15 minutes.
        QuarterHours = "m15",
        /// Rollups of local days.
        Days = "day",
    }
}

impl Level {
    /// The coarsest items from which rows of a unit can be made. Without a unit there is one row, made from days.
    pub fn of(unit: Option<CalendarUnit>) -> Self {
        match unit {
            Some(unit) if unit < CalendarUnit::QuarterHour => Self::Readings,
            Some(unit) if unit < CalendarUnit::Day => Self::QuarterHours,
            _ => Self::Days,
        }
    }
}

/// A request for the data of one device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceQuestion<'a> {
    /// The device.
    pub device: &'a Device,
    /// The rooms whose readings count; `None`: all.
    pub rooms: Option<&'a BTreeSet<RoomId>>,
    /// Whether pieces are split by room, so that no piece has readings of two rooms.
    pub is_by_room: bool,
    /// The metrics to read; `None`: all.
    pub metrics: Option<&'a BTreeSet<MetricName>>,
    /// The longest time for which readings are read.
    pub max_read: TimeDelta,
    /// The largest number of readings that are read.
    pub max_readings: usize,
    /// The rows.
    pub grid: &'a Grid,
    /// The time for which rollups are complete.
    pub horizon: &'a Horizon,
    /// The coarsest items from which a row may be made.
    pub coarsest: Level,
    /// The current time.
    pub now: Timestamp,
}

impl<'a> DeviceQuestion<'a> {
    /// A question about a device in all rooms, which reads at most a month of readings.
    pub const fn of(
        device: &'a Device,
        grid: &'a Grid,
        horizon: &'a Horizon,
        coarsest: Level,
        now: Timestamp,
    ) -> Self {
        Self {
            device,
            rooms: None,
            is_by_room: false,
            metrics: None,
            max_read: MAX_READ,
            max_readings: MAX_READINGS,
            grid,
            horizon,
            coarsest,
            now,
        }
    }

    /// Whether the question includes a metric.
    fn wants(&self, name: &MetricName) -> bool {
        self.metrics.is_none_or(|metrics| metrics.contains(name))
    }

    /// Whether the question includes readings in this room.
    pub fn is_about(&self, room: Option<&RoomId>) -> bool {
        self.rooms.is_none_or(|rooms| room.is_some_and(|room| rooms.contains(room)))
    }

    /// The part of the range for which rollups are used.
    pub fn rolled_up_range(&self) -> Option<TimeRange> {
        let rolled_up = self.horizon.rolled_up(self.device.id());
        let rolled_up = rolled_up.filter(|_| self.coarsest > Level::Readings);
        rolled_up.and_then(|rolled_up| rolled_up.intersection(self.grid.range()))
    }

    /// Whether the device's settings have changed since the fold, in a way that concerns the rollup's time.
    pub(crate) fn is_outdated(&self, stored: &StoredRollup) -> bool {
        self.device.fold_settings().concerns(stored.settings, stored.range)
    }

    /// Counts a rollup that is used although it was folded with older settings. A rollup whose readings are about to
    /// expire is not counted.
    pub(crate) fn note_use(&self, stored: &StoredRollup) {
        if self.is_outdated(stored) && !is_closing(stored.raw_until, self.now) {
            self.horizon.outdated().fetch_add(1, MemoryOrder::Relaxed);
        }
    }

    /// Refuses a range if too much of it is not rolled up. Callers that gather a range in parts check the whole first.
    pub fn check(&self) -> Result<(), SeriesError> {
        readings_needed(self).map(drop)
    }
}

/// The rollup of some time within one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupPiece {
    /// The time that the piece covers.
    pub range: TimeRange,
    /// The kind of items that the piece is made from.
    pub level: Level,
    /// The rollup of the values in this time.
    pub rollup: Rollup,
    /// Whether the readings are in a room that the question does not have.
    pub is_in_other_room: bool,
    /// The timestamp of the first reading. A stored rollup gives the timestamp of the first value that it counts; after
    /// a move, the first reading is looked up.
    pub first: Timestamp,
    /// The timestamp of the last reading.
    pub last: Timestamp,
}

impl RollupPiece {
    /// Makes a piece of a rollup. The rollup still has all metrics, because they give the first and the last timestamp.
    fn new(range: TimeRange, level: Level, rollup: Rollup, is_in_other_room: bool) -> Self {
        let (first, last) = rollup.span().unwrap_or((range.from(), range.from()));
        let first = first.max(range.from());
        Self { range, level, rollup, is_in_other_room, first, last }
    }

    /// Whether two pieces without values can be joined: they touch, and have the same level and rooms. A gap between
    /// them is kept, because `folded_until` looks there for readings whose quarter waits in the queue.
    fn goes_on_with(&self, next: &Self) -> bool {
        (self.level, self.is_in_other_room) == (next.level, next.is_in_other_room)
            && self.rollup.rooms == next.rollup.rooms
            && self.range.to() == next.range.from()
    }

    fn join(&mut self, later: &Self) {
        self.range = TimeRange::new(self.range.from(), later.range.to()).expect("it only grows");
        self.last = later.last;
    }

    /// The piece's time from its first reading on. Before this reading, the device may still have been in its previous
    /// room.
    pub fn since_first_reading(&self) -> TimeRange {
        TimeRange::new(self.first, self.range.to()).unwrap_or(self.range)
    }
}

/// The rollups of one device in a range.
#[derive(Debug, Default)]
pub struct DeviceRollups {
    /// The pieces, in order of time. Time without readings has no piece.
    pub pieces: Vec<RollupPiece>,
    /// The kinds of items that the pieces are made from.
    pub levels: BTreeSet<Level>,
    /// Rollups that were folded from readings: one for each quarter of an hour or outdated day. The usual interval
    /// between readings is computed from them.
    pub(crate) of_readings: Vec<Rollup>,
    /// The rollup of the day before the range, if it has the last values before the range and these are needed.
    pub day_before: Option<StoredRollup>,
}

impl DeviceRollups {
    /// Drops the values of the pieces and keeps their times and rooms. The rows are already made, and hundreds of
    /// devices would need memory for their values twice.
    pub(crate) fn drop_values(&mut self) {
        self.of_readings = Vec::new();
        let mut pieces: Vec<RollupPiece> = Vec::new();
        for mut piece in std::mem::take(&mut self.pieces) {
            piece.rollup.metrics.clear();
            match pieces.last_mut().filter(|last| last.goes_on_with(&piece)) {
                Some(last) => last.join(&piece),
                None => pieces.push(piece),
            }
        }
        self.pieces = pieces;
    }
}

/// Gathers the rollups that a question needs.
pub async fn gather(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
) -> Result<DeviceRollups, SeriesError> {
    Gathering::new(session, question, false)?.run().await
}

/// Gathers the rollups of the range. The same query reads the day before it, which may have the nearest values.
pub(crate) async fn gather_with_day_before(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
) -> Result<DeviceRollups, SeriesError> {
    Gathering::new(session, question, true)?.run().await
}

/// The ways to use a stored rollup.
enum Use {
    /// The rollup is used. Its readings may be in a room that the question does not have.
    Whole { is_in_other_room: bool },
    /// The readings are read instead: the settings have changed since the fold.
    Refold,
    /// The next finer level is read instead: the rollup has readings of requested rooms and of others or, if the rows
    /// are divided by room, of several rooms.
    Split,
}

struct Gathering<'a, S> {
    session: Session<'a, S>,
    question: &'a DeviceQuestion<'a>,
    rules: FoldRules,
    gathered: DeviceRollups,
    /// The ranges whose readings are to be read.
    ranges_to_read: Vec<TimeRange>,
    /// The whole days among these ranges, whose rollups are outdated.
    outdated_days: Vec<TimeRange>,
    /// How much more time may be read from readings in the place of outdated rollups. It begins at the question's
    /// `max_read`, at most [`MAX_READ`], less the time that has no rollups. If it is too short or negative, outdated
    /// rollups are used as they are.
    refoldable: TimeDelta,
    /// The number of readings that were read so far.
    readings_read: usize,
    wants_day_before: bool,
}

/// Whether the readings of a day cost no more than its quarters. A quarter without a reading has no rollup, so there are
/// at most as many rollups as readings.
fn are_readings_cheaper(sizes: &ItemSizes, day: &StoredRollup) -> bool {
    let readings = usize::try_from(day.rollup.most_values()).unwrap_or(usize::MAX);
    let quarters = quarters_in(day.range.length()).min(readings);
    sizes.reading.saturating_mul(readings) <= sizes.rollup * quarters
}

/// The ranges without rollups, and how long the device has lived in them. Refuses ranges that are too long.
fn readings_needed(
    question: &DeviceQuestion<'_>,
) -> Result<(Vec<TimeRange>, TimeDelta), SeriesError> {
    // This is the whole range if no rollups are used.
    let ranges = uncovered(question.grid.range(), question.rolled_up_range());
    let first = question.device.first_seen().min(question.now);
    let lived = TimeRange::new(first, question.now).ok();
    let lived_length = |part: &TimeRange| {
        let part = lived.and_then(|lived| part.intersection(lived));
        part.map_or(TimeDelta::zero(), TimeRange::length)
    };
    let length: TimeDelta = ranges.iter().map(lived_length).sum();

    if length > question.max_read {
        return Err(SeriesError::OutOfReach(too_long(question)));
    }
    Ok((ranges, length))
}

impl<'a, S: Store> Gathering<'a, S> {
    fn new(
        session: Session<'a, S>,
        question: &'a DeviceQuestion<'a>,
        wants_day_before: bool,
    ) -> Result<Self, SeriesError> {
        let (ranges_to_read, length) = readings_needed(question)?;
        Ok(Self {
            session,
            question,
            rules: FoldRules::of(question.device),
            gathered: DeviceRollups::default(),
            ranges_to_read,
            outdated_days: Vec::new(),
            refoldable: question.max_read.min(MAX_READ) - length,
            readings_read: 0,
            wants_day_before,
        })
    }

    async fn run(mut self) -> Result<DeviceRollups, SeriesError> {
        if let Some(rolled_up) = self.question.rolled_up_range() {
            self.take_rollups(rolled_up).await?;
        }
        for range in joined(std::mem::take(&mut self.ranges_to_read)) {
            self.fold_readings(range).await?;
        }

        self.gathered.pieces.sort_by_key(|piece| piece.range.from());
        self.date_moves().await?;
        let levels = self.gathered.pieces.iter().map(|piece| piece.level).collect();
        Ok(DeviceRollups { levels, ..self.gathered })
    }

    /// Fills the range for which rollups are used with whole days, and the gaps between days with quarters. The last
    /// gap is filled from readings if they cost less.
    async fn take_rollups(&mut self, range: TimeRange) -> Result<(), SeriesError> {
        let days = self.read_days(range).await?;
        let mut gaps = uncovered(range, self.take_days(range, &days));
        if self.fold_last_gap(gaps.last(), &days).await? {
            gaps.pop();
        }

        let mut quarters = self.read_quarters(&gaps, &days).await?;
        for gap in gaps {
            let inside = overlapping(&mut quarters, gap);
            let first = inside.first().map_or(gap.to(), |quarter| quarter.range.from());
            // The oldest quarters expire first, so only time before the first quarter can have lost its quarters.
            if let Ok(without_quarters) = TimeRange::new(gap.from(), first) {
                self.check_expiry(without_quarters, &days).await?;
            }
            for quarter in inside {
                self.take_quarter(quarter, gap)?;
            }
        }

        Ok(())
    }

    /// Reads the daily rollups, if rows may be made from them. Keeps the day before the range if it has neighbours.
    async fn read_days(&mut self, range: TimeRange) -> Result<Vec<StoredRollup>, SeriesError> {
        if self.question.coarsest < Level::Days {
            return Ok(Vec::new());
        }
        let days = self.unexpired_days(self.with_day_before(range)).await?;
        self.gathered.day_before = days.first().filter(|day| self.has_neighbours(day)).cloned();
        Ok(days)
    }

    /// Takes the daily rollups that each lie in a single row. Returns the ranges of these days.
    fn take_days(&mut self, range: TimeRange, days: &[StoredRollup]) -> Vec<TimeRange> {
        let mut taken = Vec::new();
        for day in days {
            let is_whole = range.covers(day.range) && self.question.grid.has_in_one_row(day.range);
            // `take_or_plan_read` empties the rollup that it takes. `check_expiry` still needs the day, so a copy is taken.
            if is_whole
                && self.is_local_day(day)
                && self.take_or_plan_read(&mut day.clone(), day.range, Level::Days)
            {
                taken.push(day.range);
            }
        }
        taken
    }

    /// Reads the quarters in gaps between daily rollups, in order of time.
    ///
    /// Only the quarters that are found are limited, because a gap may be years without any quarter. Each read spans as
    /// many quarters as may still be found.
    async fn read_quarters(
        &self,
        gaps: &[TimeRange],
        days: &[StoredRollup],
    ) -> Result<Vec<StoredRollup>, SeriesError> {
        let aligned = |gap: &TimeRange| {
            let from = QuarterHour::of(gap.from()).start();
            TimeRange::new(from, gap.to()).expect("it is at least as long as the gap")
        };

        let mut gaps: VecDeque<TimeRange> = gaps.iter().map(aligned).collect();
        let mut quarters: Vec<StoredRollup> = Vec::new();
        while !gaps.is_empty() {
            let most = MAX_ROLLUPS.saturating_sub(quarters.len()).max(MIN_QUARTERS);
            let length = QuarterHour::LENGTH * i32::try_from(most).expect("at most MAX_ROLLUPS");
            let parts = take_front(&mut gaps, length).into_iter();
            let requests = parts.map(|part| async move {
                self.session.quarters(self.question.device.id(), part, false).await
            });
            let found: Vec<_> = at_once(GAP_CONCURRENCY, requests).await?;
            quarters.extend(found.into_iter().flatten());
            if let Some(quarter) = quarters.get(MAX_ROLLUPS) {
                return Err(SeriesError::OutOfReach(self.too_many(quarter.range.from(), days)));
            }
        }

        quarters.retain(|quarter| !quarter.is_expired(self.question.now));
        Ok(quarters)
    }

    /// Reads the daily rollups of a range, without those that have expired.
    async fn unexpired_days(&self, range: TimeRange) -> Result<Vec<StoredRollup>, SeriesError> {
        let zone = self.question.horizon.zone();
        let dates = zone.dates(range);
        let (order, limit) = (Order::Ascending, MAX_ROLLUPS);
        let mut days = self.session.days(self.question.device.id(), dates, order, limit).await?;
        days.retain(|day| !day.is_expired(self.question.now));
        Ok(days)
    }

    /// Whether a rollup is of a local day in the home's zone: of the whole day, or of its beginning if it is not over.
    fn is_local_day(&self, day: &StoredRollup) -> bool {
        let zone = self.question.horizon.zone();
        let domain::Bucket::Day(date) = day.key.bucket else { return false };
        let is_part =
            |whole: TimeRange| day.range.from() == whole.from() && day.range.to() <= whole.to();
        day.zone.as_deref() == Some(zone.name()) && zone.day(date).is_some_and(is_part)
    }

    /// The range in which days are read. It includes the day before if the last values before the range are needed.
    fn with_day_before(&self, range: TimeRange) -> TimeRange {
        let before = range.from().saturating_add(TimeDelta::milliseconds(-1));
        let from = if self.wants_day_before { before } else { range.from() };
        TimeRange::new(from, range.to()).expect("it is at least as long as the range")
    }

    /// Whether a day's rollup gives the last values before the range: it ends where the range begins, is complete, and
    /// is not outdated or frozen.
    fn has_neighbours(&self, day: &StoredRollup) -> bool {
        let rolled_up = self.question.horizon.rolled_up(self.question.device.id());
        self.wants_day_before
            && day.range.to() == self.question.grid.range().from()
            && rolled_up.is_some_and(|rolled_up| rolled_up.covers(day.range))
            && self.is_local_day(day)
            && !self.question.is_outdated(day)
            && !day.is_frozen
    }

    /// Folds the last gap from readings, if the newest daily rollup shows that readings cost less than quarters. Also
    /// folds the range that follows the gap and is read anyway. Returns whether the gap is done. It is not done if
    /// there is no daily rollup, or if there are more readings than expected; the attempt then costs at most as much as
    /// the quarters of the range.
    async fn fold_last_gap(
        &mut self,
        gap: Option<&TimeRange>,
        days: &[StoredRollup],
    ) -> Result<bool, SeriesError> {
        let newest = days.iter().rfind(|day| !day.rollup.is_empty());
        let (Some(gap), Some(newest)) = (gap, newest) else { return Ok(false) };

        // Readings right after the gap are read in any case, so the same query reads them.
        let following = self.ranges_to_read.iter().position(|range| range.from() == gap.to());
        let to = following.map_or(gap.to(), |index| self.ranges_to_read[index].to());
        let range = TimeRange::new(gap.from(), to).expect("it is at least as long as the gap");

        let Some(limit) = self.limit_of_newest(range, newest) else { return Ok(false) };
        let order = Order::Ascending;
        let query = RangeQuery { range, order, after: None, limit, consistent: false };
        let page = self.session.device_readings(self.question.device.id(), &query).await?;
        if page.has_more {
            return Ok(false);
        }

        if let Some(index) = following {
            self.ranges_to_read.remove(index);
        }
        self.fold(range, &page.items);
        Ok(true)
    }

    /// The largest number of readings that cost no more than the quarters of the range. `None` if the range began too
    /// long ago, or if the newest daily rollup shows that quarters cost less.
    fn limit_of_newest(&self, range: TimeRange, newest: &StoredRollup) -> Option<usize> {
        let age = self.question.now.since(range.from());
        let sizes = ItemSizes::of(self.question.device, newest.rollup.metrics.len());
        if age > MAX_NEWEST.min(self.question.max_read) || !are_readings_cheaper(&sizes, newest) {
            return None;
        }

        // The range may end in the future, where there are no quarters.
        let length = range.length().min(age);
        Some((quarters_in(length) + 1) * sizes.rollup / sizes.reading)
    }

    /// Takes the rollup out of `stored` and makes a piece of it, or plans to read its readings instead. Returns false
    /// if the next finer level must be read.
    fn take_or_plan_read(
        &mut self,
        stored: &mut StoredRollup,
        range: TimeRange,
        level: Level,
    ) -> bool {
        match self.use_of(stored) {
            Use::Split => return false,
            Use::Refold => {
                self.refoldable -= range.length();
                self.ranges_to_read.push(range);
                self.outdated_days.extend((level == Level::Days).then_some(range));
            }
            Use::Whole { is_in_other_room } => {
                self.question.note_use(stored);
                if !stored.rollup.is_empty() {
                    let rollup = std::mem::take(&mut stored.rollup);
                    let mut piece = RollupPiece::new(range, level, rollup, is_in_other_room);
                    piece.rollup.metrics.retain(|name, _| self.question.wants(name));
                    self.gathered.pieces.push(piece);
                }
            }
        }

        true
    }

    fn use_of(&self, stored: &StoredRollup) -> Use {
        if self.question.is_outdated(stored)
            && stored.still_has_readings(self.question.now)
            && stored.range.length() <= self.refoldable
        {
            return Use::Refold;
        }

        if self.question.is_by_room && stored.rollup.rooms.len() > 1 {
            return Use::Split;
        }

        match self.question.rooms {
            Some(rooms) if !stored.rollup.may_be_of(rooms) => Use::Whole { is_in_other_room: true },
            Some(rooms) if !stored.rollup.is_only_of(rooms) => Use::Split,
            _ => Use::Whole { is_in_other_room: false },
        }
    }

    fn take_quarter(
        &mut self,
        quarter: &mut StoredRollup,
        gap: TimeRange,
    ) -> Result<(), SeriesError> {
        let Some(inside) = quarter.range.intersection(gap) else { return Ok(()) };
        let is_whole = inside == quarter.range && self.question.grid.has_in_one_row(inside);
        let is_settled = is_whole && self.take_or_plan_read(quarter, inside, Level::QuarterHours);
        if is_settled || quarter.rollup.is_empty() {
            return Ok(());
        }

        // The quarter is cut by the end of a row, or has readings of several rooms.
        if !quarter.still_has_readings(self.question.now) {
            return Err(SeriesError::OutOfReach(readings_expired(quarter, self.question.now)));
        }
        self.ranges_to_read.push(inside);
        Ok(())
    }

    /// The message for more than [`MAX_ROLLUPS`] quarters. The quarters before `reached` are as many as one request
    /// reads.
    fn too_many(&self, reached: Timestamp, days: &[StoredRollup]) -> String {
        let whole = self.question.grid.range();
        let is_cut = |day: &StoredRollup| {
            whole.covers(day.range) && !self.question.grid.has_in_one_row(day.range)
        };
        let coarser = if self.question.coarsest < Level::Days || days.iter().any(is_cut) {
            let zone = self.question.horizon.zone();
            format!("; or ask with every=1d, 1w, 1mo or 1y in the home's time zone, {zone}")
        } else {
            String::new()
        };

        format!(
            "This takes more than {MAX_ROLLUPS} rollups of 15 minutes of {}, and one request reads no \
             more; the rollups before {reached} fit. Narrow from and to{coarser}.",
            self.question.device.id()
        )
    }

    /// Refuses time without quarters if daily rollups show that it had readings. The quarters must have expired,
    /// because days are kept longer.
    async fn check_expiry(
        &self,
        without_quarters: TimeRange,
        days: &[StoredRollup],
    ) -> Result<(), SeriesError> {
        let days = match self.question.coarsest {
            Level::Days => days,
            _ => &self.unexpired_days(without_quarters).await?,
        };

        for day in days.iter().rev() {
            if self.has_lost_quarters(day, without_quarters).await? {
                return Err(SeriesError::OutOfReach(format!(
                    "The rollups of 15 minutes of {} before {} have expired. Ask from that time; or, for whole \
                     days of the home's time zone, {}, with every=1d, 1w, 1mo or 1y.",
                    self.question.device.id(),
                    without_quarters.to().min(day.range.to()),
                    self.question.horizon.zone()
                )));
            }
        }
        Ok(())
    }

    /// Whether a day had readings in a time without quarters. A first or last value in that time shows it. If the day
    /// has values before and after that time, the device may also have been silent. The oldest quarters expire first,
    /// so a quarter before that time shows that the device was silent.
    async fn has_lost_quarters(
        &self,
        day: &StoredRollup,
        without_quarters: TimeRange,
    ) -> Result<bool, SeriesError> {
        let mut metrics = day.rollup.metrics.values();
        let is_in = |at: Timestamp| without_quarters.contains(at);
        if metrics.any(|metric| is_in(metric.first.at) || is_in(metric.last.at)) {
            return Ok(true);
        }

        let (from, to) = (without_quarters.from(), without_quarters.to());
        let around = day.rollup.span().filter(|(first, last)| *first < from && *last >= to);
        let Some((first, _)) = around else { return Ok(false) };
        let before =
            TimeRange::new(QuarterHour::of(first).start(), from).expect("it begins before");
        let quarters = self.session.quarters(self.question.device.id(), before, false).await?;
        Ok(quarters.iter().all(|quarter| quarter.is_expired(self.question.now)))
    }

    /// Finds when a moved device with a counter sent its first reading in the new room. It is read, because a rollup
    /// omits a counter's values of 0, so its first value may be later than the first reading.
    async fn date_moves(&mut self) -> Result<(), SeriesError> {
        let device = self.question.device;
        let mut rules = device.metrics().values().map(MetricRule::of);
        if !rules.any(|rule| matches!(rule, MetricRule::Counter(_))) {
            return Ok(());
        }

        let mut was_elsewhere = false;
        let mut left = MAX_MOVES;
        for piece in &mut self.gathered.pieces {
            let has_moved = piece.is_in_other_room != was_elsewhere;
            was_elsewhere = piece.is_in_other_room;
            if has_moved && piece.level > Level::Readings && left > 0 {
                let (range, order) = (piece.range, Order::Ascending);
                let first = NearestReading { device: device.id(), range, order, consistent: false };
                piece.first = first.find(self.session).await?.map_or(piece.first, |first| first.at);
                left -= 1;
            }
        }

        Ok(())
    }
}

/// The rollups that overlap a range. They are in order of time.
fn overlapping(rollups: &mut [StoredRollup], range: TimeRange) -> &mut [StoredRollup] {
    let first = rollups.partition_point(|rollup| rollup.range.to() <= range.from());
    let end = rollups.partition_point(|rollup| rollup.range.from() < range.to());
    &mut rollups[first..end.max(first)]
}

/// The number of whole quarters of an hour in a length of time.
fn quarters_in(length: TimeDelta) -> usize {
    usize::try_from(length.num_minutes() / QuarterHour::LENGTH.num_minutes()).unwrap_or(0)
}

/// Takes ranges from the front until their total length is `length`. The last one is cut if it is too long.
fn take_front(ranges: &mut VecDeque<TimeRange>, mut length: TimeDelta) -> Vec<TimeRange> {
    let mut taken = Vec::new();
    while length > TimeDelta::zero()
        && let Some(range) = ranges.pop_front()
    {
        let cut = range.from().saturating_add(length).min(range.to());
        taken.push(TimeRange::new(range.from(), cut).expect("a range is not empty"));
        if let Ok(rest) = TimeRange::new(cut, range.to()) {
            ranges.push_front(rest);
        }
        length -= cut.since(range.from());
    }
    taken
}
