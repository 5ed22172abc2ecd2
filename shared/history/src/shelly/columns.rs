//! The columns of a log, and the metrics that the meter itself sends for them. Reads no row.

/// The name of the first column: in a log of the second and later generations, and of the first.
const TIMES: [&str; 2] = ["timestamp", "Date/time UTC"];
/// Columns of the first generation: the text before the channel, and the metric.
const FIRST_GENERATION: [(&str, &str); 2] =
    [("Active energy Wh", "cumulative_kwh_p"), ("Returned energy Wh", "cumulative_kwh_n")];
/// Columns of later generations, without the phase.
const LATER: [(&str, &str, LoggedKind); 4] = [
    ("total_act_energy", "cumulative_kwh_p", LoggedKind::Amount),
    ("total_act_ret_energy", "cumulative_kwh_n", LoggedKind::Amount),
    ("avg_voltage", "voltage", LoggedKind::Mean("V")),
    ("avg_current", "current", LoggedKind::Mean("A")),
];
/// The letters of the phases, and of the neutral conductor.
const PHASES: [char; 4] = ['a', 'b', 'c', 'n'];

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedKind {
    /// The energy of the interval in Wh.
    Amount,
    /// The mean of the interval, in a unit.
    Mean(&'static str),
}

/// A metric, and the columns whose sum it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoggedMetric {
    pub(super) name: String,
    /// The part of the device that has the metric, such as `emeter:1`.
    pub(super) part: Option<String>,
    pub(super) kind: LoggedKind,
    /// The indices of the columns.
    pub(super) columns: Vec<usize>,
}

/// The columns that a header row describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    /// Whether times are text, as in the first generation.
    pub(super) is_first_generation: bool,
    pub(super) metrics: Vec<LoggedMetric>,
    /// The columns without a counterpart in the meter's status.
    pub(super) left_out: Vec<String>,
}

/// Whether a header row is that of a Shelly log.
pub fn is_header(header: &str) -> bool {
    let names: Vec<&str> = header.trim().split(',').map(str::trim).collect();
    Columns::of(&names).is_some()
}

impl Columns {
    /// Parses a header row; `None` if it is not that of a Shelly log.
    pub(super) fn of(names: &[&str]) -> Option<Self> {
        let (first, others) = names.split_first()?;
        let generation = TIMES.iter().position(|time| time == first)?;
        let is_first_generation = generation == 1;
        let (mut metrics, mut left_out) = (Vec::<LoggedMetric>::new(), Vec::new());
        for (place, name) in others.iter().enumerate().map(|(n, name)| (n + 1, *name)) {
            let metric =
                if is_first_generation { of_first_generation(name) } else { of_later(name) };
            match metric {
                Some((name, part, kind)) => {
                    metrics.push(LoggedMetric { name, part, kind, columns: vec![place] });
                }
                None => left_out.push(name.to_owned()),
            }
        }

        // A three-phase meter also sends the sum of its phases.
        for total in ["cumulative_kwh_p", "cumulative_kwh_n"] {
            let of_phase = |metric: &&LoggedMetric| {
                metric.name.strip_prefix(total).is_some_and(|end| end.len() == 2)
            };
            let columns: Vec<usize> =
                metrics.iter().filter(of_phase).flat_map(|metric| metric.columns.clone()).collect();
            if columns.len() == 3 {
                let (name, part) = (total.to_owned(), None);
                metrics.push(LoggedMetric { name, part, kind: LoggedKind::Amount, columns });
            }
        }

        let has_amounts = metrics.iter().any(|metric| metric.kind == LoggedKind::Amount);
        has_amounts.then_some(Self { is_first_generation, metrics, left_out })
    }
}

/// Parses `Active energy Wh (A)` of a three-phase meter, or `(1)` and `(2)` of a meter with two channels.
fn of_first_generation(column: &str) -> Option<(String, Option<String>, LoggedKind)> {
    let (start, metric) = FIRST_GENERATION.iter().find(|(start, _)| column.starts_with(start))?;
    let channel = column[start.len()..].trim();
    let channel =
        channel.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(channel);

    let (name, part) = match channel {
        "" | "1" => ((*metric).to_owned(), None),
        "A" | "B" | "C" => (format!("{metric}_{}", channel.to_ascii_lowercase()), None),
        number => {
            let number: u32 = number.parse().ok()?;
            ((*metric).to_owned(), Some(format!("emeter:{}", number.checked_sub(1)?)))
        }
    };
    Some((name, part, LoggedKind::Amount))
}

fn of_later(column: &str) -> Option<(String, Option<String>, LoggedKind)> {
    let phase = |column: &str| {
        let (phase, rest) = column.split_once('_')?;
        let letter = phase.chars().next().filter(|_| phase.len() == 1)?;
        PHASES.contains(&letter).then(|| (format!("_{letter}"), rest.to_owned()))
    };
    let (suffix, rest) = phase(column).unwrap_or_else(|| (String::new(), column.to_owned()));
    let (_, metric, kind) = LATER.iter().find(|(known, ..)| *known == rest)?;
    Some((format!("{metric}{suffix}"), None, *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: &str) -> Option<(Vec<String>, String)> {
        let names: Vec<&str> = header.split(',').collect();
        let Columns { metrics, left_out, .. } = Columns::of(&names)?;
        let shown = |it: &LoggedMetric| {
            let part = it.part.as_ref().map(|part| format!("{part} ")).unwrap_or_default();
            format!("{part}{} {:?}", it.name, it.columns)
        };
        Some((metrics.iter().map(shown).collect(), left_out.join(",")))
    }

    #[test]
    fn the_metrics_are_those_of_the_status() {
        for (header, metrics, left_out) in [
            (
                "timestamp,a_total_act_energy,a_fund_act_energy,a_total_act_ret_energy,a_avg_voltage,b_total_act_energy,c_total_act_energy,n_avg_current",
                vec![
                    "cumulative_kwh_p_a [1]",
                    "cumulative_kwh_n_a [3]",
                    "voltage_a [4]",
                    "cumulative_kwh_p_b [5]",
                    "cumulative_kwh_p_c [6]",
                    "current_n [7]",
                    "cumulative_kwh_p [1, 5, 6]",
                ],
                "a_fund_act_energy",
            ),
            (
                "timestamp,total_act_energy,total_act_ret_energy,lag_react_energy,avg_voltage,avg_current",
                vec!["cumulative_kwh_p [1]", "cumulative_kwh_n [2]", "voltage [4]", "current [5]"],
                "lag_react_energy",
            ),
            (
                "Date/time UTC,Active energy Wh (A),Returned energy Wh (A)",
                vec!["cumulative_kwh_p_a [1]", "cumulative_kwh_n_a [2]"],
                "",
            ),
            (
                "Date/time UTC,Active energy Wh (1),Returned energy Wh (1),Min V,Max V",
                vec!["cumulative_kwh_p [1]", "cumulative_kwh_n [2]"],
                "Min V,Max V",
            ),
            (
                "Date/time UTC,Active energy Wh (2),Returned energy Wh (2)",
                vec!["emeter:1 cumulative_kwh_p [1]", "emeter:1 cumulative_kwh_n [2]"],
                "",
            ),
            ("Date/time UTC,Active energy Wh", vec!["cumulative_kwh_p [1]"], ""),
        ] {
            let expected =
                (metrics.into_iter().map(ToOwned::to_owned).collect(), left_out.to_owned());
            assert_eq!(of(header), Some(expected), "{header}");
            assert!(is_header(&format!(" {header}\r\n")));
        }
        for header in [
            "timestamp,device_id,energy",
            "timestamp",
            "time,total_act_energy",
            "timestamp,avg_voltage",
        ] {
            assert_eq!(of(header), None, "{header}");
        }
    }
}
