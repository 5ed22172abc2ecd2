//! Sources under random schedules: whatever is claimed, asked, noted, edited, deleted, killed or done with a clock that is
//! wrong, no maker's limit is passed, no old run's note stands over a newer one, and what the maker answers is stored once.
//! Knows one source.

mod outside;
mod steps;
mod world;

use crate::schedules::{asleep, assert_each_seen, assert_right};
use steps::Design;
use world::World;

/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 150;
/// The schedules within which each wrong design must be found.
const SCHEDULES_TO_FIND: u64 = 2_000;

/// Runs a schedule; returns what was wrong on the way or at rest.
fn run(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design).await;
        world.live().await;
        world.come_to_rest().await;
        world.wrong()
    })
}

#[test]
fn a_source_is_asked_within_its_limit_and_what_it_answers_is_stored_once() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn every_wrong_design_of_sources_is_found() {
    let designs = [
        (Design::BlindClaim, 3),
        (Design::UncountedClaim, 0),
        (Design::BlindNote, 0),
        (Design::ForgetfulEdit, 2),
        (Design::AnsweredByClaim, 4),
    ];
    assert_each_seen(&designs, SCHEDULES_TO_FIND, run);
}
