//! Asks for a recheck: the next minute judges the alerts of a device, or a rule, again. Judges nothing.

use api::Problem;
use domain::Timestamp;
use table::Rechecked;

use crate::ports::Store;
use crate::shared_state::Call;

/// Stores a recheck of the readings from an instant on.
pub(crate) async fn recheck(
    target: impl Into<Rechecked>,
    since: Timestamp,
    call: &Call<'_, impl Store>,
) -> Result<(), Problem> {
    let noted = call.session.note_rechecks(&[(target.into(), since)]).await;
    noted.cause.map_or(Ok(()), |error| Err(error.into()))
}
