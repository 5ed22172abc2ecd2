//! Projects the mean power of a running demand period to its end. Reads no meter.

use chrono::TimeDelta;
use domain::{Exact, TimeRange, Timestamp};

/// The last minutes of a period whose power the projection extends to the end of the period. A period that has run for
/// less time has no projection.
pub const RECENT: TimeDelta = TimeDelta::minutes(3);
/// The milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// The energy that a meter has measured in the running period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPeriod {
    /// The period.
    pub range: TimeRange,
    /// The energy since its start, in kWh.
    pub energy: Exact,
    /// The energy of the last three minutes, in kWh.
    pub recent: Exact,
    /// The resolution in kWh of the counter that measured the last three minutes; zero where a power was measured.
    pub step: Exact,
}

/// The mean power of a period in kW, projected to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectedPower {
    /// The mean power if the power of the last minutes goes on.
    pub expected: Exact,
    /// The least mean power that agrees with the counter: its last step may be energy from before the last minutes. A
    /// rule fires by this value.
    pub least: Exact,
}

impl RunningPeriod {
    /// The projection. `None` in the first three minutes of the period and after its end.
    pub fn project(&self, now: Timestamp) -> Option<ProjectedPower> {
        let (from, to) = (self.range.from(), self.range.to());
        if now.since(from) < RECENT || now >= to {
            return None;
        }

        let rest = to.since(now).num_milliseconds();
        let window = RECENT.num_milliseconds();
        let whole = Exact::from(to.since(from).num_milliseconds() * window);
        // The energy of the whole period in kWh, times the window; `whole` has this factor too.
        let kilowatts = |recent: &Exact| {
            let energy = &(&self.energy * window) + &(recent * rest);
            (&energy * HOUR).rounded_quotient(&whole)
        };
        let least = (&self.recent - &self.step).max(Exact::zero());
        Some(ProjectedPower { expected: kilowatts(&self.recent)?, least: kilowatts(&least)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, at_minute};

    fn project(energy: &str, recent: &str, step: &str, now: i64) -> Option<(String, String)> {
        let exact = |text: &str| given::exact(text);
        let range = given::range(at_minute(30), at_minute(60));
        let period = RunningPeriod {
            range,
            energy: exact(energy),
            recent: exact(recent),
            step: exact(step),
        };
        let found = period.project(at_minute(now))?;
        Some((found.expected.to_string(), found.least.to_string()))
    }

    #[test]
    fn the_rest_goes_on_as_the_last_three_minutes() {
        // 1 kWh in ten minutes, then 6 kW, which is 0.3 kWh in three: 1 + 2 kWh in half an hour.
        let found = project("1", "0.3", "0", 40).expect("it runs");
        assert_eq!(found, ("6".to_owned(), "6".to_owned()));
        assert_eq!(project("1", "0.3", "0", 32), None, "too early");
        assert!(project("1", "0.3", "0", 33).is_some());
        assert_eq!(project("1", "0.3", "0", 60), None, "over");
    }

    #[test]
    fn a_step_of_the_counter_is_no_power() {
        // A counter of 0.1 kWh that has just moved: nothing, or 2 kW.
        let found = project("0.1", "0.1", "0.1", 35).expect("it runs");
        assert_eq!(found, ("1.86666666666667".to_owned(), "0.2".to_owned()));
        let (_, least) = project("0.1", "0", "0.1", 35).expect("it runs");
        assert_eq!(least, "0.2", "no power is negative");
    }
}
