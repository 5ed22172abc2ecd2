//! Rollups under random schedules: whatever is delivered, lost, late or done twice, at rest each rollup is
//! the fold of its readings. Knows few keys and few values, so that everything meets.

mod design;
mod steps;
mod world;

use crate::schedules::{asleep, assert_right};
use design::Design;
use world::World;

/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 2_000;
/// The schedules within which each wrong design must be found.
const SCHEDULES_TO_FIND: u64 = 6_000;

/// Runs a schedule; returns what is wrong at rest.
fn run(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design).await;
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
    assert_right(SCHEDULES / 4, |seed| run_a_month_later(seed, Design::Ours));
}

/// Runs a schedule in which some clocks are hours ahead, for one sweep or for long.
fn run_with_wrong_clocks(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design).await;
        world.has_wrong_clocks = true;
        world.live().await;
        world.come_to_rest().await;
        world.wrong()
    })
}

#[test]
fn a_clock_that_was_ahead_hides_nothing() {
    assert_right(SCHEDULES / 2, |seed| run_with_wrong_clocks(seed, Design::Ours));
}

#[test]
fn marks_that_only_move_forward_are_found() {
    assert_found_by(run_with_wrong_clocks, Design::OnlyForward, 0);
}

/// The harness sees what is wrong with a design, or it would see nothing in ours. The first schedule is one
/// in which it was seen; where the code has changed since, it is another.
fn assert_found(design: Design, first: u64) {
    assert_found_by(run, design, first);
}

fn assert_found_by(run: impl Fn(u64, Design) -> Vec<String>, design: Design, first: u64) {
    let mut seeds = (first..SCHEDULES_TO_FIND).chain(0..first);
    let found = seeds.find(|seed| !run(*seed, design).is_empty());
    assert!(found.is_some(), "{design:?} survives {SCHEDULES_TO_FIND} schedules");
}

#[test]
fn adding_instead_of_putting_is_found() {
    assert_found(Design::Add, 0);
}

#[test]
fn a_put_without_a_condition_is_found() {
    assert_found(Design::BlindPut, 24);
}

#[test]
fn a_put_that_is_skipped_where_nothing_changed_is_found() {
    assert_found(Design::SkipUnchanged, 1876);
}

#[test]
fn a_sweep_without_grace_is_found() {
    assert_found(Design::NoGrace, 976);
}

#[test]
fn deleting_emptied_rollups_is_found() {
    assert_found(Design::DeleteEmptied, 78);
}

#[test]
fn one_joint_condition_is_found() {
    assert_found(Design::JointCondition, 78);
}

#[test]
fn a_put_that_ignores_the_number_of_the_settings_is_found() {
    assert_found(Design::NoSettings, 97);
}

#[test]
fn a_stored_share_of_the_step_across_an_edge_is_found() {
    assert_found(Design::StoredShare, 507);
}

#[test]
fn folding_what_has_begun_to_expire_is_found() {
    assert_found_by(run_a_month_later, Design::IgnoreExpiry, 0);
}
