//! A checked tariff: its lines by name, with dates as times and words as sets. Bills nothing.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{CalendarUnit, Decimal, Exact, LocalDate, MemberError, TimeRange, Timestamp, Zone};

use crate::prices::{PriceSeries, PriceSource};
use crate::written::{
    MAX_LINES, Per, Rounding, TariffMeter, WrittenLine, WrittenTariff, WrittenTier, WrittenZone,
    number,
};
use crate::zones::{DayLists, LocalMoment, PriceZone, QUARTERS, TimeSet, quarter_of};

/// The largest number of meters of a tariff.
const MAX_METERS: usize = 8;
/// The largest number of zones or tiers of a line.
const MAX_ZONES: usize = 24;
/// The largest number of names of percentages. Each percentage multiplies the sum above, so the digits of the exact
/// sums add up.
const MAX_PERCENTAGES: usize = 8;
/// Currencies without decimals; all others have two.
const WHOLE_CURRENCIES: [&str; 2] = ["JPY", "KRW"];

/// A tariff that can be billed.
#[derive(Debug, Clone)]
pub struct Tariff {
    /// The time zone of its dates and hours.
    pub zone: Zone,
    /// The meters whose energy is billed.
    pub meters: Vec<TariffMeter>,
    /// Whether sums that are due are rounded towards zero.
    pub(crate) is_rounded_down: bool,
    /// The decimals of the currency.
    pub(crate) decimals: u8,
    pub(crate) day_begins: TimeDelta,
    pub(crate) day_lists: DayLists,
    /// The lines, in the order of the bill.
    pub(crate) lines: Vec<NamedLine>,
}

/// The lines of one name, the newest `from` first.
#[derive(Debug, Clone)]
pub(crate) struct NamedLine {
    pub(crate) name: String,
    pub(crate) per: Per,
    pub(crate) versions: Vec<TariffLine>,
}

/// A line of a tariff.
#[derive(Debug, Clone)]
pub(crate) struct TariffLine {
    /// When the line holds.
    pub(crate) range: TimeRange,
    /// How the price is found.
    pub(crate) pricing: Pricing,
    /// Whether the sum of a month is rounded down before it is added to what is due.
    pub(crate) is_rounded_down: bool,
}

/// How the price of a line is found.
#[derive(Debug, Clone)]
pub(crate) enum Pricing {
    /// A price, and zones that replace it at some times; the last zone that matches holds. The price of a percentage is
    /// a fraction, such as 0.19 for 19 %.
    Zones { price: Exact, zones: Vec<PriceZone> },
    /// Prices by what was used since the month's begin.
    Tiers(Vec<Tier>),
    /// A price by time.
    Series(PriceSeries),
}

/// The price up to an amount of a month.
#[derive(Debug, Clone)]
pub(crate) struct Tier {
    /// The limits, such as 0-120.
    pub(crate) name: String,
    /// The amount at which the tier ends; `None` for the last tier.
    pub(crate) to: Option<Exact>,
    pub(crate) price: Exact,
}

impl NamedLine {
    /// The line that holds at a time. If several lines hold, the newest `from` wins.
    pub(crate) fn at(&self, at: Timestamp) -> Option<&TariffLine> {
        self.versions.iter().find(|line| line.range.contains(at))
    }
}

impl Tariff {
    /// Checks a tariff. `home` is the time zone of a tariff without one.
    pub fn of(written: &WrittenTariff, home: Zone) -> Result<Self, MemberError> {
        let currency = written.currency.as_str();
        if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_uppercase()) {
            return Err(MemberError::of("currency", "is no code of ISO 4217, such as EUR"));
        }

        let zone = match &written.tz {
            Some(name) => name.parse().map_err(|why| MemberError::of("tz", why))?,
            None => home,
        };
        let begin = written.day_begins.as_deref().unwrap_or("00:00");
        let begin = quarter_of(begin).filter(|quarter| *quarter < QUARTERS);
        let begin = begin.ok_or_else(|| {
            MemberError::of("day_begins", "is no time in quarters of an hour, such as 06:00")
        })?;

        check_meters(&written.meters)?;
        let mut tariff = Self {
            zone,
            meters: written.meters.clone(),
            is_rounded_down: written.round == Some(Rounding::Down),
            decimals: if WHOLE_CURRENCIES.contains(&currency) { 0 } else { 2 },
            day_begins: TimeDelta::minutes(i64::from(begin) * 15),
            day_lists: DayLists::of(&written.days)?,
            lines: Vec::new(),
        };
        tariff.add_lines(&written.lines)?;
        Ok(tariff)
    }

    /// Adds the lines. Lines of one name are billed where the first of them stands.
    fn add_lines(&mut self, lines: &[WrittenLine]) -> Result<(), MemberError> {
        if !(1..=MAX_LINES).contains(&lines.len()) {
            let why = format!("has {} lines; a tariff has 1 to {MAX_LINES}", lines.len());
            return Err(MemberError::of("lines", why));
        }

        for (index, written) in lines.iter().enumerate() {
            self.add_line(written).map_err(within(format!("lines[{index}]")))?;
        }
        self.lines.iter_mut().for_each(NamedLine::end_versions);
        Ok(())
    }

    fn add_line(&mut self, written: &WrittenLine) -> Result<(), MemberError> {
        let (line, per) = (self.line(written)?, written.per);
        let name = written.name.as_str();
        let is_percentage = |named: &&NamedLine| named.per == Per::Percent;
        let percentages = self.lines.iter().filter(is_percentage).count();
        let Some(named) = self.lines.iter_mut().find(|named| named.name == name) else {
            if per == Per::Percent && percentages == MAX_PERCENTAGES {
                let why = format!("is of more than {MAX_PERCENTAGES} percentages");
                return Err(MemberError::of("per", why));
            }
            self.lines.push(NamedLine { name: name.to_owned(), per, versions: vec![line] });
            return Ok(());
        };

        if named.per != per {
            return Err(MemberError::of("per", "differs from another line of the same name"));
        }
        if named.versions.iter().any(|other| other.range.from() == line.range.from()) {
            return Err(MemberError::of("from", "is that of another line of the same name"));
        }
        named.versions.push(line);
        Ok(())
    }

    fn line(&self, written: &WrittenLine) -> Result<TariffLine, MemberError> {
        let midnight = |member: &str, date: LocalDate| match self.zone.midnight(date) {
            Timestamp::MIN => Err(MemberError::of(member, "is before 1970, when times begin")),
            at => Ok(at),
        };
        let begin = written.from.map(|date| midnight("from", date)).transpose()?;
        let end = written.to.map(|date| midnight("to", date)).transpose()?;
        let (begin, end) = (begin.unwrap_or(Timestamp::MIN), end.unwrap_or(Timestamp::MAX));
        let range =
            TimeRange::new(begin, end).map_err(|_| MemberError::of("to", "is not after from"))?;
        if written.round == Some(Rounding::HalfUp) {
            return Err(MemberError::of("round", "of a line can only be down"));
        }

        Ok(TariffLine {
            range,
            pricing: self.pricing(written)?,
            is_rounded_down: written.round.is_some(),
        })
    }

    fn pricing(&self, written: &WrittenLine) -> Result<Pricing, MemberError> {
        let of_member = |member: &str, written: &Option<Decimal>| {
            written.as_ref().map(|written| number(member, written)).transpose()
        };
        let mut price = of_member("price", &written.price)?;
        let times = of_member("times", &written.times)?;
        if written.per == Per::Percent {
            let hundredth = Exact::parse("0.01").expect("a number");
            price = price.map(|percentage| &percentage * &hundredth);
        }

        let of_energy = written.per.is_of_energy();
        let only = |member: &str, why: &str| Err(MemberError::of(member, why));
        if times.is_some() && written.series.is_none() {
            return only("times", "is for a line with a series");
        }

        match (&written.zones[..], &written.tiers[..], &written.series) {
            (zones, [], None) if zones.is_empty() || of_energy => {
                let why = if of_energy {
                    "is missing, or tiers or a series; with zones it holds where none matches"
                } else {
                    "is missing"
                };
                let price = price.ok_or_else(|| MemberError::of("price", why))?;
                Ok(Pricing::Zones { price, zones: self.zones(zones)? })
            }
            ([], tiers, None) if written.per == Per::Used && price.is_none() => self::tiers(tiers),
            ([], [], Some(series)) if of_energy => Ok(Pricing::Series(PriceSeries {
                source: PriceSource {
                    device: series.device.clone(),
                    metric: series.metric.clone(),
                },
                slot: series.slot,
                holds: series.holds.unwrap_or(series.slot),
                times: times.unwrap_or_else(|| Exact::from(1_i64)),
                adder: price.unwrap_or_else(Exact::zero),
            })),
            ([], [], Some(_)) => only("series", "is for lines per used or sold"),
            ([], _, None) => only("tiers", "are for lines per used, without price"),
            (_, [], None) => only("zones", "are for lines per used or sold"),
            _ => only("price", "is found in one way: zones, tiers or a series"),
        }
    }

    fn zones(&self, written: &[WrittenZone]) -> Result<Vec<PriceZone>, MemberError> {
        if written.len() > MAX_ZONES {
            return Err(MemberError::of("zones", format!("are more than {MAX_ZONES}")));
        }
        let zones = written.iter().map(|zone| PriceZone::of(zone, &self.day_lists));
        let zones = zones.enumerate();
        zones.map(|(index, zone)| zone.map_err(within(format!("zones[{index}]")))).collect()
    }

    /// The zone that holds at a time: the last that matches.
    pub(crate) fn zone_at<'a>(
        &self,
        zones: &'a [PriceZone],
        at: Timestamp,
    ) -> Option<&'a PriceZone> {
        if zones.is_empty() {
            return None;
        }
        let clock = self.zone.clock(at);
        let moment = LocalMoment::of(clock, clock - self.day_begins, &self.day_lists);
        zones.iter().rev().find(|zone| zone.matches(&moment))
    }

    /// The lines that hold anywhere in a range.
    fn lines_in(&self, range: TimeRange) -> impl Iterator<Item = &TariffLine> {
        let all = self.lines.iter().flat_map(|named| &named.versions);
        all.filter(move |line| line.range.intersection(range).is_some())
    }

    /// Whether a bill of the range needs quarters of an hour; else local days of the home suffice.
    pub fn needs_quarters(&self, range: TimeRange, home: Zone) -> bool {
        let is_finer = |line: &TariffLine| match &line.pricing {
            Pricing::Tiers(_) => false,
            Pricing::Zones { zones, .. } => {
                let has_hours = zones.iter().any(|zone| zone.hours != TimeSet::ALL);
                has_hours || (!zones.is_empty() && self.day_begins != TimeDelta::zero())
            }
            Pricing::Series(_) => true,
        };
        self.zone != home || self.lines_in(range).any(is_finer)
    }

    /// Whether tiers count what was used since a month's begin, anywhere in a range.
    pub fn has_tiers(&self, range: TimeRange) -> bool {
        self.lines_in(range).any(|line| matches!(line.pricing, Pricing::Tiers(_)))
    }

    /// The series whose prices a range needs.
    pub fn sources(&self, range: TimeRange) -> BTreeSet<&PriceSource> {
        let source = |line| match line {
            &TariffLine { pricing: Pricing::Series(ref series), .. } => Some(&series.source),
            _ => None,
        };
        self.lines_in(range).filter_map(source).collect()
    }

    /// The lists that the line's zones use, with the years of a range in which they have no date.
    pub(crate) fn years_without_dates(
        &self,
        line: &TariffLine,
        range: TimeRange,
    ) -> Vec<(&str, TimeRange)> {
        let Pricing::Zones { zones, .. } = &line.pricing else { return Vec::new() };
        let days = zones.iter().fold(TimeSet::NONE, |all, zone| all.with(zone.days));
        let mut found = Vec::new();
        for year in CalendarUnit::Year.buckets(range, self.zone) {
            let names = self.day_lists.without_dates(days, self.zone.dates(year));
            let year = year.intersection(range).expect("it touches the range");
            found.extend(names.map(|name| (name, year)));
        }
        found
    }

    /// The number of prices that a bill of so many steps looks up, as a measure of the time that the bill takes. A line
    /// has one price, one for each tier, or one for each quarter of an hour of a series' slot.
    pub fn work(&self, steps: usize) -> usize {
        let of_version = |line: &TariffLine| match &line.pricing {
            Pricing::Zones { .. } => 1,
            Pricing::Tiers(tiers) => tiers.len(),
            Pricing::Series(_) => 4,
        };
        let of_line = |named: &NamedLine| named.versions.iter().map(of_version).max();
        steps * self.lines.iter().filter_map(of_line).sum::<usize>()
    }
}

impl NamedLine {
    /// Sorts the versions by `from`, the newest first. A version without `to` ends where the next begins.
    fn end_versions(&mut self) {
        self.versions.sort_by_key(|line| std::cmp::Reverse(line.range.from()));
        for place in 1..self.versions.len() {
            let next = self.versions[place - 1].range.from();
            let line = &mut self.versions[place];
            if line.range.to() == Timestamp::MAX {
                line.range = TimeRange::new(line.range.from(), next).expect("sorted by from");
            }
        }
    }
}

fn check_meters(meters: &[TariffMeter]) -> Result<(), MemberError> {
    if meters.len() > MAX_METERS {
        return Err(MemberError::of("meters", format!("are more than {MAX_METERS}")));
    }
    for (index, meter) in meters.iter().enumerate() {
        check_meter(meter, &meters[..index]).map_err(within(format!("meters[{index}]")))?;
    }
    Ok(())
}

fn check_meter(meter: &TariffMeter, earlier: &[TariffMeter]) -> Result<(), MemberError> {
    // A meter without a metric counts all that its device measures.
    let is_same = |other: &TariffMeter| {
        let has_whole = other.metric.is_none() || meter.metric.is_none();
        other.device == meter.device && (other.metric == meter.metric || has_whole)
    };
    if earlier.iter().any(is_same) {
        return Err(MemberError::of("device", "is in the list already"));
    }

    if let Some(factor) = &meter.factor
        && !number("factor", factor)?.is_positive()
    {
        return Err(MemberError::of("factor", "is not above zero"));
    }

    if meter.metric.is_none() && meter.sold {
        let why = "is for a meter with metric; without it, both directions count";
        return Err(MemberError::of("sold", why));
    }
    Ok(())
}

/// Adds the name of the outer member to an error.
fn within(outer: String) -> impl Fn(MemberError) -> MemberError {
    move |MemberError { field, why }| MemberError::of(&format!("{outer}.{field}"), why)
}

fn tiers(written: &[WrittenTier]) -> Result<Pricing, MemberError> {
    let wrong = |why: &str| Err(MemberError::of("tiers", why));
    let (mut tiers, mut begin) = (Vec::new(), "0");
    for (index, tier) in written.iter().enumerate() {
        let member = |name: &str| format!("tiers[{index}].{name}");
        let end = tier.to.as_ref().map_or("", Decimal::as_str);
        let to = tier.to.as_ref().map(|to| number(&member("to"), to)).transpose()?;
        let (name, price) = (format!("{begin}-{end}"), number(&member("price"), &tier.price)?);
        tiers.push(Tier { name, to, price });
        begin = end;
    }

    let Some((last, bounded)) = tiers.split_last() else { return wrong("are missing") };
    let limits: Option<Vec<&Exact>> = bounded.iter().map(|tier| tier.to.as_ref()).collect();
    let rises = |limits: &Vec<&Exact>| {
        limits.iter().all(|limit| limit.is_positive())
            && limits.windows(2).all(|two| two[0] < two[1])
    };
    if tiers.len() > MAX_ZONES || last.to.is_some() || !limits.as_ref().is_some_and(rises) {
        return wrong(
            "do not rise: each has a larger to than the one before, and the last has none",
        );
    }
    Ok(Pricing::Tiers(tiers))
}
