//! The polled sources and their secrets. Polls none.

use domain::{PolledSourceId, Timestamp};
use polling::{SourceStatus, Spent};
use ports::port;

use super::expected;
use crate::db::{Db, ItemQuery, Keys, delete, is, put, remove, set, set_as, still, update, upsert};
use crate::item::attribute::{
    CLAIM, LACKS_SECRETS, LEASE, NEXT, RUN, SETTINGS, SPENT, STATUS, VERSION,
};
use crate::item::{Attribute, Attributes as _, ByPresence, JsonText, OrDefault, with_key};
use crate::keys::{self, Key, SOURCES};
use crate::{
    Expected, Listing, Patterns, SourceSecrets, StoreError, StoreResult, StoredSource,
    UpdateOutcome,
};

/// The sources, without their secrets.
#[port(ReadSources, Query(Sources))]
impl<D: Db> Patterns<'_, D> {
    /// All sources, sorted by id. Changes that were made a moment ago may be missing; the claim of a run is then
    /// refused.
    pub async fn sources(self) -> StoreResult<Listing<StoredSource>> {
        let keys = Keys::From(keys::behind(None));
        self.list_of(ItemQuery { keys, consistent: false, ..ItemQuery::of(SOURCES) }).await
    }
}

/// A person's edits of the sources. Reads no secret.
#[port(
    EditSources,
    Query(Sources),
    UpdateItem(Sources),
    PutItem(SourceSecrets),
    DeleteItem(Sources, SourceSecrets)
)]
impl<D: Db> Patterns<'_, D> {
    /// All sources as they are this moment, sorted by id.
    pub async fn current_sources(self) -> StoreResult<Listing<StoredSource>> {
        self.list(SOURCES).await
    }

    /// Stores a source in place of its previous version. A first version is stored only if there is no source of this
    /// id. Returns whether the source is stored. Given secrets are stored in the same transaction; without them, the
    /// stored secrets stay. The status stays. A current run loses its claim, so its result is not stored. A repeat is
    /// refused.
    pub async fn save_source(
        self,
        source: &StoredSource,
        secrets: Option<&SourceSecrets>,
    ) -> StoreResult<bool> {
        let saved = upsert(&Key::Source(source.id.clone()))
            .when([expected(Expected::before(source.version))])
            .with([
                set(VERSION, Attribute::number(source.version)),
                set_as::<JsonText, _>(SETTINGS, &source.settings),
                set_as::<ByPresence, _>(LACKS_SECRETS, &source.lacks_secrets),
                set(NEXT, Attribute::text(&source.next)),
                remove(LEASE),
                remove(CLAIM),
            ]);

        let Some(secrets) = secrets else { return self.is_written(saved).await };
        let key = Key::SourceSecrets(source.id.clone());
        let secrets = put(with_key(&key, secrets.attributes()));
        Ok(self.transact(vec![saved, secrets]).await?.is_ok())
    }

    /// Deletes a source and its secrets in one transaction. A repeat changes nothing.
    pub async fn delete_source(self, id: &PolledSourceId) -> StoreResult<()> {
        let keys = [Key::Source(id.clone()), Key::SourceSecrets(id.clone())];
        let deleted = self.transact(keys.iter().map(delete).collect()).await?;
        deleted.map_err(|_| StoreError::Contended(format!("the source {id}")))
    }
}

/// The secrets of sources, for the function that polls and for no other.
#[port(ReadSourceSecrets, GetItem(SourceSecrets))]
impl<D: Db> Patterns<'_, D> {
    /// The secrets of a source, as they are this moment.
    pub async fn source_secrets(self, id: &PolledSourceId) -> StoreResult<Option<SourceSecrets>> {
        self.find(&Key::SourceSecrets(id.clone())).await
    }
}

/// Polling a source: a run claims it, polls it, and stores the result.
///
/// Of several processes that poll at the same time, only one has the claim. If this process dies, another process may
/// take the source after the end of the lease.
#[port(RunSources, UpdateItem(Sources))]
impl<D: Db> Patterns<'_, D> {
    /// Begins a run: stores the number of requests including those of this run, and the lease if one is given. Refused
    /// if the source was saved, claimed or tested since `known` was read; returns `None` then. Otherwise returns the
    /// updated source. A repeat is refused. A test has no lease, and does not change the lease of a run.
    pub async fn begin_source_run(
        self,
        known: &StoredSource,
        spent: Spent,
        lease: Option<Timestamp>,
    ) -> StoreResult<Option<StoredSource>> {
        let run = Attribute::number(known.run + 1);
        let known_run = (known.run > 0).then(|| Attribute::number(known.run));
        let mut begun = update(&Key::Source(known.id.clone()))
            .when([is(VERSION, Attribute::number(known.version)), still(RUN, known_run)])
            .with([set(RUN, run.clone()), set_as::<OrDefault<JsonText>, _>(SPENT, &spent)]);
        if let Some(lease) = lease {
            begun = begun.with([set(LEASE, Attribute::text(&lease)), set(CLAIM, run)]);
        }

        Ok(match self.update_and_read(begun).await? {
            UpdateOutcome::Updated(begun) => Some(begun),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    /// Ends a run: stores its result and when the source is due again, if the claim is still that of `claimed`. Returns
    /// whether this is stored. A repeat is refused.
    pub async fn end_source_run(
        self,
        claimed: &StoredSource,
        next: Timestamp,
        status: &SourceStatus,
    ) -> StoreResult<bool> {
        let Some(claim) = claimed.claim else { return Ok(false) };
        let ended = update(&Key::Source(claimed.id.clone()))
            .when([is(CLAIM, Attribute::number(claim))])
            .with([
                set(NEXT, Attribute::text(&next)),
                set_as::<OrDefault<JsonText>, _>(STATUS, status),
                remove(LEASE),
                remove(CLAIM),
            ]);
        self.is_written(ended).await
    }
}
