//! The registry under random schedules: whatever is moved, edited, delivered, lost, late or done twice, the
//! history of each device is only continued, and agrees with where the device is.

mod steps;
mod world;

use crate::schedules::{asleep, assert_each_seen, assert_right};
use steps::Design;
use world::World;

/// The schedules of a normal run: some seconds. Each costs twice what it did on a store that knew its answers by heart.
const SCHEDULES: u64 = 800;

/// Runs a schedule; returns what was wrong on the way or at rest.
fn run(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design);
        world.live().await;
        world.come_to_rest().await;
        world.wrong()
    })
}

#[test]
fn the_history_of_a_device_is_continued_and_agrees_with_its_place() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn a_stay_that_ignores_what_happened_since_it_was_read_is_seen() {
    assert_each_seen(&[(Design::Blind, 1)], SCHEDULES, run);
}
