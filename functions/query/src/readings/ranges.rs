//! Readings in a time range, of a device or a room. Aggregates nothing.

use api::response::MAX_CARRIED;
use api::{Format, Params, Problem, Request, Response};
use domain::{Device, DeviceId, MetricName, RangeError, Reading, RoomId, TimeRange, Timestamp};
use runtime::registry::{FoundDevices, PageStart};
use serde_json::json;
use table::sizes::of_reading;
use table::{Page, RangeQuery, ReadingKey, Session, StoreResult};

use crate::answer::cursor;
use crate::answer::page::RowPage;
use crate::answer::range_page;
use crate::answer::rows::{READING_COLUMNS, ReadingRow};
use crate::answer::sheet::metrics_of;
use crate::answer::sheet::{FixedColumns, Sheet};
use crate::ports::Store;
use crate::registry::presence::RoomsLack;
use crate::registry::{lookup, presence};
use crate::shared_state::Call;

/// The number of readings that are read for a page of CSV before its size is checked. About so many fit if each reading
/// has 64 columns of its own.
const FIRST_STEP: usize = 256;

/// If memory does not hold all devices, a room's CSV has columns for the metrics of at most this many devices.
const MAX_COLUMN_DEVICES: usize = 1_000;

/// `GET /devices/{id}/readings`
pub(crate) async fn of_device(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let range = RangeRequest::of(call.request, &call.params, now)?;
    let device = lookup::device(call).await?;
    answer(call, &range, &RangeOf::Device(&device)).await
}

/// `GET /rooms/{id}/readings`
pub(crate) async fn of_room(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let range = RangeRequest::of(call.request, &call.params, now)?;
    let (room, snapshot) = lookup::room(call).await?;

    let rooms = [room.id.clone()].into();
    let mut found = FoundDevices::of(snapshot);

    let mut lack = None;
    let ids: Vec<DeviceId> = if call.session.has_room_index() {
        // The readings come from the room index. The devices are read only because their metrics are columns of CSV.
        let limit = if range.format == Format::Csv { MAX_COLUMN_DEVICES } else { 1 };
        let page = PageStart { after: None, limit };
        lookup::members_of(&mut found, &rooms, page, call).await?.ids
    } else {
        let horizon = call.shared.rollup_state.horizon(call.session).await?;
        let requested = range.query.range;
        let occupants =
            presence::now_or_seen_in_rooms(&horizon, &mut found, &rooms, requested, call).await?;
        if occupants.lack == Some(RoomsLack::NoRoomIndex) {
            return Err(lookup::without_room_index("those that were in a room lately"));
        }
        lack = occupants.lack;
        occupants.ids.into_iter().collect()
    };

    let devices = ids.iter().filter_map(|id| found.device(id)).collect();
    answer(call, &range, &RangeOf::Room { room: &room.id, devices, lack }).await
}

async fn answer(
    call: &mut Call<'_, impl Store>,
    range: &RangeRequest,
    of: &RangeOf<'_>,
) -> Result<Response, Problem> {
    let page = match range.format {
        Format::Csv => read_until_full(call.session, of, range).await,
        Format::Json | Format::Ndjson => of.read(call.session, &range.query).await,
    };
    let page = page?;
    Ok(range.respond(call.request, &call.params, &page, of))
}

/// Reads until a page of CSV is full. Reads in steps, because each new column makes every row larger, and readings that
/// do not fit cost read units for nothing.
///
/// The size of a page grows at most with the square of its rows. After a step, at most four times as many readings have
/// been read as before, and so at most about twice as many as fit.
async fn read_until_full(
    session: Session<'_, impl Store>,
    of: &RangeOf<'_>,
    range: &RangeRequest,
) -> StoreResult<Page<Reading>> {
    let mut sheet = Sheet::new(range.columns(of));
    let mut page = Page::default();
    let mut stored = 0;
    let mut limit = FIRST_STEP.min(range.query.limit);

    while limit > 0 {
        let after = page.items.last().map(ReadingKey::of).or(range.query.after.clone());
        let step = RangeQuery { after, limit, ..range.query.clone() };
        let Page { items: readings, has_more } = of.read(session, &step).await?;
        stored += readings.iter().map(of_reading).sum::<usize>();

        let fits =
            readings.iter().filter_map(|reading| range.row(reading)).all(|row| sheet.add(&row));
        let is_last = !fits || !has_more || readings.len() < limit;
        page.items.extend(readings);
        page.has_more = has_more;
        if is_last {
            break;
        }

        let (read, taken) = (page.items.len(), sheet.bytes().max(stored));
        let rest = read * MAX_CARRIED.saturating_sub(taken) / taken;
        limit = rest.min(3 * read).min(range.query.limit - read);
    }

    Ok(page)
}

/// The device or the room of a request for readings.
enum RangeOf<'a> {
    Device(&'a Device),
    Room {
        room: &'a RoomId,
        /// The devices. Without the room index, they include devices that were there earlier.
        devices: Vec<&'a Device>,
        /// Why devices may be missing.
        lack: Option<RoomsLack>,
    },
}

impl RangeOf<'_> {
    async fn read(
        &self,
        session: Session<'_, impl Store>,
        query: &RangeQuery,
    ) -> StoreResult<Page<Reading>> {
        match self {
            Self::Device(device) => session.device_readings(device.id(), query).await,
            Self::Room { room, devices, .. } => {
                let ids: Vec<_> = devices.iter().map(|device| device.id().clone()).collect();
                session.room_readings(room, &ids, query).await
            }
        }
    }

    /// The metrics that the registry knows of the devices.
    fn metrics(&self) -> Vec<MetricName> {
        match self {
            Self::Device(device) => metrics_of(std::iter::once(*device)),
            Self::Room { devices, .. } => metrics_of(devices.iter().copied()),
        }
    }

    const fn lack(&self) -> Option<RoomsLack> {
        match self {
            Self::Device(_) => None,
            Self::Room { lack, .. } => *lack,
        }
    }
}

/// The parameters of a request for readings, and the form of its answer.
struct RangeRequest {
    format: Format,
    /// The requested metrics; `None` stands for all.
    metrics: Option<Vec<MetricName>>,
    query_fingerprint: String,
    query: RangeQuery,
}

impl RangeRequest {
    fn of(request: &Request, params: &Params, now: Timestamp) -> Result<Self, Problem> {
        let metrics = params.metrics("metrics")?;
        let query_fingerprint = params.query_fingerprint(request);
        let (range, after) = range_page::begin(request, params, || time_range(params, now))?;
        let (order, limit) = (params.order(), params.limit());
        let query = RangeQuery { range, order, after, limit, consistent: false };
        Ok(Self { format: params.format(request), metrics, query_fingerprint, query })
    }

    fn row<'r>(&self, reading: &'r Reading) -> Option<ReadingRow<'r>> {
        ReadingRow::of(reading, self.metrics.as_deref())
    }

    /// The columns of CSV: the requested metrics, or else the known ones.
    fn columns(&self, of: &RangeOf<'_>) -> FixedColumns {
        let known = self.metrics.clone().unwrap_or_else(|| of.metrics());
        FixedColumns { own: &READING_COLUMNS, known }
    }

    fn respond(
        &self,
        request: &Request,
        params: &Params,
        page: &Page<Reading>,
        of: &RangeOf<'_>,
    ) -> Response {
        let rows: Vec<ReadingRow<'_>> =
            page.items.iter().filter_map(|reading| self.row(reading)).collect();
        let cursor_after = |reading: &Reading| {
            let key = ReadingKey::of(reading);
            cursor::encode_in(&self.query_fingerprint, self.query.range, &key)
        };
        let rest = page.items.last().filter(|_| page.has_more).map(cursor_after);
        let columns = || self.columns(of);
        let mut answer = RowPage::of(self.format, request, params);
        answer.members.extend(of.lack().map(|lack| ("rooms_lack".to_owned(), json!(lack))));
        answer.write(&rows, columns, rest, |row| cursor_after(rows[row].reading))
    }
}

/// The range that `from` and `to` ask for.
pub(crate) fn time_range(params: &Params, now: Timestamp) -> Result<TimeRange, Problem> {
    let (from, to) = (timestamp(params, "from"), timestamp(params, "to"));
    let range = TimeRange::parse(from.as_deref(), to.as_deref(), now);
    range.map_err(|why| match why {
        RangeError::From(_) | RangeError::Empty(..) => Problem::field("from", why),
        RangeError::To(_) => Problem::field("to", why),
    })
}

/// The range from `from` to `to`. Without `from` or `to`, the range is open at that end.
pub(crate) fn open_range(params: &Params, now: Timestamp) -> Result<TimeRange, Problem> {
    let end = |name: &str, default| match timestamp(params, name) {
        Some(text) => Timestamp::parse(&text, now).map_err(|why| Problem::field(name, why)),
        None => Ok(default),
    };
    let range = TimeRange::new(end("from", Timestamp::MIN)?, end("to", Timestamp::MAX)?);
    range.map_err(|why| Problem::field("from", why))
}

/// The text of a timestamp. A `+` that the client did not encode arrives as a space, and is restored.
pub(crate) fn timestamp(params: &Params, name: &str) -> Option<String> {
    params.get(name).map(|text| match text.rsplit_once(' ') {
        Some((time, offset)) if offset.len() == 5 && time.contains('T') => {
            format!("{time}+{offset}")
        }
        _ => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use api::endpoints::find_path;
    use domain::given::{self, number};
    use table::PutReadings as _;
    use table::given::{invocation, session};
    use table::memory_db::MemoryDb;

    use super::*;

    /// The numbers of readings read for the first page of CSV and sent in it, of 3,000 readings with so
    /// many metrics each.
    async fn read_and_sent(metrics: i64, are_new_each_time: bool) -> (usize, usize) {
        let invocation = invocation();
        let store = MemoryDb::default();
        let timestamp = |millis| Timestamp::from_millis(millis).expect("a timestamp");
        let readings: Vec<Reading> = (0..3_000)
            .map(|n| {
                let first = if are_new_each_time { n * metrics } else { 0 };
                let name = |metric| format!("m{metric}").parse::<MetricName>().expect("a name");
                let value = |metric| (name(metric), number("1"));
                let values = (first..first + metrics).map(value).collect();
                let device = given::device("d");
                Reading::stored(device, timestamp(n), None, values).expect("a reading")
            })
            .collect();
        store.put_readings(&readings, None, &invocation).await;
        let device =
            domain::DeviceObservation::of(&readings[0]).new_device(given::device("d"), |_| true);
        let text = "format=csv&limit=3000&from=1970-01-01T00:00:00Z";
        let request = Request { raw_query: text.to_owned(), ..Request::default() };
        let (endpoint, _) = find_path("GET", "/devices/d/readings").expect("an endpoint");
        let params = Params::of(&request, endpoint).expect("known");
        let range = RangeRequest::of(&request, &params, timestamp(9_000)).expect("well-formed");
        let of = RangeOf::Device(&device);
        let page =
            read_until_full(session(&store, &invocation), &of, &range).await.expect("memory");
        let answer = range.respond(&request, &params, &page, &of);
        let rows = answer.body.split(|byte| *byte == b'\n').skip(2).count();
        (page.items.len(), rows)
    }

    #[tokio::test]
    async fn a_page_of_csv_reads_little_that_it_does_not_send() {
        for (metrics, are_new_each_time) in
            [(1, false), (64, false), (1, true), (8, true), (64, true)]
        {
            let (read, sent) = read_and_sent(metrics, are_new_each_time).await;
            assert!(sent >= 250 && read <= 2 * sent, "{metrics}: {read} read, {sent} sent");
        }
    }
}
