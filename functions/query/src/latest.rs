//! Newest values, by the readings' own time. Writes nothing: what is newest is asked, never kept.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use shared::clock::Clock;
use shared::domain::{Device, Instant, Order, TimeRange};
use shared::http::{Params, Problem, ProblemKind, Response};
use shared::store::{
    Budget, EditRegistry, FindToken, Position, QueryReadings, RangeQuery, ReadRegistry, Register,
    StoreResult,
};

use crate::registry::{devices_part, metrics_of, whole};
use crate::rows::{LatestRow, LatestValues};
use crate::{Call, Query, format};

/// How far back a metric is looked for that the newest readings do not carry: ten readings, then a
/// hundred more, then a thousand. One that is older is not current in any sense.
const STEPS: [usize; 3] = [10, 100, 1_000];
/// How many devices are asked at once.
const AT_ONCE: usize = 8;

impl<S, C> Query<S, C>
where
    S: ReadRegistry + QueryReadings + EditRegistry + Register + FindToken,
    C: Clock,
{
    /// `GET /devices/{id}/latest`
    pub(crate) async fn device_latest(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        Params::of(call.request, &[])?;
        let (device, _) = self.device(id, call).await?;
        let latest =
            self.newest(&device, call.budget).await.map_err(|error| call.failed(&error))?;
        let values = latest.ok_or_else(|| {
            Problem::new(
                ProblemKind::NotFound,
                format!("The device {:?} has no readings.", device.id.as_str()),
            )
        })?;
        Ok(Response::json(200, &LatestRow { device_id: &device.id, values }))
    }

    /// `GET /rooms/{id}/latest`
    pub(crate) async fn room_latest(
        &self,
        call: &mut Call<'_>,
        id: &str,
    ) -> Result<Response, Problem> {
        let params = Params::of(call.request, &["limit", "cursor", "format"])?;
        let (room, snapshot) = self.room(id, call).await?;
        let devices: Vec<&Device> = snapshot
            .devices
            .values()
            .filter(|device| device.room.as_ref() == Some(&room.id))
            .collect();
        whole(snapshot.has_all_devices, "devices")?;
        let mut columns = vec!["device_id".to_owned(), "timestamp".to_owned()];
        columns.extend(metrics_of(devices.iter().copied()));
        let (devices, cursor) = devices_part(call.request, &params, devices, true)?;
        let latest = self.latest_of(&devices, call).await?;
        let rows: Vec<LatestRow<'_>> = devices
            .iter()
            .zip(latest)
            .filter_map(|(device, values)| {
                Some(LatestRow { device_id: &device.id, values: values? })
            })
            .collect();
        format::page(call.request, &params, &rows, &columns, cursor.as_deref())
    }

    /// The newest values of several devices, in their order; none where a device has no readings.
    pub(crate) async fn latest_of(
        &self,
        devices: &[&Device],
        call: &mut Call<'_>,
    ) -> Result<Vec<Option<LatestValues>>, Problem> {
        let asked: Vec<_> = devices.iter().map(|device| self.newest(device, call.budget)).collect();
        let latest = stream::iter(asked).buffered(AT_ONCE).try_collect().await;
        latest.map_err(|error| call.failed(&error))
    }

    async fn newest(&self, device: &Device, budget: &Budget) -> StoreResult<Option<LatestValues>> {
        let range = TimeRange::new(Instant::MIN, Instant::MAX).expect("1970 is before 9999");
        let mut after = None;
        let mut readings = Vec::new();
        for limit in STEPS {
            let query =
                RangeQuery { range, order: Order::Descending, after, limit, consistent: false };
            let page = self.store.device_readings(&device.id, &query, budget).await?;
            readings.extend(page.readings);
            let latest = LatestValues::among(&readings);
            let complete =
                latest.as_ref().is_none_or(|latest| latest.has_all(device.metrics.keys()));
            if complete || !page.has_more {
                return Ok(latest);
            }
            after = readings.last().map(Position::of);
        }
        Ok(LatestValues::among(&readings))
    }
}
