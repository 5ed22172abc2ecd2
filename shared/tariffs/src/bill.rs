//! The bill of a tariff: folds the energy of consecutive steps of time into rows and lines. Reads nothing.
//!
//! For each step, the lines that hold are taken from top to bottom. All sums are exact: only the money that is due is
//! rounded, once a month.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use domain::{Amount, CalendarUnit, Exact, QuarterHour, TimeRange, Timestamp};
use serde::{Serialize, Serializer};

use crate::input::{BillInput, EnergyStep};
use crate::missing::{Missing, MissingKind, MissingList, shown};
use crate::spread::PriceChanges;
use crate::standing::ChargedTime;
use crate::tariff::{NamedLine, Pricing, TariffLine, Tier};
use crate::written::Per;

/// The decimals to which a month's sum is rounded before it is rounded to the decimals of the currency.
const PAYABLE_DECIMALS: u8 = 6;

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
        BillFold::of(input).finish()
    }
}

impl BillLine {
    /// The lines of the bill of a range, without what the bill lacks.
    pub fn all(input: BillInput<'_>) -> Vec<Self> {
        BillFold::of(input).lines.into_iter().flatten().collect()
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
    /// The sum of the lines that are not rounded by themselves.
    together: Amount,
    /// The sums of the lines that are rounded down, by the index of the line in the tariff.
    rounded: BTreeMap<usize, Amount>,
}

struct BillFold<'a> {
    input: BillInput<'a>,
    rows: Vec<BillRow>,
    /// The lines of the bill, for each line of the tariff.
    lines: Vec<Vec<BillLine>>,
    months: BTreeMap<Timestamp, MonthSums>,
    missing: MissingList,
    /// What the meter has used since the month's begin.
    metered: Amount,
    /// `metered` at the begin of the quarter of an hour. This amount decides the tier of a share, wherever rows cut the
    /// quarter.
    metered_before_quarter: Amount,
    /// The month of `metered`.
    month: TimeRange,
    /// The day of the step.
    day: TimeRange,
    changes: PriceChanges<'a>,
    /// The begin of the time whose standing charges are not in the sums yet. These charges are added at the end of each
    /// day and row.
    uncharged: Timestamp,
}

impl<'a> BillFold<'a> {
    fn of(input: BillInput<'a>) -> Self {
        let first = input.steps.first().map_or(input.rows[0].from(), |step| step.range.from());
        let mut fold = Self {
            rows: vec![BillRow::default(); input.rows.len()],
            lines: vec![Vec::new(); input.tariff.lines.len()],
            months: BTreeMap::new(),
            missing: MissingList::default(),
            metered: Amount::zero(),
            metered_before_quarter: Amount::zero(),
            month: CalendarUnit::Month.bucket_of(first, input.tariff.zone),
            day: CalendarUnit::Day.bucket_of(first, input.tariff.zone),
            changes: PriceChanges::of(input),
            uncharged: input.rows[0].from(),
            input,
        };
        input.missing.iter().for_each(|missing| fold.note(missing.clone()));
        input.steps.iter().for_each(|step| fold.add(step));
        fold
    }

    fn add(&mut self, step: &EnergyStep) {
        let from = step.range.from();
        if self.month.to() <= from {
            self.month = CalendarUnit::Month.bucket_of(from, self.input.tariff.zone);
            self.metered = Amount::zero();
        }

        if QuarterHour::of(from).start() == from {
            self.metered_before_quarter.clone_from(&self.metered);
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
        let until = to.min(self.input.until).max(self.uncharged);
        let charged = is_end.then(|| ChargedTime::of(self.uncharged, until, tariff.zone));
        let (mut above, mut has_price) = (Amount::zero(), false);

        for (place, named) in tariff.lines.iter().enumerate() {
            let line = named.at(from).filter(|_| self.input.is_billed(named));
            let Some(line) = line else { continue };
            has_price |= named.per == Per::Used;
            let parts = match &line.pricing {
                Pricing::Zones { price, .. } if !named.per.is_of_energy() => {
                    charges(named.per, price, charged.as_ref(), &above)
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

    /// The energy of a step, priced by a line: one part, or with tiers a part for the first tier and for each further
    /// tier with energy.
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
                let tier = tier_of(tiers, &self.metered_before_quarter);
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

    /// Notes what makes a step incomplete: its energy is unknown, its energy was measured over several prices, or no
    /// line has a price for used energy.
    fn note_missing(&mut self, has_price: bool, step: &EnergyStep) {
        let used = step.used.clone().unwrap_or_default();
        if step.is_unknown {
            self.note(Missing::of(MissingKind::Energy, step.range));
        }

        if !step.estimated.is_empty() {
            let mut kwh = Amount::zero();
            for part in &step.estimated {
                if self.changes.are_within(part, step) {
                    kwh.add(&part.amount);
                }
            }
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

    /// The money that is due: each month by itself, rounded as the tariff says. `None` for a share, and unless the rows
    /// are whole calendar months that are over.
    fn due(&self) -> Option<String> {
        let BillInput { tariff, until, is_share, .. } = self.input;
        let (from, to) = (self.input.range().from(), self.input.range().to());
        let begins = |at: Timestamp| CalendarUnit::Month.bucket_of(at, tariff.zone).from() == at;
        if is_share || until < to || !begins(from) || !begins(to) {
            return None;
        }

        let mut due = Exact::zero();
        for month in self.months.values() {
            let mut sum = payable(&month.together);
            for line in month.rounded.values() {
                sum += &payable(line).to_decimals(tariff.decimals, true);
            }
            due += &sum.to_decimals(tariff.decimals, tariff.is_rounded_down);
        }

        Some(due.fixed(tariff.decimals))
    }

    /// Notes lists of days that zones use and that have no date in a year of the range.
    fn note_days(&mut self) {
        let tariff = self.input.tariff;
        let range = self.input.range();
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

/// The parts of a percentage, at each step, or of a standing charge. `charged` is the time whose standing charges are
/// added, at the end of a day or row. At other steps `charged` is `None`, and no standing charge is added.
fn charges<'a>(
    per: Per,
    price: &Exact,
    charged: Option<&ChargedTime>,
    above: &Amount,
) -> Vec<LinePart<'a>> {
    if per == Per::Percent {
        let amount = above.times(price);
        return vec![LinePart { zone: None, quantity: Amount::zero(), amount }];
    }

    let Some(charged) = charged else { return Vec::new() };
    let of = |price: &Exact| Amount::counted(charged.charge(per, price));
    vec![LinePart { zone: None, quantity: of(&Exact::from(1_i64)), amount: of(price) }]
}

/// A sum of money as it becomes due. A charge that ends within a month is rounded down to 9 decimals. This rounding
/// restores the lost digits, so that they do not cost a cent.
fn payable(sum: &Amount) -> Exact {
    sum.shown().to_decimals(PAYABLE_DECIMALS, false)
}

/// The tier in which an amount of a month lies.
fn tier_of<'a>(tiers: &'a [Tier], metered: &Amount) -> &'a Tier {
    let is_below = |tier: &&Tier| tier.to.as_ref().is_none_or(|to| is_less(metered, to));
    tiers.iter().find(is_below).expect("the last tier has no end")
}

fn is_less(amount: &Amount, limit: &Exact) -> bool {
    amount.minus(&Amount::counted(limit.clone())).sign() == Ordering::Less
}

/// The part of `used` in each tier, if the month had `before` already. `used` may be negative after a fall of the
/// counter.
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

/// Adds a part to the line of its zone or tier, among the lines of a name.
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
