//! A source that is asked, as the table keeps it, and apart from it what is secret: the stored form, and its ports. Asks
//! nothing.

use domain::{MemberError, PolledSourceId, Timestamp};
use polling::{PolledSource, SecretTexts, SourceStatus, Spent};
use serde_json::{Map, Value};

use crate::ports_macro::ports;
use crate::{Expected, Listing, StoreResult};

/// A source that is asked.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct StoredSource {
    /// Its id.
    pub id: PolledSourceId,
    /// The number of times that a person saved it.
    pub version: u64,
    /// The settings, without secrets, as a person wrote them.
    pub settings: Map<String, Value>,
    /// Whether its secrets are missing: the source was restored from an export and is off until somebody gives them.
    pub lacks_secrets: bool,
    /// When it is due.
    pub next: Timestamp,
    /// Until when somebody asks it.
    pub lease: Option<Timestamp>,
    /// The number of the run that has the lease.
    pub claim: Option<u64>,
    /// The number of runs and tests so far.
    pub run: u64,
    /// The requests that were made.
    pub spent: Spent,
    /// What is kept between runs.
    pub status: SourceStatus,
}

impl StoredSource {
    /// A source that is saved now, in the place of another one if there is one. What is kept between runs stays.
    pub fn new(
        id: PolledSourceId,
        before: Option<&Self>,
        source: &PolledSource,
        now: Timestamp,
    ) -> Self {
        let settings = source.to_json();
        let version = before.map_or(0, |before| before.version) + 1;
        let run = before.map_or(0, |before| before.run);
        let lacks_secrets = before.is_some_and(|before| before.lacks_secrets);
        let (spent, status) =
            before.map(|before| (before.spent, before.status.clone())).unwrap_or_default();
        let (next, lease, claim) = (now, None, None);
        Self { id, version, settings, lacks_secrets, next, lease, claim, run, spent, status }
    }

    /// The source, as a person wrote it.
    pub fn source(&self) -> Result<PolledSource, MemberError> {
        PolledSource::from_stored(&self.settings)
    }

    /// Whether its secrets were given, and for the request of this source. Else they could be sent to another address.
    pub fn has_secrets_for(&self, source: &PolledSource) -> bool {
        let is_for = self.source().is_ok_and(|own| own.destination() == source.destination());
        is_for && !self.lacks_secrets
    }

    /// What a save of it expects in its place: the version before.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}

/// What is secret of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSecrets(pub SecretTexts);

ports! {
    /// The sources, without what is secret.
    ReadSources [(Query, Sources)] {
        /// All sources, sorted by id. What was saved a moment ago may be missing or old.
        fn sources() -> StoreResult<Listing<StoredSource>>;
    }

    /// A person's edits of the sources. It reads no secret.
    EditSources [
        (Query, Sources), (UpdateItem, Sources), (PutItem, SourceSecrets), (DeleteItem, Sources),
        (DeleteItem, SourceSecrets),
    ] {
        /// All sources as they are this moment, sorted by id.
        fn current_sources() -> StoreResult<Listing<StoredSource>>;

        /// Saves a source in the place of the version before it, a first version where no source is; returns whether it
        /// was so. Its secrets are stored with it, both or neither; without them the stored secrets stay. What is kept
        /// between runs stays, and whoever asks it now can note nothing. Done twice, the second is refused.
        fn save_source(source: &StoredSource, secrets: Option<&SourceSecrets>) -> StoreResult<bool>;

        /// Deletes a source and its secrets, both or neither. Done twice, it changes nothing.
        fn delete_source(id: &PolledSourceId) -> StoreResult<()>;
    }

    /// What is secret of a source: for whoever asks it, and nobody else.
    ReadSourceSecrets [(GetItem, SourceSecrets)] {
        /// The secrets of a source, as they are this moment.
        fn source_secrets(id: &PolledSourceId) -> StoreResult<Option<SourceSecrets>>;
    }

    /// A source is claimed, asked, and noted.
    ///
    /// Of several that ask at the same time one has the claim. Who dies with it leaves the source to the next one, once the
    /// lease is over.
    RunSources [(UpdateItem, Sources)] {
        /// Begins a run: notes the requests that it may make, and the lease if it has one, if nobody has saved, claimed or
        /// tested the source since `known` was read. Returns the source as it is then, or `None`. Done twice, the second is
        /// refused.
        fn begin_source_run(
            known: &StoredSource,
            spent: Spent,
            lease: Option<Timestamp>,
        ) -> StoreResult<Option<StoredSource>>;

        /// Ends a run: notes what it found and when the source is due again, if the claim is still the one of `claimed`;
        /// returns whether it was. Done twice, the second is refused.
        fn end_source_run(
            claimed: &StoredSource,
            next: Timestamp,
            status: &SourceStatus,
        ) -> StoreResult<bool>;
    }
}
