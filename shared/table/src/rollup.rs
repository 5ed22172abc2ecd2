//! The stored forms of rollups and of their state. Folds nothing.

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
    /// The device whose readings are in the rollup.
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

/// The stored form of a rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredRollup {
    /// The identity of the rollup.
    pub key: RollupKey,
    /// The range of time that the bucket covers.
    pub range: TimeRange,
    /// The time zone of a day, by its name; `None` for a quarter.
    pub zone: Option<String>,
    /// The number of times that the rollup was stored.
    pub version: u64,
    /// The number of the device settings with which the rollup was folded.
    pub settings: u64,
    /// The earliest time at which a reading of the rollup expires; `None` if the readings do not expire.
    pub raw_until: Option<Timestamp>,
    /// When the rollup itself expires.
    pub expires: Option<Timestamp>,
    /// Whether a reading changed too late to fold the rollup again.
    pub is_frozen: bool,
    /// The fold of the readings.
    pub rollup: Rollup,
    /// The part of the rollup in the conditions index; `None` for a day, and if the table does not have this index.
    pub indexed: Option<Indexed>,
}

/// The part of a rollup of 15 minutes that is stored for the conditions index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The version of the schema; 0 before the first schema. A rollup is never replaced by one with a smaller version.
    pub schema: u8,
    /// The entry; `None` if the rollup does not have all metrics of the schema.
    pub entry: Option<IndexEntry>,
}

impl StoredRollup {
    /// Whether the conditions index allows that the rollup replaces `known`: its schema is not older, or the table does
    /// not have this index.
    pub fn is_indexed_as_new_as(&self, known: &Self) -> bool {
        let schema = |rollup: &Self| rollup.indexed.as_ref().map(|indexed| indexed.schema);
        schema(self).is_none_or(|mine| mine >= schema(known).unwrap_or(0))
    }

    /// Whether all readings of the rollup are still stored.
    pub fn still_has_readings(&self, now: Timestamp) -> bool {
        self.raw_until.is_none_or(|until| until > now)
    }

    /// Whether the rollup has expired. `DynamoDB` deletes an item some time after its expiry.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The stored form of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReading {
    /// The reading.
    pub reading: Reading,
    /// When the reading expires.
    pub expires: Option<Timestamp>,
}

/// The state of the rollups of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupState {
    /// The name of the time zone of the days. It stays until a rebuild of the rollups sets another.
    pub zone: String,
    /// The time from which rollups are complete. [`Timestamp::MIN`] if the table was empty when this state was stored
    /// first.
    pub since: Timestamp,
    /// The watermark of each group of devices: before this time, every bucket with readings has its rollup.
    pub sealed: [Timestamp; SWEEP_GROUPS],
    /// The length of the work queue when a sweep last counted its messages; `None` if no sweep has.
    pub queue: Option<QueueDepth>,
}

/// The work that waits in the queue of the rollup function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// The approximate number of messages, as SQS counts them, including messages that are being worked on.
    pub messages: u64,
    /// When the messages were counted.
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

/// The progress of folding a device's rollups again after a change of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refold {
    /// The number of the settings with which all rollups are folded by now.
    pub settings: u64,
    /// The current fold with newer settings: the number of these settings, and the time up to which rollups are folded.
    pub under_way: Option<(u64, Timestamp)>,
}

/// The values of rollups that are put into the conditions index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Indexing {
    /// The table has no such index.
    #[default]
    Off,
    /// There is no schema yet.
    Unset,
    /// The values that this schema defines.
    By(Arc<ConditionsSchema>),
}

impl Indexing {
    /// The part of a rollup that is stored for the index; `None` for a day, and without this index.
    pub fn of(&self, bucket: Bucket, rollup: &Rollup) -> Option<Indexed> {
        match (self, bucket) {
            (Self::Off, _) | (_, Bucket::Day(_)) => None,
            (Self::Unset, _) => Some(Indexed { schema: 0, entry: None }),
            (Self::By(schema), _) => {
                Some(Indexed { schema: schema.version(), entry: schema.entry(rollup) })
            }
        }
    }

    /// Whether a stored rollup was put into the index by a newer schema than this.
    pub fn is_older_than(&self, stored: &StoredRollup) -> bool {
        let version = stored.indexed.as_ref().map_or(0, |indexed| indexed.schema);
        match self {
            Self::Off => false,
            Self::Unset => version > 0,
            Self::By(schema) => version > schema.version(),
        }
    }
}

/// The schema of the conditions index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchema {
    /// The schema.
    pub schema: ConditionsSchema,
    /// Whether the index has every rollup of 15 minutes by this schema.
    pub is_ready: bool,
}

/// A rollup of 15 minutes, as the conditions index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedQuarter {
    /// The rollup's identity.
    pub key: RollupKey,
    /// The quarter of an hour.
    pub quarter: QuarterHour,
    /// The address and the values of the rollup.
    pub entry: IndexEntry,
    /// The rooms of its readings.
    pub rooms: BTreeSet<Option<RoomId>>,
    /// When the rollup expires.
    pub expires: Option<Timestamp>,
}

impl IndexedQuarter {
    /// The values of the schema's metrics, in the order of the schema.
    pub fn values(&self) -> &[MetricMeans] {
        &self.entry.values
    }
}

/// A query of the conditions index, for rollups of one device in one month.
#[derive(Debug, Clone, Copy)]
pub struct ConditionsQuery<'a> {
    /// The device.
    pub device: &'a DeviceId,
    /// Any time in the month.
    pub month: Timestamp,
    /// The first address.
    pub first: &'a [u8],
    /// The last address.
    pub last: &'a [u8],
    /// The last rollup of the previous page; `None` for the first page.
    pub after: Option<&'a IndexedQuarter>,
    /// The largest number of rollups on a page.
    pub limit: usize,
}
