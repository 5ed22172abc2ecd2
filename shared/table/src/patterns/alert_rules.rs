//! The rules of alerts, and the channels with their secrets. Judges and sends nothing.

use domain::{ChannelId, RuleId};

use super::expected;
use crate::db::{Db, WriteOutcome, delete, is, put, replace_all, update};
use crate::item::attribute::VERSION;
use crate::item::{Attribute, Attributes as _, Kind as _, with_key};
use crate::keys::{ALERT_CHANNELS, ALERT_RULES, Key};
use crate::{
    ChannelSecret, Failing, Listing, Patterns, StoreError, StoreResult, StoredChannel, StoredRule,
};

impl<D: Db> Patterns<'_, D> {
    /// All rules.
    pub async fn alert_rules(self) -> StoreResult<Listing<StoredRule>> {
        self.list(ALERT_RULES).await
    }

    /// One rule.
    pub async fn alert_rule(self, id: &RuleId) -> StoreResult<Option<StoredRule>> {
        self.find(&Key::AlertRule(id.clone())).await
    }

    /// Stores a rule in place of its previous version.
    pub async fn put_alert_rule(self, rule: &StoredRule) -> StoreResult<bool> {
        let new = put(rule.item()).when([expected(rule.expected())]);
        self.is_written(new).await
    }

    /// Deletes a rule; returns whether there was one.
    pub async fn delete_alert_rule(self, id: &RuleId) -> StoreResult<bool> {
        let deleted = self.write(delete(&Key::AlertRule(id.clone()))).await?;
        Ok(matches!(deleted, WriteOutcome::Done(Some(_))))
    }

    /// All channels.
    pub async fn channels(self) -> StoreResult<Listing<StoredChannel>> {
        self.list(ALERT_CHANNELS).await
    }

    /// Stores a channel in place of its previous version, with its secret if one is given.
    pub async fn put_channel(
        self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
    ) -> StoreResult<bool> {
        let new = put(channel.item()).when([expected(channel.expected())]);
        let Some(secret) = secret else { return self.is_written(new).await };
        let secret = put(with_key(&Key::AlertSecret(channel.id.clone()), secret.attributes()));
        Ok(self.transact(vec![new, secret]).await?.is_ok())
    }

    /// Deletes a channel and its secret.
    pub async fn delete_channel(self, id: &ChannelId) -> StoreResult<()> {
        let keys = [Key::AlertChannel(id.clone()), Key::AlertSecret(id.clone())];
        let deleted = self.transact(keys.iter().map(delete).collect()).await?;
        deleted.map_err(|_| StoreError::Contended(format!("the channel {id}")))
    }

    /// The secret of a channel.
    pub async fn channel_secret(self, id: &ChannelId) -> StoreResult<Option<ChannelSecret>> {
        self.find(&Key::AlertSecret(id.clone())).await
    }

    /// Records that a channel fails, or that it works, unless the channel has changed since the read.
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
