//! Thins old points: one line of a series for 15 minutes. Sends nothing.
//!
//! A counter keeps its last value and that value's time, so it is exact at the ends of quarters of an hour. A number that is
//! no counter becomes the mean of the time that its values held, at the start of the quarter, where Roomtide lets a power
//! begin to hold: so the energy of powers stays what it was, also of one that holds on into a quarter without lines. Switches (values of 0 and 1, true and false) and texts keep
//! the last. A line that is alone in its quarter stays as it is, if no value held into the quarter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use domain::{DEFAULT_HOLD, DeviceId, DeviceObservation, Exact, MetricName, MetricRule, Timestamp};

use super::unite::{Group, SentLine};

/// Nanoseconds of 15 minutes, and of a millisecond.
const QUARTER: i64 = 900_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// Tells which metrics of a device the table has as counters.
pub(in crate::import) type CountersOf<'a> =
    Box<dyn Fn(&DeviceId) -> anyhow::Result<BTreeSet<MetricName>> + 'a>;

/// Groups, those before an instant thinned.
pub(in crate::import) struct Thinned<'a, I> {
    groups: I,
    counters_of: CountersOf<'a>,
    /// The start of the first quarter that is not thinned, in nanoseconds.
    before: i64,
    now: Timestamp,
    /// Of the owner whose lines come now, by series.
    open: BTreeMap<String, Open>,
    owner: String,
    ready: VecDeque<Group>,
}

/// A series.
#[derive(Debug, Default)]
struct Open {
    /// The fields that are counters, those that are powers, and all others that are known.
    counters: BTreeSet<String>,
    powers: BTreeSet<String>,
    others: BTreeSet<String>,
    quarter: i64,
    /// The lines of the quarter, and the newest of them.
    lines: u64,
    newest: Option<SentLine>,
    nanos: i64,
    fields: BTreeMap<String, Field>,
    /// The order of the fields in the first line that had them.
    order: Vec<String>,
}

/// A field of a series in a quarter.
#[derive(Debug)]
struct Field {
    last: String,
    /// The value that holds since an instant; of an earlier quarter, too.
    holds: Option<(i64, Exact)>,
    /// Value times nanoseconds, the nanoseconds, and until when they are added up.
    area: Exact,
    held: i64,
    counted_until: i64,
    is_switch: bool,
    is_in_quarter: bool,
    /// Whether an earlier value held into the quarter.
    is_carried: bool,
}

impl<'a, I: Iterator<Item = anyhow::Result<Group>>> Thinned<'a, I> {
    /// Thins what is before an instant; its quarter is not thinned.
    pub(in crate::import) fn new(
        groups: I,
        before: Timestamp,
        now: Timestamp,
        counters_of: CountersOf<'a>,
    ) -> Self {
        let before = before.as_millis().saturating_mul(MILLISECOND).div_euclid(QUARTER) * QUARTER;
        let (open, ready) = (BTreeMap::new(), VecDeque::new());
        Self { groups, counters_of, before, now, open, owner: String::new(), ready }
    }

    fn take(&mut self, group: Group) -> anyhow::Result<()> {
        let Some(first) = group.first() else { return Ok(()) };
        if owner(first) != self.owner {
            self.close(i64::MAX);
            self.open.clear();
            owner(first).clone_into(&mut self.owner);
        }
        let nanos = first.millis.saturating_mul(MILLISECOND);
        self.close(nanos.div_euclid(QUARTER) * QUARTER);
        if nanos >= self.before {
            self.ready.push_back(group);
            return Ok(());
        }
        for line in group {
            let open = self.open.entry(line.series.clone()).or_default();
            open.add(line, self.now, &self.counters_of)?;
        }
        Ok(())
    }

    /// Hands out the series whose quarters are over, lines of one millisecond together.
    fn close(&mut self, quarter: i64) {
        let over = self.open.values_mut().filter(|it| it.lines > 0 && it.quarter < quarter);
        let mut lines: Vec<SentLine> = over.flat_map(|it| it.close(quarter)).collect();
        lines.sort_by_key(|line| line.millis);
        for line in lines {
            match self.ready.back_mut() {
                Some(group)
                    if group.last().is_some_and(|it| {
                        it.millis == line.millis && owner(it) == owner(&line)
                    }) =>
                {
                    group.push(line);
                }
                _ => self.ready.push_back(vec![line]),
            }
        }
    }
}

impl<I: Iterator<Item = anyhow::Result<Group>>> Iterator for Thinned<'_, I> {
    type Item = anyhow::Result<Group>;

    fn next(&mut self) -> Option<anyhow::Result<Group>> {
        loop {
            // The newest group may still get a line of its millisecond.
            if self.ready.len() > 1 {
                return self.ready.pop_front().map(Ok);
            }
            match self.groups.next() {
                Some(Ok(group)) => {
                    if let Err(error) = self.take(group) {
                        return Some(Err(error));
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.close(i64::MAX);
                    return self.ready.pop_front().map(Ok);
                }
            }
        }
    }
}

impl Open {
    fn add(
        &mut self,
        line: SentLine,
        now: Timestamp,
        counters_of: &CountersOf<'_>,
    ) -> anyhow::Result<()> {
        let read = local::read_line(line.text.as_bytes()).and_then(Result::ok);
        let Some(read) = read else { anyhow::bail!("{} cannot be thinned", line.series) };
        let nanos = read.timestamp.unwrap_or(line.millis * MILLISECOND);
        let fields: Vec<(String, String)> =
            read.fields.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect();
        self.learn(&line, &fields, now, counters_of)?;
        self.quarter = nanos.div_euclid(QUARTER) * QUARTER;
        for (key, value) in fields {
            if !self.order.contains(&key) {
                self.order.push(key.clone());
            }
            let number = Exact::parse(&value);
            let field = self.fields.entry(key).or_insert_with(|| Field {
                last: String::new(),
                holds: None,
                area: Exact::zero(),
                held: 0,
                counted_until: i64::MIN,
                is_switch: true,
                is_in_quarter: false,
                is_carried: false,
            });
            field.hold_until(nanos, self.quarter);
            if field.held > 0 && !field.is_in_quarter {
                field.is_carried = true;
                field.is_switch = field.holds.as_ref().is_none_or(|(_, value)| is_switch(value));
            }
            field.is_switch &= number.as_ref().is_none_or(is_switch);
            field.holds = number.map(|number| (nanos, number));
            (field.last, field.is_in_quarter) = (value, true);
        }
        self.lines += 1;
        self.nanos = nanos;
        self.newest = Some(line);
        Ok(())
    }

    /// Finds out which fields are counters, as the registry will know them.
    fn learn(
        &mut self,
        line: &SentLine,
        fields: &[(String, String)],
        now: Timestamp,
        counters_of: &CountersOf<'_>,
    ) -> anyhow::Result<()> {
        let is_known = |key: &String| self.counters.contains(key) || self.others.contains(key);
        if fields.iter().all(|(key, _)| is_known(key)) {
            return Ok(());
        }
        let (device_tags, room_tag) = line.way.tags();
        let read = local::read_points(line.text.as_bytes(), now, device_tags, room_tag);
        for (reading, hints) in read.unwrap_or_default().readings {
            let device =
                DeviceObservation::of(&reading).new_device(reading.device.clone(), |_| false);
            let device = device.described(&hints);
            let counters = counters_of(&reading.device)?;
            for (name, info) in device.metrics() {
                let field = hints.metrics.get(name).and_then(|it| it.field.as_ref());
                let Some(field) = field.map(|it| it.field.clone()) else { continue };
                match MetricRule::of(info) {
                    _ if counters.contains(name) => drop(self.counters.insert(field)),
                    MetricRule::Counter(_) => drop(self.counters.insert(field)),
                    MetricRule::Power(_) => drop(self.powers.insert(field)),
                    MetricRule::Gauge => {}
                }
            }
        }
        let others = fields.iter().map(|(key, _)| key).filter(|key| !self.counters.contains(*key));
        self.others.extend(others.cloned().collect::<Vec<_>>());
        Ok(())
    }

    /// The line of the quarter, which is over, and one of the next quarter if the next line is later and a power holds
    /// into it.
    fn close(&mut self, next: i64) -> Vec<SentLine> {
        let Some(newest) = self.newest.take() else { return Vec::new() };
        let end = self.quarter + QUARTER;
        let (lines, quarter) = (std::mem::take(&mut self.lines), self.quarter);
        let (mut values, mut has_counter, mut is_alone) = (Vec::new(), false, lines == 1);
        for key in &self.order {
            let Some(field) = self.fields.get_mut(key) else { continue };
            field.hold_until(end, quarter);
            if field.is_in_quarter {
                let is_counter = self.counters.contains(key);
                has_counter |= is_counter;
                let mean = field.mean().filter(|_| !is_counter && !field.is_switch);
                is_alone &= mean.is_none() || !field.is_carried;
                values.push(format!("{key}={}", mean.unwrap_or_else(|| field.last.clone())));
            }
            field.begin();
        }
        let line = |values: &[String], nanos: i64| SentLine {
            text: format!("{} {} {nanos}", newest.series, values.join(",")),
            millis: nanos.div_euclid(MILLISECOND),
            ..newest.clone()
        };
        let nanos = if has_counter { self.nanos } else { quarter };
        let mut closed = vec![if is_alone { newest.clone() } else { line(&values, nanos) }];
        if next > end {
            let mut values = Vec::new();
            for key in self.order.iter().filter(|key| self.powers.contains(*key)) {
                let Some(field) = self.fields.get_mut(key) else { continue };
                field.hold_until(end + QUARTER, end);
                // Beyond what it held nothing is known, and a mean holds for all of the quarter.
                let mean = field.area.rounded_quotient(&Exact::from(QUARTER));
                let mean = mean.filter(|mean| *mean != Exact::zero());
                values.extend(mean.map(|mean| format!("{key}={mean}")));
                field.begin();
            }
            closed.extend((!values.is_empty()).then(|| line(&values, end)));
        }
        closed
    }
}

impl Field {
    /// Adds the time that the value held until an instant, as far as it is in the quarter.
    fn hold_until(&mut self, nanos: i64, quarter: i64) {
        let Some((since, value)) = &self.holds else { return };
        let hold = DEFAULT_HOLD.num_nanoseconds().unwrap_or(QUARTER);
        let until = nanos.min(since.saturating_add(hold));
        let from = self.counted_until.max(*since).max(quarter);
        if until > from {
            self.area += &(value * (until - from));
            self.held += until - from;
            self.counted_until = until;
        }
    }

    /// Begins another quarter.
    fn begin(&mut self) {
        (self.area, self.held) = (Exact::zero(), 0);
        (self.is_switch, self.is_in_quarter, self.is_carried) = (true, false, false);
    }

    fn mean(&self) -> Option<String> {
        let mean = self.area.rounded_quotient(&Exact::from(self.held))?;
        Some(mean.to_string())
    }
}

fn is_switch(value: &Exact) -> bool {
    [Exact::zero(), Exact::from(1_i64)].contains(value)
}

/// What a line belongs to: its tags, or else its measurement.
fn owner(line: &SentLine) -> &str {
    let mut escaped = false;
    for (place, c) in line.series.char_indices() {
        match c {
            '\\' => escaped = !escaped,
            ',' if !escaped => return &line.series[place + 1..],
            _ => escaped = false,
        }
    }
    &line.series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::sources::Way;

    /// 2026-01-11T16:00:00Z.
    const AT: i64 = 1_768_147_200;

    fn line(series: &str, fields: &str, second: i64) -> Group {
        let millis = (AT + second) * 1_000;
        let text = format!("{series} {fields} {millis}000000");
        vec![SentLine { line: 0, series: series.to_owned(), millis, text, way: Way::Plain }]
    }

    fn thinned(groups: Vec<Group>, before: i64) -> Vec<Vec<String>> {
        thinned_by(groups, before, &[])
    }

    /// Thins for a table that has these metrics as counters.
    fn thinned_by(groups: Vec<Group>, before: i64, counters: &[&str]) -> Vec<Vec<String>> {
        let known: BTreeSet<MetricName> = counters.iter().map(|it| it.parse().unwrap()).collect();
        let at = |second: i64| Timestamp::from_millis((AT + second) * 1_000).unwrap();
        let thinned = Thinned::new(
            groups.into_iter().map(Ok),
            at(before),
            Timestamp::MAX,
            Box::new(move |_| Ok(known.clone())),
        );
        let shown = |line: &SentLine| {
            let (rest, nanos) = line.text.rsplit_once(' ').unwrap();
            assert_eq!(nanos, format!("{}000000", line.millis));
            format!("{rest} {}", line.millis / 1_000 - AT)
        };
        thinned.map(|group| group.unwrap().iter().map(shown).collect()).collect()
    }

    #[test]
    fn what_the_table_has_as_a_counter_keeps_its_last_value() {
        let groups: Vec<Group> = [("1", 60), ("2", 120), ("9", 600)]
            .map(|(value, second)| {
                line("m,host=a", &format!("total={value},power={value}"), second)
            })
            .into();
        let kept = thinned_by(groups.clone(), 900, &["total"]).concat().concat();
        assert!(kept.contains("total=9,"), "{kept}");
        assert!(!kept.contains("power=9"), "{kept}");
        let mean = thinned(groups, 900).concat().concat();
        assert!(!mean.contains("total=9,"), "{mean}");
    }

    #[test]
    fn counters_keep_the_last_and_others_the_mean_of_their_time() {
        let meter = "kWh,domain=sensor,entity_id=meter";
        let fields = |value: &str| format!("value={value},state_class_str=\"total_increasing\"");
        let mut groups: Vec<Group> =
            (0..30).map(|n| line(meter, &fields(&format!("{}.5", 100 + n)), 60 * n + 7)).collect();
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
                vec![format!("{meter} value=114.5,{class} 847")],
                vec![format!("{meter} value=129.5,{class} 1747")],
                vec![format!("{power} value=20 0")],
                // 300 W for 5 of 15 minutes.
                vec![format!("{power} value=100 900")],
                // 60 W for a minute, and then for 14 minutes of the next quarter; nobody knows more.
                vec![format!("{power} value=60 3540")],
                vec![format!("{power} value=56 3600")],
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
                vec!["cpu,host=a idle=1,name=\"x\",on=t 0", "mem,host=a used=1 0"],
                vec!["grid,host=a cumulative_kwh_p=12,w=1 600"],
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
