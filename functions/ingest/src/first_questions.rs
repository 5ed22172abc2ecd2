//! Answers the requests by which clients of InfluxDB test a server before they write, at the address for writing. Reads
//! no table.

use api::endpoints::{Function, Operation, elsewhere};
use api::{Dialect, Problem, Response};
use domain::Timestamp;
use runtime::http::Call;

/// Answers requests that read no data. For all other requests, the client is referred to the query function.
pub(crate) fn answer<S, H>(call: &Call<'_, S, H>, now: Timestamp) -> Result<Response, Problem> {
    let request = call.request;
    match call.endpoint.operation {
        Operation::InfluxPing => Ok(influxdb::ping(request)),
        Operation::InfluxReady => Ok(influxdb::ready(now)),
        Operation::InfluxBuckets => Ok(influxdb::buckets(request)),
        Operation::InfluxOrgs => Ok(influxdb::orgs(request)),
        Operation::Health if !call.params.flag("details") => Ok(influxdb::health()),
        Operation::InfluxQl => query(call),
        _ => Err(elsewhere(request, Function::Ingest)),
    }
}

fn query<S, H>(call: &Call<'_, S, H>) -> Result<Response, Problem> {
    Ok(influxdb::open_query(call.request)?.unwrap_or_else(|| {
        let problem = elsewhere(call.request, Function::Ingest);
        call.endpoint.dialect().unwrap_or(Dialect::V1).respond(&problem)
    }))
}
