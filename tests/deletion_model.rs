//! Deletions under random schedules: whatever is deleted, sent again, delivered late, killed or done twice,
//! nothing of a deleted device is left, and what was stored after the deletion is there. Knows few keys.

mod steps;
mod world;

use crate::schedules::{asleep, assert_each_seen, assert_right};
use steps::Design;
use world::World;

/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 400;
/// The schedules within which each wrong design must be found.
const SCHEDULES_TO_FIND: u64 = 10_000;

/// Runs a schedule, in which some devices are deleted and come again; returns what was wrong on the way or at
/// rest.
fn run(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design);
        world.live().await;
        world.end_deletions().await;
        world.live().await;
        world.come_to_rest().await;
        world.wrong()
    })
}

#[test]
fn nothing_of_a_deleted_device_is_left_and_what_came_after_is_there() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn every_wrong_design_of_deletions_is_found() {
    let designs = [(Design::NoTombstone, 3), (Design::NoQuiet, 4_285), (Design::IgnoredMark, 4)];
    assert_each_seen(&designs, SCHEDULES_TO_FIND, run);
}
