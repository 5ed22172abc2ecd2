//! Runs the statements that need no stored data, and makes the response of any query. Reads no table.

use api::dialect::VERSION;
use api::{Problem, Request, Response};
use influxql::{AnswerForm, QueryError, Statement, StatementResult};

use crate::request::QueryRequest;

/// The database in the list, if the request names none.
const DATABASE: &str = "home";

/// Parses the statements of a request.
pub fn parsed(request: &QueryRequest) -> Result<Vec<Statement>, QueryError> {
    let text = request.query()?;
    let parameters = request.parameters()?;
    influxql::parse(text, &parameters)
        .map_err(|why| QueryError::new(format!("error parsing query: {why}")))
}

/// Whether any token may run a statement. Such a statement needs no stored data.
pub const fn is_open(statement: &Statement) -> bool {
    matches!(statement, Statement::ShowDatabases | Statement::Create)
}

/// Runs a statement that needs no stored data. Returns `None` for other statements.
pub fn run_without_table(statement: &Statement, request: &QueryRequest) -> Option<StatementResult> {
    match statement {
        Statement::ShowDatabases => {
            let name = request.database().unwrap_or(DATABASE);
            Some(vec![influxql::show_databases(name)].into())
        }
        Statement::ShowRetentionPolicies => Some(vec![influxql::show_retention_policies()].into()),
        Statement::Create if request.is_post => Some(Vec::new().into()),
        Statement::Create => {
            let text = "deprecated use of CREATE in a read only context, please use a POST request \
                        instead";
            Some(StatementResult::with_warning(Vec::new(), Some(text.to_owned())))
        }
        Statement::Unsupported(_) | Statement::Select(_) | Statement::Show(_) => None,
    }
}

/// Answers a query, unless one of its statements needs stored data; then returns `None`.
pub fn open_query(request: &Request) -> Result<Option<Response>, Problem> {
    let request = QueryRequest::of(request)?;
    let form = request.form();
    let statements = match parsed(&request) {
        Ok(statements) => statements,
        Err(error) => return Ok(Some(refused(form, &error))),
    };

    let outcomes = statements.iter().map(|statement| run_without_table(statement, &request));
    let outcomes: Option<Vec<StatementResult>> = outcomes.collect();
    Ok(outcomes.map(|outcomes| respond(200, form.write(&outcomes))))
}

/// 400: the query cannot be parsed.
pub fn refused(form: AnswerForm, error: &QueryError) -> Response {
    respond(400, form.error(error.to_string())).with(
        "x-influxdb-error",
        error.to_string().replace(|c: char| !(' '..='~').contains(&c), " "),
    )
}

/// An answer to a query.
pub fn respond(status: u16, body: Vec<u8>) -> Response {
    Response::new(status, "application/json", body)
        .with("x-influxdb-version", VERSION)
        .with("x-influxdb-build", "OSS")
}
