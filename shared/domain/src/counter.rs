//! The steps of a counter: how much two neighbouring values of a meter say was used. Sums up nothing.

use std::collections::BTreeMap;

use super::energy_unit::EnergyUnit;
use super::exact::Exact;
use super::{Decimal, Exchange, MetricInfo, MetricName, Reading, Sample, Timestamp, Verdict};

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

/// The largest power that is believed where no `max_w` is set, in W.
const DEFAULT_MAX_W: i64 = 50_000;
/// The milliseconds of an hour.
const HOUR: i64 = 3_600_000;

crate::words! {
    /// What was notable about a step, in the order of the bits of [`Flags`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Flag {
        /// The counter fell a little, perhaps back over its modulus, and counts negative, so that coming back
        /// cancels it.
        Dip = "dip",
        /// The counter passed its modulus: it was at 90 % of it, or more.
        Wrapped = "wrapped",
        /// The counter began again near zero.
        Reset = "reset",
        /// The step cannot be explained and counts nothing; a declared exchange may have wrong figures.
        Suspect = "suspect",
        /// A person declared an exchange of the meter, with figures that can be.
        Exchanged = "exchanged",
        /// A person accepted the step.
        Accepted = "accepted",
        /// A person discarded the step.
        Discarded = "discarded",
        /// The counter began again near zero, or passed its modulus far from there: a reset until a person judges the
        /// step.
        Ambiguous = "ambiguous",
    }
}

/// A set of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u8);

impl Flags {
    /// All flags.
    pub const ALL: Self = Self(u8::MAX);

    /// The flags that were stored as [`bits`](Self::bits).
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// One bit a flag, as they are stored.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether there is no flag.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags that are in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
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

/// A step as its two values alone say, before anybody judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    step: Step,
    /// What counts if a person accepts it.
    accepted: Exact,
    /// What a fall counts otherwise.
    fall: Option<Fall>,
}

/// What a fall counts, by what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fall {
    reset: Exact,
    /// Of a counter with a modulus, where that is more than nothing.
    wrap: Option<Exact>,
    dip: Exact,
}

impl Found {
    fn of(amount: Exact, flag: Option<Flag>) -> Self {
        Self { accepted: amount.clone(), step: Step { amount, flag }, fall: None }
    }

    fn suspect(accepted: Exact) -> Self {
        Self {
            step: Step { amount: Exact::zero(), flag: Some(Flag::Suspect) },
            accepted,
            fall: None,
        }
    }

    /// The step after a person's verdict; `None` if the verdict does not fit the step or changes nothing.
    fn judged(&self, verdict: Verdict) -> Option<Step> {
        if matches!(self.step.flag, None | Some(Flag::Exchanged)) {
            return None;
        }

        let fall = self.fall.as_ref();
        let (amount, flag) = match verdict {
            Verdict::Accept => (self.accepted.clone(), Flag::Accepted),
            Verdict::Discard => (Exact::zero(), Flag::Discarded),
            Verdict::Reset => (fall?.reset.clone(), Flag::Reset),
            Verdict::Wrap => (fall?.wrap.clone()?, Flag::Wrapped),
            Verdict::Dip => (fall?.dip.clone(), Flag::Dip),
        };
        let judged = Step { amount, flag: Some(flag) };
        (judged != self.step).then_some(judged)
    }
}

impl CounterRule {
    /// The rule for a counter.
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
    pub fn counts(&self, value: &Decimal) -> bool {
        self.is_net || value.is_positive()
    }

    /// What a reading says of the counter's cycle.
    pub(crate) fn cycle_of(&self, reading: &Reading) -> Option<Decimal> {
        reading.metrics().get(self.cycle.as_ref()?).cloned()
    }

    /// The step from one value to the next, which is later.
    pub fn step(&self, from: &Sample, to: &Sample) -> Step {
        let found = self.found(from, to);
        let verdict = self.verdicts.get(&to.at);
        verdict.and_then(|verdict| found.judged(*verdict)).unwrap_or(found.step)
    }

    /// The verdict of a person by which a step counts.
    pub fn verdict(&self, from: &Sample, to: &Sample) -> Option<Verdict> {
        let verdict = *self.verdicts.get(&to.at)?;
        self.found(from, to).judged(verdict).map(|_| verdict)
    }

    /// The verdicts that would change what a step is without one.
    pub fn verdicts(&self, from: &Sample, to: &Sample) -> Vec<Verdict> {
        let found = self.found(from, to);
        Verdict::ALL.into_iter().filter(|verdict| found.judged(*verdict).is_some()).collect()
    }

    /// What a fall counts if the counter passed its modulus; of a fall that is ambiguous without a verdict.
    pub fn if_wrapped(&self, from: &Sample, to: &Sample) -> Option<Exact> {
        let found = self.found(from, to);
        let is_ambiguous = found.step.flag == Some(Flag::Ambiguous);
        found.fall.filter(|_| is_ambiguous)?.wrap
    }

    /// The step, whatever a person said of it.
    fn found(&self, from: &Sample, to: &Sample) -> Found {
        let (old, new) = (Exact::from(&from.value), Exact::from(&to.value));
        let tolerance = self.tolerance.clone().max(old.resolution().min(new.resolution()));
        let millis = to.at.as_millis() - from.at.as_millis();
        let is_possible = |amount: &Exact| match &self.rate {
            // amount <= max_w x time + tolerance, without a division.
            Some(Rate { max_w, unit }) => {
                &(&(amount - &tolerance) * unit.watt_hours) * HOUR <= max_w * millis
            }
            None => true,
        };

        let legs = self.legs(from, &old, to, &new);
        if legs.len() > 1 {
            let amount = legs.iter().fold(Exact::zero(), |sum, leg| &sum + leg);
            let falls = !self.is_net && legs.iter().any(|leg| -leg > tolerance);
            let is_wrong = falls || !is_possible(&amount);
            if is_wrong {
                return Found::suspect(amount);
            }
            return Found::of(amount, Some(Flag::Exchanged));
        }

        let rise = &new - &old;
        let is_new_cycle = from.cycle.is_some() && to.cycle.is_some() && from.cycle != to.cycle;
        if is_new_cycle || self.is_net {
            let amount = if is_new_cycle { &new } else { &rise };
            let size = if amount.is_negative() { -amount } else { amount.clone() };
            let mut found = if is_possible(&size) {
                Found::of(amount.clone(), is_new_cycle.then_some(Flag::Reset))
            } else {
                Found::suspect(amount.clone())
            };
            if is_new_cycle && rise.is_negative() {
                found.fall = Some(Fall { reset: new, wrap: None, dip: rise });
            }
            return found;
        }

        if rise.is_negative() {
            return self.fall(&old, rise, new, &tolerance, is_possible);
        }

        if is_possible(&rise) {
            return Found::of(rise, None);
        }
        if let Some(modulus) = &self.modulus {
            let unwrapped = &rise - modulus;
            if unwrapped.is_negative() && -&unwrapped <= tolerance {
                return Found::of(unwrapped, Some(Flag::Dip));
            }
        }

        Found::suspect(rise)
    }

    /// A step down from `old` to `new`, by `rise`, which is negative.
    fn fall(
        &self,
        old: &Exact,
        rise: Exact,
        new: Exact,
        tolerance: &Exact,
        is_possible: impl Fn(&Exact) -> bool,
    ) -> Found {
        let wrap = self.modulus.as_ref().map(|modulus| &rise + modulus);
        let wrap = wrap.filter(|wrapped| !wrapped.is_negative());
        let possible_wrap = wrap.as_ref().filter(|wrapped| is_possible(wrapped));
        let was_near = self.modulus.as_ref().is_some_and(|modulus| old * 10 >= modulus * 9);
        let mut found = if -&rise <= *tolerance && &new * 10 >= old * 9 {
            Found::of(rise.clone(), Some(Flag::Dip))
        } else if let Some(wrapped) = possible_wrap.filter(|_| was_near) {
            Found::of(wrapped.clone(), Some(Flag::Wrapped))
        } else if possible_wrap.is_some() {
            Found::of(new.clone(), Some(Flag::Ambiguous))
        } else if is_possible(&new) {
            Found::of(new.clone(), Some(Flag::Reset))
        } else {
            Found::suspect(new.clone())
        };
        found.fall = Some(Fall { reset: new, wrap, dip: rise });
        found
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
