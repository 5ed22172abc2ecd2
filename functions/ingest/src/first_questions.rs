//! What clients of InfluxDB ask before they write, answered at the address where they write. Reads no table.

use api::endpoints::{Function, Operation, elsewhere};
use api::{Dialect, Problem, Response};
use domain::Timestamp;
use influxdb::{QueryRequest, parsed, refused, respond, run_open};
use influxql::Outcome;
use runtime::http::Call;

/// The answer to a question that tells nothing that is stored. Any other is answered where the page is.
pub(crate) fn answer(call: &Call<'_>, now: Timestamp) -> Result<Response, Problem> {
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

fn query(call: &Call<'_>) -> Result<Response, Problem> {
    let request = QueryRequest::of(call.request)?;
    let form = request.form();
    let statements = match parsed(&request) {
        Ok(statements) => statements,
        Err(error) => return Ok(refused(form, &error)),
    };
    let outcomes = statements.iter().map(|it| run_open(it, &request)).collect();
    let outcomes: Option<Vec<Outcome>> = outcomes;
    match outcomes {
        Some(outcomes) => Ok(respond(200, form, form.write(&outcomes))),
        None => {
            let problem = elsewhere(call.request, Function::Ingest);
            Ok(call.endpoint.dialect().unwrap_or(Dialect::V1).respond(&problem))
        }
    }
}
