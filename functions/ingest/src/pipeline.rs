//! The state with which readings are stored: caches of the table, limits, settings. The steps are in `lib`,
//! `write_lines` and `store`.

use rollups::LateMarking;
use runtime::clock::Clock;
use runtime::registry::CachedRegistry;
use table::{
    AddArrival, CountIntroduced, FindRegistry, FindToken, MarkLateChanges, MergeReadings,
    PutReadings, ReadRegistry, ReadRollupState, RegisterDevices,
};

use crate::intake::home_zone::HomeZone;
use crate::limits::introductions::IntroductionCounts;
use crate::limits::new_names::{MetricLimit, RoomLimit};
use crate::retry_memory::RetryMemory;
use crate::settings::Settings;

/// Stores readings. Has the caches, limits and settings that all requests share.
#[derive(Debug)]
pub(crate) struct Pipeline<C> {
    pub(crate) registry: CachedRegistry<C>,
    pub(crate) metric_limit: MetricLimit,
    pub(crate) room_limit: RoomLimit,
    pub(crate) introductions: IntroductionCounts,
    pub(crate) zone: HomeZone,
    pub(crate) late: LateMarking,
    pub(crate) retries: RetryMemory,
    pub(crate) clock: C,
    pub(crate) settings: Settings,
}

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: PutReadings + MergeReadings + AddArrival + ReadRegistry + FindRegistry
        + RegisterDevices + FindToken + ReadRollupState
        + MarkLateChanges + CountIntroduced
}

impl<C: Clock> Pipeline<C> {
    pub(crate) fn new(clock: C, settings: Settings) -> Self {
        Self {
            registry: CachedRegistry::new(settings.registry_max_age, clock.clone()),
            metric_limit: MetricLimit::default(),
            room_limit: RoomLimit::default(),
            introductions: IntroductionCounts::default(),
            zone: HomeZone::new(settings),
            late: LateMarking::new(settings.late_ahead),
            retries: RetryMemory::default(),
            clock,
            settings,
        }
    }
}
