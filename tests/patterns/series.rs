//! What series and energy cost: a year by day, a month by 15 minutes, a day from readings. Checks no value.

use domain::{Bucket, FoldRules, QuarterHour, Reading, Rollup, TimeRange, Timestamp, Zone};
use dynamodb::DynamoStore;
use table::item::Kind as _;
use table::{
    DeviceGroups, EditTariffs as _, Expected, LateMark, MarkLateChanges as _, MarksOutcome,
    ReadLateChanges as _, RegisterDevices as _, StoredTariff,
};

use super::{Row, row};
use crate::engine::{Engine, Table};
use crate::given::{answer, at, device_of, percent_encoded, placed, reading, seal, stored_rollup};
use crate::home::Home;
use crate::stored::put;

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
/// The days before and after the start of the tests' time for which there are rollups.
const DAYS: (i64, i64) = (-366, 31);

/// A meter with three metrics, a reading a minute: its rollups for a year and a month, and the readings of
/// the last hours.
struct Meter {
    table: Table,
    store: DynamoStore,
}

fn measured(minute: i64) -> Reading {
    let n = minute + (1 - DAYS.0) * 24 * 60;
    let power = (500 + n * 37 % 900).to_string();
    let bought = format!("{}.{}", 8_048 + n / 600, n / 60 % 10);
    let sold = format!("{}.{}", 120 + n / 6_000, n / 600 % 10);
    let metrics =
        [("current_w", power.as_str()), ("cumulative_kwh_p", &bought), ("cumulative_kwh_n", &sold)];
    placed(reading("meter", minute * MINUTE, &metrics), "chiyoda1-a")
}

fn minutes(range: TimeRange) -> std::ops::Range<i64> {
    let minute = |at: Timestamp| at.since(self::at(0)).num_minutes();
    minute(range.from())..minute(range.to())
}

fn readings(range: TimeRange) -> Vec<Reading> {
    minutes(range).map(measured).collect()
}

impl Meter {
    async fn build() -> Self {
        let table = Engine::embedded().await.table_without_stream(&[]).await;
        let store = table.store();
        let known = device_of([&measured(DAYS.0 * 24 * 60)]);
        answer!(store.register_device(&known));
        let rules = FoldRules::of(&known);
        let days = (DAYS.0..DAYS.1).map(|n| {
            let date = Zone::UTC.date(at(n * DAY));
            let range = Zone::UTC.day(date).expect("it exists");
            // Every tenth reading: a day's item has the same members, and the test is done sooner.
            let some: Vec<Reading> = minutes(range).step_by(10).map(measured).collect();
            (Bucket::Day(date), range, Rollup::fold(&some, &rules))
        });
        let quarters = (0..31 * 96).map(|n| {
            let quarter = QuarterHour::of(at(n * 15 * MINUTE));
            let rollup = Rollup::fold(&readings(quarter.range()), &rules);
            (Bucket::QuarterHour(quarter), quarter.range(), rollup)
        });
        let rollups = days
            .chain(quarters)
            .map(|(bucket, range, rollup)| stored_rollup(known.id(), bucket, range, rollup).item());
        table.put_all(rollups).await;
        for (from, to) in [(-1, 1), (30, 32)] {
            let some = TimeRange::new(at(from * DAY), at(to * DAY)).expect("a range");
            put(&store, &readings(some)).await;
        }
        seal(&store, "UTC", at(31 * DAY)).await;
        Self { table, store }
    }

    /// Adds a device with a price for each quarter of the month.
    async fn add_prices(&self) {
        let price = |n: i64| {
            reading("spot", n * 15 * MINUTE, &[("price", &format!("0.{}", 1_000 + n % 997))])
        };
        let known = device_of([&price(0)]);
        answer!(self.store.register_device(&known));
        let rules = FoldRules::of(&known);
        let quarters = (0..31 * 96).map(|n| {
            let quarter = QuarterHour::of(at(n * 15 * MINUTE));
            let rollup = Rollup::fold(&[price(n)], &rules);
            stored_rollup(known.id(), Bucket::QuarterHour(quarter), quarter.range(), rollup).item()
        });
        self.table.put_all(quarters).await;
    }

    /// What a query in InfluxQL about the meter's power costs, and how many rows it has.
    async fn influxql(&self, query: &str, rows: usize) -> (f64, f64) {
        let query = format!("db=home&q={}", percent_encoded(query));
        self.asked("/query", &query, rows, "/results/0/series/0/values").await
    }

    /// What an answer costs, and how many rows it has.
    async fn cost(&self, path: &str, query: &str, rows: usize) -> (f64, f64) {
        self.asked(path, query, rows, "/data").await
    }

    async fn asked(&self, path: &str, query: &str, rows: usize, place: &str) -> (f64, f64) {
        let home = Home::at(self.store.clone(), at(32 * DAY));
        home.query().load().await;
        let answer = super::answer_of(&home, path, query).await;
        let found = answer.body.pointer(place).and_then(|it| it.as_array().map(Vec::len));
        assert_eq!(found, Some(rows), "{path}?{query}: {}", answer.body);
        answer.units()
    }
}

pub(super) async fn rows() -> Vec<Row> {
    let meter = Meter::build().await;
    let year = "from=2025-01-12T00:00:00Z&to=2026-01-12T00:00:00Z&every=1d";
    let month = "from=2026-01-12T00:00:00Z&to=2026-02-11T00:00:00Z&every=15m";
    let day = "from=2026-02-11T00:00:00Z&to=2026-02-12T00:00:00Z&every=5m";
    let rows = vec![
        row(
            "10a",
            "a year by day of a meter with three metrics",
            meter.cost("/devices/meter/series", year, 365).await,
        ),
        row("10b", "its energy", meter.cost("/devices/meter/energy", year, 365).await),
        row(
            "10c",
            "a month by 15 minutes of it",
            meter.cost("/devices/meter/series", month, 30 * 96).await,
        ),
        row(
            "10d",
            "a day by 5 minutes of it, from readings",
            meter.cost("/devices/meter/series", day, 288).await,
        ),
    ];
    let power = |function: &str, from: &str, to: &str, rest: &str| {
        format!(
            "SELECT {function}(\"value\") FROM \"current_w\" WHERE time >= '{from}' AND time < '{to}' {rest}"
        )
    };
    let influxql = vec![
        row(
            "14a",
            "InfluxQL: a year by day of a meter with three metrics, with tz() of the home",
            meter
                .influxql(
                    &power("mean", "2025-01-12", "2026-01-12", "GROUP BY time(1d) tz('UTC')"),
                    365,
                )
                .await,
        ),
        row(
            "14b",
            "InfluxQL: a day by 5 minutes of it, from readings",
            meter
                .influxql(&power("mean", "2026-02-11", "2026-02-12", "GROUP BY time(5m)"), 288)
                .await,
        ),
        row(
            "14c",
            "InfluxQL: the newest value of it",
            meter.influxql("SELECT last(\"value\") FROM \"current_w\"", 1).await,
        ),
    ];
    // The figures that the rollups were made for, and a unit that tells what they may lack.
    assert!(rows[0].measured.0 <= 16.0 && rows[2].measured.0 <= 111.0);
    let bills = bills(&meter).await;
    rows.into_iter().chain(influxql).chain(late(&meter.store).await).chain(bills).collect()
}

/// What bills of the meter cost.
async fn bills(meter: &Meter) -> Vec<Row> {
    meter.add_prices().await;
    let meters = r#""meters": [{"device": "meter"}]"#;
    for (id, meters, line) in [
        ("flat", meters, r#""price": 0.3"#),
        ("tiers", "\"meters\": []", r#""tiers": [{"to": 100, "price": 0.2}, {"price": 0.3}]"#),
        (
            "zones",
            "\"meters\": []",
            r#""price": 0.3, "zones": [{"name": "n", "hours": "22:00-06:00", "price": 0.2}]"#,
        ),
        (
            "spot",
            "\"meters\": []",
            r#""series": {"device": "spot", "metric": "price", "slot": "15m"}"#,
        ),
    ] {
        let written = format!(
            r#"{{"name": "X", "currency": "EUR", {meters}, "lines": [{{"name": "E", {line}}}]}}"#
        );
        let tariff =
            StoredTariff { id: id.parse().expect("an id"), version: 1, edited: at(0), written };
        assert!(answer!(meter.store.save_tariff(&tariff, Expected::Absent)));
    }

    let month = "from=2026-01-12T00:00:00Z&to=2026-02-11T00:00:00Z";
    let year = "from=2025-02-01T00:00:00Z&to=2026-02-01T00:00:00Z&every=1mo";
    let of = |range: &str, tariffs: &str| format!("{range}&tariff={tariffs}");
    let mut rows = Vec::new();
    for (number, title, query, count) in [
        (
            "25f",
            "the bill of a month of a meter with three metrics, at one price",
            of(month, "flat"),
            1,
        ),
        ("25g", "the bill of a year by month", of(year, "flat"), 12),
        ("25h", "the same by two tariffs, one with tiers", of(year, "flat,tiers"), 24),
        ("25i", "the bill of a month with zones by hours", of(month, "flat,zones"), 2),
        ("25j", "the same by prices of quarters, too", of(month, "flat,zones,spot"), 3),
    ] {
        rows.push(row(number, title, meter.cost("/cost", &query, count).await));
    }
    for (number, title, tariffs, count) in [
        ("25k", "the share of a device in a month with zones", "zones", 1),
        ("25l", "the same by two tariffs", "zones,flat", 2),
    ] {
        let share = meter.cost("/devices/meter/cost", &of(month, tariffs), count).await;
        rows.push(row(number, title, share));
    }
    assert!(rows[0].measured.0 <= 5.0 && rows[1].measured.0 <= 19.0);
    assert!(rows[3].measured.0 <= 94.0 && rows[4].measured.0 <= 142.0);
    // Of a further tariff only the tariff is read: the energy of a share is read once.
    assert!((rows[6].measured.0 - rows[5].measured.0 - 1.0).abs() < 0.1);
    rows
}

async fn late(store: &DynamoStore) -> Vec<Row> {
    let mark = LateMark {
        range: TimeRange::new(at(0), at(DAY)).expect("a day"),
        groups: DeviceGroups::ALL,
        until: at(0),
    };
    let marked = super::cost(async |invocation| {
        let outcome = store.put_late_marks(&[mark; 12], 0, invocation).await.expect("written");
        assert_eq!(outcome, MarksOutcome::Stored);
    });
    let marked = marked.await;
    let read = super::cost(async |invocation| {
        assert_eq!(store.late_changes(invocation).await.expect("read").marks.len(), 12);
    });
    vec![
        row(
            "17a",
            "mark that readings of the past are stored, once in ten seconds and instance",
            marked,
        ),
        row("17b", "tell what rollups may lack, for each answer that reads rollups", read.await),
    ]
}
