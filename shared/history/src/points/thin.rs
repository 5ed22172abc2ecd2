//! Thins old points to few lines of a series per 15 minutes. Sends nothing.
//!
//! A counter keeps the values that its energy by quarters of an hour needs. These are its first value, the last value
//! at or before the end of each quarter, and the next value if none is exactly at that end. Both values of a step that
//! is not a plain rise stay as well.
//!
//! A power becomes its mean over the quarter, at the quarter's start. Time without a valid value counts as zero; a
//! quarter without lines gets the value that still holds from before. Any other number becomes its mean, weighted by
//! time. Switches (values of 0 and 1, true and false), angles and texts keep the last value. A single line in a quarter
//! stays unchanged if no earlier value held into the quarter.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::{self, Empty};

use domain::{
    CounterRule, DEFAULT_HOLD, DeviceId, DeviceObservation, Exact, MetricKind, MetricName,
    MetricRule, Sample, Timestamp,
};

use super::line_reader::LineReader;
use super::unite::{Group, SentLine};
use crate::point::MILLISECOND;
use crate::taught::Taught;

/// 15 minutes in nanoseconds.
const QUARTER: i64 = 900_000_000_000;
/// The unit of angles. The mean of angles has no meaning.
const ANGLE: &str = "°";

/// Returns the metrics of a device that are counters in the table.
type CountersOf<'a> = Box<dyn Fn(&DeviceId) -> anyhow::Result<BTreeSet<MetricName>> + 'a>;

/// The sources from which the kinds of metrics are known: the table, the import's source, and the lines themselves.
pub struct KnownKinds<'a> {
    /// Asks for the counters of a device.
    pub counters_of: CountersOf<'a>,
    /// Facts that the source has apart from its lines.
    pub taught: Taught,
    /// Decodes a line.
    pub reader: LineReader,
}

/// An iterator of groups; groups before an instant are thinned.
pub struct Thinned<'a, I> {
    groups: I,
    known: KnownKinds<'a>,
    /// The start of the first quarter that is not thinned, in nanoseconds.
    before: i64,
    /// The state of each series of the current device.
    open: BTreeMap<String, Open>,
    device: String,
    /// Lines by milliseconds and series. They wait because an earlier line may still come.
    waiting: BTreeMap<i64, BTreeMap<String, WaitingLine>>,
    ready: VecDeque<Group>,
    /// The quarters of the last settled instant, and of the nanosecond before it.
    settled: (i64, i64),
}

/// A waiting line.
#[derive(Debug)]
enum WaitingLine {
    /// An unchanged line.
    Whole(SentLine),
    /// A new line; its fields are keyed by their position in the series.
    Made { of: SentLine, fields: BTreeMap<usize, String> },
}

/// The fields of a line, with their values as line protocol writes them.
type Fields = Vec<(String, String)>;

/// Fields of a line at an instant in nanoseconds.
type Made = (i64, Vec<(usize, String)>);

/// The state of a series.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Open {
    counters: BTreeMap<String, ThinCounter>,
    powers: BTreeSet<String>,
    /// The fields that are angles.
    angles: BTreeSet<String>,
    /// All fields whose kind is known.
    known: BTreeSet<String>,
    /// Whether the series is not thinned, because a counter's steps depend on another metric.
    is_whole: bool,
    /// The start of the current quarter. `is_begun`: the quarter has lines, or a power holds into it.
    quarter: i64,
    is_begun: bool,
    /// The number of lines in the quarter, and the newest line of all.
    lines: u64,
    newest: Option<SentLine>,
    /// Whether the previous line was alone in its quarter and stayed unchanged, so that its value holds on by itself.
    was_alone: bool,
    /// Whether the values that hold into the first unthinned quarter are written.
    is_bridged: bool,
    fields: BTreeMap<String, Field>,
    /// The newest text fields, from which the server learns what the metrics are.
    texts: BTreeMap<String, String>,
    /// All fields, in the order of their first occurrence.
    order: Vec<String>,
}

/// The state of a counter.
#[derive(Debug)]
struct ThinCounter {
    rule: CounterRule,
    /// The newest value that was kept, and the values after it.
    run: Vec<Value>,
}

/// A value of a counter.
#[derive(Debug)]
struct Value {
    nanos: i64,
    sample: Sample,
    text: String,
}

/// The state of a field in the current quarter.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Field {
    last: String,
    /// The current value and the time since when it holds, which may be in an earlier quarter.
    holds: Option<(i64, Exact)>,
    /// The sum of values times nanoseconds. `held` is the sum of the nanoseconds, and `counted_until` the instant until
    /// which both are summed.
    area: Exact,
    held: i64,
    counted_until: i64,
    is_switch: bool,
    is_in_quarter: bool,
    /// Whether a value from before the quarter held into it.
    is_carried: bool,
    /// Whether the field is a counter with a valid value in the quarter.
    is_counted: bool,
}

impl<'a, I: Iterator<Item = anyhow::Result<Group>>> Thinned<'a, I> {
    /// Thins the lines before an instant; the quarter of the instant itself is not thinned.
    pub fn new(groups: I, before: Timestamp, known: KnownKinds<'a>) -> Self {
        let before = before.as_millis().saturating_mul(MILLISECOND).div_euclid(QUARTER) * QUARTER;
        let (open, ready, waiting) = (BTreeMap::new(), VecDeque::new(), BTreeMap::new());
        let (device, settled) = (String::new(), (i64::MIN, i64::MIN));
        Self { groups, known, before, open, device, waiting, ready, settled }
    }

    fn add(&mut self, group: Group) -> anyhow::Result<()> {
        let Some(first) = group.first() else { return Ok(()) };
        if first.device != self.device {
            self.finish();
            first.device.clone_into(&mut self.device);
        }

        let nanos = first.millis.saturating_mul(MILLISECOND);
        self.settle(nanos);

        for line in group {
            if nanos >= self.before {
                if let Some(open) = self.open.get_mut(&line.series) {
                    let made = open.bridge(self.before, nanos);
                    self.wait(&line.series.clone(), made);
                }
                let at = self.waiting.entry(line.millis).or_default();
                at.insert(line.series.clone(), WaitingLine::Whole(line));
                continue;
            }

            let series = line.series.clone();
            let open = self.open.entry(series.clone()).or_default();
            let fields = fields_of(&line);
            if let Some(fields) = &fields {
                open.learn_line(&line, fields, &self.known)?;
            }

            // A line that cannot be read is sent unchanged, so that the server refuses it with a reason.
            let Some(fields) = fields.filter(|_| !open.is_whole) else {
                let at = self.waiting.entry(line.millis).or_default();
                at.insert(series, WaitingLine::Whole(line));
                continue;
            };

            let made = open.add(line, fields);
            self.wait(&series, made);
        }

        Ok(())
    }

    /// Completes the values that a line at this instant decides, and hands out the lines that no later input can
    /// precede.
    fn settle(&mut self, nanos: i64) {
        let quarters = (quarter_of(nanos), quarter_of(nanos - 1));
        if std::mem::replace(&mut self.settled, quarters) == quarters {
            return;
        }

        let is_behind = nanos >= self.before;
        let all: Vec<String> = self.open.keys().cloned().collect();
        for series in all {
            let Some(open) = self.open.get_mut(&series) else { continue };
            let mut made = open.settle(if is_behind { i64::MAX } else { nanos });
            made.extend(open.close(quarters.0.min(self.before)));
            if nanos > behind(self.before) {
                made.extend(open.bridge(self.before, nanos));
            }
            self.wait(&series, made);
        }

        self.hand_out(quarters.1.div_euclid(MILLISECOND));
    }

    /// Completes the series of the current device.
    fn finish(&mut self) {
        for (series, mut open) in std::mem::take(&mut self.open) {
            let mut made = open.settle(i64::MAX);
            made.extend(open.close(i64::MAX));
            self.open.insert(series.clone(), open);
            self.wait(&series, made);
        }

        self.open.clear();
        self.settled = (i64::MIN, i64::MIN);
        self.hand_out(i64::MAX);
    }

    /// Keeps new lines of a series until no earlier line can come.
    fn wait(&mut self, series: &str, made: Vec<Made>) {
        let Some(open) = self.open.get(series) else { return };
        let Some(newest) = &open.newest else { return };
        for (nanos, values) in made {
            let at = self.waiting.entry(nanos.div_euclid(MILLISECOND)).or_default();
            let waiting = at.entry(series.to_owned()).or_insert_with(|| WaitingLine::Made {
                of: SentLine { millis: nanos.div_euclid(MILLISECOND), ..newest.clone() },
                fields: BTreeMap::new(),
            });
            let WaitingLine::Made { fields, .. } = waiting else { continue };
            fields.extend(values);

            let text = |(key, text): (&String, &String)| {
                let place = open.order.iter().position(|other| other == key)?;
                Some((place, format!("{key}={text}")))
            };
            fields.extend(open.texts.iter().filter_map(text));
        }
    }

    /// Hands out the waiting lines before `millis`.
    fn hand_out(&mut self, millis: i64) {
        let later = self.waiting.split_off(&millis);
        for (millis, lines) in std::mem::replace(&mut self.waiting, later) {
            let line = |(series, line): (String, WaitingLine)| match line {
                WaitingLine::Whole(line) => line,
                WaitingLine::Made { of, fields } => {
                    let fields: Vec<String> = fields.into_values().collect();
                    let text = format!("{series} {} {}", fields.join(","), millis * MILLISECOND);
                    SentLine { text, ..of }
                }
            };
            self.ready.push_back(lines.into_iter().map(line).collect());
        }
    }
}

impl<I: Iterator<Item = anyhow::Result<Group>>> Iterator for Thinned<'_, I> {
    type Item = anyhow::Result<Group>;

    fn next(&mut self) -> Option<anyhow::Result<Group>> {
        loop {
            if let Some(group) = self.ready.pop_front() {
                return Some(Ok(group));
            }
            match self.groups.next() {
                Some(Ok(group)) => {
                    if let Err(error) = self.add(group) {
                        return Some(Err(error));
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.finish();
                    return self.ready.pop_front().map(Ok);
                }
            }
        }
    }
}

/// An iterator that passes groups on unchanged. Counts how many readings thinning would leave.
pub struct ThinnedCount<'a, I, F> {
    groups: I,
    thinned: Thinned<'a, Empty<anyhow::Result<Group>>>,
    readings_of: F,
    left: &'a Cell<u64>,
}

impl<'a, I, F> ThinnedCount<'a, I, F>
where
    I: Iterator<Item = anyhow::Result<Group>>,
    F: Fn(Group) -> usize,
{
    /// Counts in `left` the readings that thinning would leave. `readings_of` says how many readings a group becomes.
    pub fn new(groups: I, known: KnownKinds<'a>, readings_of: F, left: &'a Cell<u64>) -> Self {
        let thinned = Thinned::new(iter::empty(), Timestamp::MAX, known);
        Self { groups, thinned, readings_of, left }
    }

    fn count(&mut self) {
        for group in self.thinned.ready.drain(..) {
            self.left.set(self.left.get() + (self.readings_of)(group) as u64);
        }
    }
}

impl<I, F> Iterator for ThinnedCount<'_, I, F>
where
    I: Iterator<Item = anyhow::Result<Group>>,
    F: Fn(Group) -> usize,
{
    type Item = anyhow::Result<Group>;

    fn next(&mut self) -> Option<anyhow::Result<Group>> {
        let next = self.groups.next();
        let counted = match &next {
            Some(Ok(group)) => self.thinned.add(group.clone()),
            Some(Err(_)) => Ok(()),
            None => {
                self.thinned.finish();
                Ok(())
            }
        };
        self.count();
        counted.map_or_else(|error| Some(Err(error)), |()| next)
    }
}

impl Open {
    /// Adds a line. Returns the values of counters that are kept.
    fn add(&mut self, line: SentLine, fields: Fields) -> Vec<Made> {
        let nanos = line.millis * MILLISECOND;
        self.quarter = quarter_of(nanos);
        let mut made = Vec::new();

        for (key, value) in fields {
            if !self.order.contains(&key) {
                self.order.push(key.clone());
            }
            if value.starts_with('"') {
                self.texts.insert(key, value);
                continue;
            }

            let number = Exact::parse(&value);
            let field = self.fields.entry(key.clone()).or_insert_with(Field::new);
            field.hold_until(nanos, self.quarter);
            if field.held > 0 && !field.is_in_quarter {
                field.is_carried = true;
                field.is_switch = field.holds.as_ref().is_none_or(|(_, value)| is_switch(value));
            }

            field.is_switch &= number.as_ref().is_none_or(is_switch);
            if let Some(counter) = self.counters.get_mut(&key)
                && let Some(sample) = counter.sample(&line, number.as_ref())
            {
                field.is_counted = true;
                let place = self.order.iter().position(|other| *other == key).unwrap_or_default();
                let kept = counter.add(Value { nanos, sample, text: value.clone() });
                made.extend(fields_at(place, &key, kept));
            }

            field.holds = number.map(|number| (nanos, number));
            (field.last, field.is_in_quarter) = (value, true);
        }

        self.lines += 1;
        self.is_begun = true;
        self.newest = Some(line);
        made
    }

    /// Finds out which fields are counters, powers and angles, as the registry will have them.
    fn learn_line(
        &mut self,
        line: &SentLine,
        fields: &Fields,
        known: &KnownKinds<'_>,
    ) -> anyhow::Result<()> {
        if fields.iter().all(|(key, _)| self.known.contains(key)) {
            return Ok(());
        }

        let read = known.reader.read(&line.text, line.way);
        for mut reading in read.unwrap_or_default().readings {
            known.taught.add_to(&mut reading);
            let device =
                DeviceObservation::of(&reading).new_device(reading.device.clone(), |_| false);
            let counters = (known.counters_of)(&reading.device)?;

            for (name, info) in device.metrics() {
                let about = reading.about.as_ref().and_then(|about| about.metrics.get(name));
                let field = about.and_then(|metric| metric.field.as_ref());
                let Some(field) = field.map(|field| field.field.clone()) else { continue };

                let mut info = info.clone();
                if counters.contains(name) {
                    info.kind = MetricKind::Counter;
                }
                self.is_whole |= info.kind == MetricKind::Counter && info.cycle.is_some();
                if info.unit.as_ref().is_some_and(|unit| unit.as_str() == ANGLE) {
                    self.angles.insert(field.clone());
                }

                match MetricRule::of(&info) {
                    MetricRule::Counter(rule) => {
                        let counter = || ThinCounter { rule, run: Vec::new() };
                        self.counters.entry(field).or_insert_with(counter);
                    }
                    MetricRule::Power(_) => drop(self.powers.insert(field)),
                    MetricRule::Gauge => {}
                }
            }
        }

        self.known.extend(fields.iter().map(|(key, _)| key.clone()));
        Ok(())
    }

    /// Keeps each counter's last value before the end of a quarter, once a line at `nanos` shows that no other follows.
    fn settle(&mut self, nanos: i64) -> Vec<Made> {
        let mut made = Vec::new();
        for (place, key) in self.order.iter().enumerate() {
            let Some(counter) = self.counters.get_mut(key) else { continue };
            if counter.run.last().is_some_and(|last| end_after(last.nanos) < nanos) {
                made.extend(fields_at(place, key, counter.keep_last()));
            }
        }
        made
    }

    /// Completes the quarters before `next`. Returns their lines, without counter values.
    fn close(&mut self, next: i64) -> Vec<Made> {
        let mut made = Vec::new();
        while self.is_begun && self.quarter < next {
            made.extend(self.close_quarter());
            self.quarter = behind(self.quarter);
        }
        made
    }

    /// Completes the quarter. Returns its line: of a single line the values at its own time, otherwise the means at the
    /// start of the quarter.
    fn close_quarter(&mut self) -> Option<Made> {
        let (quarter, end) = (self.quarter, behind(self.quarter));
        let (mut means, mut lasts) = (Vec::new(), Vec::new());
        let mut is_alone = std::mem::take(&mut self.lines) == 1;
        self.is_begun = false;

        for (place, key) in self.order.iter().enumerate() {
            let Some(field) = self.fields.get_mut(key) else { continue };
            field.hold_until(end, quarter);

            let is_power = self.powers.contains(key);
            let is_last = field.is_switch || self.angles.contains(key);
            let value = if self.counters.contains_key(key) {
                field.value_of_quarter(true).filter(|_| !field.is_counted)
            } else if is_power {
                self.is_begun |= field.holds_at(end);
                field.power_of_quarter(self.was_alone)
            } else {
                field.value_of_quarter(is_last)
            };

            if let Some(value) = value {
                is_alone &= if is_power {
                    field.is_in_quarter && !field.is_carried
                } else {
                    is_last || !field.is_carried
                };
                means.push((place, format!("{key}={value}")));
                lasts.push((place, format!("{key}={}", field.last)));
            }

            field.begin();
        }

        self.was_alone = is_alone;
        let at = self.newest.as_ref().map_or(quarter, |newest| newest.millis * MILLISECOND);
        let made = if is_alone { (at, lasts) } else { (quarter, means) };
        (!made.1.is_empty()).then_some(made)
    }

    /// Returns the powers that hold into the first unthinned quarter, as means until its first line.
    fn bridge(&mut self, before: i64, nanos: i64) -> Vec<Made> {
        let until = nanos.min(behind(before));
        if std::mem::replace(&mut self.is_bridged, true) || !self.is_begun || self.was_alone {
            return Vec::new();
        }

        self.is_begun = false;

        let mut values = Vec::new();
        for (place, key) in
            self.order.iter().enumerate().filter(|(_, key)| self.powers.contains(*key))
        {
            let Some(field) = self.fields.get_mut(key) else { continue };
            field.hold_until(until, before);
            let mean = field.area.rounded_quotient(&Exact::from(until - before));
            let mean = mean.filter(|_| field.held > 0);
            values.extend(mean.map(|mean| (place, format!("{key}={mean}"))));
        }

        if values.is_empty() { Vec::new() } else { vec![(before, values)] }
    }
}

impl ThinCounter {
    /// Returns the sample of a value, if the counter's rule accepts the value.
    fn sample(&self, line: &SentLine, number: Option<&Exact>) -> Option<Sample> {
        let value = number?.to_decimal().ok()?;
        let at = Timestamp::from_millis(line.millis).ok()?;
        self.rule.counts(&value).then(|| Sample::new(at, value))
    }

    /// Adds a value. Returns the times and texts of the values that are kept.
    fn add(&mut self, value: Value) -> Vec<(i64, String)> {
        let Some(last) = self.run.last() else {
            let kept = vec![(value.nanos, value.text.clone())];
            self.run.push(value);
            return kept;
        };

        let is_more_than_a_rise = self.rule.step(&last.sample, &value.sample).flag.is_some();
        let spans_an_end = end_after(last.nanos) < value.nanos;
        let mut kept = Vec::new();
        if is_more_than_a_rise || spans_an_end {
            kept.extend(self.keep_last());
        }

        let is_at_an_end = value.nanos.rem_euclid(QUARTER) == 0;
        self.run.push(value);
        if is_more_than_a_rise || spans_an_end || is_at_an_end {
            kept.extend(self.keep_last());
        }
        kept
    }

    /// Keeps the newest value. Also keeps all values since the last kept one, if a single step would count another
    /// amount.
    fn keep_last(&mut self) -> Vec<(i64, String)> {
        let Some(last) = self.run.pop() else { return Vec::new() };
        let mut kept = Vec::new();
        let shown = |value: &Value| (value.nanos, value.text.clone());

        if let [first, between @ ..] = &self.run[..] {
            if self.rule.step(&first.sample, &last.sample).flag.is_some() {
                kept.extend(between.iter().map(shown));
            }
            kept.push(shown(&last));
        }

        self.run = vec![last];
        kept
    }
}

impl Field {
    fn new() -> Self {
        Self {
            last: String::new(),
            holds: None,
            area: Exact::zero(),
            held: 0,
            counted_until: i64::MIN,
            is_switch: true,
            is_in_quarter: false,
            is_carried: false,
            is_counted: false,
        }
    }

    /// Whether the value still holds at an instant.
    fn holds_at(&self, nanos: i64) -> bool {
        self.holds.as_ref().is_some_and(|(since, _)| since.saturating_add(hold()) > nanos)
    }

    /// Adds the value times the time it held until an instant, within the quarter.
    fn hold_until(&mut self, nanos: i64, quarter: i64) {
        let Some((since, value)) = &self.holds else { return };
        let until = nanos.min(since.saturating_add(hold()));
        let from = self.counted_until.max(*since).max(quarter);
        if until > from {
            self.area += &(value * (until - from));
            self.held += until - from;
            self.counted_until = until;
        }
    }

    /// Resets the state of the quarter.
    fn begin(&mut self) {
        (self.area, self.held) = (Exact::zero(), 0);
        (self.is_switch, self.is_in_quarter) = (true, false);
        (self.is_carried, self.is_counted) = (false, false);
    }

    /// The mean of a power over the whole quarter. After a quarter of a single line, which has no mean, a power from
    /// before does not count.
    fn power_of_quarter(&self, was_alone: bool) -> Option<String> {
        let is_kept = self.is_in_quarter || !was_alone && self.held > 0;
        let mean = self.area.rounded_quotient(&Exact::from(QUARTER));
        mean.filter(|_| is_kept).map(|mean| mean.to_string())
    }

    /// The mean of a field with a value in the quarter; the last value if `is_last`, as of a switch.
    fn value_of_quarter(&self, is_last: bool) -> Option<String> {
        let mean = self.area.rounded_quotient(&Exact::from(self.held)).filter(|_| !is_last);
        let value = mean.map_or_else(|| self.last.clone(), |mean| mean.to_string());
        Some(value).filter(|_| self.is_in_quarter)
    }
}

/// How long a value holds, in nanoseconds.
fn hold() -> i64 {
    DEFAULT_HOLD.num_nanoseconds().unwrap_or(QUARTER)
}

/// The start of the quarter that contains an instant.
const fn quarter_of(nanos: i64) -> i64 {
    nanos.div_euclid(QUARTER) * QUARTER
}

/// The first end of a quarter after an instant.
const fn end_after(nanos: i64) -> i64 {
    behind(quarter_of(nanos))
}

/// The end of a quarter, limited to the range of `i64`.
const fn behind(quarter: i64) -> i64 {
    quarter.saturating_add(QUARTER)
}

/// The fields of a line; `None` if the line is not valid line protocol, for example because a tag is empty.
fn fields_of(line: &SentLine) -> Option<Fields> {
    let read = ingest::read_line(line.text.as_bytes())?.ok()?;
    Some(read.fields.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect())
}

/// Makes a new line for each value of one field.
fn fields_at(place: usize, key: &str, values: Vec<(i64, String)>) -> impl Iterator<Item = Made> {
    values.into_iter().map(move |(at, text)| (at, vec![(place, format!("{key}={text}"))]))
}

fn is_switch(value: &Exact) -> bool {
    [Exact::zero(), Exact::from(1_i64)].contains(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Way;
    use domain::given::metric;

    /// 2026-01-11T16:00:00Z.
    const AT: i64 = 1_768_147_200;

    fn line(series: &str, fields: &str, second: i64) -> Group {
        let millis = (AT + second) * 1_000;
        let text = format!("{series} {fields} {millis}000000");
        vec![SentLine {
            line: 0,
            device: series.split_once(',').map_or(series, |(_, tags)| tags).to_owned(),
            series: series.to_owned(),
            millis,
            text,
            way: Way::Plain,
            hour: None,
        }]
    }

    fn thinned(groups: Vec<Group>, before: i64) -> Vec<Vec<String>> {
        thinned_by(groups, before, &[])
    }

    /// Thins for a table that has these metrics as counters.
    fn thinned_by(groups: Vec<Group>, before: i64, counters: &[&str]) -> Vec<Vec<String>> {
        let known: BTreeSet<MetricName> = counters.iter().map(|it| metric(it)).collect();
        let at = |second: i64| Timestamp::from_millis((AT + second) * 1_000).unwrap();
        let thinned = Thinned::new(
            groups.into_iter().map(Ok),
            at(before),
            KnownKinds {
                counters_of: Box::new(move |_| Ok(known.clone())),
                taught: Taught::default(),
                reader: LineReader { now: Timestamp::MAX, rules: ingest::LineRules::default() },
            },
        );
        let shown = |line: &SentLine| {
            let (rest, nanos) = line.text.rsplit_once(' ').unwrap();
            assert_eq!(nanos, format!("{}000000", line.millis));
            format!("{rest} {}", line.millis / 1_000 - AT)
        };
        thinned.map(|group| group.unwrap().iter().map(shown).collect()).collect()
    }

    #[test]
    fn a_line_that_cannot_be_read_stays_and_the_others_are_thinned() {
        let groups = vec![line("m,host=", "v=1", 0), line("m,host=a", "v=1", 60)];
        let groups = [groups, vec![line("m,host=a", "v=1", 120)]].concat();
        let kept = thinned(groups, 900).concat();
        assert!(kept.len() == 2 && kept.contains(&"m,host= v=1 0".to_owned()), "{kept:?}");
    }

    #[test]
    fn what_the_table_has_as_a_counter_keeps_its_last_value() {
        let groups: Vec<Group> = [("1", 60), ("2", 120), ("9", 600)]
            .map(|(value, second)| {
                line("m,host=a", &format!("total={value},power={value}"), second)
            })
            .into();
        let kept = thinned_by(groups.clone(), 900, &["total"]).concat().concat();
        assert!(kept.contains("total=9 600"), "{kept}");
        assert!(!kept.contains("power=9"), "{kept}");
        let mean = thinned(groups, 900).concat().concat();
        assert!(!mean.contains("total=9,"), "{mean}");
    }

    #[test]
    fn counters_keep_the_last_and_others_the_mean_of_their_time() {
        let meter = "kWh,domain=sensor,entity_id=meter";
        let fields = |value: &str| format!("value={value},state_class_str=\"total_increasing\"");
        let mut groups: Vec<Group> =
            (0..30).map(|n| line(meter, &fields(&format!("100.{n:02}5")), 60 * n + 7)).collect();
        // 0 W but for the last of 15 minutes, and 300 W that hold on into the next.
        let power = "W,domain=sensor,entity_id=power";
        for (second, watts) in [(0, 0), (840, 300), (870, 300), (1_200, 0), (3_540, 60)] {
            groups.push(line(power, &format!("value={watts}"), second));
        }
        let door = "binary_sensor.door,domain=binary_sensor,entity_id=door";
        groups.extend(
            [(0, 0), (30, 1), (60, 0), (90, 1)]
                .map(|(second, value)| line(door, &format!("value={value}"), second)),
        );
        let class = "state_class_str=\"total_increasing\"";
        assert_eq!(
            thinned(groups, 86_400),
            [
                vec![format!("{meter} value=100.005,{class} 7")],
                vec![format!("{meter} value=100.145,{class} 847")],
                vec![format!("{meter} value=100.155,{class} 907")],
                vec![format!("{meter} value=100.295,{class} 1747")],
                vec![format!("{power} value=20 0")],
                // 300 W for 5 of 15 minutes.
                vec![format!("{power} value=100 900")],
                // 0 W that hold on are known, not missing.
                vec![format!("{power} value=0 1800")],
                // It is alone, and holds on into the next quarter by itself.
                vec![format!("{power} value=60 3540")],
                vec![format!("{door} value=1 0")],
            ]
        );
    }

    #[test]
    fn what_is_new_enough_stays_and_quarters_are_whole() {
        let groups = (0..60).map(|n| line("m,host=a", &format!("v={n}"), 60 * n)).collect();
        let thinned = thinned(groups, 1_799);
        assert_eq!(thinned.len(), 1 + 45);
        assert_eq!(thinned[0], ["m,host=a v=7 0"]);
        assert_eq!(thinned[1], ["m,host=a v=15 900"]);
    }

    #[test]
    fn series_of_one_device_stay_in_one_request_and_a_counter_decides_the_time() {
        let groups = (0..4)
            .flat_map(|n| {
                [
                    line("cpu,host=a", &format!("idle={n},name=\"x\",on=t"), 300 * n),
                    line("grid,host=a", &format!("cumulative_kwh_p=1{n},w={n}"), 300 * n),
                    line("mem,host=a", &format!("used={n}"), 300 * n),
                ]
            })
            .collect();
        assert_eq!(
            thinned(groups, 86_400),
            [
                vec![
                    "cpu,host=a idle=1,name=\"x\",on=t 0",
                    "grid,host=a cumulative_kwh_p=10,w=1 0",
                    "mem,host=a used=1 0"
                ],
                vec![
                    "cpu,host=a idle=3,name=\"x\",on=t 900",
                    "grid,host=a cumulative_kwh_p=13,w=3 900",
                    "mem,host=a used=3 900"
                ],
            ]
            .map(|group: Vec<&str>| group.into_iter().map(str::to_owned).collect::<Vec<_>>())
        );
    }
}
