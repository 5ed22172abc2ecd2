//! Notable steps of counters, each with its two readings. Judges nothing.
//!
//! The flags of rollups show which days and quarters have notable steps. Only the readings of these are read.

use domain::{
    Device, DeviceId, Exact, Flag, Flags, MetricName, MetricRule, OfKind, Sample, TimeRange,
    Timestamp, Verdict,
};
use serde::Serialize;
use table::Session;

use super::error::SeriesError;
use super::gather::{DeviceQuestion, Level, RollupPiece, gather, gather_with_day_before, readings};
use super::grid::Grid;
use super::neighbours::neighbours;
use crate::ports::Store;

/// The largest number of events of one answer.
const MAX_EVENTS: usize = 1_000;
/// The largest number of days and quarters that are searched for one counter.
const MAX_SEARCHES: usize = 500;

/// One notable step of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Event"))]
pub struct CounterStep {
    /// The timestamp of the reading that ends the step. If the readings have expired, the start of their bucket.
    pub timestamp: Timestamp,
    /// The device.
    pub device_id: DeviceId,
    /// The counter.
    pub metric: MetricName,
    /// The flags of the step. If the readings have expired, the flags of all steps in the bucket.
    pub events: Vec<Flag>,
    /// The amount that counts, in the metric's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Exact>,
    /// The difference of the two readings, in the metric's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Exact>,
    /// Only for an ambiguous fall, which counts as a reset: the amount if the counter passed its modulus instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_if_wrapped: Option<Exact>,
    /// The verdict of a person that decides how the step counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The verdicts that would change how the step counts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// The reading before the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// The reading that ends the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The end of the bucket, if its readings have expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// One value of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "EventValue"))]
pub struct Value {
    /// When the value was measured.
    pub timestamp: Timestamp,
    /// The value, in the metric's unit.
    pub value: domain::Decimal,
}

/// Events in order, and whether there are more.
#[derive(Debug, Default)]
pub struct CounterSteps {
    /// The events, sorted by timestamp.
    pub events: Vec<CounterStep>,
    /// Whether there are more events than the answer holds.
    pub has_more: bool,
}

impl CounterSteps {
    /// Adds the events of another counter; keeps the first 1,000.
    pub fn append(&mut self, more: Self) {
        self.events.extend(more.events);
        self.events.sort_by_key(|event| event.timestamp);
        self.has_more |= more.has_more || self.events.len() > MAX_EVENTS;
        self.events.truncate(MAX_EVENTS);
    }
}

/// Finds the events of a device's counters. Each step overlaps the range or ends at the range's start, so that each
/// flag of a row has an event. The reading that ends the last step may be after the range. Each event has a flag in
/// `wanted`.
pub async fn events(
    session: Session<'_, impl Store>,
    question: &DeviceQuestion<'_>,
    names: &[MetricName],
    wanted: Flags,
) -> Result<CounterSteps, SeriesError> {
    let counters = question.device.metrics().iter().filter(|(name, _)| names.contains(name));
    let counters = counters.map(|(name, info)| (name.clone(), MetricRule::of(info)));
    let counters: std::collections::BTreeMap<_, _> =
        counters.filter(|(_, rule)| matches!(rule, MetricRule::Counter(_))).collect();
    if counters.is_empty() {
        return Ok(CounterSteps::default());
    }

    let gathered = gather_with_day_before(session, question).await?;
    let beside = neighbours(session, question, &counters, gathered.day_before.as_ref()).await?;

    let mut found = CounterSteps::default();
    for (name, rule) in &counters {
        let beside = beside.values.get(name).cloned().unwrap_or_default();
        let mut search =
            EventSearch { session, name, rule, wanted, found: Vec::new(), searches: 0 };
        let last = search.search_pieces(question, &gathered.pieces, beside.before).await?;
        if let (Some(last), Some(after)) = (last, beside.after) {
            search.step(question.device, &last, &after);
        }
        let has_more = search.searches > MAX_SEARCHES;
        found.append(CounterSteps { events: search.found, has_more });
    }

    Ok(found)
}

/// A search in one counter.
struct EventSearch<'a, S> {
    session: Session<'a, S>,
    name: &'a MetricName,
    rule: &'a MetricRule,
    wanted: Flags,
    found: Vec<CounterStep>,
    searches: usize,
}

impl<S: Store> EventSearch<'_, S> {
    /// Searches pieces in order. Returns the last value, if the last piece is in the requested rooms.
    async fn search_pieces(
        &mut self,
        question: &DeviceQuestion<'_>,
        pieces: &[RollupPiece],
        mut last: Option<Sample>,
    ) -> Result<Option<Sample>, SeriesError> {
        for piece in pieces {
            if piece.is_in_other_room {
                last = None;
                continue;
            }
            let Some(metric) = piece.rollup.metrics.get(self.name) else { continue };
            if let Some(last) = &last {
                self.step(question.device, last, &metric.first);
            }

            last = Some(metric.last.clone());
            if let OfKind::Counter { flags, .. } = &metric.of_kind
                && !flags.intersection(self.wanted).is_empty()
            {
                self.search_piece(question, piece, flags.intersection(self.wanted)).await?;
            }
        }

        Ok(last)
    }

    /// Searches a piece for events on the next finer level. If there are no events, the piece itself becomes an event.
    async fn search_piece(
        &mut self,
        question: &DeviceQuestion<'_>,
        piece: &RollupPiece,
        flags: Flags,
    ) -> Result<(), SeriesError> {
        self.searches += 1;
        if self.searches > MAX_SEARCHES {
            return Ok(());
        }

        let before = self.found.len();
        if piece.level == Level::Days {
            let grid = Grid::total(piece.range);
            let finer = DeviceQuestion { grid: &grid, coarsest: Level::QuarterHours, ..*question };
            match gather(self.session, &finer).await {
                Ok(quarters) => {
                    Box::pin(self.search_pieces(&finer, &quarters.pieces, None)).await?;
                }
                Err(SeriesError::OutOfReach(_)) => {}
                Err(failure) => return Err(failure),
            }
        } else {
            self.search_readings(question, piece.range).await?;
        }

        if self.found.len() == before {
            self.bucket(question.device, piece.range, flags);
        }
        Ok(())
    }

    async fn search_readings(
        &mut self,
        question: &DeviceQuestion<'_>,
        range: TimeRange,
    ) -> Result<(), SeriesError> {
        let mut last: Option<Sample> = None;
        for reading in readings(self.session, question, range).await? {
            let Some(sample) = self.rule.sample(&reading, self.name) else { continue };
            if let Some(last) = last {
                self.step(question.device, &last, &sample);
            }
            last = Some(sample);
        }
        Ok(())
    }

    /// Adds an event for a step, if the step is notable.
    fn step(&mut self, device: &Device, from: &Sample, to: &Sample) {
        let MetricRule::Counter(rule) = self.rule else { return };
        let step = rule.step(from, to);
        let flag = step.flag.filter(|flag| !self.wanted.intersection((*flag).into()).is_empty());
        let Some(flag) = flag else { return };

        let value =
            |sample: &Sample| Some(Value { timestamp: sample.at, value: sample.value.clone() });
        self.found.push(CounterStep {
            amount: Some(step.amount),
            size: Some(&Exact::from(&to.value) - &Exact::from(&from.value)),
            amount_if_wrapped: rule.if_wrapped(from, to).filter(|_| flag == Flag::Ambiguous),
            verdict: rule.verdict(from, to),
            verdicts: rule.verdicts(from, to),
            from: value(from),
            to: value(to),
            ..self.event(device, to.at, vec![flag])
        });
    }

    /// Adds an event for a whole bucket, because its steps cannot be found any more.
    fn bucket(&mut self, device: &Device, range: TimeRange, flags: Flags) {
        let event = self.event(device, range.from(), flags.iter().collect());
        self.found.push(CounterStep { until: Some(range.to()), ..event });
    }

    /// An event with only these fields set.
    fn event(&self, device: &Device, timestamp: Timestamp, events: Vec<Flag>) -> CounterStep {
        CounterStep {
            timestamp,
            device_id: device.id().clone(),
            metric: self.name.clone(),
            events,
            amount: None,
            size: None,
            amount_if_wrapped: None,
            verdict: None,
            verdicts: Vec::new(),
            from: None,
            to: None,
            until: None,
        }
    }
}
