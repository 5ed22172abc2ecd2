//! Deletes a device's readings in a range, which is the most common repair. Leaves rollups to the rollup function.

use alerts::MAX_BACK_FIRING;
use api::{Problem, Response};
use domain::{DeviceId, Order, TimeRange};
use runtime::clock::Clock as _;
use serde_json::json;
use table::{RangeQuery, ReadingKey};

use crate::ports::Store;
use crate::readings::ranges::time_range;
use crate::recheck::recheck;
use crate::registry::lookup;
use crate::shared_state::{Call, SharedState};

/// The largest number of readings that one request deletes.
const MAX_DELETED: usize = 1_000;
/// The readings that are left after a deletion are counted up to this number. Counting reads each of them, and may cost
/// at most as much as the deletion.
const MAX_COUNTED: usize = 1_000;

/// `DELETE /devices/{id}/readings`
pub(crate) async fn readings(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SharedState { clock, .. } = call.shared;

    for name in ["from", "to"] {
        if call.params.get(name).is_none() {
            return Err(Problem::field(
                name,
                "is missing; name both ends of what is to be deleted",
            ));
        }
    }

    let range = time_range(&call.params, clock.now())?;
    let device = lookup::device(call).await?;

    // One reading less is read than can be counted: `has_more` of the page stands for one more.
    let (order, limit) = (Order::Ascending, MAX_DELETED + MAX_COUNTED - 1);
    let query = RangeQuery { range, order, after: None, limit, consistent: true };
    let page = call.session.device_readings(device.id(), &query).await?;
    let keys: Vec<ReadingKey> = page.items.iter().take(MAX_DELETED).map(ReadingKey::of).collect();

    // The changes are announced before the deletion, so that answers about their time warn of them.
    let mark = async |call: &Call<'_, _>| {
        let changed = keys.iter().map(|key| (&key.device, key.at));
        call.shared.late.mark(call.session.at(clock.now()), changed).await
    };
    let marked = mark(call).await?;

    // A recheck is noted before the deletion too: if the deletion is cut off, alerts judge the readings that are left.
    judge_again(device.id(), range, call).await?;

    let outcome = call.session.delete_readings(&keys).await;
    if marked.is_some_and(|until| until <= clock.now()) {
        mark(call).await?;
    }

    judge_again(device.id(), range, call).await?;
    if let Some(cause) = outcome.cause {
        // Deleted readings stay deleted. The same request, sent again, deletes the rest.
        return Err(cause.into());
    }

    let left = page.items.len() - keys.len();
    let (name, left) = if page.has_more { ("left_at_least", left + 1) } else { ("left", left) };
    let body = json!({"deleted": keys.len(), "has_more": left > 0, name: left});
    Ok(Response::json(200, &body))
}

/// Makes alerts judge the device again from the start of a range on. A judgement looks back 31 days: of a longer range
/// the recheck has the first instant within this time, and of an older range the last instant, which only tells that
/// older readings have changed. A range without readings is judged again too, because an earlier request may have
/// deleted the readings and then failed.
async fn judge_again(
    device: &DeviceId,
    range: TimeRange,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    let earliest = call.session.now.saturating_add(-MAX_BACK_FIRING);
    let touched = range.from().max(range.last().min(earliest));
    recheck(device.clone(), touched, call).await
}
