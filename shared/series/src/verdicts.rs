//! Checks whether a person's verdict on a step of a counter would change anything, by the readings around the step.
//! Judges no step.

use chrono::TimeDelta;
use domain::{
    CounterRule, Device, MetricName, MetricRule, Order, Sample, TimeRange, Timestamp, Verdict,
};
use table::{NearestReading, Session};

use super::error::SeriesError;
use super::gather::{DeviceQuestion, Level};
use super::grid::Grid;
use super::horizon::Horizon;
use super::neighbours::neighbours;
use crate::ports::Store;

/// A step of a counter, identified by the reading that ends it.
#[derive(Debug)]
pub struct VerdictStep<'a> {
    /// The device, with the settings by which the step counts.
    pub device: &'a Device,
    /// The counter.
    pub name: &'a MetricName,
    /// The timestamp of the reading.
    pub at: Timestamp,
    /// The current time.
    pub now: Timestamp,
    /// The time for which rollups are complete.
    pub horizon: &'a Horizon,
}

impl VerdictStep<'_> {
    /// Why a verdict on the step changes nothing; `None` if it changes something.
    ///
    /// # Errors
    ///
    /// If the table fails.
    pub async fn why_useless(
        &self,
        session: Session<'_, impl Store>,
        rule: &CounterRule,
        verdict: Verdict,
    ) -> Result<Option<String>, SeriesError> {
        let Self { name, at, .. } = *self;
        let Ok(range) = TimeRange::new(at, at.saturating_add(TimeDelta::milliseconds(1))) else {
            return Ok(Some("is not a time that a reading can have".to_owned()));
        };

        let Some(to) = self.value(session, range, rule).await? else {
            return Ok(Some(format!("there is no reading of {name} above zero at that time")));
        };
        let Some(from) = self.before(session, range, rule).await? else {
            return Ok(Some(format!("{} is the first value; no step ends there", to.value)));
        };

        let fitting = rule.verdicts(&from, &to);
        if fitting.contains(&verdict) {
            return Ok(None);
        }

        let step = format!("the step from {} at {} to {}", from.value, from.at, to.value);
        if fitting.is_empty() {
            return Ok(Some(format!(
                "{step} is no fall and not suspect, so no verdict changes anything"
            )));
        }

        let fitting: Vec<&str> = fitting.into_iter().map(Verdict::as_str).collect();
        let (verdict, fitting) = (verdict.as_str(), fitting.join(", "));
        Ok(Some(format!("{verdict} changes nothing of {step}; these do: {fitting}")))
    }

    async fn value(
        &self,
        session: Session<'_, impl Store>,
        range: TimeRange,
        rule: &CounterRule,
    ) -> Result<Option<Sample>, SeriesError> {
        let (device, order) = (self.device.id(), Order::Ascending);
        let reading = NearestReading { device, range, order, consistent: true };
        let reading = reading.find(session).await?;
        let rule = MetricRule::Counter(rule.clone());
        Ok(reading.and_then(|reading| rule.sample(&reading, self.name)))
    }

    /// The counter's last value before the reading that ends the step, at any distance.
    async fn before(
        &self,
        session: Session<'_, impl Store>,
        range: TimeRange,
        rule: &CounterRule,
    ) -> Result<Option<Sample>, SeriesError> {
        let grid = Grid::total(range);
        let question =
            DeviceQuestion::of(self.device, &grid, self.horizon, Level::Readings, self.now);
        let rules = [(self.name.clone(), MetricRule::Counter(rule.clone()))].into();
        let mut found = neighbours(session, &question, &rules, None).await?;
        Ok(found.values.remove(self.name).and_then(|neighbours| neighbours.before))
    }
}
