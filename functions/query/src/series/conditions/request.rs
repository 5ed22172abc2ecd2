//! The parameters of a request for conditions. Reads no table.

use api::{Format, Params, Problem, Request};
use domain::{Basis, Condition, MetricName, QuarterHour, TimeRange, Timestamp};
use series::conditions::EpisodeSearch;
use series::{MAX_ROLLUPS, ceiling};

use crate::readings::ranges::time_range;

/// The parameters of `conditions`.
#[derive(Debug)]
pub(crate) struct ConditionsRequest {
    pub(crate) format: Format,
    pub(crate) search: EpisodeSearch,
    pub(crate) is_explained: bool,
}

impl ConditionsRequest {
    /// Reads the parameters.
    pub(crate) fn of(request: &Request, params: &Params, now: Timestamp) -> Result<Self, Problem> {
        let mut conditions: Vec<Condition> = Vec::new();
        for (name, values) in params.conditions() {
            let problem = |why: String| Problem::field(&domain::excerpt(name), why);
            let metric: MetricName = name.parse().map_err(|why| problem(format!("{why}")))?;
            let interval = values.parse().map_err(|why| problem(format!("{why}")))?;
            if conditions.iter().any(|condition| condition.metric == metric) {
                return Err(problem("is given twice".to_owned()));
            }
            conditions.push(Condition { metric, interval });
        }

        if conditions.is_empty() {
            let message = "are needed: name at least one metric with its values, such as \
                           temperature=28..&humidity=70..90";
            return Err(Problem::field("conditions", message));
        }

        let requested = time_range(params, now)?;
        let (from, to) = (QuarterHour::of(requested.from()).start(), ceiling(requested.to()));
        let range = TimeRange::new(from, to).expect("it holds the requested range");
        let quarters = to.since(from).num_minutes() / QuarterHour::LENGTH.num_minutes();
        if usize::try_from(quarters).is_ok_and(|quarters| quarters > MAX_ROLLUPS) {
            let message = format!(
                "is {quarters} quarters of an hour before to; one request answers for at most \
                 {MAX_ROLLUPS}, about 15 months: narrow from and to"
            );
            return Err(Problem::field("from", message));
        }

        Ok(Self {
            format: params.format(request),
            search: EpisodeSearch { conditions, range, is_exact: params.flag("exact") },
            is_explained: params.flag("explain"),
        })
    }

    /// The requested basis of the episodes: readings, where readings are kept, or means of 15 minutes.
    pub(crate) const fn basis(&self) -> Basis {
        if self.search.is_exact { Basis::Readings } else { Basis::Mean15 }
    }
}
