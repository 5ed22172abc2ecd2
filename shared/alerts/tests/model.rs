//! Judgements under random schedules: whatever comes late, twice, ahead of time, is overwritten or deleted, and
//! whoever crashes, lags or has a wrong clock, the state is the fold of all readings and the last message is the
//! state. Has no table of DynamoDB.

#[path = "model/in_order.rs"]
mod in_order;
#[path = "model/oracle.rs"]
mod oracle;
#[path = "model/world.rs"]
mod world;

use world::{Design, World};

/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 400;
/// The schedules within which each wrong design must be found.
const SCHEDULES_TO_FIND: u64 = 1_000;

#[expect(clippy::disallowed_methods, reason = "who runs the tests says how many schedules")]
fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Asserts that nothing is wrong in as many schedules as the run has.
fn assert_right(run: impl Fn(u64) -> Vec<String>) {
    let seeds = match number_of("ROOMTIDE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("ROOMTIDE_SCHEDULES").unwrap_or(SCHEDULES),
    };
    for seed in seeds {
        let wrong = run(seed);
        assert!(wrong.is_empty(), "ROOMTIDE_SEED={seed}: {wrong:#?}");
    }
}

fn run(seed: u64, design: Design) -> Vec<String> {
    let mut world = World::new(seed, design);
    world.live();
    world.come_to_rest();
    world.wrong()
}

#[test]
fn at_rest_the_state_is_the_fold_of_all_readings_and_the_last_message_is_the_state() {
    assert_right(|seed| run(seed, Design::Ours));
}

#[test]
fn in_order_the_messages_are_the_turns_of_the_fold_and_the_preview_has_its_episodes() {
    assert_right(|seed| in_order::run(seed, Design::Ours));
}

/// The harness sees what is wrong with a design, or it would see nothing in ours.
#[test]
fn every_wrong_design_is_found() {
    let found = Design::WRONG.map(|design| {
        let is_wrong =
            |seed: &u64| !run(*seed, design).is_empty() || !in_order::run(*seed, design).is_empty();
        let found = (0..SCHEDULES_TO_FIND).find(is_wrong);
        println!("{design:?} is found in the schedule {found:?}");
        (design, found)
    });
    let survived: Vec<_> = found.iter().filter(|(_, found)| found.is_none()).collect();
    assert!(survived.is_empty(), "{survived:?} survive {SCHEDULES_TO_FIND} schedules");
}
