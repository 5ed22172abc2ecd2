//! The figures of a budget: the energy of the current day or month. On the first day of a period, also the energy of
//! the period before. Sends no message.

use alerts::Figure;
use chrono::TimeDelta;
use domain::{CalendarUnit, Decimal, Device, Exact, TimeRange, Timestamp};
use series::{Grid, Horizon, Level};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;

/// How long a period is judged after its end. The rollups of its last quarters are complete half an hour later, or
/// hours later if the system stood still.
const LATEST: TimeDelta = TimeDelta::days(1);

/// A rule's limit of energy for a day or a month.
pub(crate) struct EnergyBudget<'a> {
    pub(crate) kwh: &'a Decimal,
    pub(crate) per: CalendarUnit,
    /// When the rule was saved. A period that ended before that time is not judged.
    pub(crate) saved: Timestamp,
}

impl<S: Store> JudgingSession<'_, S> {
    /// The energy of a device in each period that is judged now.
    pub(crate) async fn budget_figures(
        &self,
        budget: &EnergyBudget<'_>,
        device: &Device,
        horizon: &Horizon,
    ) -> Result<Vec<Figure>> {
        let (now, per) = (self.table.now, budget.per);
        let period = per.bucket_of(now, horizon.zone());
        let before = period.from().saturating_add(TimeDelta::milliseconds(-1));
        let is_ended_judged = budget.saved <= before && now.since(period.from()) < LATEST;
        let ended = is_ended_judged.then(|| per.bucket_of(before, horizon.zone()));

        let mut figures = Vec::new();
        for period in ended.into_iter().chain([period]) {
            let Ok(so_far) = TimeRange::new(period.from(), period.to().min(now)) else { continue };
            let (grid, level) = (Grid::total(so_far), Level::of(Some(per)));
            let rows = self.energy(device, &grid, horizon, level).await?;
            if let Some(used) = rows.and_then(|rows| rows.bought(0)) {
                let is_beyond = used > Exact::from(budget.kwh);
                figures.push(Figure::new(period.from(), used, is_beyond));
            }
        }

        Ok(figures)
    }
}
