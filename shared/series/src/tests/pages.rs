//! Readings in pages: wherever these end, the pieces are those of one page. Judges no piece.

use std::ops::RangeInclusive;

use domain::given;
use domain::{DeviceId, LocalDate, Order, RoomId};
use table::{
    Invocation, Page, QueryReadings, RangeQuery, ReadRollupState, ReadRollups, StoreResult,
};

use super::*;

/// A table that answers with so many readings at a time at most.
struct SmallPages<'a> {
    store: &'a MemoryDb,
    limit: usize,
}

impl QueryReadings for SmallPages<'_> {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page<Reading>> {
        let query = RangeQuery { limit: query.limit.min(self.limit), ..query.clone() };
        self.store.device_readings(device, &query, invocation).await
    }
}

impl ReadRollups for SmallPages<'_> {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        self.store.rollup(key, invocation).await
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.store.quarters(device, range, consistent, invocation).await
    }

    async fn days(
        &self,
        device: &DeviceId,
        dates: RangeInclusive<LocalDate>,
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.store.days(device, dates, order, limit, invocation).await
    }
}

impl ReadRollupState for SmallPages<'_> {
    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        self.store.rollup_state(invocation).await
    }
}

/// Two days of a device that moves between three rooms, with pauses of minutes to hours.
fn moving(random: &mut Rng, first: Timestamp) -> Vec<Reading> {
    let (mut readings, mut now, mut room, mut counted) = (Vec::new(), first, "hall", 100);
    while now < plus(first, 2 * DAY) {
        if random.u8(0..6) == 0 {
            room = ["hall", "loft", "attic"][random.usize(0..3)];
        }
        counted += random.i64(0..3);
        // A counter of 0 does not count, and tells where the device is.
        let shown = if random.u8(0..10) == 0 { 0 } else { counted };
        readings.push(reading(now, room, &[(COUNTER, shown.to_string())]));
        let pause = if random.u8(0..15) == 0 { HOUR } else { 60_000 };
        now = plus(now, random.i64(1..12) * pause);
    }
    readings
}

#[tokio::test]
async fn pieces_are_the_same_wherever_a_page_of_readings_ends() {
    let first = at("2025-06-01T00:00:00Z");
    let (whole, now) = (range(plus(first, HOUR + 1), plus(first, 2 * DAY)), plus(first, 9 * DAY));
    let hall: BTreeSet<RoomId> = [given::room("hall")].into();
    let mut compared = 0;
    for seed in 0..20 {
        let mut random = Rng::with_seed(seed);
        let home = Home::of(moving(&mut random, first), "UTC").await;
        if seed % 2 == 0 {
            home.roll_up(range(first, plus(first, DAY)), || true).await;
        }
        let horizon = home.horizon(now).await;
        let of = |unit| Grid::of(unit, whole, Zone::UTC).expect("few rows");
        for (grid, coarsest) in [
            (Grid::total(whole), Level::Days),
            (of(CalendarUnit::Hours6), Level::QuarterHours),
            (of(CalendarUnit::Minute), Level::Readings),
        ] {
            for (rooms, is_by_room) in [(None, false), (Some(&hall), false), (None, true)] {
                let question = DeviceQuestion::of(&home.device, &grid, &horizon, coarsest, now);
                let question = DeviceQuestion { rooms, is_by_room, ..question };
                let one = gather(Session::new(&home.store, &invocation(), now), &question)
                    .await
                    .expect("within reach");
                for limit in [1, 2, 7, 50] {
                    let store = SmallPages { store: &home.store, limit };
                    let paged = gather(Session::new(&store, &invocation(), now), &question)
                        .await
                        .expect("within reach");
                    let told = format!("seed {seed}: {coarsest:?} {rooms:?} {is_by_room} {limit}");
                    assert_eq!(paged.pieces, one.pieces, "{told}");
                    assert_eq!(paged.of_readings, one.of_readings, "{told}");
                    compared += one.pieces.len();
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared} pieces");
}

/// Both ends of the range lie within a quarter of an hour, whose readings are read.
#[tokio::test]
async fn all_readings_of_a_question_are_limited_together() {
    let first = at("2025-06-01T00:00:00Z");
    let of = |minute: i64| reading(plus(first, minute * 60_000), "hall", &[(GAUGE, "1".into())]);
    let home = Home::of((0..60).map(of).collect(), "UTC").await;
    home.roll_up(range(first, plus(first, HOUR)), || false).await;
    let now = plus(first, DAY);
    let grid = Grid::total(range(plus(first, 5 * 60_000), plus(first, 50 * 60_000)));
    let horizon = home.horizon(now).await;
    let question = DeviceQuestion::of(&home.device, &grid, &horizon, Level::QuarterHours, now);

    for (max_readings, is_enough) in [(15, true), (14, false)] {
        let question = DeviceQuestion { max_readings, ..question };
        let gathered = gather(session(&home.store, &invocation()), &question).await;
        assert_eq!(gathered.is_ok(), is_enough, "10 and 5 readings, at most {max_readings}");
    }
}
