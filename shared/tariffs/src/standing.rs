//! Standing charges: what a price by day, month or year is of a part of its time. Adds up nothing else.
//!
//! A charge is divided by whole local days, and a day by its milliseconds. What has accrued at a time is rounded down
//! to 9 decimals, and a part of the time gets the difference of its two ends. So parts add up to the last digit.

use chrono::{Datelike, Days, Months, NaiveDate};
use domain::{Exact, LocalDate, TimeRange, Timestamp, Zone};

use crate::written::Per;

/// The charge of a range that lies in one local month.
pub(crate) fn charge(per: Per, price: &Exact, range: TimeRange, zone: Zone) -> Exact {
    let period = Period::of(per, zone.date(range.from()).naive());
    &period.accrued(price, range.to(), zone) - &period.accrued(price, range.from(), zone)
}

/// The calendar month or year of a charge.
struct Period {
    per: Per,
    first: NaiveDate,
    days: i64,
}

impl Period {
    fn of(per: Per, date: NaiveDate) -> Self {
        let (first, months) = match per {
            Per::Year => (date - Days::new(date.ordinal0().into()), 12),
            _ => (date - Days::new(date.day0().into()), 1),
        };
        Self { per, first, days: (first + Months::new(months) - first).num_days() }
    }

    /// The charge from the begin of the period to a time.
    fn accrued(&self, price: &Exact, at: Timestamp, zone: Zone) -> Exact {
        let date = zone.date(at);
        let days = (date.naive() - self.first).num_days();
        let whole = self.of_days(price, days);

        let next = zone.midnight(LocalDate::saturating_from(date.naive() + Days::new(1)));
        let begin = zone.midnight(date);
        let elapsed = at.since(begin).num_milliseconds();
        if elapsed == 0 {
            return whole;
        }
        let day = &self.of_days(price, days + 1) - &whole;
        &whole + &day.part(elapsed, next.since(begin).num_milliseconds())
    }

    /// The charge of the first days of the period.
    fn of_days(&self, price: &Exact, days: i64) -> Exact {
        match self.per {
            Per::Day => price * days,
            _ => price.part(days, self.days),
        }
    }
}
