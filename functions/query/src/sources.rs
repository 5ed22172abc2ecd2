//! Sources that are polled: settings, states, tests. Polls no source itself and reads no secret.

pub(crate) mod edit;
pub(crate) mod rows;
pub(crate) mod trial;
mod warnings;

use api::Problem;
use domain::PolledSourceId;
use polling::PolledSource;
use table::StoredSource;

use crate::ports::Store;
use crate::registry::lookup::readable;
use crate::shared_state::Call;

/// The maximum size of a body after decompression.
const MAX_BODY: usize = 64 << 10;

/// The names of the secrets that a source needs, as a list for people.
fn needed_secrets(source: &PolledSource) -> String {
    let names: Vec<_> = source.needed_secrets().into_iter().collect();
    names.join(", ")
}

/// Reads the id of a source. The id must be short enough for the device `source:<id>`, which says whether the source
/// fails.
fn source_id(text: &str) -> Result<PolledSourceId, Problem> {
    let bad = |why: &dyn std::fmt::Display| Problem::field("source_id", why);
    let id: PolledSourceId = text.parse().map_err(|why| bad(&why))?;
    id.device().map(|_| id).map_err(|why| bad(&why))
}

/// The sources as they are stored at this moment. The log names the unreadable ones.
async fn all(call: &mut Call<'_, impl Store>) -> Result<Vec<StoredSource>, Problem> {
    Ok(readable(call.session.current_sources().await?, "sources.unreadable", call))
}
