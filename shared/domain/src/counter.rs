//! The steps of a counter: the amounts that were used between two neighbouring values of a meter. Sums up nothing.

use std::collections::BTreeMap;

use super::energy_unit::EnergyUnit;
use super::exact::Exact;
use super::{Decimal, Exchange, MetricInfo, MetricName, Reading, Sample, Timestamp, Verdict};

/// The rule that turns the values of a counter into steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRule {
    /// The power that a step may not exceed; `None` if the counter does not count energy.
    rate: Option<Rate>,
    tolerance: Exact,
    modulus: Option<Exact>,
    exchanges: BTreeMap<Timestamp, Exchange>,
    verdicts: BTreeMap<Timestamp, Verdict>,
    /// Whether the counter also counts backwards.
    is_net: bool,
    /// The metric whose value changes with each cycle of the counter.
    cycle: Option<MetricName>,
}

/// The largest power that a believed step may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rate {
    max_w: Exact,
    unit: EnergyUnit,
}

/// The largest believed power, in W, if no `max_w` is set.
const DEFAULT_MAX_W: i64 = 50_000;
/// The milliseconds of an hour.
const HOUR: i64 = 3_600_000;

crate::words! {
    /// A notable fact about a step. The variants have the order of the bits of [`Flags`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Flag {
        /// The counter fell a little, or went back over its modulus. The amount of the step is negative, so the
        /// counter's next rise cancels it.
        Dip = "dip",
        /// The counter passed its modulus, from a value of at least 90 % of the modulus.
        Wrapped = "wrapped",
        /// The counter began again near zero.
        Reset = "reset",
        /// The step cannot be explained and counts nothing; for example, figures of a declared exchange are wrong.
        Suspect = "suspect",
        /// A person declared an exchange of the meter, and the figures are plausible.
        Exchanged = "exchanged",
        /// A person accepted the step.
        Accepted = "accepted",
        /// A person discarded the step.
        Discarded = "discarded",
        /// The counter began again near zero, or passed its modulus from far below. Counts as a reset until a person
        /// judges the step.
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

    /// The flags as stored: one bit for each flag.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether there is no flag.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a flag is in the set.
    pub const fn contains(self, flag: Flag) -> bool {
        self.0 & (1 << flag as u8) != 0
    }

    /// The flags that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The flags that are in one set or in both.
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

/// The use between two neighbouring values of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The amount, in the metric's unit.
    pub amount: Exact,
    /// A notable fact about the step.
    pub flag: Option<Flag>,
}

/// A step as its two values explain it, before a person judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExplainedStep {
    step: Step,
    /// The amount that counts if a person accepts the step.
    accepted: Exact,
    /// If the counter fell: the amount by each explanation.
    fall: Option<Fall>,
}

/// The amount of a fall by each explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fall {
    reset: Exact,
    /// `None` without a modulus, or if the amount would be negative.
    wrap: Option<Exact>,
    dip: Exact,
}

impl ExplainedStep {
    fn of(amount: Exact, flag: Option<Flag>) -> Self {
        Self { accepted: amount.clone(), step: Step { amount, flag }, fall: None }
    }

    fn suspect(accepted: Exact) -> Self {
        Self { accepted, ..Self::of(Exact::zero(), Some(Flag::Suspect)) }
    }

    fn if_possible(is_possible: bool, amount: Exact, flag: Option<Flag>) -> Self {
        if is_possible { Self::of(amount, flag) } else { Self::suspect(amount) }
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

/// The limits within which a step is believed.
struct StepBounds<'a> {
    rate: Option<&'a Rate>,
    tolerance: Exact,
    /// The time between the two values.
    millis: i64,
}

impl StepBounds<'_> {
    /// Whether the counter may have risen by the amount.
    fn permit(&self, amount: &Exact) -> bool {
        let Some(Rate { max_w, unit }) = self.rate else { return true };
        // amount <= max_w x time + tolerance, without a division.
        &(&(amount - &self.tolerance) * unit.watt_hours) * HOUR <= max_w * self.millis
    }

    /// Whether the counter may have risen or fallen by the amount.
    fn permit_either_way(&self, amount: &Exact) -> bool {
        if amount.is_negative() { self.permit(&-amount) } else { self.permit(amount) }
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

    /// Whether rollups count a value. Devices report 0 while they boot, and some report -1 for "unknown". Values at
    /// zero or below are real in a net meter only.
    pub fn counts(&self, value: &Decimal) -> bool {
        self.is_net || value.is_positive()
    }

    /// The value of the counter's cycle in a reading.
    pub(crate) fn cycle_of(&self, reading: &Reading) -> Option<Decimal> {
        reading.metrics().get(self.cycle.as_ref()?).cloned()
    }

    /// The step from one value to the next, which is later.
    pub fn step(&self, from: &Sample, to: &Sample) -> Step {
        let found = self.found(from, to);
        let verdict = self.verdicts.get(&to.at);
        verdict.and_then(|verdict| found.judged(*verdict)).unwrap_or(found.step)
    }

    /// The verdict of a person that changes the step, if there is one.
    pub fn verdict(&self, from: &Sample, to: &Sample) -> Option<Verdict> {
        let verdict = *self.verdicts.get(&to.at)?;
        self.found(from, to).judged(verdict).map(|_| verdict)
    }

    /// The verdicts that would each change the step. A verdict that a person has already given is ignored.
    pub fn verdicts(&self, from: &Sample, to: &Sample) -> Vec<Verdict> {
        let found = self.found(from, to);
        Verdict::ALL.into_iter().filter(|verdict| found.judged(*verdict).is_some()).collect()
    }

    /// The amount of an ambiguous fall if the counter passed its modulus. `None` for all other steps. Ignores verdicts.
    pub fn if_wrapped(&self, from: &Sample, to: &Sample) -> Option<Exact> {
        let found = self.found(from, to);
        let is_ambiguous = found.step.flag == Some(Flag::Ambiguous);
        found.fall.filter(|_| is_ambiguous)?.wrap
    }

    /// The step, with all verdicts ignored.
    fn found(&self, from: &Sample, to: &Sample) -> ExplainedStep {
        let (old, new) = (Exact::from(&from.value), Exact::from(&to.value));
        let tolerance = self.tolerance.clone().max(old.resolution().min(new.resolution()));
        let millis = to.at.as_millis() - from.at.as_millis();
        let bounds = StepBounds { rate: self.rate.as_ref(), tolerance, millis };

        let legs = self.legs(from, &old, to, &new);
        if legs.len() > 1 {
            return self.exchange(&legs, &bounds);
        }

        let rise = &new - &old;
        if from.cycle.is_some() && to.cycle.is_some() && from.cycle != to.cycle {
            let is_possible = bounds.permit_either_way(&new);
            let found = ExplainedStep::if_possible(is_possible, new.clone(), Some(Flag::Reset));
            let falls = rise.is_negative();
            let fall = falls.then_some(Fall { reset: new, wrap: None, dip: rise });
            return ExplainedStep { fall, ..found };
        }

        if self.is_net {
            return ExplainedStep::if_possible(bounds.permit_either_way(&rise), rise, None);
        }
        if rise.is_negative() {
            return self.fall(&old, rise, new, &bounds);
        }
        self.rise(rise, &bounds)
    }

    /// A step during which the meter was exchanged.
    fn exchange(&self, legs: &[Exact], bounds: &StepBounds<'_>) -> ExplainedStep {
        let amount = legs.iter().fold(Exact::zero(), |sum, leg| &sum + leg);
        let falls = !self.is_net && legs.iter().any(|leg| -leg > bounds.tolerance);
        let is_possible = !falls && bounds.permit(&amount);
        ExplainedStep::if_possible(is_possible, amount, Some(Flag::Exchanged))
    }

    /// A step up. A rise that is too large may be a dip, from just above zero back to just below the modulus.
    fn rise(&self, rise: Exact, bounds: &StepBounds<'_>) -> ExplainedStep {
        if bounds.permit(&rise) {
            return ExplainedStep::of(rise, None);
        }
        match self.modulus.as_ref().map(|modulus| &rise - modulus) {
            Some(dip) if dip.is_negative() && -&dip <= bounds.tolerance => {
                ExplainedStep::of(dip, Some(Flag::Dip))
            }
            _ => ExplainedStep::suspect(rise),
        }
    }

    /// A step down from `old` to `new`. `rise` is the difference, which is negative.
    fn fall(&self, old: &Exact, rise: Exact, new: Exact, bounds: &StepBounds<'_>) -> ExplainedStep {
        let wrap = self.modulus.as_ref().map(|modulus| &rise + modulus);
        let wrap = wrap.filter(|wrapped| !wrapped.is_negative());
        let possible_wrap = wrap.as_ref().filter(|wrapped| bounds.permit(wrapped));
        let was_near = self.modulus.as_ref().is_some_and(|modulus| old * 10 >= modulus * 9);

        let found = if -&rise <= bounds.tolerance && &new * 10 >= old * 9 {
            ExplainedStep::of(rise.clone(), Some(Flag::Dip))
        } else if let Some(wrapped) = possible_wrap.filter(|_| was_near) {
            ExplainedStep::of(wrapped.clone(), Some(Flag::Wrapped))
        } else if possible_wrap.is_some() {
            ExplainedStep::of(new.clone(), Some(Flag::Ambiguous))
        } else {
            ExplainedStep::if_possible(bounds.permit(&new), new.clone(), Some(Flag::Reset))
        };
        ExplainedStep { fall: Some(Fall { reset: new, wrap, dip: rise }), ..found }
    }

    /// The amount on each meter between two values. There are several meters if the meter was exchanged after the first
    /// value and no later than the second.
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
