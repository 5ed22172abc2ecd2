//! When a price of a zone holds: months, days and hours of the local clock. Knows no time zone.
//!
//! A moment has a month, a quarter of an hour, a weekday and the lists that have its date. A zone holds if it contains
//! the month, the quarter of an hour, and the weekday or one of the lists.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDateTime, Timelike};
use domain::{Exact, LocalDate, MemberError};

use crate::written::{WrittenZone, number};

/// The minutes of a quarter of an hour.
const QUARTER: u32 = 15;
/// The quarters of an hour of a day.
pub(crate) const QUARTERS: u32 = 96;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The words of weekdays, from Monday on.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The largest number of lists of dates.
const MAX_LISTS: usize = 24;

/// A price at some times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PriceZone {
    pub(crate) name: String,
    pub(crate) price: Exact,
    months: TimeSet,
    /// Weekdays in the first seven bits, then the lists of dates.
    pub(crate) days: TimeSet,
    pub(crate) hours: TimeSet,
}

impl PriceZone {
    /// Reads when the price holds: months such as `oct-mar`, weekdays or names of lists such as `sat,sun,holiday`,
    /// hours such as `10:00-14:00,18:00-22:00`.
    pub(crate) fn of(written: &WrittenZone, lists: &DayLists) -> Result<Self, MemberError> {
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

        let days = days.as_deref().unwrap_or("mon-sun");
        let expected = "weekdays such as mon-fri, or a name of the member days of the tariff";
        let days = TimeSet::read("days", Some(days), expected, |part| {
            lists.list(part).or_else(|| words_between(part, &WEEKDAYS))
        })?;

        let (name, price) = (name.as_str().to_owned(), number("price", price)?);
        Ok(Self { name, price, months, days, hours })
    }

    /// Whether the price holds at a moment.
    pub(crate) const fn matches(&self, moment: &LocalMoment) -> bool {
        self.months.meets(moment.month)
            && self.hours.meets(moment.quarter)
            && self.days.meets(moment.days)
    }
}

/// The moment at which something was used, as zones see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalMoment {
    month: TimeSet,
    /// The weekday, and the lists that have the date.
    days: TimeSet,
    quarter: TimeSet,
}

impl LocalMoment {
    /// The moment at which the clock shows `clock`. Month, weekday and date are those of `day`, which is earlier if
    /// days begin after midnight.
    pub(crate) fn of(clock: NaiveDateTime, day: NaiveDateTime, lists: &DayLists) -> Self {
        let weekday = TimeSet::one(day.weekday().num_days_from_monday());
        let date = LocalDate::saturating_from(day.date());
        Self {
            month: TimeSet::one(day.month0()),
            days: lists.dates.get(&date).map_or(weekday, |lists| weekday.with(*lists)),
            quarter: TimeSet::one((clock.hour() * 60 + clock.minute()) / QUARTER),
        }
    }
}

/// The named lists of dates of a tariff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayLists {
    names: Vec<String>,
    /// The lists of each date.
    dates: BTreeMap<LocalDate, TimeSet>,
}

impl DayLists {
    /// Reads the lists by their names.
    pub(crate) fn of(written: &BTreeMap<String, Vec<LocalDate>>) -> Result<Self, MemberError> {
        if written.len() > MAX_LISTS {
            return Err(MemberError::of("days", format!("are more than {MAX_LISTS}")));
        }

        let names = written.keys().cloned().collect();
        let mut lists = Self { names, dates: BTreeMap::new() };
        for (name, dates) in written {
            let is_word = WEEKDAYS.contains(&name.as_str()) || name.trim() != name;
            if is_word || name.is_empty() || name.contains([',', '-']) {
                let why = "has a name that is a weekday, or has a comma, a hyphen or blanks";
                return Err(MemberError::of(&format!("days.{name}"), why));
            }

            let list = lists.list(name).expect("it has the name");
            for date in dates {
                let of_date = lists.dates.entry(*date).or_insert(TimeSet::NONE);
                *of_date = of_date.with(list);
            }
        }
        Ok(lists)
    }

    /// The list with a name.
    fn list(&self, name: &str) -> Option<TimeSet> {
        let place = self.names.iter().position(|known| known == name)?;
        Some(TimeSet::one(u32::try_from(WEEKDAYS.len() + place).ok()?))
    }

    /// The names of the lists in `days` that have no date in `dates`.
    pub(crate) fn without_dates(
        &self,
        days: TimeSet,
        dates: RangeInclusive<LocalDate>,
    ) -> impl Iterator<Item = &str> {
        let with_dates =
            self.dates.range(dates).fold(TimeSet::NONE, |all, (_, lists)| all.with(*lists));
        let names = self.names.iter().map(String::as_str);
        names.filter(move |name| {
            let list = self.list(name);
            list.is_some_and(|list| days.meets(list) && !with_dates.meets(list))
        })
    }
}

/// Months, days, or quarters of an hour of the local clock, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSet(u128);

impl TimeSet {
    pub(crate) const ALL: Self = Self(u128::MAX);
    pub(crate) const NONE: Self = Self(0);

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
            all = all.with(found);
        }
        Ok(all)
    }

    const fn one(place: u32) -> Self {
        Self(1 << place)
    }

    /// `length` consecutive times from `from` on, out of `count` times; after the last comes the first.
    fn following(from: u32, length: u32, count: u32) -> Self {
        Self((0..length).fold(0, |bits, step| bits | 1 << ((from + step) % count)))
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether two sets have a time in common.
    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
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
