//! The items of alerts in memory. Answers no port.

use std::collections::BTreeMap;

use domain::{ChannelId, RuleId};

use crate::{
    AlertKey, ChannelSecret, Look, Looked, RunningMark, StoredAlertState, StoredChannel,
    StoredRule, ToldKey, ToldMessage, WaitingKey, WaitingMessage,
};

/// The items of alerts.
#[derive(Debug, Default)]
pub(super) struct AlertItems {
    pub(super) rules: BTreeMap<RuleId, StoredRule>,
    pub(super) channels: BTreeMap<ChannelId, StoredChannel>,
    pub(super) secrets: BTreeMap<ChannelId, ChannelSecret>,
    pub(super) states: BTreeMap<AlertKey, StoredAlertState>,
    pub(super) told: BTreeMap<ToldKey, ToldMessage>,
    pub(super) waiting: BTreeMap<WaitingKey, WaitingMessage>,
    pub(super) looks: BTreeMap<Looked, Look>,
    /// The number of times that anything was touched.
    pub(super) touches: u64,
    pub(super) running: Option<RunningMark>,
}
