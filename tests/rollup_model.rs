//! Rollups under random schedules: whatever is delivered, lost, late or done twice, at rest each rollup is
//! the fold of its readings. Knows few keys and few values, so that everything meets.

mod design;
mod rebuild;
mod world;

use crate::schedules::{asleep, assert_right, assert_seen};
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
    type Run = fn(u64, Design) -> Vec<String>;
    let designs: [(Design, u64, Run); 10] = [
        (Design::Add, 0, run),
        (Design::BlindPut, 45, run),
        (Design::SkipUnchanged, 3823, run),
        (Design::NoGrace, 21_819, run),
        (Design::DeleteEmptied, 394, run),
        (Design::JointCondition, 187, run),
        (Design::NoSettings, 243, run),
        (Design::StoredShare, 4_608, run),
        (Design::IgnoreExpiry, 0, run_a_month_later),
        (Design::OnlyForward, 203, run_with_wrong_clocks),
    ];
    for (design, last, run) in designs {
        assert_seen(design, last, SCHEDULES_TO_FIND, |seed| run(seed, design));
    }
}
