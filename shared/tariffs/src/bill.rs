//! The bill of a tariff: folds the energy of consecutive steps of time into rows and lines. Reads nothing.
//!
//! Energy for which the same lines hold is added first and priced once: a segment of a row ends where another line may
//! hold, and at each month. All sums are exact; only what is due is rounded, once a month.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use domain::{Amount, CalendarUnit, Exact, QuarterHour, TimeRange, Timestamp};
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
#[derive(Debug)]
pub struct Bill {
    /// The sums of each row.
    pub rows: Vec<BillRow>,
    /// The sums of all rows.
    pub total: BillRow,
    /// The lines, in the order of the tariff.
    pub lines: Vec<BillLine>,
    /// What is due, with the decimals of the currency; `None` unless the rows are whole calendar months that are over.
    pub due: Option<String>,
    /// What the sums lack, in the order of its begin.
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
}

/// What a line has of a segment: of all its energy, or by zone or tier.
#[derive(Debug, Clone, Default)]
struct LinePart {
    quantity: Amount,
    amount: Amount,
}

/// A line that holds in a segment.
struct HoldingLine<'a> {
    /// The place of the line's name on the bill.
    place: usize,
    named: &'a NamedLine,
    line: &'a TariffLine,
    /// The parts so far, by zone or tier. A line of one price has none until the segment ends.
    parts: Vec<LinePart>,
}

/// A part of a row in which the same lines hold.
struct Segment<'a> {
    row: usize,
    range: TimeRange,
    lines: Vec<HoldingLine<'a>>,
    used: Amount,
    sold: Amount,
    /// What the meter had used since the month's begin when the segment began.
    metered_before: Amount,
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
    segment: Option<Segment<'a>>,
}

impl<'a> BillFold<'a> {
    fn new(input: BillInput<'a>) -> Self {
        let first = input.steps.first().map_or(input.rows[0].from(), |step| step.range.from());
        Self {
            rows: vec![BillRow::default(); input.rows.len()],
            lines: vec![Vec::new(); input.tariff.lines.len()],
            months: BTreeMap::new(),
            missing: MissingList::default(),
            metered: Amount::zero(),
            month: CalendarUnit::Month.bucket_of(first, input.tariff.zone),
            segment: None,
            input,
        }
    }

    fn add(&mut self, step: &EnergyStep) {
        let from = step.range.from();
        if self.segment.as_ref().is_some_and(|segment| segment.range.to() <= from) {
            self.close();
        }
        if self.month.to() <= from {
            self.month = CalendarUnit::Month.bucket_of(from, self.input.tariff.zone);
            self.metered = Amount::zero();
        }

        if self.input.rows[0].from() <= from {
            let mut segment = self.segment.take().unwrap_or_else(|| self.open(from));
            self.price(&mut segment, step);
            self.note_missing(&segment, step);
            self.rows[segment.row].add_energy(step.used.as_ref(), step.sold.as_ref());
            self.segment = Some(segment);
        }
        if let Some(metered) = &step.metered {
            self.metered.add(metered);
        }
    }

    /// Begins the segment at a time.
    fn open(&self, from: Timestamp) -> Segment<'a> {
        let BillInput { tariff, rows, is_share, .. } = self.input;
        let row = rows.partition_point(|row| row.to() <= from);
        let to = rows[row].to().min(tariff.next_edge(from));

        let is_billed = |named: &NamedLine| match named.per {
            Per::Used | Per::Percent => true,
            Per::Sold | Per::Day | Per::Month | Per::Year => !is_share,
        };
        let mut lines = Vec::new();
        for (place, named) in tariff.lines.iter().enumerate() {
            let Some(line) = named.at(from).filter(|_| is_billed(named)) else { continue };
            let parts = match &line.pricing {
                Pricing::Flat(_) => 0,
                Pricing::Zones { zones, .. } => zones.len() + 1,
                Pricing::Tiers(tiers) => tiers.len(),
                Pricing::Series(_) => 1,
            };
            lines.push(HoldingLine { place, named, line, parts: vec![LinePart::default(); parts] });
        }

        Segment {
            row,
            range: TimeRange::new(from, to).expect("an edge after the begin"),
            lines,
            used: Amount::zero(),
            sold: Amount::zero(),
            metered_before: self.metered.clone(),
        }
    }

    /// Adds the energy of a step to a segment, and to the lines whose prices differ by step.
    fn price(&mut self, segment: &mut Segment<'a>, step: &EnergyStep) {
        let BillInput { tariff, prices, is_share, .. } = self.input;
        let none = Amount::zero();
        let [used, sold] = [&step.used, &step.sold].map(|flow| flow.as_ref().unwrap_or(&none));
        segment.used.add(used);
        segment.sold.add(sold);

        let mut moment = None;
        for holding in &mut segment.lines {
            let quantity = if holding.named.per == Per::Sold { sold } else { used };
            if quantity.sign() == Ordering::Equal {
                continue;
            }
            match &holding.line.pricing {
                Pricing::Flat(_) => {}
                Pricing::Zones { zones, .. } => {
                    let moment = moment.get_or_insert_with(|| tariff.moment(step.range.from()));
                    let matching =
                        zones.iter().rposition(|zone| zone.matches(moment, &tariff.day_lists));
                    holding.parts[matching.map_or(0, |zone| zone + 1)].quantity.add(quantity);
                }
                Pricing::Tiers(tiers) if is_share => {
                    holding.parts[tier_of(tiers, &self.metered)].quantity.add(quantity);
                }
                // What the segment adds to each tier is known at its end.
                Pricing::Tiers(_) => {}
                Pricing::Series(series) => {
                    let part = &mut holding.parts[0];
                    part.quantity.add(quantity);
                    let quarter = QuarterHour::of(step.range.from());
                    match series.price(prices, quarter, tariff.zone) {
                        Some(price) => part.amount.add(&quantity.times(&price)),
                        None => self.missing.add(Missing {
                            line: Some(holding.named.name.clone()),
                            kwh: Some(quantity.clone()),
                            ..Missing::of(MissingKind::Price, step.range)
                        }),
                    }
                }
            }
        }
    }

    /// Notes what the energy of a step lacks.
    fn note_missing(&mut self, segment: &Segment<'a>, step: &EnergyStep) {
        let tariff = self.input.tariff;
        let mut note = |what: MissingKind, kwh: Option<&Amount>| {
            self.missing.add(Missing { kwh: kwh.cloned(), ..Missing::of(what, step.range) });
        };
        if step.is_unknown {
            note(MissingKind::Energy, None);
        }

        let used = step.used.as_ref().filter(|used| used.sign() != Ordering::Equal);
        let Some(used) = used else { return };
        let has_price = segment.lines.iter().any(|holding| holding.named.per == Per::Used);
        if !has_price {
            note(MissingKind::Tariff, Some(used));
        }

        let Some(spread) = step.spread else { return };
        let depends = |holding: &HoldingLine<'_>| match &holding.line.pricing {
            Pricing::Flat(_) => false,
            _ if spread == SpreadOver::Longer => true,
            _ => tariff.changes_within_hours(holding.line),
        };
        if segment.lines.iter().any(depends) {
            note(MissingKind::Spread, Some(used));
        }
    }

    /// Ends the segment: prices what was added, line by line, and adds it to the sums.
    fn close(&mut self) {
        let Some(segment) = self.segment.take() else { return };
        let Segment { row, range, lines, used, sold, metered_before } = segment;
        let mut above = Amount::zero();
        let month = self.months.entry(self.month.from()).or_default();

        for HoldingLine { place, named, line, parts } in lines {
            let flow = if named.per == Per::Sold { &sold } else { &used };
            let parts = match &line.pricing {
                Pricing::Flat(price) => match named.per {
                    Per::Used | Per::Sold => vec![LinePart::of(flow.clone(), price)],
                    Per::Percent => {
                        let amount =
                            above.times(&(price * &Exact::parse("0.01").expect("a number")));
                        vec![LinePart { quantity: Amount::zero(), amount }]
                    }
                    per => vec![self.input.standing(per, price, range)],
                },
                Pricing::Zones { price, zones } => {
                    let prices = [price].into_iter().chain(zones.iter().map(|zone| &zone.price));
                    priced(parts, prices)
                }
                Pricing::Tiers(tiers) => {
                    let mut parts = parts;
                    if !self.input.is_share {
                        parts = by_tier(tiers, &metered_before, &self.metered);
                    }
                    priced(parts, tiers.iter().map(|tier| &tier.price))
                }
                Pricing::Series(_) => parts,
            };

            for (part, mut sums) in parts.into_iter().enumerate() {
                if named.per == Per::Sold {
                    sums.amount = Amount::zero().minus(&sums.amount);
                }
                above.add(&sums.amount);
                self.rows[row].amount.add(&sums.amount);
                if line.is_rounded_down {
                    month.rounded.entry(place).or_default().add(&sums.amount);
                } else {
                    month.together.add(&sums.amount);
                }
                if part == 0 || sums.quantity.sign() != Ordering::Equal {
                    add_line(&mut self.lines[place], named, line.part_name(part), sums);
                }
            }
        }
    }

    fn finish(mut self) -> Bill {
        self.close();
        let mut total = BillRow::default();
        for row in &self.rows {
            total.add_energy(row.used.as_ref(), row.sold.as_ref());
            total.amount.add(&row.amount);
        }
        let due = self.due();
        self.note_days();
        let lines = self.lines.into_iter().flatten().collect();
        Bill { rows: self.rows, total, lines, due, missing: self.missing.sorted() }
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
            for line in &named.versions {
                let Some(range) = line.range.intersection(range) else { continue };
                for without in tariff.years_without_dates(line, range) {
                    self.missing.add(Missing {
                        line: Some(named.name.clone()),
                        name: Some(without.list.to_owned()),
                        ..Missing::of(MissingKind::Days, without.year)
                    });
                }
            }
        }
    }
}

impl BillInput<'_> {
    /// A standing charge in a range, as far as it has accrued.
    fn standing(&self, per: Per, price: &Exact, range: TimeRange) -> LinePart {
        let Ok(accrued) = TimeRange::new(range.from(), range.to().min(self.until)) else {
            return LinePart::default();
        };
        let of = |price: &Exact| Amount::counted(charge(per, price, accrued, self.tariff.zone));
        LinePart { quantity: of(&Exact::from(1_i64)), amount: of(price) }
    }
}

impl LinePart {
    fn of(quantity: Amount, price: &Exact) -> Self {
        Self { amount: quantity.times(price), quantity }
    }
}

/// The parts of a line, each at its price.
fn priced<'p>(parts: Vec<LinePart>, prices: impl Iterator<Item = &'p Exact>) -> Vec<LinePart> {
    parts.into_iter().zip(prices).map(|(part, price)| LinePart::of(part.quantity, price)).collect()
}

/// The tier in which an amount of the month is.
fn tier_of(tiers: &[Tier], metered: &Amount) -> usize {
    let is_below = |tier: &Tier| match &tier.to {
        Some(to) => metered.minus(&Amount::counted(to.clone())).sign() == Ordering::Less,
        None => true,
    };
    tiers.iter().position(is_below).expect("the last tier has no end")
}

/// What each tier has of the amount from one count of the month to another, which may be smaller.
fn by_tier(tiers: &[Tier], before: &Amount, after: &Amount) -> Vec<LinePart> {
    let mut from = Exact::zero();
    let mut parts = Vec::new();
    for (place, tier) in tiers.iter().enumerate() {
        let inside = |metered: &Amount| {
            let begin = Amount::counted(from.clone());
            let above = metered.minus(&begin);
            let end = tier.to.clone().map(Amount::counted);
            match end.filter(|end| metered.minus(end).sign() != Ordering::Less) {
                Some(end) => end.minus(&begin),
                // Below zero, after a fall of the counter, the first tier goes on.
                None if place == 0 || above.sign() == Ordering::Greater => above,
                None => Amount::zero(),
            }
        };
        let quantity = inside(after).minus(&inside(before));
        parts.push(LinePart { quantity, amount: Amount::zero() });
        from = tier.to.clone().unwrap_or(from);
    }
    parts
}

/// Adds a part of a line to the lines of its name.
fn add_line(lines: &mut Vec<BillLine>, named: &NamedLine, zone: Option<String>, sums: LinePart) {
    let quantity = Some(sums.quantity).filter(|_| named.per != Per::Percent);
    let Some(line) = lines.iter_mut().find(|line| line.zone == zone) else {
        let (name, per, amount) = (named.name.clone(), named.per, sums.amount);
        return lines.push(BillLine { name, zone, per, quantity, amount });
    };

    line.amount.add(&sums.amount);
    if let (Some(sum), Some(quantity)) = (&mut line.quantity, quantity) {
        sum.add(&quantity);
    }
}

impl TariffLine {
    /// The name of a zone, or the limits of a tier; `None` of the price outside of zones.
    fn part_name(&self, part: usize) -> Option<String> {
        match &self.pricing {
            Pricing::Flat(_) | Pricing::Series(_) => None,
            Pricing::Zones { zones, .. } => Some(zones[part.checked_sub(1)?].name.clone()),
            Pricing::Tiers(tiers) => {
                let limit =
                    |tier: &Tier| tier.to.as_ref().map_or_else(String::new, Exact::to_string);
                let begin =
                    part.checked_sub(1).map_or_else(|| "0".to_owned(), |tier| limit(&tiers[tier]));
                Some(format!("{begin}-{}", limit(&tiers[part])))
            }
        }
    }
}
