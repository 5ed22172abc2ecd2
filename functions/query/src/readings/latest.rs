//! `GET /devices/{id}/latest`. Finds no value itself.

use api::{Problem, ProblemKind, Response};
use runtime::clock::Clock;
use runtime::http::Call;

use crate::answer::rows::LatestRow;
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::readings::newest::all_metrics;

/// `GET /devices/{id}/latest`
pub(crate) async fn of_device(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let device = handlers.device(call).await?;
    let latest = handlers.newest_reader(call).newest(&device, &all_metrics(&device)).await?;
    let values = latest.ok_or_else(|| {
        Problem::new(
            ProblemKind::NotFound,
            format!("The device {:?} has no readings.", device.id().as_str()),
        )
    })?;
    Ok(Response::json(200, &LatestRow { device_id: device.id(), values }))
}
