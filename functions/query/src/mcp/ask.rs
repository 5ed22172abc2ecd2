//! Asks the API as a client would, with the token and the invocation of the MCP request. Shapes no answer.

use api::endpoints::{self, Function};
use api::{Params, Problem, ProblemKind, Request};
use runtime::http::Call;
use serde_json::Value;

use crate::handlers::Operations;

/// The JSON answer to `GET` of a path.
pub(super) async fn get<S>(
    api: &impl Operations<S>,
    call: &mut Call<'_, S>,
    path: &str,
    query: &[(String, String)],
) -> Result<Value, Problem> {
    let raw_query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let (method, path) = ("GET".to_owned(), path.to_owned());
    let request = Request { method, path, raw_query, ..Request::default() };
    let (endpoint, id) = endpoints::find(&request, Function::Query)?;
    call.grant.check(endpoint.access)?;
    let params = Params::of(&request, endpoint)?;
    let mut asked = Call {
        endpoint,
        id,
        params,
        grant: call.grant.clone(),
        request: &request,
        session: call.session,
        log: &mut *call.log,
    };
    let response = api.answer(&mut asked).await?;
    serde_json::from_slice(&response.body).map_err(|_| {
        Problem::new(ProblemKind::Internal, format!("{} answers no JSON.", endpoint.path))
    })
}
