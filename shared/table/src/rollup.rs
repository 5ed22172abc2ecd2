//! Rollups and the state of the rollups, as the table keeps them. Folds nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::{
    Bucket, ConditionsSchema, DeviceId, IndexEntry, LocalDate, MetricMeans, QuarterHour, Reading,
    Rollup, RoomId, SWEEP_GROUPS, TimeRange, Timestamp, sweep_group,
};

/// The identity of a rollup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
pub struct RollupKey {
    /// The device whose readings it sums up.
    pub device: DeviceId,
    /// The bucket of the readings.
    pub bucket: Bucket,
}

impl RollupKey {
    /// The key of the rollup of 15 minutes.
    pub const fn quarter(device: DeviceId, quarter: QuarterHour) -> Self {
        Self { device, bucket: Bucket::QuarterHour(quarter) }
    }

    /// The key of the rollup of a local day.
    pub const fn day(device: DeviceId, date: LocalDate) -> Self {
        Self { device, bucket: Bucket::Day(date) }
    }
}

/// A rollup as the table keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredRollup {
    /// Its identity.
    pub key: RollupKey,
    /// The timestamps of the bucket.
    pub range: TimeRange,
    /// The time zone of a day, by its name; `None` for a quarter.
    pub zone: Option<String>,
    /// The number of times that it was put.
    pub version: u64,
    /// The number of the device's settings that it was folded with.
    pub settings: u64,
    /// The earliest expiry of its readings, if any of them expires.
    pub raw_until: Option<Timestamp>,
    /// When it expires itself.
    pub expires: Option<Timestamp>,
    /// Whether a reading has changed since, too late to be folded.
    pub is_frozen: bool,
    /// The fold of the readings.
    pub rollup: Rollup,
    /// What the index by conditions has of it; `None` for a day, and if the table has no such index.
    pub indexed: Option<Indexed>,
}

/// What the index by conditions has of a rollup of 15 minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The version of the schema; 0 before the first schema. A rollup of a smaller version never replaces
    /// it.
    pub schema: u8,
    /// The entry; `None` for a rollup that lacks a metric of the schema.
    pub entry: Option<IndexEntry>,
}

impl StoredRollup {
    /// Whether it may replace `known` as far as the index by conditions is concerned: by a schema that is
    /// not older, or where the table has no such index.
    pub fn is_indexed_as_new_as(&self, known: &Self) -> bool {
        let schema = |rollup: &Self| rollup.indexed.as_ref().map(|indexed| indexed.schema);
        schema(self).is_none_or(|mine| mine >= schema(known).unwrap_or(0))
    }

    /// Whether its readings are still kept.
    pub fn has_readings(&self, now: Timestamp) -> bool {
        self.raw_until.is_none_or(|until| until > now)
    }

    /// Whether `DynamoDB` may have deleted it already; it deletes some time after the expiry.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// A reading as the table keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReading {
    /// The reading.
    pub reading: Reading,
    /// When it expires.
    pub expires: Option<Timestamp>,
}

/// The state of the rollups of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupState {
    /// The time zone of the days, by its name. It was stored first and rules from then on.
    pub zone: String,
    /// Rollups are complete from here on; [`Timestamp::MIN`] for a table that was empty when this was made.
    pub since: Timestamp,
    /// The watermark of each group of devices: up to there every bucket with readings has its rollup.
    pub sealed: [Timestamp; SWEEP_GROUPS],
    /// The depth of the work queue when `sealed` last moved.
    pub queue: Option<QueueDepth>,
}

/// The work that waits in the queue of the rollup function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// The number of messages, those that are being worked on included; SQS counts approximately.
    pub messages: u64,
    /// When they were counted.
    pub at: Timestamp,
}

impl RollupState {
    /// The time up to which the buckets of all devices have their rollups.
    pub fn sealed(&self) -> Timestamp {
        self.sealed.iter().copied().min().expect("there are groups")
    }

    /// The time up to which the buckets of one device have their rollups.
    pub fn sealed_of(&self, device: &DeviceId) -> Timestamp {
        self.sealed[sweep_group(device)]
    }
}

/// How far the rollups of a device are folded again after a change of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refold {
    /// The number of the settings with which all rollups are folded.
    pub settings: u64,
    /// The fold with newer settings that is under way: their number, and the time up to which it is done.
    pub under_way: Option<(u64, Timestamp)>,
}

/// What the index by conditions is to have of rollups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Indexing {
    /// The table has no such index.
    #[default]
    Off,
    /// There is no schema yet.
    Unset,
    /// What the schema says.
    By(Arc<ConditionsSchema>),
}

impl Indexing {
    /// What the index is to have of the rollup of a bucket.
    pub fn of(&self, bucket: Bucket, rollup: &Rollup) -> Option<Indexed> {
        match (self, bucket) {
            (Self::Off, _) | (_, Bucket::Day(_)) => None,
            (Self::Unset, _) => Some(Indexed { schema: 0, entry: None }),
            (Self::By(schema), _) => {
                Some(Indexed { schema: schema.version(), entry: schema.entry(rollup) })
            }
        }
    }

    /// Whether a stored rollup is in the index by a newer schema than this.
    pub fn is_older_than(&self, stored: &StoredRollup) -> bool {
        let version = stored.indexed.as_ref().map_or(0, |indexed| indexed.schema);
        match self {
            Self::Off => false,
            Self::Unset => version > 0,
            Self::By(schema) => version > schema.version(),
        }
    }
}

/// The schema of the index by conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchema {
    /// The schema.
    pub schema: ConditionsSchema,
    /// Whether the index has every rollup of 15 minutes under this schema.
    pub is_ready: bool,
}

/// A rollup of 15 minutes as the index by conditions has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedQuarter {
    /// The rollup's identity.
    pub key: RollupKey,
    /// The 15 minutes.
    pub quarter: QuarterHour,
    /// Its address and its values.
    pub entry: IndexEntry,
    /// The rooms of its readings.
    pub rooms: BTreeSet<Option<RoomId>>,
    /// When it expires.
    pub expires: Option<Timestamp>,
}

impl IndexedQuarter {
    /// What each metric of the schema was, in its order.
    pub fn values(&self) -> &[MetricMeans] {
        &self.entry.values
    }
}

/// Which rollups of the index by conditions are asked for: those of a device in a month.
#[derive(Debug, Clone, Copy)]
pub struct ConditionsQuery<'a> {
    /// The device.
    pub device: &'a DeviceId,
    /// A time of the month.
    pub month: Timestamp,
    /// The first address.
    pub first: &'a [u8],
    /// The last address.
    pub last: &'a [u8],
    /// The rollup after which the page begins.
    pub after: Option<&'a IndexedQuarter>,
    /// The most rollups of a page.
    pub limit: usize,
}
