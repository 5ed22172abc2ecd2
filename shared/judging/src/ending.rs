//! Deletes the states of a deleted device. `alerting` drops the messages of such states that wait to be sent.

use alerts::AlertSubject;
use domain::DeviceId;
use table::{AlertKey, DeleteAlertStates, ReadAlertStates, Session, StoreResult};

/// The number of states that are read at once.
const PAGE: usize = 500;

/// Deletes the states of all rules on a device. A judgement at the same moment may store a state again, which would
/// fire for ever. So the end of a deletion deletes the states once more.
pub async fn end_device(
    session: Session<'_, impl ReadAlertStates + DeleteAlertStates>,
    device: &DeviceId,
) -> StoreResult<()> {
    let subject = AlertSubject::Device(device.clone());
    let mut after: Option<AlertKey> = None;
    loop {
        let page = session.alert_state_page(None, after.as_ref(), PAGE).await?;
        for state in page.listing.found.iter().filter(|state| state.key.subject == subject) {
            session.delete_alert_state(&state.key, state.version).await?;
        }
        after = page.listing.found.last().map(|state| state.key.clone());
        if !page.has_more || after.is_none() {
            return Ok(());
        }
    }
}
