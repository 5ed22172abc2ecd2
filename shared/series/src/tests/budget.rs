//! What a device that has moved costs the budget of an answer: that of one device, for what is held and read of it.

use super::super::budget::{Budget, DeviceRows, RowReader};
use super::super::density::Densities;
use super::super::places::places;
use super::*;

/// The message of a refusal.
fn refusal(answer: Result<(), Failure>) -> String {
    let Err(Failure::OutOfReach(why)) = answer else { panic!("{answer:?}") };
    why
}

#[tokio::test]
async fn a_device_that_moved_is_one_and_its_stays_take_the_place_of_the_whole() {
    let (first, number) = (at("2025-06-01T00:00:00Z"), 10);
    let room = |n: i64| if n < 5 { "hall" } else { "loft" };
    let of = |n: i64| reading(plus(first, n * HOUR), room(n), &[(GAUGE, n.to_string())]);
    let home = Home::of((0..number).map(of).collect(), "UTC").await;
    let (whole, now) = (range(first, plus(first, number * HOUR)), plus(first, DAY));
    let known = KnownState::new(Following::default());
    let horizon = known.read(&home.store, now, &invocation()).await.expect("memory");
    let grid = Grid::of(CalendarUnit::Hour, whole, Zone::UTC).expect("few rows");
    let ask = Ask::of(&home.device, (&grid, &horizon), Level::QuarterHours, now);
    let (names, invocation) = ([metric(GAUGE)], invocation());
    let rooms = ["hall", "loft"].map(|id| BTreeSet::from([id.parse().expect("an id")]));

    let densities = Densities::default();
    let mut reader = RowReader::of(&home.store, &densities, &invocation);
    let one = DeviceRows::of(ask, &names);
    reader.spend(std::slice::from_ref(&one)).await.expect("few values");
    let found = device_values(&home.store, &ask, &names, |_| true, &invocation).await;
    let found = vec![found.expect("within reach")];
    let found = places(&mut reader, &[ask], found, &rooms, &names, |_| true).await;
    assert_eq!(found.expect("few values").places.len(), 2);

    // Ten rows of each room are held; the ten of the device itself are not any more.
    let rest = DeviceRows { metrics: MAX_ROW_VALUES / 10 - 2, ..one.clone() };
    reader.spend(&[rest]).await.expect("as many as there may be");
    let why = refusal(reader.spend(&[one]).await);
    assert!(why.contains("of 10 rows of the metrics of one device,"), "{why}");
}

#[tokio::test]
async fn a_device_that_is_read_again_takes_units() {
    let first = at("2025-06-01T00:00:00Z");
    let home = Home::of(vec![reading(first, "hall", &[(GAUGE, "1".to_owned())])], "UTC").await;
    let now = plus(first, DAY);
    let known = KnownState::new(Following::default());
    let horizon = known.read(&home.store, now, &invocation()).await.expect("memory");
    let grid = Grid::total(range(first, now));
    let ask = Ask::of(&home.device, (&grid, &horizon), Level::Readings, now);
    let (invocation, densities) = (invocation(), Densities::default());
    let rows = [DeviceRows::of(ask, &[metric(GAUGE)])];

    let mut reader = RowReader::of(&home.store, &densities, &invocation);
    reader.budget = Budget::of(0.1, &densities);
    reader.spend(&rows).await.expect("a single device has bounds of its own");
    let why = refusal(reader.spend(&rows).await);
    assert!(why.contains("read units of one device,"), "{why}");
}
