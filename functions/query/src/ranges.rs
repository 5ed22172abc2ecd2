//! Readings in a time range, of a device or a room. Aggregates nothing.

use api::response::MAX_CARRIED;
use api::{Params, Problem, Response};
use domain::{Device, MetricName, RangeError, Reading, RoomId, TimeRange};
use runtime::clock::Clock;
use table::{
    EditRegistry, FindToken, Invocation, Page, QueryReadings, RangeQuery, ReadRegistry, ReadingKey,
    StoreResult,
};

use crate::format::Format;
use crate::latest::bytes;
use crate::registry::metrics_of;
use crate::rows::{READING_COLUMNS, ReadingRow};
use crate::sheet::{Columns, Sheet};
use crate::{Call, Query, cursor};

pub(crate) const DEFAULT_LIMIT: usize = 1_000;
pub(crate) const MAX_LIMIT: usize = 10_000;
/// How many readings are read for a page of CSV before its size is looked at: about as many as fit
/// where each has 64 columns of its own.
const FIRST_STEP: usize = 256;

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
        self.answer_range(call, &asked, &Whose::Device(&device)).await
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
        let in_room = |device: &&Device| device.place.room() == Some(&room.id);
        let devices = snapshot.devices.values().filter(in_room).collect();
        self.answer_range(call, &asked, &Whose::Room(&room.id, devices)).await
    }

    async fn answer_range(
        &self,
        call: &mut Call<'_>,
        asked: &Asked<'_>,
        whose: &Whose<'_>,
    ) -> Result<Response, Problem> {
        let page = match asked.format {
            Format::Csv => self.look_until_full(whose, asked, call.invocation).await,
            Format::Json | Format::Ndjson => self.look(whose, &asked.query, call.invocation).await,
        };
        let page = page.map_err(|error| call.failed(&error))?;
        Ok(asked.answer(call, &page, whose))
    }

    async fn look(
        &self,
        whose: &Whose<'_>,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        match whose {
            Whose::Device(device) => {
                self.store.device_readings(&device.id, query, invocation).await
            }
            Whose::Room(room, devices) => {
                let ids: Vec<_> = devices.iter().map(|device| device.id.clone()).collect();
                self.store.room_readings(room, &ids, query, invocation).await
            }
        }
    }

    /// Reads until a page of CSV is full, in steps: each new column makes every row larger, and what
    /// is read beyond the page is paid for and read again for the next one.
    ///
    /// A page grows at most with the square of its rows. So a step that takes it to four times as many
    /// reads at most about twice what fits.
    async fn look_until_full(
        &self,
        whose: &Whose<'_>,
        asked: &Asked<'_>,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        let mut sheet = Sheet::new(asked.columns(whose));
        let mut page = Page::default();
        let mut stored = 0;
        let mut limit = FIRST_STEP.min(asked.query.limit);
        while limit > 0 {
            let after = page.readings.last().map(ReadingKey::of).or(asked.query.after.clone());
            let step = RangeQuery { after, limit, ..asked.query.clone() };
            let Page { readings, has_more } = self.look(whose, &step, invocation).await?;
            stored += readings.iter().map(bytes).sum::<usize>();
            let fits = readings.iter().filter_map(|it| asked.row(it)).all(|row| sheet.add(&row));
            let is_last = !fits || !has_more || readings.len() < limit;
            page.readings.extend(readings);
            page.has_more = has_more;
            if is_last {
                break;
            }
            let (read, taken) = (page.readings.len(), sheet.bytes().max(stored));
            let rest = read * MAX_CARRIED.saturating_sub(taken) / taken;
            limit = rest.min(3 * read).min(asked.query.limit - read);
        }
        Ok(page)
    }

    fn asked<'a>(&self, call: &Call<'_>, params: &'a Params) -> Result<Asked<'a>, Problem> {
        let format = Format::of(call.request, params)?;
        let limit = params.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let order = params.order()?;
        let metrics = params.metrics()?;
        let query_fingerprint = params.query_fingerprint(call.request);
        let (range, after) = match params.get("cursor") {
            Some(cursor) => {
                let (range, after) = cursor::decode_range(&query_fingerprint, cursor)?;
                (range, Some(after))
            }
            None => (self.range(params)?, None),
        };
        let query = RangeQuery { range, order, after, limit, consistent: false };
        Ok(Asked { params, format, metrics, query_fingerprint, query })
    }

    /// The range asked for. A page after the first takes it from its cursor, so that it stays the same.
    fn range(&self, params: &Params) -> Result<TimeRange, Problem> {
        let (from, to) = (timestamp(params, "from"), timestamp(params, "to"));
        let range = TimeRange::parse(from.as_deref(), to.as_deref(), self.clock.now());
        range.map_err(|why| match why {
            RangeError::From(_) | RangeError::Empty(..) => Problem::field("from", why.to_string()),
            RangeError::To(_) => Problem::field("to", why.to_string()),
        })
    }
}

/// A timestamp's text. The `+` of an offset arrives as a space when the client did not encode it.
fn timestamp(params: &Params, name: &str) -> Option<String> {
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
    query_fingerprint: String,
    query: RangeQuery,
}

/// Whose readings are asked for.
enum Whose<'a> {
    Device(&'a Device),
    /// A room's, and the devices that the registry says are in it.
    Room(&'a RoomId, Vec<&'a Device>),
}

impl Asked<'_> {
    fn row<'r>(&self, reading: &'r Reading) -> Option<ReadingRow<'r>> {
        ReadingRow::of(reading, self.metrics.as_deref())
    }

    /// The columns of CSV: the metrics asked for, else what the registry knows of the devices.
    fn columns(&self, whose: &Whose<'_>) -> Columns {
        let known = self.metrics.clone().unwrap_or_else(|| match whose {
            Whose::Device(device) => metrics_of(std::iter::once(*device)),
            Whose::Room(_, devices) => metrics_of(devices.iter().copied()),
        });
        Columns { own: &READING_COLUMNS, known }
    }

    fn answer(&self, call: &Call<'_>, page: &Page, whose: &Whose<'_>) -> Response {
        let rows: Vec<ReadingRow<'_>> =
            page.readings.iter().filter_map(|reading| self.row(reading)).collect();
        let behind = |reading: &Reading| {
            cursor::encode_range(
                &self.query_fingerprint,
                self.query.range,
                &ReadingKey::of(reading),
            )
        };
        let rest = page.readings.last().filter(|_| page.has_more).map(behind);
        let columns = || self.columns(whose);
        let call = (call.request, self.params);
        self.format.page(call, &rows, columns, rest, |row| behind(rows[row].reading))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::Request;
    use api::routes::Operation;
    use domain::{Decimal, Timestamp};
    use runtime::clock::{Deadline, TestClock};
    use runtime::telemetry::{Telemetry, WideEvent};
    use table::PutReadings as _;
    use table::memory::MemoryStore;

    use super::*;
    use crate::Settings;

    /// How many readings are read for the first page of CSV, and how many it has, of 3,000 readings
    /// with so many metrics each.
    async fn read_and_sent(metrics: i64, are_new_each_time: bool) -> (usize, usize) {
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(60)));
        let store = MemoryStore::default();
        let timestamp = |millis| Timestamp::from_millis(millis).expect("a timestamp");
        let readings: Vec<Reading> = (0..3_000)
            .map(|n| {
                let first = if are_new_each_time { n * metrics } else { 0 };
                let name = |metric| format!("m{metric}").parse::<MetricName>().expect("a name");
                let value = |metric| (name(metric), Decimal::parse("1").expect("a number"));
                let values = (first..first + metrics).map(value).collect();
                let device = "d".parse().expect("an id");
                Reading::stored(device, timestamp(n), None, values).expect("a reading")
            })
            .collect();
        store.put_readings(&readings, None, &invocation).await;
        let device = domain::DeviceObservation::of(&readings[0])
            .new_device("d".parse().expect("an id"), |_| true);
        let settings = Settings { registry_max_age: Duration::ZERO, auth: false };
        let telemetry = Telemetry::to(std::sync::Arc::new(|_: &str| {}));
        let query = Query::new(store, TestClock::at(timestamp(9_000)), telemetry, settings);
        let text = "format=csv&limit=3000&from=1970-01-01T00:00:00Z";
        let request = Request { raw_query: text.to_owned(), ..Request::default() };
        let params = Params::of(&request, Operation::DeviceReadings.parameters()).expect("known");
        let mut log = WideEvent::begin("test");
        let call = Call { request: &request, invocation: &invocation, log: &mut log };
        let asked = query.asked(&call, &params).expect("well-formed");
        let whose = Whose::Device(&device);
        let page = query.look_until_full(&whose, &asked, &invocation).await.expect("memory");
        let answer = asked.answer(&call, &page, &whose);
        let rows = answer.body.split(|byte| *byte == b'\n').skip(2).count();
        (page.readings.len(), rows)
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
