//! What a device that has moved costs the allowance of an answer: that of one device, for what is held and read of it.

use super::super::allowance::{PlannedRead, ReadAllowance};
use super::super::density::Densities;
use super::*;

/// The message of a refusal.
fn refusal(answer: Result<(), SeriesError>) -> String {
    let Err(SeriesError::OutOfReach(why)) = answer else { panic!("{answer:?}") };
    why
}

#[tokio::test]
async fn a_device_that_is_read_again_takes_units() {
    let first = at("2025-06-01T00:00:00Z");
    let home = Home::of(vec![reading(first, "hall", &[(GAUGE, "1".to_owned())])], "UTC").await;
    let now = plus(first, DAY);
    let known = RollupStateCache::new(RollupDelay::default());
    let horizon = known.read(Session::new(&home.store, &invocation(), now)).await.expect("memory");
    let grid = Grid::total(range(first, now));
    let question = DeviceQuestion::of(&home.device, &grid, &horizon, Level::Readings, now);
    let (invocation, densities) = (invocation(), Densities::default());
    let reads = [PlannedRead::of(question, &[metric(GAUGE)])];

    let session = session(&home.store, &invocation);
    let mut allowance = ReadAllowance::of(0.1, &densities);
    allowance.charge(session, &reads).await.expect("a single device has bounds of its own");
    let why = refusal(allowance.charge(session, &reads).await);
    assert!(why.contains("read units of one device,"), "{why}");
}
