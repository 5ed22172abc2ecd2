//! Shell commands that take an import back: they delete only what the import alone stored. Deletes nothing itself.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{DeviceId, Month, RoomId, Timestamp};

use super::known::Before;
use super::tally::OfDevice;

/// The maximum number of devices that one command deletes.
const MAX_DEVICES: usize = 100;

/// The readings of a device that can be taken back, and those that cannot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// The spans to delete: the first instant, inclusive, and the end, exclusive.
    pub(super) taken_back: Vec<(Timestamp, Timestamp)>,
    /// The local days on which the device had readings before the import, such as `2026-01-11`. They stay.
    pub(super) kept: Vec<String>,
}

impl Spans {
    /// Finds the spans of imported readings without earlier readings.
    pub(super) fn of(imported: &OfDevice, before: &Before) -> Self {
        let taken: BTreeSet<(Month, u8)> = before
            .months
            .iter()
            .flat_map(|(month, it)| it.days.iter().map(|day| (*month, *day)))
            .collect();
        let mut spans = Self::default();
        let mut open: Option<((Month, u8), Timestamp, Timestamp)> = None;
        for (month, of_month) in &imported.months {
            for (day, (first, last)) in &of_month.days {
                let place = (*month, *day);
                if taken.contains(&place) {
                    spans.kept.push(format!("{month}-{day:02}"));
                    continue;
                }
                let after = last.saturating_add(TimeDelta::milliseconds(1));
                open = match open {
                    Some((since, from, _)) if taken.range(since..place).next().is_none() => {
                        Some((since, from, after))
                    }
                    closed => {
                        spans.taken_back.extend(closed.map(|(_, from, to)| (from, to)));
                        Some((place, *first, after))
                    }
                };
            }
        }
        spans.taken_back.extend(open.map(|(_, from, to)| (from, to)));
        spans
    }
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes the command that deletes a device's readings in a span.
pub(super) fn readings(device: &DeviceId, (from, to): (Timestamp, Timestamp)) -> String {
    take_back(&format!("readings --from {from} --to {to}"), device.as_str())
}

/// Writes a command with its own options and the report's common ones. `--` precedes the id, because an id may look
/// like an option.
fn take_back(options: &str, id: &str) -> String {
    format!("take_back {options} \"$@\" -- {}", quoted(id))
}

/// Writes the commands that delete new devices and rooms of the import, if nothing else uses them.
pub(super) fn brought(devices: &[&DeviceId], rooms: &[RoomId]) -> Vec<String> {
    let all = |options: &str| -> Vec<String> {
        let line = |ids: &[&DeviceId]| {
            let also = ids[1..].iter().map(|id| format!(" --also={}", quoted(id.as_str())));
            let options = format!("device --if-empty{options}{}", also.collect::<String>());
            take_back(&options, ids[0].as_str())
        };
        devices.chunks(MAX_DEVICES).map(line).collect()
    };
    let rooms = rooms.iter().map(|room| take_back("room --if-empty", room.as_str()));
    all(" --no-wait").into_iter().chain(rooms).chain(all("")).collect()
}

#[cfg(test)]
mod tests {
    use domain::Zone;
    use domain::given::{device, room};

    use super::*;
    use crate::import::comparison::known::OfMonth;
    use crate::import::comparison::tally::Tally;

    fn spans(imported: &[&str], before: &[(&str, &[u8])]) -> (Vec<String>, Vec<String>) {
        let mut tally = Tally::new(Zone::UTC);
        for at in imported {
            let json = format!(r#"{{"device_id":"d","timestamp":"{at}Z","t":1}}"#);
            tally.add(&local::read_reading(&json, Timestamp::MAX).unwrap());
        }
        let of_month =
            |days: &[u8]| OfMonth { days: days.iter().copied().collect(), ..OfMonth::default() };
        let months = before.iter().map(|(month, days)| (month.parse().unwrap(), of_month(days)));
        let before = Before { is_new: false, months: months.collect() };
        let Spans { taken_back, kept } = Spans::of(&tally.devices[&"d".parse().unwrap()], &before);
        let shown = |at: Timestamp| at.to_string()[..23].replace(".000", "");
        let taken_back =
            taken_back.iter().map(|(from, to)| format!("{} {}", shown(*from), shown(*to)));
        (taken_back.collect(), kept)
    }

    #[test]
    fn only_days_without_earlier_readings_are_taken_back() {
        let all = ["2026-01-30T10:00:00", "2026-01-31T11:00:00", "2026-02-02T12:00:00"];
        let whole = "2026-01-30T10:00:00 2026-02-02T12:00:00.001";
        assert_eq!(spans(&all, &[]), (vec![whole.to_owned()], vec![]));
        let elsewhere: [(&str, &[u8]); 2] = [("2026-01", &[29]), ("2026-02", &[3])];
        assert_eq!(spans(&all, &elsewhere), (vec![whole.to_owned()], vec![]));
        // A day between them that the import has not, and one that it has.
        let parts = [
            "2026-01-30T10:00:00 2026-01-31T11:00:00.001",
            "2026-02-02T12:00:00 2026-02-02T12:00:00.001",
        ];
        let parts = parts.map(str::to_owned).to_vec();
        assert_eq!(spans(&all, &[("2026-02", &[1])]), (parts, vec![]));
        let (taken_back, kept) = spans(&all, &[("2026-01", &[31])]);
        assert_eq!((taken_back.len(), kept), (2, vec!["2026-01-31".to_owned()]));
        let (taken_back, kept) = spans(&all, &[("2026-01", &[30, 31]), ("2026-02", &[2])]);
        assert_eq!((taken_back.len(), kept.len()), (0, 3));
    }

    #[test]
    fn a_shell_takes_each_word_as_it_is() {
        assert_eq!(quoted("sensor.a::b"), "sensor.a::b");
        assert_eq!(quoted("a b'c$(d)"), r"'a b'\''c$(d)'");
        assert_eq!(quoted(""), "''");
        let ids: Vec<DeviceId> = ["a", "--b"].iter().map(|id| device(id)).collect();
        let lines = brought(&ids.iter().collect::<Vec<_>>(), &[room("--hall")]);
        assert_eq!(
            lines,
            [
                r#"take_back device --if-empty --no-wait --also=--b "$@" -- a"#,
                r#"take_back room --if-empty "$@" -- --hall"#,
                r#"take_back device --if-empty --also=--b "$@" -- a"#,
            ]
        );
    }
}
