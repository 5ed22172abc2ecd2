//! The stored form of a polled source, with the secrets apart. Polls nothing.

use domain::{MemberError, PolledSourceId, Timestamp};
use polling::{PolledSource, SecretTexts, SourceStatus, Spent};
use serde_json::{Map, Value};

/// A polled source.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct StoredSource {
    /// The id of the source.
    pub id: PolledSourceId,
    /// The number of times that a person saved the source.
    pub version: u64,
    /// The settings as a person wrote them, without secrets.
    pub settings: Map<String, Value>,
    /// Whether the secrets are missing. A source restored from an export has none, and is off until a person gives
    /// them.
    pub lacks_secrets: bool,
    /// When the source is due again.
    pub next: Timestamp,
    /// The end of the lease of the current run.
    pub lease: Option<Timestamp>,
    /// The number of the run that has the lease.
    pub claim: Option<u64>,
    /// The number of runs and tests so far.
    pub run: u64,
    /// How many requests the source has made.
    pub spent: Spent,
    /// The status, which is kept from run to run.
    pub status: SourceStatus,
}

impl StoredSource {
    /// The version of a source that follows `before`, or the first version. The status is kept, and so is a pause that
    /// the maker asked for.
    pub fn new(
        id: PolledSourceId,
        before: Option<&Self>,
        source: &PolledSource,
        now: Timestamp,
    ) -> Self {
        let settings = source.settings().clone();
        let version = before.map_or(0, |before| before.version) + 1;
        let run = before.map_or(0, |before| before.run);
        let lacks_secrets = before.is_some_and(|before| before.lacks_secrets);
        let (spent, status) =
            before.map(|before| (before.spent, before.status.clone())).unwrap_or_default();
        let pause = before.and_then(|before| before.pause_of(source, now));
        let (next, lease, claim) = (pause.unwrap_or(now), None, None);
        Self { id, version, settings, lacks_secrets, next, lease, claim, run, spent, status }
    }

    /// The time until which the maker takes no requests of `source`. `None` if the time is over, or if `source` sends
    /// requests to another server.
    pub fn pause_of(&self, source: &PolledSource, now: Timestamp) -> Option<Timestamp> {
        let is_same = self.source().is_ok_and(|own| own.host() == source.host());
        self.status.waits_until(now).filter(|_| is_same)
    }

    /// The source, as a person wrote it.
    pub fn source(&self) -> Result<PolledSource, MemberError> {
        PolledSource::from_stored(&self.settings)
    }

    /// Refuses a source of another kind under the same id: its requests so far are counted by the limit of its kind.
    pub fn ensure_same_kind(&self, source: &PolledSource) -> Result<(), MemberError> {
        match self.settings.get("kind").and_then(Value::as_str) {
            Some(kind) if kind != source.kind.name => {
                let why = format!(
                    "of a saved source stays {kind:?}; delete it first, or choose another id"
                );
                Err(MemberError::of("kind", why))
            }
            _ => Ok(()),
        }
    }

    /// Whether a source that is saved without secrets may keep the stored secrets. This answer only informs a person
    /// early: when a run takes the secrets, [`SourceSecrets::of`] checks them.
    pub fn has_secrets_for(&self, source: &PolledSource) -> bool {
        let is_for = self.source().is_ok_and(|own| own.destination() == source.destination());
        is_for && !self.lacks_secrets
    }
}

/// The secrets of a source, and the request for which they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSecrets {
    /// The digest of the request and its reader (`PolledSource::destination`); empty in items of older versions.
    pub destination: String,
    /// The secrets.
    pub texts: SecretTexts,
}

impl SourceSecrets {
    /// Secrets that a person gives for the present request of a source.
    pub fn given_for(source: &PolledSource, texts: SecretTexts) -> Self {
        Self { destination: source.destination(), texts }
    }

    /// The secrets, if they were given for the request of `source`; otherwise no secrets. Settings are read before
    /// secrets, and a person may save both in between. Then the old request must not carry the new secrets.
    pub fn of(self, source: &PolledSource) -> SecretTexts {
        if self.destination == source.destination() { self.texts } else { SecretTexts::default() }
    }
}
