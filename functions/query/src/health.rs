//! Whether the system answers, and how far its rollups reach. Needs no token, so it says nothing of devices.

use api::{Problem, Response};
use runtime::http::Call;
use serde_json::json;
use table::ReadRollupState;

use crate::series::Horizon;

/// `GET /health`
pub(crate) async fn health(
    store: &impl ReadRollupState,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    if !call.params.flag("details") {
        return Ok(Response::json(200, &json!({"status": "ok"})));
    }
    let horizon = Horizon::read(store, call.invocation).await;
    let horizon = horizon.map_err(|error| call.failed(&error))?;
    let rollups = horizon.state().map(|state| {
        let queue = state.queue.map(|depth| json!({"messages": depth.messages, "at": depth.at}));
        json!({"tz": state.zone, "since": state.since, "sealed": state.sealed(), "queue": queue})
    });
    Ok(Response::json(200, &json!({"status": "ok", "rollups": rollups})))
}
