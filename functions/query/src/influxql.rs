//! `/query`: InfluxQL, as Grafana and InfluxDB's clients ask it. Writes nothing.
//!
//! The language is the package `influxql`. `request` has the parameters, `select` reads what the package wants for a
//! `SELECT`: `read` days, quarters of an hour or readings, whichever is cheapest by the readings of a day (`density`),
//! and `extreme` the instant of the one smallest or largest value.

mod density;
mod extreme;
mod failure;
mod read;
mod request;
mod select;

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Problem, Response};
use domain::Timestamp;
use influxql::{Form, Outcome, QueryError, Statement};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use series::KnownState;

use crate::ports::Store;
pub(crate) use density::Densities;
use failure::Failure;
use request::QueryRequest;
use select::Context;

/// The version of InfluxDB whose answers these are.
const VERSION: &str = "1.8.10";
/// The database that is listed where a request names none.
const DATABASE: &str = "home";

/// `GET /query` and `POST /query`
pub(crate) async fn query(
    (registry, known_state, densities): (&CachedRegistry<impl Clock>, &KnownState, &Densities),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let request = QueryRequest::of(call.request)?;
    let form = request.form();
    let statements = match parsed(&request) {
        Ok(statements) => statements,
        Err(error) => return Ok(refused(form, &error)),
    };
    if statements.iter().any(|it| !is_open(it)) {
        call.grant.check(api::endpoints::Access::Read)?;
    }
    let mut results: Vec<Outcome> = Vec::new();
    for statement in &statements {
        if results.iter().any(|it| matches!(it, Outcome::Error(_))) {
            results.push(Outcome::Error("not executed".to_owned()));
            continue;
        }
        let known = (registry, known_state, densities);
        let result = Box::pin(run(statement, &request, known, store, now, call)).await;
        results.push(match result {
            Ok(outcome) => outcome,
            Err(Failure::Query(error)) => Outcome::Error(error.to_string()),
            Err(Failure::Store(error)) => return Err(call.failed(&error)),
        });
    }
    let mut body = form.write(&results);
    if carried_bytes(body.as_bytes()) > MAX_CARRIED {
        let message = "the answer is larger than 5.9 MB; narrow the time range or set a LIMIT";
        body = form.write(&[Outcome::Error(message.to_owned())]);
    }
    Ok(respond(200, form, body))
}

/// Whether any valid token may run a statement: it tells nothing that is stored.
const fn is_open(statement: &Statement) -> bool {
    matches!(statement, Statement::ShowDatabases | Statement::Create)
}

fn parsed(request: &QueryRequest) -> Result<Vec<Statement>, QueryError> {
    let text = request.query()?;
    let parameters = request.parameters()?;
    influxql::parse(text, &parameters)
        .map_err(|why| QueryError::new(format!("error parsing query: {why}")))
}

fn refused(form: Form, error: &QueryError) -> Response {
    respond(400, form, form.error(&error.to_string())).with(
        "x-influxdb-error",
        error.to_string().replace(|c: char| !(' '..='~').contains(&c), " "),
    )
}

fn respond(status: u16, form: Form, body: String) -> Response {
    Response::new(status, form.content_type(), body)
        .with("x-influxdb-version", VERSION)
        .with("x-influxdb-build", "OSS")
}

async fn run(
    statement: &Statement,
    request: &QueryRequest,
    (registry, known_state, densities): (&CachedRegistry<impl Clock>, &KnownState, &Densities),
    store: &impl Store,
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Outcome, Failure> {
    match statement {
        Statement::Unsupported(name) => return Err(QueryError::unsupported(name).into()),
        Statement::ShowDatabases => {
            let name = request.database().unwrap_or(DATABASE);
            return Ok(vec![influxql::show_databases(name)].into());
        }
        Statement::ShowRetentionPolicies => {
            return Ok(vec![influxql::show_retention_policies()].into());
        }
        Statement::Create if request.is_post => return Ok(Vec::new().into()),
        Statement::Create => {
            let text = "deprecated use of CREATE in a read only context, please use a POST request \
                        instead";
            return Ok(Outcome::Done { series: Vec::new(), warning: Some(text.to_owned()) });
        }
        Statement::Select(_) | Statement::Show(_) => {}
    }
    if request.database().is_none() {
        return Err(QueryError::new("database name required").into());
    }
    let invocation = call.invocation;
    let snapshot = registry.snapshot(store, invocation, call.log).await?;
    if !snapshot.has_all_devices {
        let message = "there are more than 10000 devices, so InfluxQL cannot be asked here; use /rooms/{id}/series";
        return Err(QueryError::new(message).into());
    }
    let horizon = known_state.horizon(store, now, invocation).await?;
    let (snapshot, horizon) = (&*snapshot, &horizon);
    let context = Context { snapshot, horizon, known_state, densities, now };
    match statement {
        Statement::Select(it) => Box::pin(select::select(store, &context, it, invocation)).await,
        Statement::Show(it) => Ok(influxql::show(it, snapshot.devices.values(), now)?.into()),
        _ => Ok(Vec::new().into()),
    }
}
