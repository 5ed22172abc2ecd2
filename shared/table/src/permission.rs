//! The permissions that a port needs, and those of all ports of a function's store. Checks none.

use crate::keys;
use crate::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX, Index};
use crate::shards::Shard;

/// An action on items. The name is that of IAM's `dynamodb:` service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are DynamoDB's own")]
pub enum Action {
    BatchGetItem,
    BatchWriteItem,
    ConditionCheckItem,
    DeleteItem,
    GetItem,
    PartiQLInsert,
    PutItem,
    Query,
    UpdateItem,
}

/// Items for which a role has the same permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub enum Target {
    /// The readings, each in the partition of its device.
    Readings,
    /// The registry's devices.
    Devices,
    /// The registry's rooms.
    Rooms,
    /// The access tokens.
    Tokens,
    /// The rollups, all of a device in one partition.
    Rollups,
    /// The rollup function's own state.
    RollupState,
    /// The announcements of changes that rollups may not have yet.
    LateChanges,
    /// The schema of the conditions index.
    ConditionsSchema,
    /// The entries for the attribute index.
    Attributes,
    /// The attribute index.
    AttributeIndex,
    /// The stays. Each is in the partition of its device and in that of its room.
    Stays,
    /// The devices that were seen in rooms. Each room has a partition.
    SeenIn,
    /// The annotations.
    Annotations,
    /// The rules of alerts.
    AlertRules,
    /// The channels that send alerts.
    AlertChannels,
    /// The secrets of the channels.
    AlertSecrets,
    /// The states of rules.
    AlertStates,
    /// The log of messages.
    AlertTold,
    /// The messages that wait to be sent.
    AlertWaiting,
    /// The rechecks of devices and rules.
    AlertRechecks,
    /// The note that says when the system last ran.
    AlertRunning,
    /// The polled sources.
    Sources,
    /// The secrets of the sources.
    SourceSecrets,
    /// The tariffs.
    Tariffs,
    /// The room index.
    RoomIndex,
    /// The conditions index.
    ConditionsIndex,
}

impl Target {
    /// The items of a partition. A partition whose name is not reserved has the readings of the device with this id.
    pub fn of_partition(pk: &str) -> Self {
        match pk {
            keys::ROOMS => Self::Rooms,
            keys::TOKENS => Self::Tokens,
            keys::STATE => Self::RollupState,
            keys::LATE => Self::LateChanges,
            keys::CONDITIONS => Self::ConditionsSchema,
            keys::ANNOTATIONS => Self::Annotations,
            keys::ALERT_RULES => Self::AlertRules,
            keys::ALERT_CHANNELS => Self::AlertChannels,
            keys::ALERT_SECRETS => Self::AlertSecrets,
            keys::ALERT_STATES => Self::AlertStates,
            keys::ALERT_TOLD => Self::AlertTold,
            keys::ALERT_WAITING => Self::AlertWaiting,
            keys::ALERT_RECHECKS => Self::AlertRechecks,
            keys::ALERT_RUNNING => Self::AlertRunning,
            keys::SOURCES => Self::Sources,
            keys::SOURCE_SECRETS => Self::SourceSecrets,
            keys::TARIFFS => Self::Tariffs,
            pk if Shard::parse(pk, keys::DEVICES).is_some() => Self::Devices,
            pk if pk.starts_with(keys::ATTRIBUTE_PREFIX) => Self::Attributes,
            pk if pk.starts_with(keys::ROLLUP_PREFIX) => Self::Rollups,
            pk if pk.starts_with(keys::SEEN_IN_PREFIX) => Self::SeenIn,
            pk if pk.starts_with(keys::STAYS_OF_PREFIX) => Self::Stays,
            pk if pk.starts_with(keys::STAYS_IN_PREFIX) => Self::Stays,
            _ => Self::Readings,
        }
    }

    /// The items of an index.
    pub fn of_index(index: &Index) -> Self {
        match *index {
            CONDITIONS_INDEX => Self::ConditionsIndex,
            ATTRIBUTE_INDEX => Self::AttributeIndex,
            _ => Self::RoomIndex,
        }
    }
}

/// An action on some items.
pub type Permission = (Action, Target);

/// Declares the trait of a function's store: the ports that the function uses, and the permissions that they need.
/// Every type that has these ports implements the trait.
#[macro_export]
macro_rules! store {
    ($(#[$attribute:meta])* $visibility:vis trait $name:ident: $first:ident $(+ $port:ident)*) => {
        $(#[$attribute])*
        $visibility trait $name: $first $(+ $port)* {
            /// The permissions that the function's role must have, port by port.
            const PERMISSIONS: &'static [&'static [$crate::Permission]] =
                &[<Self as $first>::PERMISSIONS $(, <Self as $port>::PERMISSIONS)*];
        }

        impl<S: $first $(+ $port)*> $name for S {}
    };
}
