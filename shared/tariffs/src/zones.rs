//! When a price of a zone holds: months, days and hours of the local clock. Knows no time zone.

use chrono::{Datelike, NaiveDateTime, Timelike};
use domain::{Exact, LocalDate, MemberError};

use crate::written::WrittenZone;

/// The minutes of a quarter of an hour.
const QUARTER: u32 = 15;
/// The quarters of an hour of a day.
pub(crate) const QUARTERS: u32 = 96;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The words of weekdays, from Monday on.
pub(crate) const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A price at some times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PriceZone {
    pub(crate) name: String,
    pub(crate) price: Exact,
    months: TimeSet,
    weekdays: TimeSet,
    /// The indexes of lists, whose dates match as the weekdays do.
    pub(crate) lists: Vec<usize>,
    pub(crate) hours: TimeSet,
}

impl PriceZone {
    /// Reads when the price holds: months such as `oct-mar`, weekdays or names of lists such as `sat,sun,holiday`, hours
    /// such as `10:00-14:00,18:00-22:00`.
    pub(crate) fn of(written: &WrittenZone, day_lists: &[DayList]) -> Result<Self, MemberError> {
        let WrittenZone { name, price, months, days, hours } = written;
        let months =
            TimeSet::read("months", months.as_deref(), "months such as oct-mar", |part| {
                words_between(part, &MONTHS)
            })?;
        let hours = TimeSet::read(
            "hours",
            hours.as_deref(),
            "local hours in quarters such as 22:00-06:00",
            hours_of,
        )?;

        let mut lists = Vec::new();
        let expected = "weekdays such as mon-fri, or a name of the member days of the tariff";
        let weekdays = TimeSet::read("days", days.as_deref(), expected, |part| {
            let Some(list) = day_lists.iter().position(|list| list.name == part) else {
                return words_between(part, &WEEKDAYS);
            };
            lists.push(list);
            Some(TimeSet::NONE)
        })?;

        let (name, price) = (name.as_str().to_owned(), Exact::from(price));
        Ok(Self { name, price, months, weekdays, lists, hours })
    }

    /// Whether the price holds at a moment.
    pub(crate) fn matches(&self, moment: &LocalMoment, day_lists: &[DayList]) -> bool {
        let has_date = |list: &usize| day_lists[*list].dates.binary_search(&moment.date).is_ok();
        self.months.has(moment.month)
            && self.hours.has(moment.quarter)
            && (self.weekdays.has(moment.weekday) || self.lists.iter().any(has_date))
    }
}

/// The moment at which something was used, as zones see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalMoment {
    month: u32,
    weekday: u32,
    date: LocalDate,
    quarter: u32,
}

impl LocalMoment {
    /// The moment at which the clock shows `clock`. Month, weekday and date are those of `day`, which is earlier if
    /// days begin after midnight.
    pub(crate) fn of(clock: NaiveDateTime, day: NaiveDateTime) -> Self {
        Self {
            month: day.month0(),
            weekday: day.weekday().num_days_from_monday(),
            date: LocalDate::saturating_from(day.date()),
            quarter: (clock.hour() * 60 + clock.minute()) / QUARTER,
        }
    }
}

/// A named list of dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayList {
    pub(crate) name: String,
    /// The dates, in order.
    pub(crate) dates: Vec<LocalDate>,
}

/// Months, weekdays, or quarters of an hour of the local clock, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSet(u128);

impl TimeSet {
    pub(crate) const ALL: Self = Self(u128::MAX);
    const NONE: Self = Self(0);

    /// Reads the parts of a member between its commas; without the member, all times.
    fn read(
        member: &str,
        text: Option<&str>,
        expected: &str,
        mut part_of: impl FnMut(&str) -> Option<Self>,
    ) -> Result<Self, MemberError> {
        let Some(text) = text else { return Ok(Self::ALL) };
        let mut all = Self::NONE;
        for part in text.split(',').map(str::trim) {
            let Some(found) = part_of(part) else {
                let part = domain::excerpt(part);
                return Err(MemberError::of(member, format!("has {part:?}; expected {expected}")));
            };
            all.0 |= found.0;
        }
        Ok(all)
    }

    /// Some of the `count` times that follow each other; behind the last comes the first.
    fn following(from: u32, length: u32, count: u32) -> Self {
        Self((0..length).fold(0, |bits, step| bits | 1 << ((from + step) % count)))
    }

    const fn has(self, place: u32) -> bool {
        self.0 >> place & 1 == 1
    }
}

/// The local hours between two times such as `22:00-06:00`.
fn hours_of(text: &str) -> Option<TimeSet> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (quarter_of(from)?, quarter_of(to)?);
    let length = if from < to { to - from } else { to + QUARTERS - from };
    (from != to).then(|| TimeSet::following(from, length, QUARTERS))
}

/// One word, or all words from one to another such as `oct-mar`.
fn words_between(text: &str, words: &[&str]) -> Option<TimeSet> {
    let place = |word: &str| words.iter().position(|known| *known == word.trim());
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (u32::try_from(place(from)?).ok()?, u32::try_from(place(to)?).ok()?);
    let count = u32::try_from(words.len()).ok()?;
    Some(TimeSet::following(from, (to + count - from) % count + 1, count))
}

/// The quarter of an hour that begins at a time such as `22:15`; 96 for `24:00`.
pub(crate) fn quarter_of(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let has_two_digits =
        |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_written = has_two_digits(hour) && has_two_digits(minute);
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    let quarter = (hour * 60 + minute) / QUARTER;
    (is_written && minute < 60 && minute % QUARTER == 0 && quarter <= QUARTERS).then_some(quarter)
}
