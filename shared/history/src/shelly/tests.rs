//! Tests of logs, as meters write them.

use domain::given;
use rust_decimal::Decimal;

use super::*;
use crate::point::Point;
use crate::source::HistorySource;
use crate::text_lines::TextLines;

/// Three minutes of a meter of three phases, in the wrong order, one of them twice, and a line that is cut.
const THREE_PHASES: &str = "timestamp,a_total_act_energy,a_fund_act_energy,a_total_act_ret_energy,a_avg_voltage,b_total_act_energy,b_total_act_ret_energy,c_total_act_energy,c_total_act_ret_energy\r
1771180680,0.2000,0.1,0.0000,214.3,0.1000,0.5000,0.0000,0.0000\r
1771180620,9.9,9.9,9.9,9.9,9.9,9.9,9.9,9.9\r
1771180620,0.2134,0.2001,0.0000,214.321,0.2082,0.0000,0.0704,0.0000\r
timestamp,a_total_act_energy,a_fund_act_energy,a_total_act_ret_energy,a_avg_voltage,b_total_act_energy,b_total_act_ret_energy,c_total_act_energy,c_total_act_ret_energy\r
1771180800,1,,0,,,0,1,0\r
0,1,1,1,1,1,1,1,1\r
1771180860,x,1,1,1,1,1,1,1\r
1771180920,0.21";

const TEN_MINUTES: &str = "Date/time UTC,Active energy Wh (2),Returned energy Wh (2),Min V,Max V
2025-12-27 00:00,2.10,0.00,232.0,233.5
2025-12-27 00:10,100.05,0.00,232.0,233.5
";

fn log(text: &str) -> Log {
    Log::read(TextLines::new(text.as_bytes()), given::device("meter-1")).unwrap()
}

/// The points by metric: minutes since the first row began, and values.
fn told(source: HistorySource, begin: i64) -> (Vec<String>, String, Vec<String>) {
    let (points, notes) = source.into_points();
    let points: Vec<Point> = points.collect::<anyhow::Result<_>>().unwrap();
    let shown = |it: &Point| {
        let device = it.tags.strip_prefix("roomtide_device=").unwrap();
        let minute = (it.nanos / 1_000_000_000 - begin) / 60;
        format!("{device} {} {minute} {}", it.measurement, it.fields[0].1)
    };
    let lines = points.iter().map(shown).collect();
    (lines, notes.to_string(), notes.take_refusals().shown())
}

fn of_metric(lines: &[String], metric: &str) -> Vec<String> {
    let found = lines.iter().filter_map(|line| line.strip_prefix("meter-1 ")?.strip_prefix(metric));
    found.filter_map(|rest| rest.strip_prefix(' ')).map(ToOwned::to_owned).collect()
}

#[test]
fn amounts_are_added_up_to_the_counters_of_the_status() {
    let (lines, notes, refused) =
        told(log(THREE_PHASES).source(&Anchors::default()).unwrap(), 1_771_180_620);
    assert_eq!(
        of_metric(&lines, "cumulative_kwh_p_a"),
        ["0 1", "1 1.0002134", "2 1.0004134", "4 1.0014134"]
    );
    assert_eq!(of_metric(&lines, "cumulative_kwh_p_b"), ["0 1", "1 1.0002082", "2 1.0003082"]);
    assert_eq!(
        of_metric(&lines, "cumulative_kwh_p"),
        ["0 1", "1 1.000492", "2 1.000792"],
        "not where a phase is empty"
    );
    assert_eq!(of_metric(&lines, "cumulative_kwh_n"), ["0 1", "1 1", "2 1.0005", "4 1.0005"]);
    assert_eq!(of_metric(&lines, "voltage_a"), ["1 214.321", "2 214.3"]);
    assert_eq!(
        notes,
        "left out     1 columns that the meter's status does not have: a_fund_act_energy\n\
         left out     1 rows of a time that a later line has too"
    );
    assert_eq!(
        refused,
        [
            "line 7: \"0\" is not the time of a measurement",
            "line 8: \"x\" is not a number",
            "line 9: has 2 columns; the header has 9",
        ]
    );
}

#[test]
fn counters_end_where_the_meter_s_own_begin() {
    let live = 1_771_180_620_000 + 90_000;
    let counter = |metric: &str| ("meter-1".to_owned(), metric.to_owned());
    let anchors = Anchors {
        counters: [(counter("cumulative_kwh_p_a"), (live, Decimal::new(500, 0)))].into(),
        live: Some(live),
        ..Anchors::default()
    };
    let (lines, notes, _) = told(log(THREE_PHASES).source(&anchors).unwrap(), 1_771_180_620);
    // Half of the second minute has passed: 500 less 0.1 Wh.
    assert_eq!(of_metric(&lines, "cumulative_kwh_p_a"), ["0 499.9996866", "1 499.9999"]);
    assert!(notes.contains("2 rows of the time since when the meter itself sends"), "{notes}");
    // The counter of an earlier log goes on.
    let before = Anchors {
        counters: [(counter("cumulative_kwh_p_a"), (1_700_000_000_000, Decimal::new(7, 0)))].into(),
        ..Anchors::default()
    };
    let (lines, ..) = told(log(THREE_PHASES).source(&before).unwrap(), 1_771_180_620);
    assert_eq!(
        of_metric(&lines, "cumulative_kwh_p_a"),
        ["0 7", "1 7.0002134", "2 7.0004134", "4 7.0014134"]
    );
}

/// The meter was reset, or a later log was imported first.
#[test]
fn a_counter_that_would_begin_below_zero_is_refused() {
    let rows = "timestamp,total_act_energy\n1771180620,500\n1771180680,700\n1771180740,600\n";
    let begin = 1_771_180_620_000;
    let counter = ("meter-1".to_owned(), "cumulative_kwh_p".to_owned());
    let source = |wh: i64, from: i64| {
        let anchor = (begin + 180_000, Decimal::new(wh, 3));
        let counters = [(counter.clone(), anchor)].into();
        let anchors = Anchors { counters, live: Some(anchor.0), from, ..Anchors::default() };
        log(rows).source(&anchors).map(|source| told(source, begin / 1_000).0)
    };

    let error = source(1_000, 0).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "cumulative_kwh_p of meter-1 is 1 at 2026-02-15T18:40:00.000Z in the table, and the log counts 0.8 more"
        ),
        "{error}"
    );
    // A new meter's own readings begin within its second row.
    let lines = source(1_100, 0).unwrap();
    assert_eq!(of_metric(&lines, "cumulative_kwh_p"), ["0 -0.7", "1 -0.2", "2 0.5", "3 1.1"]);
    assert!(source(300, begin + 120_000).is_ok(), "rows before the reset are left out");
}

#[test]
fn the_second_channel_of_the_first_generation_is_a_part() {
    let log = log(TEN_MINUTES);
    let begin = 1_766_793_600;
    assert_eq!(log.ends(), [begin * 1_000 + 600_000, begin * 1_000 + 1_200_000]);
    assert_eq!(log.counters()[0], ("meter-1:emeter:1".to_owned(), "cumulative_kwh_p".to_owned()));
    let source = log.source(&Anchors::default()).unwrap();
    let units = source.units.clone();
    let (lines, ..) = told(source, begin);
    assert_eq!(
        lines,
        [
            "meter-1/emeter/1 cumulative_kwh_p 0 1",
            "meter-1/emeter/1 cumulative_kwh_p 10 1.0021",
            "meter-1/emeter/1 cumulative_kwh_n 0 1",
            "meter-1/emeter/1 cumulative_kwh_n 10 1",
            "meter-1/emeter/1 cumulative_kwh_p 20 1.10215",
            "meter-1/emeter/1 cumulative_kwh_n 20 1",
        ]
    );
    assert!(!units.is_empty());
}

#[test]
fn a_counter_begins_where_its_own_first_amount_begins() {
    let rows = "timestamp,a_total_act_energy,a_total_act_ret_energy\n\
                1771180620,,0\n1771180680,5,0\n1771180740,5,0\n";
    let (lines, ..) = told(log(rows).source(&Anchors::default()).unwrap(), 1_771_180_620);
    assert_eq!(of_metric(&lines, "cumulative_kwh_p_a"), ["1 1", "2 1.005", "3 1.01"]);
    assert_eq!(of_metric(&lines, "cumulative_kwh_n_a"), ["0 1", "1 1", "2 1", "3 1"]);
}

#[test]
fn neither_a_late_row_nor_a_gap_changes_the_interval() {
    for seconds in [&[0, 60, 120, 181, 240, 300][..], &[0, 3_600], &[0, 1, 61, 121]] {
        let rows = seconds.iter().map(|second| format!("{},1\n", 1_771_180_620 + second));
        let text = format!("timestamp,total_act_energy\n{}", rows.collect::<String>());
        assert_eq!(log(&text).ends()[0], (1_771_180_620 + 60) * 1_000, "{seconds:?}");
    }
}

#[test]
fn a_log_without_rows_says_so() {
    let error = |text: &str| {
        Log::read(TextLines::new(text.as_bytes()), given::device("m")).err().unwrap().to_string()
    };
    assert!(error("a,b\n1,2\n").contains("not the log of a Shelly meter"));
    assert!(error("timestamp,total_act_energy\n1771180620,x\n").contains("no row"));
}

#[test]
fn a_time_and_a_number_that_no_meter_has_are_refused() {
    let header = "timestamp,a_total_act_energy,a_total_act_ret_energy,b_total_act_energy,b_total_act_ret_energy,\
                  c_total_act_energy,c_total_act_ret_energy";
    let largest = Decimal::MAX;
    let rows = format!(
        "{header}\n1771180620,1,0,1,0,1,0\n1771180680,{largest},0,{largest},0,1,0\n1771180740,1,-1,1,0,1,0\n99999999999,1,0,1,0,1,0\n"
    );
    let log = log(&rows);
    let anchor = (("meter-1".to_owned(), "energy_kwh".to_owned()), (1_771_180_680_000, -largest));
    let anchors = Anchors { counters: [anchor].into(), ..Anchors::default() };
    let (lines, _, refused) = told(log.source(&anchors).unwrap(), 1_771_180_620);
    assert!(!lines.is_empty());
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused[0].ends_with("is too large for a meter"), "{refused:?}");
    assert!(
        refused[1].ends_with("\"-1\" is below zero, or is too large for a meter"),
        "{refused:?}"
    );
    assert!(refused[2].contains("is not the time of a measurement"), "{refused:?}");
}
