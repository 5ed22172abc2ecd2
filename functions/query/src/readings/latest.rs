//! `GET /devices/{id}/latest`. Finds no value itself.

use api::{Problem, ProblemKind, Response};

use crate::answer::rows::LatestRow;
use crate::ports::Store;
use crate::readings::newest::{NewestReader, all_metrics};
use crate::registry::lookup;
use crate::shared_state::Call;

/// `GET /devices/{id}/latest`
pub(crate) async fn of_device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let device = lookup::device(call).await?;
    let latest = NewestReader::of(call).newest(&device, &all_metrics(&device)).await?;
    let values = latest.ok_or_else(|| {
        Problem::new(
            ProblemKind::NotFound,
            format!("The device {:?} has no readings.", device.id().as_str()),
        )
    })?;
    Ok(Response::json(200, &LatestRow { device_id: device.id(), values }))
}
