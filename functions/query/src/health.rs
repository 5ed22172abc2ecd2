//! `GET /health`: whether the system answers and, for tokens that may read, how current rollups are. Knows no device.

use api::{Dialect, Problem, Response};
use domain::Zone;
use serde_json::json;
use series::UnfoldedChanges;

use crate::ports::Store;
use crate::shared_state::Call;

/// `GET /health`
pub(crate) async fn health(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    if !call.params.flag("details") {
        return Ok(influxdb::health());
    }

    let horizon = call.shared.rollup_state.read(call.session).await?;
    let lacking = UnfoldedChanges::read(call.session, &horizon).await?;
    let rollups = horizon.state().map(|state| {
        let queue = state.queue.map(|depth| json!({"messages": depth.messages, "at": depth.at}));
        json!({
            "tz": state.zone,
            "since": state.since,
            "sealed": horizon.believed(state.sealed()),
            "queue": queue,
            "backlog": lacking.late().backlog.map(|backlog| json!({"since": backlog.since, "at": backlog.at})),
            "folded_until": lacking.folded_until(),
            "at": now,
        })
    });

    let mut health = influxdb::health_members();
    health["rollups"] = rollups.into();
    health["zone_database"] = Zone::database_version().into();
    Ok(Dialect::V2.dressed(Response::json(200, &health)))
}
