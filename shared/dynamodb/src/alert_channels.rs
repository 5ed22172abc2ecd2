//! `Query` and `UpdateItem` on channels, `GetItem` on their secrets, and `TransactWriteItems` on both. Sends nothing.

use domain::ChannelId;

use crate::DynamoStore;
use crate::put::Put;
use crate::update::Update;
use table::item::attribute::VERSION;
use table::item::{self, Attribute};
use table::keys::{ALERT_CHANNELS, Key};
use table::{
    ChannelSecret, EditChannels, Failing, Invocation, ItemKey, Listing, NoteChannels,
    ReadChannelSecrets, ReadChannels, StoreError, StoreResult, StoredChannel, UpdateOutcome,
};

impl ReadChannels for DynamoStore {
    async fn channels(&self, invocation: &Invocation) -> StoreResult<Listing<StoredChannel>> {
        self.list(ALERT_CHANNELS, invocation).await
    }
}

impl EditChannels for DynamoStore {
    async fn put_channel(
        &self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_channel(channel), channel.expected());
        let Some(secret) = secret else {
            return Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())));
        };
        let secret = self.put_part(item::from_channel_secret(&channel.id, secret));
        let parts = vec![self.conditional_part(put), secret];
        Ok(self.transact_parts(parts, invocation).await?.is_ok())
    }

    async fn delete_channel(&self, id: &ChannelId, invocation: &Invocation) -> StoreResult<()> {
        let keys = [Key::AlertChannel(id.clone()), Key::AlertSecret(id.clone())];
        let parts = keys.map(|key| self.delete_part(ItemKey::of(&key)));
        let deleted = self.transact_parts(parts.into(), invocation).await?;
        deleted.map_err(|_| StoreError::Contended(format!("the channel {id}")))
    }
}

impl ReadChannelSecrets for DynamoStore {
    async fn channel_secret(
        &self,
        id: &ChannelId,
        invocation: &Invocation,
    ) -> StoreResult<Option<ChannelSecret>> {
        self.find(&Key::AlertSecret(id.clone()), invocation).await
    }
}

impl NoteChannels for DynamoStore {
    async fn note_channel(
        &self,
        known: &StoredChannel,
        failing: Option<Failing>,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::AlertChannel(known.id.clone()));
        update.only_if_still(&[VERSION], Some(Attribute::number(known.version)));
        update.set_or_remove(item::from_failing(failing));
        Ok(matches!(update.send(self, invocation).await?, UpdateOutcome::Updated(_)))
    }
}
