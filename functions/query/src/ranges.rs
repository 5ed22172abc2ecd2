//! Readings in a time range, of a device or a room. Aggregates nothing.

use shared::clock::Clock;
use shared::domain::{Device, MetricName, RangeError, Reading, TimeRange};
use shared::http::{Params, Problem, Response};
use shared::store::{
    EditRegistry, FindToken, Page, Position, QueryReadings, RangeQuery, ReadRegistry,
};

use crate::format::Format;
use crate::registry::metrics_of;
use crate::rows::{READING_COLUMNS, ReadingRow};
use crate::{Call, Query, cursor};

pub(crate) const DEFAULT_LIMIT: usize = 1_000;
pub(crate) const MOST: usize = 10_000;

impl<S, C> Query<S, C>
where
    S: ReadRegistry + QueryReadings + EditRegistry + FindToken,
    C: Clock,
{
    /// `GET /devices/{id}/readings`
    pub(crate) async fn device_readings(
        &self,
        call: &mut Call<'_>,
        params: &Params,
        id: &str,
    ) -> Result<Response, Problem> {
        let asked = self.asked(call, params)?;
        let device = self.device(id, call).await?;
        let page = self.store.device_readings(&device.id, &asked.query, call.budget).await;
        let page = page.map_err(|error| call.failed(&error))?;
        asked.answer(call, &page, [&device].into_iter())
    }

    /// `GET /rooms/{id}/readings`
    pub(crate) async fn room_readings(
        &self,
        call: &mut Call<'_>,
        params: &Params,
        id: &str,
    ) -> Result<Response, Problem> {
        let asked = self.asked(call, params)?;
        let (room, snapshot) = self.room(id, call).await?;
        let devices =
            snapshot.devices.values().filter(|device| device.room.as_ref() == Some(&room.id));
        let ids: Vec<_> = devices.clone().map(|device| device.id.clone()).collect();
        let page = self.store.room_readings(&room.id, &ids, &asked.query, call.budget).await;
        let page = page.map_err(|error| call.failed(&error))?;
        asked.answer(call, &page, devices)
    }

    fn asked<'a>(&self, call: &Call<'_>, params: &'a Params) -> Result<Asked<'a>, Problem> {
        let format = Format::of(call.request, params)?;
        let limit = params.limit(DEFAULT_LIMIT, MOST)?;
        let order = params.order()?;
        let metrics = params.metrics()?;
        let binding = params.binding(call.request);
        let (range, after) = match params.get("cursor") {
            Some(cursor) => {
                let (range, after) = cursor::open_range(&binding, cursor)?;
                (range, Some(after))
            }
            None => (self.range(params)?, None),
        };
        let query = RangeQuery { range, order, after, limit, consistent: false };
        Ok(Asked { params, format, metrics, binding, query })
    }

    /// The range asked for. A page after the first takes it from its cursor, so that it stays the same.
    fn range(&self, params: &Params) -> Result<TimeRange, Problem> {
        let (from, to) = (instant(params, "from"), instant(params, "to"));
        let range = TimeRange::parse(from.as_deref(), to.as_deref(), self.clock.now());
        range.map_err(|why| match why {
            RangeError::From(_) | RangeError::Empty(..) => Problem::field("from", why.to_string()),
            RangeError::To(_) => Problem::field("to", why.to_string()),
        })
    }
}

/// An instant's text. The `+` of an offset arrives as a space when the client did not encode it.
fn instant(params: &Params, name: &str) -> Option<String> {
    params.get(name).map(|text| match text.rsplit_once(' ') {
        Some((time, offset)) if offset.len() == 5 && time.contains('T') => {
            format!("{time}+{offset}")
        }
        _ => text.to_owned(),
    })
}

/// What a request asks for.
struct Asked<'a> {
    params: &'a Params,
    format: Format,
    /// The metrics asked for; `None` are all.
    metrics: Option<Vec<MetricName>>,
    binding: String,
    query: RangeQuery,
}

impl Asked<'_> {
    fn answer<'d>(
        &self,
        call: &Call<'_>,
        page: &Page,
        devices: impl Iterator<Item = &'d Device>,
    ) -> Result<Response, Problem> {
        let wanted = self.metrics.as_deref();
        let row = |reading| ReadingRow::of(reading, wanted);
        let rows: Vec<ReadingRow<'_>> = page.readings.iter().filter_map(row).collect();
        let behind = |reading: &Reading| {
            cursor::seal_range(&self.binding, self.query.range, &Position::of(reading))
        };
        let rest = page.readings.last().filter(|_| page.has_more).map(behind);
        let columns = || columns(&rows, wanted, devices);
        let call = (call.request, self.params);
        self.format.page(call, &rows, columns, rest, |row| behind(rows[row].reading))
    }
}

/// The columns of CSV: what the registry knows of the devices, so that every page has the same, and
/// whatever this page has beyond that.
fn columns<'d>(
    rows: &[ReadingRow<'_>],
    wanted: Option<&[MetricName]>,
    devices: impl Iterator<Item = &'d Device>,
) -> Vec<String> {
    let mut columns: Vec<String> = READING_COLUMNS.map(str::to_owned).into();
    if let Some(wanted) = wanted {
        columns.extend(wanted.iter().map(ToString::to_string));
        return columns;
    }
    let mut metrics: std::collections::BTreeSet<String> = metrics_of(devices).into_iter().collect();
    for row in rows {
        for (name, _) in &row.metrics {
            if !metrics.contains(name.as_str()) {
                metrics.insert(name.to_string());
            }
        }
    }
    columns.extend(metrics);
    columns
}
