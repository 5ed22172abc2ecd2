//! `/query`: answers InfluxQL for Grafana and InfluxDB's clients. Writes nothing.
//!
//! The package `influxql` has the language. The package `influxdb` has the parameters, and the statements that need no
//! stored data. Here `select` runs a `SELECT`, and `read` reads its data from rollups of days, rollups of 15 minutes or
//! readings, whichever are cheapest.

mod failure;
mod read;
mod select;

use std::sync::Arc;

use api::response::{MAX_CARRIED, carried_bytes};
use api::{Problem, Response};
use influxdb::{QueryRequest, is_open, parsed, refused, respond, run_without_table};
use influxql::{Epoch, QueryError, RoomTexts, Statement, StatementResult};
use runtime::registry::RegistrySnapshot;

use crate::ports::Store;
use crate::shared_state::{Call, SharedState};
use failure::Failure;
use select::QueryContext;

/// `GET /query` and `POST /query`
pub(crate) async fn query(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let request = QueryRequest::of(call.request)?;
    let form = request.form();
    let statements = match parsed(&request) {
        Ok(statements) => statements,
        Err(error) => return Ok(refused(form, &error)),
    };
    if statements.iter().any(|statement| !is_open(statement)) {
        call.grant.check(api::endpoints::Access::Read)?;
    }

    let mut results: Vec<StatementResult> = Vec::new();
    for statement in &statements {
        if results.iter().any(|outcome| matches!(outcome, StatementResult::Failed { .. })) {
            results.push(StatementResult::failed("not executed"));
            continue;
        }
        let result = Box::pin(run(statement, &request, call)).await;
        results.push(match result {
            Ok(outcome) => outcome,
            Err(Failure::Query(error)) => StatementResult::failed(error.to_string()),
            Err(Failure::Store(error)) => return Err(error.into()),
        });
    }

    let mut body = form.write(&results);
    if carried_bytes(&body) > MAX_CARRIED {
        let message = "the answer is larger than 5.9 MB; narrow the time range or set a LIMIT";
        body = form.write(&[StatementResult::failed(message)]);
    }

    Ok(respond(200, body))
}

async fn run(
    statement: &Statement,
    request: &QueryRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<StatementResult, Failure> {
    if let Statement::Unsupported(name) = statement {
        return Err(QueryError::unsupported(name).into());
    }

    if let Some(outcome) = run_without_table(statement, request) {
        return Ok(outcome);
    }
    if request.database().is_none() {
        return Err(QueryError::new("database name required").into());
    }

    let snapshot = snapshot_for(statement, call).await?;
    if snapshot.all_devices().is_none() {
        let message = "there are more than 10000 devices, too many for a query in InfluxQL; use /rooms/{id}/series";
        return Err(QueryError::new(message).into());
    }

    let epoch = request.form().epoch;
    run_on(&snapshot, statement, epoch, call).await
}

/// The registry for a statement. If memory holds all devices and no device fits a `SELECT`, the registry is read again:
/// a fitting device may be new.
async fn snapshot_for(
    statement: &Statement,
    call: &mut Call<'_, impl Store>,
) -> Result<Arc<RegistrySnapshot>, Failure> {
    let SharedState { registry, .. } = call.shared;
    let Statement::Select(select) = statement else {
        return Ok(registry.snapshot_for_list(call.session, call.log).await?);
    };

    let snapshot = registry.snapshot(call.session, call.log).await?;
    if snapshot.all_devices().is_none()
        || select::names_a_device(select, &snapshot, call.session.now)?
    {
        return Ok(snapshot);
    }
    Ok(registry.refresh_for_missing(call.session, call.log).await?)
}

/// Runs a statement about stored data.
async fn run_on(
    snapshot: &RegistrySnapshot,
    statement: &Statement,
    epoch: Epoch,
    call: &mut Call<'_, impl Store>,
) -> Result<StatementResult, Failure> {
    let session = call.session;
    let horizon = &call.shared.rollup_state.horizon(session).await?;
    let rooms = &RoomTexts::of(snapshot.rooms.values());
    let densities = &call.shared.densities;
    let context = QueryContext { session, snapshot, rooms, horizon, densities, epoch };

    match statement {
        Statement::Select(select) => Box::pin(select::select(&context, select)).await,
        Statement::Show(show) => {
            Ok(influxql::show(show, snapshot.devices.values(), rooms, session.now)?.into())
        }
        _ => Ok(Vec::new().into()),
    }
}
