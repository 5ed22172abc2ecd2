//! Ends the states of a device that is deleted. What waits of them is dropped by whoever sends.

use alerts::AlertSubject;
use domain::DeviceId;
use table::{AlertKey, DeleteAlertStates, ReadAlertStates, Session, StoreResult};

/// The states of a page.
const PAGE: usize = 500;

/// Deletes the states of all rules on a device. A state that is judged meanwhile ends with
/// its time: nothing comes from a deleted device.
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
