//! Rollups under random schedules: whatever is delivered, lost, late or done twice, at rest each rollup is
//! the fold of its readings. Knows few keys and few values, so that everything meets.

mod design;
mod rebuild;
mod world;

use crate::schedules::{asleep, assert_each_seen, assert_right};
use design::Design;
use world::World;

/// The schedules of a normal run: about 20 seconds for each test.
const SCHEDULES: u64 = 1_200;
/// The schedules within which each wrong design must be found.
const SCHEDULES_TO_FIND: u64 = 30_000;

/// Runs a schedule; returns what is wrong at rest.
fn run(seed: u64, design: Design) -> Vec<String> {
    run_in(seed, design, |_| ())
}

/// Runs a schedule in which some clocks are hours ahead, for one sweep or for long.
fn run_with_wrong_clocks(seed: u64, design: Design) -> Vec<String> {
    run_in(seed, design, |world| world.has_wrong_clocks = true)
}

/// Runs a schedule in which somebody rebuilds the rollups again and again.
fn run_with_rebuilds(seed: u64, design: Design) -> Vec<String> {
    run_in(seed, design, |world| world.has_rebuilds = true)
}

fn run_in(seed: u64, design: Design, change: fn(&mut World)) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design).await;
        change(&mut world);
        world.live().await;
        world.come_to_rest().await;
        world.wrong()
    })
}

/// Runs a schedule, another one a month later, when the readings expire, under other retentions; returns
/// which rollups have changed then.
fn run_a_month_later(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design).await;
        world.live().await;
        world.come_to_rest().await;
        let good = world.grow_old();
        world.live().await;
        world.come_to_rest().await;
        world.changed_since(&good)
    })
}

#[test]
fn at_rest_every_rollup_is_the_fold_of_its_readings() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn a_rollup_whose_readings_may_have_begun_to_expire_never_changes() {
    assert_right(SCHEDULES / 5, |seed| run_a_month_later(seed, Design::Ours));
}

#[test]
fn a_clock_that_was_ahead_hides_nothing() {
    assert_right(SCHEDULES / 2, |seed| run_with_wrong_clocks(seed, Design::Ours));
}

#[test]
fn a_rebuild_beside_the_function_leaves_no_wrong_rollup() {
    assert_right(SCHEDULES, |seed| run_with_rebuilds(seed, Design::Ours));
}

#[test]
fn every_wrong_design_of_rollups_is_found() {
    let designs = [
        (Design::Add, 0),
        (Design::BlindPut, 45),
        (Design::SkipUnchanged, 3823),
        (Design::NoGrace, 21_819),
        (Design::DeleteEmptied, 394),
        (Design::JointCondition, 318),
        (Design::NoSettings, 243),
        (Design::StoredShare, 5_137),
    ];
    assert_each_seen(&designs, SCHEDULES_TO_FIND, run);
    assert_each_seen(&[(Design::IgnoreExpiry, 0)], SCHEDULES_TO_FIND, run_a_month_later);
    assert_each_seen(&[(Design::OnlyForward, 203)], SCHEDULES_TO_FIND, run_with_wrong_clocks);
}
