//! Runs a model by random schedules, each by its seed. Knows no model.
//!
//! `ROOMTIDE_SCHEDULES` says how many schedules are run; `ROOMTIDE_SEED` runs one, which a failure names.

use std::fmt::Debug;

/// Runs a future on a clock that does not move by itself.
pub(crate) fn asleep<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime starts");
    runtime.block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "who runs the tests says how many schedules")]
fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Asserts that nothing is wrong in as many schedules as the run has.
pub(crate) fn assert_right(schedules: u64, run: impl Fn(u64) -> Vec<String>) {
    let seeds = match number_of("ROOMTIDE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("ROOMTIDE_SCHEDULES").unwrap_or(schedules),
    };
    for seed in seeds {
        // The pauses before another attempt are random too.
        fastrand::seed(seed);
        let wrong = run(seed);
        assert!(wrong.is_empty(), "ROOMTIDE_SEED={seed}: {wrong:#?}");
    }
}

/// Asserts that each wrong design is seen in one of so many schedules: who sees nothing wrong there sees nothing in ours.
pub(crate) fn assert_each_seen<D: Copy + Debug>(
    designs: &[(D, u64)],
    schedules: u64,
    run: impl Fn(u64, D) -> Vec<String>,
) {
    for (design, last) in designs {
        assert_seen(*design, *last, schedules, &run);
    }
}

/// Looks first where the design was seen last; after a change of the code that may be elsewhere, and it prints where.
#[expect(clippy::print_stdout, reason = "who runs the test can make it quicker")]
fn assert_seen<D: Copy + Debug>(
    design: D,
    last: u64,
    schedules: u64,
    run: impl Fn(u64, D) -> Vec<String>,
) {
    let is_seen = |seed: &u64| {
        fastrand::seed(*seed);
        !run(*seed, design).is_empty()
    };
    let seen = (last..schedules).chain(0..last).find(is_seen);
    let seen = seen.unwrap_or_else(|| panic!("{design:?} survives {schedules} schedules"));
    if seen != last {
        println!("{design:?} is seen at {seen}: with this as `last` the test is done sooner");
    }
}
