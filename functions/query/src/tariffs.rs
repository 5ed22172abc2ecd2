//! `/tariffs`: lists, shows, saves and deletes tariffs. Bills nothing.

mod warnings;

use api::body::{self, value_without};
use api::{Problem, ProblemKind, Response};
use domain::{TariffId, Timestamp, Zone};
use runtime::telemetry::chain;
use serde::Serialize;
use serde_json::json;
use table::{Expected, StoredTariff};
use tariffs::{Tariff, WrittenTariff};

use crate::ports::Store;
use crate::registry::lookup::{not_found, path_id};
use crate::saved::{contended, ensure_at_most};
use crate::shared_state::Call;

/// The maximum number of tariffs.
const MAX_TARIFFS: usize = 20;
/// The maximum number of attempts to save a tariff while others save it, and of counts of the tariffs after the save.
const MAX_ATTEMPTS: usize = 5;
/// The maximum size of a body after decompression, and so of a tariff.
const MAX_BODY: usize = 64 << 10;
/// The members of a shown tariff that a PUT passes over.
const SHOWN_ONLY: &[&str] = &["id", "edited", "warnings"];

/// A stored tariff that can be billed.
#[derive(Debug)]
pub(crate) struct KnownTariff {
    pub(crate) stored: StoredTariff,
    pub(crate) written: WrittenTariff,
    pub(crate) tariff: Tariff,
}

impl KnownTariff {
    /// Reads a stored tariff. `home` is the time zone of a tariff without one.
    fn of(stored: StoredTariff, home: Zone) -> Result<Self, String> {
        let written: WrittenTariff =
            serde_json::from_str(&stored.written).map_err(|why| why.to_string())?;
        let tariff = Tariff::of(&written, home).map_err(|why| why.to_string())?;
        Ok(Self { stored, written, tariff })
    }

    /// All tariffs as they are stored at this moment. The log names the unreadable ones.
    pub(crate) async fn all(
        home: Zone,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Vec<Self>, Problem> {
        let listing = call.session.tariffs().await?;
        let mut unreadable: Vec<String> =
            listing.unreadable.iter().map(|item| chain(item)).collect();

        let mut found = Vec::new();
        for stored in listing.found {
            let id = stored.id.clone();
            match Self::of(stored, home) {
                Ok(tariff) => found.push(tariff),
                Err(why) => unreadable.push(format!("{id}: {why}")),
            }
        }

        if !unreadable.is_empty() {
            call.log.set("tariffs.unreadable", unreadable);
        }
        Ok(found)
    }

    /// A tariff by its id.
    pub(crate) async fn find(
        id: &TariffId,
        home: Zone,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        let stored = call.session.tariff(id).await?;
        let stored = stored.ok_or_else(|| not_found("tariff", id.as_str()))?;
        Self::of(stored, home).map_err(|why| {
            let detail = format!("The tariff {id} cannot be read: {why}. Save it again.");
            Problem::new(ProblemKind::Unanswerable, detail)
        })
    }
}

/// A tariff as the API shows it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Tariff"))]
pub(crate) struct TariffRow {
    id: TariffId,
    /// When the tariff was last saved
    edited: Timestamp,
    #[serde(flatten)]
    written: WrittenTariff,
    /// Warnings about the tariff that was saved
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// All tariffs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Tariffs"))]
pub(crate) struct TariffRows {
    data: Vec<TariffRow>,
}

impl From<KnownTariff> for TariffRow {
    fn from(known: KnownTariff) -> Self {
        let KnownTariff { stored, written, .. } = known;
        let written = WrittenTariff { version: Some(stored.version), ..written };
        Self { id: stored.id, edited: stored.edited, written, warnings: Vec::new() }
    }
}

/// `GET /tariffs`
pub(crate) async fn list(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let home = call.shared.rollup_state.horizon(call.session).await?.zone();
    let data = KnownTariff::all(home, call).await?.into_iter().map(TariffRow::from).collect();
    Ok(Response::json(200, &TariffRows { data }))
}

/// `GET /tariffs/{id}`
pub(crate) async fn show(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = path_id(call)?;
    let home = call.shared.rollup_state.horizon(call.session).await?.zone();
    let known = KnownTariff::find(&id, home, call).await?;
    Ok(Response::json(200, &TariffRow::from(known)))
}

/// `PUT /tariffs/{id}`: a version in the body must be the stored one.
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = path_id(call)?;
    let mut written: WrittenTariff =
        body::read_by(call.request, MAX_BODY, |json| value_without(json, SHOWN_ONLY))?;
    let edited_version = written.version.take();
    let home = call.shared.rollup_state.horizon(call.session).await?.zone();
    let tariff = Tariff::of(&written, home)?;
    let text = serde_json::to_string(&written).expect("texts and numbers");

    let stored = save(&id, edited_version, &text, call).await?;
    let warnings = warnings::of(&written, call).await?;
    let row = TariffRow::from(KnownTariff { stored, written, tariff });
    Ok(Response::json(200, &TariffRow { warnings, ..row }))
}

/// Stores a tariff in the place of the stored one. If somebody else saves it meanwhile, compares the version again.
/// Versions come from the clock, so that a tariff that is made again has a new version.
async fn save(
    id: &TariffId,
    edited_version: Option<u64>,
    text: &str,
    call: &mut Call<'_, impl Store>,
) -> Result<StoredTariff, Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let before = call.session.tariff(id).await?;
        let version = before.as_ref().map_or(0, |stored| stored.version);
        if edited_version.is_some_and(|edited| edited != version) {
            let detail = format!("The tariff {id} has version {version}; read it, and edit that.");
            return Err(Problem::new(ProblemKind::Conflict, detail));
        }

        match before {
            Some(same) if same.written == text => return Ok(same),
            Some(_) => {}
            None => {
                let count = call.session.tariffs().await?.found.len();
                ensure_at_most(MAX_TARIFFS, "tariffs", count + 1)?;
            }
        }

        let (edited, written) = (call.session.now, text.to_owned());
        let next = (version + 1).max(edited.as_millis().unsigned_abs());
        let new = StoredTariff { id: id.clone(), version: next, edited, written };
        if call.session.save_tariff(&new, Expected::before(version + 1)).await? {
            if version == 0 {
                ensure_place(&new, call).await?;
            }
            return Ok(new);
        }
    }
    Err(contended("tariff"))
}

/// Deletes a new tariff if simultaneous requests have saved too many. A tariff with [`MAX_TARIFFS`] earlier tariffs is
/// deleted at once. Any other tariff waits for the deletion of later tariffs, and is deleted after the last attempt.
async fn ensure_place(new: &StoredTariff, call: &mut Call<'_, impl Store>) -> Result<(), Problem> {
    let is_earlier = |other: &&StoredTariff| (other.edited, &other.id) < (new.edited, &new.id);
    for _ in 0..MAX_ATTEMPTS {
        let stored = call.session.tariffs().await?.found;
        if stored.len() <= MAX_TARIFFS {
            return Ok(());
        }
        if stored.iter().filter(is_earlier).count() >= MAX_TARIFFS {
            break;
        }
    }

    call.session.delete_tariff(new).await?;
    ensure_at_most(MAX_TARIFFS, "tariffs", MAX_TARIFFS + 1)
}

/// `DELETE /tariffs/{id}`
pub(crate) async fn delete(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let id = path_id(call)?;
    let stored = call.session.tariff(&id).await?;
    let stored = stored.ok_or_else(|| not_found("tariff", id.as_str()))?;
    if !call.session.delete_tariff(&stored).await? {
        return Err(contended("tariff"));
    }
    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false})))
}
