//! Ends the states of a rule or a device that is deleted. What waits of them is dropped by whoever sends.

use alerts::AlertSubject;
use domain::{DeviceId, RuleId};
use table::{AlertKey, DeleteAlertStates, ReadAlertStates, Session, StoreResult};

/// The states of a page.
const PAGE: usize = 500;

/// Deletes the states of a rule; returns how many there were. To be called once the rule is deleted: from then on no
/// message of it is stored.
pub async fn end_rule(
    session: Session<'_, impl DeleteAlertStates>,
    rule: &RuleId,
) -> StoreResult<usize> {
    session.delete_alert_states(rule).await
}

/// Deletes the states of all rules on a device; returns how many there were. A state that is judged meanwhile ends with
/// its time: nothing comes from a deleted device.
pub async fn end_device(
    session: Session<'_, impl ReadAlertStates + DeleteAlertStates>,
    device: &DeviceId,
) -> StoreResult<usize> {
    let subject = AlertSubject::Device(device.clone());
    let mut ended = 0;
    let mut after: Option<AlertKey> = None;
    loop {
        let page = session.alert_state_page(None, after.as_ref(), PAGE).await?;
        for state in page.listing.found.iter().filter(|state| state.key.subject == subject) {
            let is_ended = session.delete_alert_state(&state.key, state.version).await?;
            ended += usize::from(is_ended);
        }
        after = page.listing.found.last().map(|state| state.key.clone());
        if !page.has_more || after.is_none() {
            return Ok(ended);
        }
    }
}
