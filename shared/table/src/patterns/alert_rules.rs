//! The rules of alerts, and the channels with their secrets. Judges and sends nothing.

use domain::{ChannelId, RuleId};
use ports::port;

use super::expected;
use crate::db::{Db, WriteOutcome, delete, is, put, replace_all, update};
use crate::item::attribute::VERSION;
use crate::item::{Attribute, Attributes as _, Kind as _, with_key};
use crate::keys::{ALERT_CHANNELS, ALERT_RULES, Key};
use crate::{
    ChannelSecret, Expected, Failing, Listing, Patterns, StoreError, StoreResult, StoredChannel,
    StoredRule,
};

/// The rules of alerts.
#[port(ReadAlertRules, GetItem(AlertRules), Query(AlertRules))]
impl<D: Db> Patterns<'_, D> {
    /// All rules as they are this moment, sorted by id.
    pub async fn alert_rules(self) -> StoreResult<Listing<StoredRule>> {
        self.list(ALERT_RULES).await
    }

    /// One rule, as it is this moment.
    pub async fn alert_rule(self, id: &RuleId) -> StoreResult<Option<StoredRule>> {
        self.find(&Key::AlertRule(id.clone())).await
    }
}

/// A person's edits of the rules of alerts.
#[port(EditAlertRules, PutItem(AlertRules), DeleteItem(AlertRules))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a rule in place of its previous version. A first version is stored only if there is no rule of this id.
    /// Returns whether the rule is stored. A repeat is refused.
    pub async fn put_alert_rule(self, rule: &StoredRule) -> StoreResult<bool> {
        let new = put(rule.item()).when([expected(Expected::before(rule.version))]);
        self.is_written(new).await
    }

    /// Deletes a rule of any version; returns whether there was one. No message of the rule is stored after this. The
    /// states of the rule are deleted separately ([`DeleteAlertStates`](crate::DeleteAlertStates)).
    pub async fn delete_alert_rule(self, id: &RuleId) -> StoreResult<bool> {
        let deleted = self.write(delete(&Key::AlertRule(id.clone()))).await?;
        Ok(matches!(deleted, WriteOutcome::Done(Some(_))))
    }
}

/// The channels, without their secrets.
#[port(ReadChannels, Query(AlertChannels))]
impl<D: Db> Patterns<'_, D> {
    /// All channels as they are this moment, sorted by id.
    pub async fn channels(self) -> StoreResult<Listing<StoredChannel>> {
        self.list(ALERT_CHANNELS).await
    }
}

/// A person's edits of the channels. Reads no secret.
#[port(EditChannels, PutItem(AlertChannels, AlertSecrets), DeleteItem(AlertChannels, AlertSecrets))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a channel in place of its previous version. A first version is stored only if there is no channel of this
    /// id. Returns whether the channel is stored. A given secret is stored in the same transaction; without one, the
    /// stored secret stays. A repeat is refused.
    pub async fn put_channel(
        self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
    ) -> StoreResult<bool> {
        let new = put(channel.item()).when([expected(Expected::before(channel.version))]);
        let Some(secret) = secret else { return self.is_written(new).await };
        let secret = put(with_key(&Key::AlertSecret(channel.id.clone()), secret.attributes()));
        Ok(self.transact(vec![new, secret]).await?.is_ok())
    }

    /// Deletes a channel and its secret in one transaction. A repeat changes nothing. Messages that wait for the
    /// channel expire.
    pub async fn delete_channel(self, id: &ChannelId) -> StoreResult<()> {
        let keys = [Key::AlertChannel(id.clone()), Key::AlertSecret(id.clone())];
        let deleted = self.transact(keys.iter().map(delete).collect()).await?;
        deleted.map_err(|_| StoreError::Contended(format!("the channel {id}")))
    }
}

/// The secrets of channels, for the function that sends and for no other.
#[port(ReadChannelSecrets, GetItem(AlertSecrets))]
impl<D: Db> Patterns<'_, D> {
    /// The secret of a channel, as it is this moment.
    pub async fn channel_secret(self, id: &ChannelId) -> StoreResult<Option<ChannelSecret>> {
        self.find(&Key::AlertSecret(id.clone())).await
    }
}

/// Records whether a channel fails.
#[port(NoteChannels, UpdateItem(AlertChannels))]
impl<D: Db> Patterns<'_, D> {
    /// Records that a channel fails or works, unless it was edited or deleted since `known` was read. Returns whether
    /// this is recorded. A repeat changes nothing; of several writers at once, the last one wins.
    pub async fn note_channel(
        self,
        known: &StoredChannel,
        failing: Option<Failing>,
    ) -> StoreResult<bool> {
        let note = update(&Key::AlertChannel(known.id.clone()))
            .when([is(VERSION, Attribute::number(known.version))])
            .with(replace_all(&failing));
        self.is_written(note).await
    }
}
