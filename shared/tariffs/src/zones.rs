//! When a price of a zone holds: months, days and hours of the local clock. Knows no time zone.

use chrono::{Datelike, NaiveDateTime, Timelike};
use domain::{Exact, LocalDate};

/// The minutes of a quarter of an hour.
const QUARTER: u32 = 15;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The words of weekdays, from Monday on.
pub(crate) const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A price at some times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceZone {
    pub(crate) name: String,
    pub(crate) price: Exact,
    pub(crate) months: Months,
    pub(crate) days: Days,
    pub(crate) hours: Hours,
}

impl PriceZone {
    /// Whether the price holds at a moment.
    pub(crate) fn matches(&self, moment: &LocalMoment, lists: &[DayList]) -> bool {
        let Months(months) = self.months;
        let Hours(hours) = self.hours;
        months >> moment.month & 1 == 1
            && hours >> moment.quarter & 1 == 1
            && self.days.contain(moment, lists)
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

/// Months as bits, January first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Months(u32);

impl Months {
    pub(crate) const ALL: Self = Self((1 << 12) - 1);

    /// Reads months such as `oct-mar` or `jan,jul-aug`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= span_of(part.trim(), &MONTHS).ok_or_else(|| {
                format!("has {:?}; expected months such as oct-mar", domain::excerpt(part))
            })?;
        }
        Ok(Self(bits))
    }
}

/// Days: weekdays as bits, Monday first, and indexes of lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Days {
    weekdays: u32,
    pub(crate) lists: Vec<usize>,
}

impl Days {
    pub(crate) const ALL: Self = Self { weekdays: (1 << 7) - 1, lists: Vec::new() };

    /// Reads days such as `mon-fri` or `sat,sun,holiday`.
    pub(crate) fn parse(text: &str, lists: &[DayList]) -> Result<Self, String> {
        let mut days = Self { weekdays: 0, lists: Vec::new() };
        for part in text.split(',').map(str::trim) {
            let list = lists.iter().position(|list| list.name == part);
            match (span_of(part, &WEEKDAYS), list) {
                (Some(bits), _) => days.weekdays |= bits,
                (None, Some(list)) => days.lists.push(list),
                (None, None) => {
                    let part = domain::excerpt(part);
                    return Err(format!(
                        "has {part:?}; expected weekdays such as mon-fri, or a name of the member days of the tariff"
                    ));
                }
            }
        }
        Ok(days)
    }

    fn contain(&self, moment: &LocalMoment, lists: &[DayList]) -> bool {
        let mut dates = self.lists.iter().map(|list| &lists[*list].dates);
        self.weekdays >> moment.weekday & 1 == 1
            || dates.any(|dates| dates.binary_search(&moment.date).is_ok())
    }
}

/// Hours as bits, one for each quarter of an hour of the local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours(u128);

impl Hours {
    /// The quarters of an hour of a day.
    const COUNT: u32 = 96;
    pub(crate) const ALL: Self = Self((1 << Self::COUNT) - 1);

    /// Reads hours such as `22:00-06:00` or `10:00-14:00,18:00-22:00`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= Self::span(part.trim()).ok_or_else(|| {
                let part = domain::excerpt(part);
                format!("has {part:?}; expected local hours in quarters such as 22:00-06:00")
            })?;
        }
        Ok(Self(bits))
    }

    fn span(text: &str) -> Option<u128> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (quarter_of(from)?, quarter_of(to)?);
        let bits =
            |from: u32, to: u32| (from..to).fold(0, |bits, quarter| bits | 1_u128 << quarter);
        match from.cmp(&to) {
            std::cmp::Ordering::Less => Some(bits(from, to)),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(bits(from, Self::COUNT) | bits(0, to)),
        }
    }
}

/// The quarter of an hour that begins at a time such as `22:15`; 96 for `24:00`.
pub(crate) fn quarter_of(text: &str) -> Option<u32> {
    let (hour, minute) = text.trim().split_once(':')?;
    let has_two_digits =
        |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_written = has_two_digits(hour) && has_two_digits(minute);
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    let quarter = (hour * 60 + minute) / QUARTER;
    (is_written && minute < 60 && minute % QUARTER == 0 && quarter <= Hours::COUNT)
        .then_some(quarter)
}

/// One word, or all words from one to another, as bits. A span may pass the end.
fn span_of(text: &str, words: &[&str]) -> Option<u32> {
    let place = |word: &str| words.iter().position(|known| *known == word.trim());
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (place(from)?, place(to)?);
    let length = (to + words.len() - from) % words.len();
    let places = (0..=length).map(|step| (from + step) % words.len());
    Some(places.fold(0, |bits, place| bits | 1 << place))
}
