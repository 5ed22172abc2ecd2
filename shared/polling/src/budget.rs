//! The number of requests that a source may make in a period, and the number that it has made. Reads no clock.

use chrono::TimeDelta;
use domain::Timestamp;
use serde::{Deserialize, Serialize};

/// A limit for the requests of each period. Periods are counted from 1970, so days are days of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The maximum number of requests in a period.
    pub requests: u32,
    /// The length of a period.
    pub per: TimeDelta,
}

/// The number of requests in the current period, and on the current day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Spent {
    /// The number of the period since the epoch.
    period: i64,
    requests: u32,
    day: i64,
    today: u32,
}

const DAY: TimeDelta = TimeDelta::days(1);

fn period(at: Timestamp, per: TimeDelta) -> i64 {
    at.as_millis().div_euclid(per.num_milliseconds().max(1))
}

impl Spent {
    /// The requests at `now`: none if a new period has begun. If the clock was set back into the period before, the
    /// known period goes on. If it was set back further, the requests of the current period are not known, and all of
    /// them count as made.
    #[must_use]
    pub fn at(self, budget: Option<Budget>, now: Timestamp) -> Self {
        let per = budget.map_or(DAY, |budget| budget.per);
        let (current, day) = (period(now, per), period(now, DAY));
        let mut spent = self;
        if current > self.period {
            (spent.period, spent.requests) = (current, 0);
        } else if self.period > current + 1 {
            (spent.period, spent.requests) = (current, u32::MAX);
        }

        if day > self.day {
            (spent.day, spent.today) = (day, 0);
        } else if self.day > day + 1 {
            spent.day = day;
        }
        spent
    }

    /// Adds requests. If they exceed the budget, returns the end of the period instead.
    pub fn with(
        self,
        requests: u32,
        budget: Option<Budget>,
        now: Timestamp,
    ) -> Result<Self, Timestamp> {
        let mut spent = self.at(budget, now);
        spent.requests = spent.requests.saturating_add(requests);
        spent.today = spent.today.saturating_add(requests);
        match budget {
            Some(Budget { requests: most, per }) if spent.requests > most => {
                let end = (spent.period.saturating_add(1)).saturating_mul(per.num_milliseconds());
                Err(Timestamp::from_millis(end).unwrap_or(Timestamp::MAX))
            }
            _ => Ok(spent),
        }
    }

    /// The number of requests on the current day of UTC.
    pub fn today(self, now: Timestamp) -> u32 {
        self.at(None, now).today
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::at;

    #[test]
    fn a_period_has_no_more_requests_than_its_budget() {
        let budget = Some(Budget { requests: 15, per: TimeDelta::minutes(5) });
        let now = at("2026-03-10T12:01:00Z");
        let spent = Spent::default().with(13, budget, now).expect("13 of 15");
        assert_eq!(spent.with(3, budget, now), Err(at("2026-03-10T12:05:00Z")));
        let spent = spent.with(2, budget, now).expect("15 of 15");
        let later = at("2026-03-10T12:05:00Z");
        let spent = spent.with(15, budget, later).expect("a new period");
        assert_eq!(spent.today(later), 30);
        assert_eq!(spent.today(at("2026-03-11T00:00:00Z")), 0);
        assert!(spent.with(1, budget, now).is_err(), "the clock was put back");
        assert!(spent.with(1_000, None, later).is_ok());
    }

    /// The maker has had requests in this period that the clock of another one has counted.
    #[test]
    fn a_clock_that_was_ahead_for_periods_stops_a_source_until_the_end_of_the_current_one() {
        let budget = Some(Budget { requests: 15, per: TimeDelta::minutes(5) });
        let ahead = at("2027-03-10T12:01:00Z");
        let spent = Spent::default().with(13, budget, ahead).expect("13 of 15");
        let now = at("2026-03-10T12:01:00Z");
        assert_eq!(spent.with(1, budget, now), Err(at("2026-03-10T12:05:00Z")));

        let known = spent.at(budget, now);
        let later = at("2026-03-10T12:05:00Z");
        assert_eq!(known.with(16, budget, later), Err(at("2026-03-10T12:10:00Z")));
        let spent = known.with(15, budget, later).expect("15 of 15");
        assert_eq!(spent.today(later), 28);
    }
}
