//! Reads the readings of a device, and folds them into pieces of rows. Reads no daily rollup.

use chrono::TimeDelta;
use domain::{Device, MetricName, Order, QuarterHour, Reading, Rollup, TimeRange, Timestamp};
use table::{RangeQuery, ReadingKey, Session, StoredRollup};

use super::out_of_reach::readings_expired;
use super::{DeviceQuestion, Gathering, Level, RollupPiece};
use crate::error::SeriesError;
use crate::ports::Store;

/// The largest number of readings of a device in one request.
pub(super) const MAX_READINGS: usize = 300_000;
/// The number of readings of one page.
const PAGE: usize = 10_000;

impl<S: Store> Gathering<'_, S> {
    /// Folds the readings of a range page by page. Memory holds one page, and the readings of the [span](Self::span_of)
    /// that the page cuts.
    pub(super) async fn fold_readings(&mut self, range: TimeRange) -> Result<(), SeriesError> {
        let mut pages = Pages::of(self.session, self.question, range);
        pages.read = self.readings_read;
        let mut next = pages.next().await?;
        if self.question.coarsest == Level::Readings {
            let first = next.iter().flatten().next();
            self.check_readings(range, first).await?;
        }

        let mut unfolded: Vec<Reading> = Vec::new();
        while let Some(page) = next {
            unfolded.extend(page);
            let end =
                if pages.has_more { self.last_span(range, &unfolded) } else { unfolded.len() };
            self.fold(range, &unfolded[..end]);
            unfolded.drain(..end);
            next = pages.next().await?;
        }

        self.readings_read = pages.read;
        Ok(())
    }

    /// The index of the first reading of the last span. The next page may have further readings of this span.
    fn last_span(&self, range: TimeRange, readings: &[Reading]) -> usize {
        let Some(last) = readings.last() else { return 0 };
        let begin = self.span_of(last, self.row_part(range, last));
        readings.partition_point(|reading| reading.at < begin)
    }

    /// The part of a range that lies in the row of a reading.
    fn row_part(&self, range: TimeRange, reading: &Reading) -> TimeRange {
        let row = self.question.grid.rows()[self.question.grid.row_index(reading.at)];
        row.intersection(range).expect("the reading is in both")
    }

    /// Refuses a range whose first readings have expired. Their quarters may have expired, too.
    async fn check_readings(
        &self,
        range: TimeRange,
        first: Option<&Reading>,
    ) -> Result<(), SeriesError> {
        let first = first.map_or(range.to(), |reading| reading.at);
        let end = range.from().saturating_add(TimeDelta::days(1)).min(first);
        let Ok(without_readings) = TimeRange::new(range.from(), end) else { return Ok(()) };

        let device = self.question.device.id();
        let quarters = self.session.quarters(device, without_readings, false).await?;
        let expired = |quarter: &&StoredRollup| {
            !quarter.rollup.is_empty() && !quarter.still_has_readings(self.question.now)
        };

        match quarters.iter().find(expired) {
            Some(quarter) => {
                Err(SeriesError::OutOfReach(readings_expired(quarter, self.question.now)))
            }
            None if quarters.is_empty() => self.check_expiry(without_readings, &[]).await,
            None => Ok(()),
        }
    }

    /// Folds readings of a range into pieces. A piece ends with its row, and where the readings change between the
    /// requested rooms and others; with `is_by_room`, at each change of room. Several calls make the same pieces as one
    /// call, if each begins with a new [span](Self::span_of).
    pub(super) fn fold(&mut self, range: TimeRange, readings: &[Reading]) {
        let DeviceQuestion { grid, is_by_room, .. } = *self.question;
        let is_here = |reading: &Reading| self.question.is_about(reading.room.as_ref());
        let is_one_run = |a: &Reading, b: &Reading| {
            let is_of_one_room = !is_by_room || a.room == b.room;
            let is_of_one_row = grid.row_index(a.at) == grid.row_index(b.at);
            is_of_one_row && is_here(a) == is_here(b) && is_of_one_room
        };

        let runs: Vec<&[Reading]> = readings.chunk_by(is_one_run).collect();
        for run in runs {
            self.fold_run(self.row_part(range, &run[0]), run);
        }
    }

    /// Folds a run of readings within `part`, a part of a row. A run ends at the first reading of the next run; the
    /// last run ends with `part`.
    fn fold_run(&mut self, part: TimeRange, run: &[Reading]) {
        let is_of_one = |a: &Reading, b: &Reading| self.span_of(a, part) == self.span_of(b, part);
        let wants = |name: &MetricName| self.question.wants(name);
        let fold = |span: &[Reading]| Rollup::fold_some(span, &self.rules, wants);
        let folded: Vec<Rollup> = run.chunk_by(is_of_one).map(fold).collect();

        self.begin_piece(part, &run[0]);
        let piece = self.gathered.pieces.last_mut().expect("there is one");
        folded.iter().for_each(|rollup| piece.rollup.append(rollup, &self.rules));
        piece.last = run[run.len() - 1].at;
        self.gathered.of_readings.extend(folded);
    }

    /// Begins a piece with the first reading of a run, and ends the last piece there if it is in the same `part`. Does
    /// nothing if the last piece goes on: a page of readings may end within a run.
    fn begin_piece(&mut self, part: TimeRange, reading: &Reading) {
        let Reading { at: first, room, .. } = reading;
        let is_in_other_room = !self.question.is_about(room.as_ref());
        let goes_on = |piece: &RollupPiece| {
            let is_of_one_room = !self.question.is_by_room || piece.rollup.rooms.contains(room);
            piece.is_in_other_room == is_in_other_room && is_of_one_room
        };

        // No piece of a stored rollup begins in `part`: readings are read for time without such a piece.
        let before = self.gathered.pieces.last_mut();
        let mut before = before.filter(|piece| part.contains(piece.range.from()));
        if before.as_ref().is_some_and(|piece| goes_on(piece)) {
            return;
        }

        let begin = if before.is_some() { *first } else { part.from() };
        if let Some(before) = &mut before {
            let ended = TimeRange::new(before.range.from(), begin);
            before.range = ended.expect("it has a reading");
        }

        let range = TimeRange::new(begin, part.to()).expect("it has a reading");
        let piece = RollupPiece::new(range, Level::Readings, Rollup::default(), is_in_other_room);
        self.gathered.pieces.push(RollupPiece { first: *first, ..piece });
    }

    /// The begin of the span in which a reading is folded: the day if the day's rollup is outdated, else the quarter of
    /// an hour. If rows are shorter than a quarter, the span is the row.
    fn span_of(&self, reading: &Reading, row: TimeRange) -> Timestamp {
        if self.question.coarsest == Level::Readings {
            return row.from();
        }
        let day = self.outdated_days.iter().find(|day| day.contains(reading.at));
        day.map_or_else(|| QuarterHour::of(reading.at).start(), |day| day.from())
    }
}

/// All readings of a device in a range.
pub async fn readings(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    range: TimeRange,
) -> Result<Vec<Reading>, SeriesError> {
    let mut pages = Pages::of(session, question, range);
    let mut readings: Vec<Reading> = Vec::new();
    while let Some(page) = pages.next().await? {
        readings.extend(page);
    }
    Ok(readings)
}

/// The pages of a device's readings, oldest first.
struct Pages<'a, S> {
    session: Session<'a, S>,
    device: &'a Device,
    query: RangeQuery,
    has_more: bool,
    max_readings: usize,
    /// The number of readings that were read so far, also of other ranges of the question.
    read: usize,
}

impl<'a, S: Store> Pages<'a, S> {
    const fn of(session: Session<'a, S>, question: &DeviceQuestion<'a>, range: TimeRange) -> Self {
        let (order, limit, consistent) = (Order::Ascending, PAGE, false);
        let query = RangeQuery { range, order, after: None, limit, consistent };
        let DeviceQuestion { device, max_readings, .. } = *question;
        Self { session, device, query, has_more: true, max_readings, read: 0 }
    }

    /// The next page; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Vec<Reading>>, SeriesError> {
        if !self.has_more {
            return Ok(None);
        }

        let page = self.session.device_readings(self.device.id(), &self.query).await?;
        self.has_more = page.has_more;
        self.read += page.items.len();
        if self.read > self.max_readings {
            return Err(SeriesError::OutOfReach(format!(
                "This takes more than {} readings of {} that are not rolled up. Narrow \
                 from and to.",
                self.max_readings,
                self.device.id()
            )));
        }

        self.query.after = page.items.last().map(ReadingKey::of).or(self.query.after.take());
        Ok(Some(page.items))
    }
}
