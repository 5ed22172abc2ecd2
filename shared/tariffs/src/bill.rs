//! The bill of a tariff: folds the energy of consecutive steps of time into rows and lines. Reads nothing.
//!
//! For each step, the lines that hold are taken from top to bottom. All sums are exact; only what is due is rounded, once
//! a month.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use domain::{Amount, CalendarUnit, Exact, QuarterHour, TimeRange, Timestamp, Zone};
use serde::{Serialize, Serializer};

use crate::missing::{Missing, MissingKind, MissingList, shown};
use crate::prices::Prices;
use crate::standing::charge;
use crate::tariff::{NamedLine, Pricing, Tariff, TariffLine, Tier};
use crate::written::Per;

/// What was used and sold in one step of time: a quarter of an hour, a local day, or a part of one.
#[derive(Debug, Clone)]
pub struct EnergyStep {
    /// The time of the step, which lies in one row.
    pub range: TimeRange,
    /// What was used; `None` if nothing is known.
    pub used: Option<Amount>,
    /// What was sold; `None` if nothing is known.
    pub sold: Option<Amount>,
    /// What the meter used, which tiers count. Differs from `used` in the bill of a share.
    pub metered: Option<Amount>,
    /// Whether nobody knows what a meter used.
    pub is_unknown: bool,
    /// The longest time over which energy of the step is spread, if it is longer than a quarter of an hour.
    pub spread: Option<SpreadOver>,
}

/// Over what time energy was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpreadOver {
    /// At most an hour.
    Hour,
    /// More than an hour.
    Longer,
}

/// The inputs of a bill.
#[derive(Debug, Clone, Copy)]
pub struct BillInput<'a> {
    /// The tariff.
    pub tariff: &'a Tariff,
    /// The rows, which follow each other.
    pub rows: &'a [TimeRange],
    /// The steps, which follow each other. Steps before the first row only count for tiers.
    pub steps: &'a [EnergyStep],
    /// The prices of the tariff's series.
    pub prices: &'a Prices,
    /// What the steps lack, before they are billed.
    pub missing: &'a [Missing],
    /// The time up to which standing charges accrue: now, or later.
    pub until: Timestamp,
    /// Whether the bill is that of a device's share: no standing charges, nothing sold, and each step at the price of
    /// its tier.
    pub is_share: bool,
}

/// The sums of a row, or of all rows.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BillRow {
    /// What was used, if anything is known
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Exact>"))]
    pub used: Option<Amount>,
    /// What was sold, if anything is known
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Exact>"))]
    pub sold: Option<Amount>,
    /// The money, not rounded
    #[serde(serialize_with = "money")]
    #[cfg_attr(feature = "schema", schemars(with = "Exact"))]
    pub amount: Amount,
    /// The money for one unit that was used, if nothing is missing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Exact>,
    /// Whether something is missing.
    #[serde(skip)]
    pub is_incomplete: bool,
}

/// The sums of a line, or of one of its zones or tiers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BillLine {
    /// The name of the line
    pub name: String,
    /// The zone, or the limits of the tier such as 0-120
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What the price is for
    pub per: Per,
    /// The units that were used or sold, or the days, months or years
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Exact>"))]
    pub quantity: Option<Amount>,
    /// The money, not rounded
    #[serde(serialize_with = "money")]
    #[cfg_attr(feature = "schema", schemars(with = "Exact"))]
    pub amount: Amount,
}

fn money<S: Serializer>(amount: &Amount, to: S) -> Result<S::Ok, S::Error> {
    amount.shown().serialize(to)
}

/// A bill.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bill {
    /// The sums of each row.
    #[serde(skip)]
    pub rows: Vec<BillRow>,
    /// The sums of all rows.
    #[serde(flatten)]
    pub total: BillRow,
    /// The money that is due, rounded once a month; only of whole calendar months that are over
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// The lines, in the order of the tariff
    pub lines: Vec<BillLine>,
    /// What the sums lack, in the order of its begin.
    #[serde(skip)]
    pub missing: Vec<Missing>,
}

impl Bill {
    /// The bill of a range.
    pub fn of(input: BillInput<'_>) -> Self {
        let mut fold = BillFold::new(input);
        for step in input.steps {
            fold.add(step);
        }
        fold.finish()
    }
}

impl BillRow {
    fn add_energy(&mut self, used: Option<&Amount>, sold: Option<&Amount>) {
        for (sum, part) in [(&mut self.used, used), (&mut self.sold, sold)] {
            if let Some(part) = part {
                sum.get_or_insert_default().add(part);
            }
        }
    }

    fn with_mean(self) -> Self {
        let used = self.used.as_ref().map(Amount::shown);
        let used = used.filter(|used| used.is_positive() && !self.is_incomplete);
        Self { mean: used.and_then(|used| self.amount.shown().rounded_quotient(&used)), ..self }
    }
}

/// Quantity and money of a line in one step, or in one tier of the step.
struct LinePart<'a> {
    /// The name of the zone or tier.
    zone: Option<&'a str>,
    quantity: Amount,
    amount: Amount,
}

/// The sums of one month that become due.
#[derive(Default)]
struct MonthSums {
    /// The lines that are not rounded by themselves.
    together: Amount,
    /// The lines that are rounded down, by their place.
    rounded: BTreeMap<usize, Amount>,
}

struct BillFold<'a> {
    input: BillInput<'a>,
    rows: Vec<BillRow>,
    /// The lines of each place.
    lines: Vec<Vec<BillLine>>,
    months: BTreeMap<Timestamp, MonthSums>,
    missing: MissingList,
    /// What the meter has used since the month's begin.
    metered: Amount,
    /// The month of `metered`.
    month: TimeRange,
    /// The day of the step.
    day: TimeRange,
    /// The hour of UTC for which `changes_within_hour` holds.
    hour: Option<TimeRange>,
    /// Whether a price changes within the hour, so that energy of the whole hour is spread over several prices.
    changes_within_hour: bool,
    /// The begin of the time whose standing charges are not in the sums yet. They are added once a day and row.
    uncharged: Timestamp,
}

impl<'a> BillFold<'a> {
    fn new(input: BillInput<'a>) -> Self {
        let first = input.steps.first().map_or(input.rows[0].from(), |step| step.range.from());
        let mut fold = Self {
            rows: vec![BillRow::default(); input.rows.len()],
            lines: vec![Vec::new(); input.tariff.lines.len()],
            months: BTreeMap::new(),
            missing: MissingList::default(),
            metered: Amount::zero(),
            month: CalendarUnit::Month.bucket_of(first, input.tariff.zone),
            day: CalendarUnit::Day.bucket_of(first, input.tariff.zone),
            hour: None,
            changes_within_hour: false,
            uncharged: input.rows[0].from(),
            input,
        };
        input.missing.iter().for_each(|missing| fold.note(missing.clone()));
        fold
    }

    fn add(&mut self, step: &EnergyStep) {
        let from = step.range.from();
        if self.month.to() <= from {
            self.month = CalendarUnit::Month.bucket_of(from, self.input.tariff.zone);
            self.metered = Amount::zero();
        }
        if self.input.rows[0].from() <= from {
            self.bill(step);
        }
        if let Some(metered) = &step.metered {
            self.metered.add(metered);
        }
    }

    /// Adds a step to the sums, line by line.
    fn bill(&mut self, step: &EnergyStep) {
        let BillInput { tariff, rows, .. } = self.input;
        let (from, to) = (step.range.from(), step.range.to());
        let row = rows.partition_point(|row| row.to() <= from);
        if self.day.to() <= from {
            self.day = CalendarUnit::Day.bucket_of(from, tariff.zone);
        }
        let is_end = to == self.day.to() || to == rows[row].to();
        let charged = TimeRange::new(self.uncharged, to).ok().filter(|_| is_end);
        let (mut above, mut has_price) = (Amount::zero(), false);

        for (place, named) in tariff.lines.iter().enumerate() {
            let line = named.at(from).filter(|_| self.input.is_billed(named));
            let Some(line) = line else { continue };
            has_price |= named.per == Per::Used;
            let parts = match &line.pricing {
                Pricing::Zones { price, .. } if !named.per.is_of_energy() => {
                    self.input.charges(named.per, price, charged, &above)
                }
                _ => self.parts(named, line, step),
            };

            for mut part in parts {
                if named.per == Per::Sold {
                    part.amount = Amount::zero().minus(&part.amount);
                }
                above.add(&part.amount);
                let month = self.months.entry(self.month.from()).or_default();
                if line.is_rounded_down {
                    month.rounded.entry(place).or_default().add(&part.amount);
                } else {
                    month.together.add(&part.amount);
                }
                add_line(&mut self.lines[place], named, part);
            }
        }

        if is_end {
            self.uncharged = to;
        }
        self.rows[row].amount.add(&above);
        self.rows[row].add_energy(step.used.as_ref(), step.sold.as_ref());
        self.note_missing(has_price, step);
    }

    /// The energy of a step, priced by a line: one part, or one for each tier with energy.
    fn parts(
        &mut self,
        named: &NamedLine,
        line: &'a TariffLine,
        step: &EnergyStep,
    ) -> Vec<LinePart<'a>> {
        let flow = if named.per == Per::Sold { &step.sold } else { &step.used };
        let quantity = flow.clone().unwrap_or_default();

        let (zone, price) = match &line.pricing {
            Pricing::Tiers(tiers) if self.input.is_share => {
                let tier = tier_of(tiers, &self.metered);
                (Some(tier.name.as_str()), Some(tier.price.clone()))
            }
            Pricing::Tiers(tiers) => return by_tier(tiers, &self.metered, &quantity),
            _ => self.input.price_at(line, step.range.from()),
        };
        if price.is_none() {
            let (line, kwh) = (Some(named.name.clone()), Some(quantity.clone()));
            self.note(Missing { line, kwh, ..Missing::of(MissingKind::Price, step.range) });
        }
        let price = price.unwrap_or_else(Exact::zero);
        vec![LinePart { zone, amount: quantity.times(&price), quantity }]
    }

    /// Notes what the energy of a step lacks.
    fn note_missing(&mut self, has_price: bool, step: &EnergyStep) {
        let used = step.used.clone().unwrap_or_default();
        if step.is_unknown {
            self.note(Missing::of(MissingKind::Energy, step.range));
        }
        if let Some(over) = step.spread {
            let is_split = self.is_split(over, step.range.from());
            let kwh = if is_split { used.clone() } else { Amount::zero() };
            self.note(Missing { kwh: Some(kwh), ..Missing::of(MissingKind::Spread, step.range) });
        }
        if !has_price {
            self.note(Missing { kwh: Some(used), ..Missing::of(MissingKind::Tariff, step.range) });
        }
    }

    /// Notes that something is missing, also in the rows.
    fn note(&mut self, missing: Missing) {
        if missing.has_effect() {
            let first = self.input.rows.partition_point(|row| row.to() <= missing.from);
            let end = self.input.rows.partition_point(|row| row.from() < missing.to);
            self.rows[first..end].iter_mut().for_each(|row| row.is_incomplete = true);
        }
        self.missing.add(missing);
    }

    /// Whether energy that is spread over some time has several prices in that time.
    fn is_split(&mut self, over: SpreadOver, at: Timestamp) -> bool {
        let input = self.input;
        let mut lines = input.tariff.lines.iter().filter(|named| input.is_billed(named));
        if over == SpreadOver::Longer {
            let is_flat = |line: &TariffLine| matches!(&line.pricing, Pricing::Zones { zones, .. } if zones.is_empty());
            return lines.any(|named| named.at(at).is_some_and(|line| !is_flat(line)));
        }

        if self.hour.is_none_or(|hour| !hour.contains(at)) {
            let hour = CalendarUnit::Hour.bucket_of(at, Zone::UTC);
            self.hour = Some(hour);
            self.changes_within_hour = lines.any(|named| input.changes_within(named, hour));
        }
        self.changes_within_hour
    }

    fn finish(mut self) -> Bill {
        self.note_days();
        let mut total = BillRow::default();
        for row in &self.rows {
            total.add_energy(row.used.as_ref(), row.sold.as_ref());
            total.amount.add(&row.amount);
            total.is_incomplete |= row.is_incomplete;
        }
        Bill {
            due: self.due(),
            rows: self.rows.into_iter().map(BillRow::with_mean).collect(),
            total: total.with_mean(),
            lines: self.lines.into_iter().flatten().collect(),
            missing: self.missing.sorted(),
        }
    }

    /// What is due: each month by itself, rounded as the tariff says.
    fn due(&self) -> Option<String> {
        let BillInput { tariff, rows, until, is_share, .. } = self.input;
        let (from, to) = (rows[0].from(), rows[rows.len() - 1].to());
        let begins = |at: Timestamp| CalendarUnit::Month.bucket_of(at, tariff.zone).from() == at;
        if is_share || until < to || !begins(from) || !begins(to) {
            return None;
        }

        let mut due = Exact::zero();
        for month in self.months.values() {
            let mut sum = month.together.shown();
            for line in month.rounded.values() {
                sum += &line.shown().to_decimals(tariff.decimals, true);
            }
            due += &sum.to_decimals(tariff.decimals, tariff.is_rounded_down);
        }
        Some(due.fixed(tariff.decimals))
    }

    /// Notes lists of days that zones use and that have no date in a year of the range.
    fn note_days(&mut self) {
        let BillInput { tariff, rows, .. } = self.input;
        let range = TimeRange::new(rows[0].from(), rows[rows.len() - 1].to()).expect("rows");
        for named in &tariff.lines {
            for line in named.versions.iter().rev() {
                let Some(range) = line.range.intersection(range) else { continue };
                for (list, year) in tariff.years_without_dates(line, range) {
                    let (line, name) = (Some(named.name.clone()), Some(list.to_owned()));
                    self.note(Missing { line, name, ..Missing::of(MissingKind::Days, year) });
                }
            }
        }
    }
}

impl<'a> BillInput<'a> {
    /// Whether a line is in the bill.
    fn is_billed(&self, named: &NamedLine) -> bool {
        !self.is_share || matches!(named.per, Per::Used | Per::Percent)
    }

    /// The zone and the price of energy at a time. By tiers there is no such price.
    fn price_at(&self, line: &'a TariffLine, at: Timestamp) -> (Option<&'a str>, Option<Exact>) {
        match &line.pricing {
            Pricing::Zones { price, zones } => match self.tariff.zone_at(zones, at) {
                Some(zone) => (Some(&zone.name), Some(zone.price.clone())),
                None => (None, Some(price.clone())),
            },
            Pricing::Tiers(_) => (None, None),
            Pricing::Series(series) => {
                (None, series.price(self.prices, QuarterHour::of(at), self.tariff.zone))
            }
        }
    }

    /// Whether the price of a line changes within an hour of UTC.
    fn changes_within(&self, named: &'a NamedLine, hour: TimeRange) -> bool {
        let price = |at: Timestamp| named.at(at).and_then(|line| self.price_at(line, at).1);
        let quarters = CalendarUnit::QuarterHour.buckets(hour, Zone::UTC);
        let mut prices = quarters.map(|quarter| price(quarter.from()));
        let of_first = prices.next().flatten();
        prices.any(|price| price != of_first)
    }

    /// A percentage of what stands above it, or a standing charge as far as it has accrued.
    fn charges(
        &self,
        per: Per,
        price: &Exact,
        charged: Option<TimeRange>,
        above: &Amount,
    ) -> Vec<LinePart<'a>> {
        if per == Per::Percent {
            let amount = above.times(price);
            return vec![LinePart { zone: None, quantity: Amount::zero(), amount }];
        }

        let Some(charged) = charged else { return Vec::new() };
        let accrued = TimeRange::new(charged.from(), charged.to().min(self.until));
        let of = |price: &Exact| match accrued {
            Ok(accrued) => Amount::counted(charge(per, price, accrued, self.tariff.zone)),
            Err(_) => Amount::zero(),
        };
        vec![LinePart { zone: None, quantity: of(&Exact::from(1_i64)), amount: of(price) }]
    }
}

/// The tier in which an amount of the month is.
fn tier_of<'a>(tiers: &'a [Tier], metered: &Amount) -> &'a Tier {
    let is_below = |tier: &&Tier| tier.to.as_ref().is_none_or(|to| is_less(metered, to));
    tiers.iter().find(is_below).expect("the last tier has no end")
}

fn is_less(amount: &Amount, limit: &Exact) -> bool {
    amount.minus(&Amount::counted(limit.clone())).sign() == Ordering::Less
}

/// What each tier has of what is used, which may be negative after a fall of the counter.
fn by_tier<'a>(tiers: &'a [Tier], before: &Amount, used: &Amount) -> Vec<LinePart<'a>> {
    let mut after = before.clone();
    after.add(used);
    let (mut begin, mut parts) = (Exact::zero(), Vec::new());

    for (place, tier) in tiers.iter().enumerate() {
        let inside = |metered: &Amount| {
            let above = metered.minus(&Amount::counted(begin.clone()));
            match tier.to.as_ref().filter(|to| !is_less(metered, to)) {
                Some(to) => Amount::counted(to - &begin),
                // Below zero, after a fall of the counter, the first tier goes on.
                None if place == 0 || above.sign() == Ordering::Greater => above,
                None => Amount::zero(),
            }
        };
        let quantity = inside(&after).minus(&inside(before));
        if place == 0 || quantity.sign() != Ordering::Equal {
            let amount = quantity.times(&tier.price);
            parts.push(LinePart { zone: Some(&tier.name), quantity, amount });
        }
        begin = tier.to.clone().unwrap_or(begin);
    }
    parts
}

/// Adds a part to the lines of a name.
fn add_line(lines: &mut Vec<BillLine>, named: &NamedLine, part: LinePart<'_>) {
    let quantity = Some(part.quantity).filter(|_| named.per != Per::Percent);
    let Some(line) = lines.iter_mut().find(|line| line.zone.as_deref() == part.zone) else {
        let (name, zone) = (named.name.clone(), part.zone.map(str::to_owned));
        return lines.push(BillLine { name, zone, per: named.per, quantity, amount: part.amount });
    };

    line.amount.add(&part.amount);
    if let (Some(sum), Some(quantity)) = (&mut line.quantity, quantity) {
        sum.add(&quantity);
    }
}
