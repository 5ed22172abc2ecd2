//! The energy of a device: decides by units, names and roles which metrics of the device count. Reads no values.
//!
//! If a device has counters, its powers do not count. Metrics of one direction, used or sold, are added up. If there is
//! a total as well as its parts, only the total counts. Sold energy never counts as bought energy.

use std::collections::BTreeMap;

use super::energy_unit::EnergyUnit;
use super::metric_rule::MetricRule;
use super::role::Role;
use super::{MetricInfo, MetricKind, MetricName};

/// The metrics from which the energy of a device comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter<'a> {
    /// The metrics that add up to the used energy.
    pub used: Vec<&'a MetricName>,
    /// The metrics that add up to the sold energy.
    pub sold: Vec<&'a MetricName>,
    /// Whether the metrics are counters; else they are powers.
    pub is_counter: bool,
    /// The role of the metrics in [`used`](Self::used), if it is not consumption. For example, a device may only
    /// produce.
    pub other_role: Option<Role>,
    /// The metrics of energy and power that do not count, each with the reason.
    pub left_out: BTreeMap<&'a MetricName, NotCounted<'a>>,
    /// Whether a metric counts as used although its role is unknown.
    pub is_unsure: bool,
}

/// The reason for which a metric of energy or power does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCounted<'a> {
    /// The role of the metric is production, storage or none.
    Role(Role),
    /// The energy of the metric is already contained in this other metric.
    PartOf(&'a MetricName),
    /// The metric is a power, and the device has counters.
    CounterInstead,
}

/// A metric of energy or power.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    name: &'a MetricName,
    info: &'a MetricInfo,
    role: Option<Role>,
}

impl Candidate<'_> {
    fn is_counter(&self) -> bool {
        self.info.kind == MetricKind::Counter
    }
}

impl<'a> Meter<'a> {
    /// The meter of a device with these metrics. `None` if no metric measures energy or power.
    pub fn of(metrics: &'a BTreeMap<MetricName, MetricInfo>) -> Option<Self> {
        let all = candidates(metrics, known_role);
        (!all.is_empty()).then(|| Self::of_candidates(&all))
    }

    /// The meter of one metric alone. Only the role in the metric's settings counts, not the role in its name.
    pub fn of_one(
        metrics: &'a BTreeMap<MetricName, MetricInfo>,
        asked: &MetricName,
    ) -> Option<Self> {
        let all = candidates(metrics, |_, info| info.role);
        let one: Vec<_> = all.into_iter().filter(|candidate| candidate.name == asked).collect();
        (!one.is_empty()).then(|| Self::of_candidates(&one))
    }

    /// The meter of one metric alone, whatever its role, for a request about a single device.
    pub fn only(metrics: &'a BTreeMap<MetricName, MetricInfo>, asked: &MetricName) -> Option<Self> {
        let all = candidates(metrics, |_, _| None);
        let one: Vec<_> = all.into_iter().filter(|candidate| candidate.name == asked).collect();
        let other_role = one.first()?.info.role;
        Some(Self { other_role, ..Self::of_candidates(&one) })
    }

    fn of_candidates(all: &[Candidate<'a>]) -> Self {
        let mut counters = all.iter().filter(|candidate| candidate.is_counter());
        let has_counter = counters.any(|counter| counter.role != Some(Role::None));

        let mut left_out = BTreeMap::new();
        let mut by_flow: BTreeMap<Flow, Vec<Candidate<'a>>> = BTreeMap::new();
        for candidate in all {
            match candidate.role {
                Some(role @ (Role::Production | Role::Storage | Role::None)) => {
                    left_out.insert(candidate.name, NotCounted::Role(role));
                }
                _ if has_counter && !candidate.is_counter() => {
                    left_out.insert(candidate.name, NotCounted::CounterInstead);
                }
                Some(Role::Export) => by_flow.entry(Flow::Sold).or_default().push(*candidate),
                _ => by_flow.entry(Flow::Used).or_default().push(*candidate),
            }
        }

        let mut flow = |flow| summands(by_flow.entry(flow).or_default(), &mut left_out);
        let (used, sold) = (flow(Flow::Used), flow(Flow::Sold));
        let is_unsure = used.iter().any(|candidate| candidate.role.is_none());
        let names = |of: &[Candidate<'a>]| of.iter().map(|candidate| candidate.name).collect();

        Self {
            used: names(&used),
            sold: names(&sold),
            is_counter: has_counter,
            other_role: None,
            left_out,
            is_unsure,
        }
    }

    /// Whether sums include the meter, because it measures used or sold energy.
    pub const fn is_of_sums(&self) -> bool {
        !self.used.is_empty() || !self.sold.is_empty()
    }

    /// The meter for a request about this device only. A device that measures neither used nor sold energy shows its
    /// production. Without production the device shows its only metric of storage: a sum of charge and discharge means
    /// nothing.
    pub fn alone(self, metrics: &'a BTreeMap<MetricName, MetricInfo>) -> Option<Self> {
        if self.is_of_sums() {
            return Some(self);
        }

        let of_storage =
            || self.of_role(metrics, Role::Storage).filter(|meter| meter.used.len() == 1);
        self.of_role(metrics, Role::Production).or_else(of_storage)
    }

    /// The meter of the metrics of a role that this meter leaves out.
    fn of_role(&self, metrics: &'a BTreeMap<MetricName, MetricInfo>, role: Role) -> Option<Self> {
        let mut found = candidates(metrics, known_role);
        found.retain(|metric| metric.role == Some(role) && self.left_out.contains_key(metric.name));
        if found.iter().any(Candidate::is_counter) {
            found.retain(Candidate::is_counter);
        }

        let mut left_out = self.left_out.clone();
        let counted = summands(&found, &mut left_out);
        left_out.retain(|name, _| counted.iter().all(|candidate| candidate.name != *name));
        Some(Self {
            used: counted.iter().map(|candidate| candidate.name).collect(),
            sold: Vec::new(),
            is_counter: counted.first()?.is_counter(),
            other_role: Some(role),
            left_out,
            is_unsure: false,
        })
    }

    /// The metrics that count.
    pub fn names(&self) -> impl Iterator<Item = &'a MetricName> {
        self.used.iter().chain(&self.sold).copied()
    }
}

/// The directions of energy. The metrics of each direction are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flow {
    Used,
    Sold,
}

/// The metrics of energy and power.
fn candidates(
    metrics: &BTreeMap<MetricName, MetricInfo>,
    role: impl Fn(&MetricName, &MetricInfo) -> Option<Role>,
) -> Vec<Candidate<'_>> {
    let measures = |info: &MetricInfo| match MetricRule::of(info) {
        MetricRule::Counter(_) => EnergyUnit::of(info.unit.as_ref()).is_some(),
        MetricRule::Power(_) => true,
        MetricRule::Gauge => false,
    };
    let found = metrics.iter().filter(|(_, info)| measures(info));
    found.map(|(name, info)| Candidate { name, info, role: role(name, info) }).collect()
}

/// The counter of bought energy in the payloads of devices. A counter of one part has a suffix after this name.
const BOUGHT: &str = "cumulative_kwh_p";
/// The counter of sold energy in the payloads of devices. A counter of one part has a suffix after this name.
const SOLD: &str = "cumulative_kwh_n";
/// The power in the payloads of devices. A power of one part has a suffix after this name.
const POWER: &str = "current_w";

/// The role in a metric's settings, or else the role that follows from the metric's name.
fn known_role(name: &MetricName, info: &MetricInfo) -> Option<Role> {
    info.role.or_else(|| match &*Family::of(name).base {
        BOUGHT => Some(Role::Import),
        SOLD => Some(Role::Export),
        _ => Role::of_name(name.as_str()),
    })
}

/// A metric of energy or power, with the words of its name.
struct FamilyMember<'a> {
    family: Family,
    metric: Candidate<'a>,
}

/// The metrics of one direction that are added up. If there is a main meter, only its metrics are added up, because it
/// measures everything.
fn summands<'a>(
    all: &[Candidate<'a>],
    left_out: &mut BTreeMap<&'a MetricName, NotCounted<'a>>,
) -> Vec<Candidate<'a>> {
    let mut families: BTreeMap<String, Vec<FamilyMember<'a>>> = BTreeMap::new();
    for metric in all {
        let family = Family::of(metric.name);
        let members = families.entry(family.base.clone()).or_default();
        members.push(FamilyMember { family, metric: *metric });
    }

    let is_main = |base: &str, members: &[FamilyMember<'_>]| {
        base == POWER || members.iter().any(|member| member.metric.role == Some(Role::Import))
    };
    let main = families.iter().find(|(base, members)| is_main(base, members));
    let main = main.map(|(_, members)| of_family(members)[0]);

    let mut counted = Vec::new();
    for (base, members) in &families {
        let (whole, summands) = match main {
            Some(main) if !is_main(base, members) => (main, Vec::new()),
            _ => {
                let summands = of_family(members);
                (summands[0], summands)
            }
        };
        for member in members {
            if summands.iter().all(|summand| summand.name != member.metric.name) {
                left_out.insert(member.metric.name, NotCounted::PartOf(whole.name));
            }
        }
        counted.extend(summands);
    }

    counted.sort_by_key(|metric| metric.name);
    counted
}

/// The metrics of a family that are added up: the total alone, or its parts. If the first part is missing, the name
/// without a part stands for the first part, as in `current_w`, `current_w_b`, `current_w_c`.
fn of_family<'a>(members: &[FamilyMember<'a>]) -> Vec<Candidate<'a>> {
    // A metric that is derived from others counts only if all metrics of the family are derived.
    let are_derived = members.iter().all(|member| member.family.is_derived);
    let mut whole: Vec<&FamilyMember<'a>> = Vec::new();
    let mut parts: Vec<&FamilyMember<'a>> = Vec::new();
    for member in members.iter().filter(|member| are_derived || !member.family.is_derived) {
        if member.family.part.is_some() { &mut parts } else { &mut whole }.push(member);
    }

    let whole =
        whole.into_iter().min_by_key(|member| (!member.family.is_total, member.metric.name));

    let has_first = parts.iter().any(|member| member.family.part.is_some_and(Part::is_first));
    if let Some(whole) = whole
        && (whole.family.is_total || parts.is_empty() || has_first)
    {
        return vec![whole.metric];
    }

    // If a part is there with two units, or for two periods of time, only one of its metrics counts.
    let mut by_part: BTreeMap<Option<Part>, Candidate<'a>> = BTreeMap::new();
    for member in parts.into_iter().chain(whole) {
        by_part.entry(member.family.part).or_insert(member.metric);
    }
    by_part.into_values().collect()
}

/// A metric's name, split into the words that show how the metric is related to others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Family {
    /// The name without words for a part, a total, a unit or a period of time.
    base: String,
    part: Option<Part>,
    /// Whether the name says that the metric is a total.
    is_total: bool,
    /// Whether the metric is derived from others, such as the value of today or the highest value.
    is_derived: bool,
}

/// The number of a part: of one of several phases, relays or channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part(u16);

impl Part {
    /// Whether this is the first part, which some devices give the number 0.
    const fn is_first(self) -> bool {
        self.0 <= 1
    }
}

/// Words that may precede the number or the letter of a part.
const PART_WORDS: [&str; 16] = [
    "phase", "channel", "ch", "relay", "switch", "output", "port", "socket", "outlet", "plug",
    "emeter", "tariff", "tarif", "circuit", "ct", "clamp",
];
/// Single letters that may precede a part's number, as in `l1` and `t2`.
const PART_LETTERS: [&str; 2] = ["l", "t"];
/// Words that name a part without a number, and the number of this part: sides of a socket, and tariffs.
const PARTS: [(&str, u16); 7] = [
    ("left", 1),
    ("center", 2),
    ("right", 3),
    ("peak", 1),
    ("offpeak", 2),
    ("day", 1),
    ("night", 2),
];
/// Words for a total.
const TOTALS: [&str; 3] = ["total", "sum", "lifetime"];
/// Words for metrics that are derived from others.
const DERIVED: [&str; 19] = [
    "today",
    "yesterday",
    "daily",
    "week",
    "weekly",
    "month",
    "monthly",
    "year",
    "yearly",
    "annual",
    "max",
    "min",
    "avg",
    "mean",
    "average",
    "limit",
    "rated",
    "nominal",
    "target",
];
/// Words for units.
const UNITS: [&str; 6] = ["wh", "kwh", "mwh", "w", "kw", "mw"];

impl Family {
    fn of(name: &MetricName) -> Self {
        // The names in the payloads of devices contain units and letters that look like parts, so they stay whole.
        let known = [BOUGHT, SOLD, POWER].into_iter().find(|known| {
            let rest = name.as_str().strip_prefix(known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        let rest = known.map_or(name.as_str(), |known| &name.as_str()[known.len()..]);
        let rest = rest.replace("off_peak", "offpeak");

        let mut words: Vec<&str> = rest.split('_').filter(|word| !word.is_empty()).collect();
        let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let (mut is_total, is_derived) = (has(&TOTALS), has(&DERIVED));
        words.retain(|word| !TOTALS.contains(word) && !DERIVED.contains(word));

        let mut part = take_part(&mut words);
        // A meter's register 1.8.0 is the total of the registers 1.8.1 and 1.8.2, one for each tariff.
        if part == Some(Part(0)) && matches!(words[..], [.., "1" | "2", "8"]) {
            (part, is_total) = (None, true);
        }

        words.retain(|word| !UNITS.contains(word));
        let base = known.into_iter().chain(words).collect::<Vec<_>>().join("_");
        Self { base, part, is_total, is_derived }
    }
}

/// Removes the words that name a part from the end or the beginning of a name, and returns the part.
fn take_part(words: &mut Vec<&str>) -> Option<Part> {
    if let Some(last) = words.pop() {
        if let Some((rest, part)) = part_of(last) {
            words.extend((!rest.is_empty()).then_some(rest));
            if rest.is_empty() && words.last().is_some_and(|word| PART_WORDS.contains(word)) {
                words.pop();
            }
            return Some(part);
        }
        words.push(last);
    }

    let (word, next) = (*words.first()?, words.get(1));
    if let Some(next) = next.filter(|_| PART_WORDS.contains(&word))
        && let Some(("", part)) = part_of(next)
    {
        words.drain(..2);
        return Some(part);
    }

    // At the beginning of a name, only the letters a, b and c name a part: a phase. The `e` of `e_in` means energy.
    let is_letter = word.len() == 1;
    let (rest, part) = part_of(word).filter(|_| !is_letter || matches!(word, "a" | "b" | "c"))?;
    if rest.is_empty() {
        words.remove(0);
    } else {
        words[0] = rest;
    }

    Some(part)
}

/// The part that a word names, and the rest of the word. A part is a number, a letter from a to h, a known word, or a
/// number at the end of a word, as in `l1`, `ch2` and `power3`.
fn part_of(word: &str) -> Option<(&str, Part)> {
    if let Some((_, number)) = PARTS.iter().find(|(known, _)| *known == word) {
        return Some(("", Part(*number)));
    }
    if let [letter @ b'a'..=b'h'] = word.as_bytes() {
        return Some(("", Part(u16::from(letter - b'a') + 1)));
    }

    let rest = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &word[rest.len()..];
    if !(1..=2).contains(&digits.len()) || !rest.bytes().all(|b| b.is_ascii_lowercase()) {
        return None;
    }

    let is_mark = PART_WORDS.contains(&rest) || PART_LETTERS.contains(&rest);
    Some((if is_mark { "" } else { rest }, Part(digits.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;
    use crate::given;

    /// A device's metrics, each as `name unit`, with a role behind if it has one.
    fn device(texts: &[&str]) -> BTreeMap<MetricName, MetricInfo> {
        let metric = |text: &&str| {
            let mut words = text.split(' ');
            let name: MetricName = words.next().expect("a name").parse().expect("a name");
            let unit: Unit = words.next().expect("a unit").parse().expect("a unit");
            let is_power = unit.as_str().ends_with('W');
            let kind = if is_power { MetricKind::Gauge } else { MetricKind::Counter };
            let role = words.next().map(|role| Role::parse(role).expect("a role"));
            (name.clone(), MetricInfo { kind, unit: Some(unit), role, ..MetricInfo::from(&name) })
        };
        texts.iter().map(metric).collect()
    }

    fn shown(meter: Option<Meter<'_>>) -> String {
        let Some(meter) = meter else { return "nothing".to_owned() };
        let names = |names: &[&MetricName]| {
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("+")
        };
        let unsure = if meter.is_unsure { " ?" } else { "" };
        format!("{}/{}{unsure}", names(&meter.used), names(&meter.sold))
    }

    /// A case is the metrics of a device, each as `NAME UNIT [ROLE]`; `alone:` asks for what the device tells by itself.
    #[test]
    fn each_device_is_the_meter_that_its_case_says() {
        for case in given::cases(include_str!("meter.txt")) {
            let metrics = case.given.trim_start_matches("alone: ");
            let device = device(&metrics.split(", ").collect::<Vec<_>>());
            let mut meter = Meter::of(&device);
            if case.given.starts_with("alone: ") {
                meter = meter.and_then(|meter| meter.alone(&device));
            }
            assert_eq!(shown(meter), case.answer(), "{case}");
        }
    }

    #[test]
    fn one_metric_counts_whatever_its_name_says() {
        let device = device(&["cumulative_kwh_n kWh", "cumulative_kwh_p kWh", "pv kWh production"]);
        let one = |name: &str| Meter::of_one(&device, &given::metric(name));
        assert_eq!(shown(one("cumulative_kwh_n")), "cumulative_kwh_n/ ?");
        assert_eq!(shown(one("pv")), "/");
        let alone = one("pv").and_then(|it| it.alone(&device)).expect("a meter");
        assert_eq!(alone.other_role, Some(Role::Production));
        assert_eq!(shown(Some(alone)), "pv/");
        assert_eq!(one("absent"), None);
    }

    #[test]
    fn what_does_not_count_says_why() {
        let device = device(&[
            "cumulative_kwh_p kWh",
            "cumulative_kwh_p_a kWh",
            "heating kWh",
            "pv kWh",
            "current_w W",
        ]);
        let meter = Meter::of(&device).expect("a meter");
        let why: Vec<String> =
            meter.left_out.iter().map(|(name, why)| format!("{name} {why:?}")).collect();
        let part = "PartOf(MetricName(\"cumulative_kwh_p\"))";
        assert_eq!(
            why,
            [
                format!("cumulative_kwh_p_a {part}"),
                "current_w CounterInstead".to_owned(),
                format!("heating {part}"),
                "pv Role(Production)".to_owned(),
            ]
        );
    }
}
