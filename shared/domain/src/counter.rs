//! The steps of a counter: how much two neighbouring values of a meter say was used. Sums up nothing.

use std::collections::BTreeMap;

use super::exact::Exact;
use super::{Decimal, Exchange, MetricInfo, MetricName, Reading, Sample, Timestamp, Unit, Verdict};

/// The rule by which a counter's steps are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRule {
    /// The limit of its rise; none for a counter that does not count energy.
    rate: Option<Rate>,
    tolerance: Exact,
    modulus: Option<Exact>,
    exchanges: BTreeMap<Timestamp, Exchange>,
    verdicts: BTreeMap<Timestamp, Verdict>,
    /// Whether it counts backwards too.
    is_net: bool,
    /// The metric that tells in which cycle a value is.
    cycle: Option<MetricName>,
}

/// The largest power behind a rise.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rate {
    max_w: Exact,
    unit: EnergyUnit,
}

/// A unit of energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyUnit {
    /// Watt-hours.
    Wh,
    /// Kilowatt-hours.
    Kwh,
    /// Megawatt-hours.
    Mwh,
}

impl EnergyUnit {
    /// The unit of energy that a metric's unit is, if it is one.
    #[must_use]
    pub fn of(unit: Option<&Unit>) -> Option<Self> {
        match unit?.as_str() {
            "Wh" => Some(Self::Wh),
            "kWh" => Some(Self::Kwh),
            "MWh" => Some(Self::Mwh),
            _ => None,
        }
    }

    const fn watt_hours(self) -> i64 {
        match self {
            Self::Wh => 1,
            Self::Kwh => 1_000,
            Self::Mwh => 1_000_000,
        }
    }

    /// An amount of this unit in kWh, exactly.
    #[must_use]
    pub fn to_kwh(self, amount: &Exact) -> Exact {
        let watt_hours = amount * self.watt_hours();
        &watt_hours * &Exact::parse("0.001").expect("a number")
    }

    /// 1 kWh in this unit.
    fn kwh(self) -> Exact {
        Exact::parse(match self {
            Self::Wh => "1000",
            Self::Kwh => "1",
            Self::Mwh => "0.001",
        })
        .expect("a number")
    }
}

/// The largest power that is believed where no `max_w` is set, in W.
const DEFAULT_MAX_W: i64 = 50_000;
/// The milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// What was notable about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// The counter fell a little, perhaps back over its modulus, and counts negative, so that coming back
    /// cancels it.
    Dip,
    /// The counter passed its modulus: it was at 90 % of it, or more.
    Wrapped,
    /// The counter began again near zero.
    Reset,
    /// The step cannot be explained and counts nothing; a declared exchange may have wrong figures.
    Suspect,
    /// A person declared an exchange of the meter, with figures that can be.
    Exchanged,
    /// A person accepted the suspect step.
    Accepted,
    /// A person discarded the suspect step.
    Discarded,
}

/// A set of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

impl Flag {
    /// All flags, in the order of their bits.
    const ALL: [Self; 7] = [
        Self::Dip,
        Self::Wrapped,
        Self::Reset,
        Self::Suspect,
        Self::Exchanged,
        Self::Accepted,
        Self::Discarded,
    ];

    /// The flag as the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dip => "dip",
            Self::Wrapped => "wrapped",
            Self::Reset => "reset",
            Self::Suspect => "suspect",
            Self::Exchanged => "exchanged",
            Self::Accepted => "accepted",
            Self::Discarded => "discarded",
        }
    }
}

impl Flags {
    /// The flags that were stored as [`bits`](Self::bits); unknown bits are skipped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x7f)
    }

    /// One bit a flag, as they are stored.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.into_iter().filter(move |flag| self.0 & (1 << *flag as u8) != 0)
    }
}

impl From<Flag> for Flags {
    fn from(flag: Flag) -> Self {
        Self(1 << flag as u8)
    }
}

/// What two neighbouring values say was used between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The amount, in the metric's unit.
    pub amount: Exact,
    /// What was notable.
    pub flag: Option<Flag>,
}

impl CounterRule {
    /// The rule for a counter.
    #[must_use]
    pub fn of(info: &MetricInfo) -> Self {
        let unit = EnergyUnit::of(info.unit.as_ref());
        let max_w = info.max_w.as_ref().map_or_else(|| Exact::from(DEFAULT_MAX_W), Exact::from);
        let default = || unit.map_or_else(Exact::zero, EnergyUnit::kwh);
        Self {
            rate: unit.map(|unit| Rate { max_w, unit }),
            tolerance: info.tolerance.as_ref().map_or_else(default, Exact::from),
            modulus: info.modulus.as_ref().map(Exact::from),
            exchanges: info.exchanges.clone(),
            verdicts: info.verdicts.clone(),
            is_net: info.is_net,
            cycle: info.cycle.clone(),
        }
    }

    /// Whether a value takes part: devices report 0 while they boot, and some -1 for "unknown". A net meter may
    /// well be at zero or below.
    #[must_use]
    pub fn counts(&self, value: &Decimal) -> bool {
        self.is_net || value.is_positive()
    }

    /// What a reading says of the counter's cycle.
    pub(crate) fn cycle_of(&self, reading: &Reading) -> Option<Decimal> {
        reading.metrics().get(self.cycle.as_ref()?).cloned()
    }

    /// The step from one value to the next, which is later.
    #[must_use]
    pub fn step(&self, from: &Sample, to: &Sample) -> Step {
        let (old, new) = (Exact::from(&from.value), Exact::from(&to.value));
        let tolerance = self.tolerance.clone().max(old.resolution().min(new.resolution()));
        let millis = to.at.as_millis() - from.at.as_millis();
        let is_possible = |amount: &Exact| match &self.rate {
            // amount <= max_w x time + tolerance, without a division.
            Some(Rate { max_w, unit }) => {
                &(&(amount - &tolerance) * unit.watt_hours()) * HOUR <= max_w * millis
            }
            None => true,
        };
        let legs = self.legs(from, &old, to, &new);
        if legs.len() > 1 {
            let amount = legs.iter().fold(Exact::zero(), |sum, leg| &sum + leg);
            let falls = !self.is_net && legs.iter().any(|leg| -leg > tolerance);
            let is_wrong = falls || !is_possible(&amount);
            if is_wrong {
                return self.judge(to.at, amount);
            }
            return Step { amount, flag: Some(Flag::Exchanged) };
        }
        let rise = &new - &old;
        let fell = rise.is_negative();
        let is_new_cycle = from.cycle.is_some() && to.cycle.is_some() && from.cycle != to.cycle;
        if is_new_cycle || self.is_net {
            let amount = if is_new_cycle { new } else { rise };
            let size = if amount.is_negative() { -&amount } else { amount.clone() };
            if !is_possible(&size) {
                return self.judge(to.at, amount);
            }
            return Step { amount, flag: is_new_cycle.then_some(Flag::Reset) };
        }
        if !fell && is_possible(&rise) {
            return Step { amount: rise, flag: None };
        }
        if fell && -&rise <= tolerance && &new * 10 >= &old * 9 {
            return Step { amount: rise, flag: Some(Flag::Dip) };
        }
        if let Some(modulus) = &self.modulus {
            let wrapped = &rise + modulus;
            let was_near = &old * 10 >= modulus * 9;
            if fell && was_near && !wrapped.is_negative() && is_possible(&wrapped) {
                return Step { amount: wrapped, flag: Some(Flag::Wrapped) };
            }
            let unwrapped = &rise - modulus;
            if unwrapped.is_negative() && -&unwrapped <= tolerance {
                return Step { amount: unwrapped, flag: Some(Flag::Dip) };
            }
        }
        if fell && is_possible(&new) {
            return Step { amount: new, flag: Some(Flag::Reset) };
        }
        self.judge(to.at, if fell { new } else { rise })
    }

    /// A step that cannot be explained, as a person judged it.
    fn judge(&self, end: Timestamp, amount: Exact) -> Step {
        let (amount, flag) = match self.verdicts.get(&end) {
            Some(Verdict::Accept) => (amount, Flag::Accepted),
            Some(Verdict::Discard) => (Exact::zero(), Flag::Discarded),
            None => (Exact::zero(), Flag::Suspect),
        };
        Step { amount, flag: Some(flag) }
    }

    /// What was used on each meter between two values: more than one if a meter was exchanged after the first
    /// value and not after the second.
    fn legs(&self, from: &Sample, old: &Exact, to: &Sample, new: &Exact) -> Vec<Exact> {
        use std::ops::Bound::{Excluded, Included};
        let mut figure = old.clone();
        let mut legs = Vec::new();
        for (_, exchange) in self.exchanges.range((Excluded(from.at), Included(to.at))) {
            legs.push(&Exact::from(&exchange.old) - &figure);
            figure = Exact::from(&exchange.new);
        }
        legs.push(new - &figure);
        legs
    }
}
