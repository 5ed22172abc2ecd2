//! Ends the states of a rule or a device that is deleted. What waits of them is dropped by whoever sends.

use alerts::AlertSubject;
use domain::{DeviceId, RuleId};
use table::{AlertKey, DeleteAlertStates, Invocation, ReadAlertStates, StoreResult};

/// The states of a page.
const PAGE: usize = 500;

/// Deletes the states of a rule; returns how many there were. To be called once the rule is deleted: from then on no
/// message of it is stored.
pub async fn end_rule(
    store: &impl DeleteAlertStates,
    rule: &RuleId,
    invocation: &Invocation,
) -> StoreResult<usize> {
    store.delete_alert_states(rule, invocation).await
}

/// Deletes the states of all rules on a device; returns how many there were. A state that is judged meanwhile ends with
/// its time: nothing comes from a deleted device.
pub async fn end_device(
    store: &(impl ReadAlertStates + DeleteAlertStates),
    device: &DeviceId,
    invocation: &Invocation,
) -> StoreResult<usize> {
    let subject = AlertSubject::Device(device.clone());
    let mut ended = 0;
    let mut after: Option<AlertKey> = None;
    loop {
        let page = store.alert_state_page(None, after.as_ref(), PAGE, invocation).await?;
        for state in page.listing.found.iter().filter(|state| state.key.subject == subject) {
            let is_ended = store.delete_alert_state(&state.key, state.version, invocation).await?;
            ended += usize::from(is_ended);
        }
        after = page.listing.found.last().map(|state| state.key.clone());
        if !page.has_more || after.is_none() {
            return Ok(ended);
        }
    }
}
