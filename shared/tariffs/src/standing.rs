//! Standing charges: what a price by day, month or year is of a part of its time. Adds up nothing else.
//!
//! A charge is divided by whole local days, and a day by its milliseconds. What has accrued at a time is rounded down
//! to 9 decimals, and a part of the time gets the difference of its two ends. So parts add up to the last digit.

use chrono::{Datelike, Days, Months, NaiveDate};
use domain::{Exact, LocalDate, Timestamp, Zone};

use crate::written::Per;

/// The time whose charges are added, which lies in one local month. It is looked up in the calendar once for all lines.
pub(crate) struct ChargedTime {
    begin: DayPart,
    end: DayPart,
}

/// A moment as charges see it: its local date, and how much of the day is over.
struct DayPart {
    date: NaiveDate,
    elapsed: i64,
    length: i64,
}

impl ChargedTime {
    /// The time from one moment to another.
    pub(crate) fn of(from: Timestamp, to: Timestamp, zone: Zone) -> Self {
        Self { begin: DayPart::of(from, zone), end: DayPart::of(to, zone) }
    }

    /// The charge for this time, by a price per day, month or year.
    pub(crate) fn charge(&self, per: Per, price: &Exact) -> Exact {
        let period = Period::of(per, self.begin.date);
        &period.accrued(price, &self.end) - &period.accrued(price, &self.begin)
    }
}

impl DayPart {
    fn of(at: Timestamp, zone: Zone) -> Self {
        let date = zone.date(at);
        let begin = zone.midnight(date);
        let next = LocalDate::saturating_from(date.naive() + Days::new(1));
        let [elapsed, length] =
            [at, zone.midnight(next)].map(|end| end.since(begin).num_milliseconds());
        Self { date: date.naive(), elapsed, length }
    }
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

    /// The charge from the begin of the period to a moment.
    fn accrued(&self, price: &Exact, moment: &DayPart) -> Exact {
        let days = (moment.date - self.first).num_days();
        let whole = self.of_days(price, days);
        if moment.elapsed == 0 {
            return whole;
        }
        let day = &self.of_days(price, days + 1) - &whole;
        &whole + &day.part(moment.elapsed, moment.length)
    }

    /// The charge of the first days of the period.
    fn of_days(&self, price: &Exact, days: i64) -> Exact {
        match self.per {
            Per::Day => price * days,
            _ => price.part(days, self.days),
        }
    }
}
