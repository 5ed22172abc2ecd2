//! `POST /mcp`: the Model Context Protocol, for language models. Computes nothing: each tool asks the API.
//!
//! The server is stateless, answers with JSON instead of a stream, and never sends a request. Source:
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod answers;
mod arguments;
mod message;
mod protocol;
mod shorten;
mod tools;

use api::{Problem, ProblemKind, Request, Response};
use domain::{Timestamp, Zone, excerpt};
use serde_json::{Map, Value, json};

use answers::ToolApi;
use message::{ClientMessage, Code, Failure};
use protocol::{Era, SERVER_KEY, agreed, versions};
use tools::{INSTRUCTIONS, TOOLS, Tool};

use crate::ports::Store;
use crate::shared_state::Call;

/// The time for which a client may keep the list of tools, in milliseconds. A deployment may change the list.
const LIST_AGE: u32 = 3_600_000;

/// `POST /mcp`
pub(crate) async fn answer(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    ensure_own_page(call.request)?;
    let body = call.request.json_body()?;
    let request = match ClientMessage::parse(&body) {
        Ok(ClientMessage::Request(request)) => request,
        Ok(ClientMessage::Notification) => {
            return Ok(Response { status: 202, headers: Vec::new(), body: Vec::new() });
        }
        Err(failure) => return Ok(failure.respond(&ClientMessage::id_of(&body), true)),
    };
    call.log.set("mcp.method", excerpt(&request.method));

    let era = match Era::of(call.request, &request) {
        Ok(era) => era,
        Err(failure) => return Ok(failure.respond(&request.id, true)),
    };
    let is_modern = era == Era::Modern;
    let mut result = match result_of(&request, era, call).await {
        Ok(result) => result,
        Err(failure) => return Ok(failure.respond(&request.id, is_modern)),
    };

    if is_modern {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({SERVER_KEY: server()}));
    }
    let body = json!({"jsonrpc": "2.0", "id": request.id, "result": result});
    Ok(Response::json(200, &body))
}

async fn result_of(
    request: &message::Request,
    era: Era,
    call: &mut Call<'_, impl Store>,
) -> Result<Map<String, Value>, Failure> {
    match (request.method.as_str(), era) {
        ("initialize", Era::Legacy) => initialized(&request.params),
        ("ping", Era::Legacy) => Ok(Map::new()),
        ("server/discover", Era::Modern) => Ok(discovered()),
        ("tools/list", _) => Ok(listed(era == Era::Modern)),
        ("tools/call", _) => {
            let (tool, given) = tool_and_arguments(&request.params)?;
            call.log.set("mcp.tool", tool.name);
            Ok(Box::pin(called(tool, given, call)).await)
        }
        (method, _) => {
            let message = format!("Unknown method: {}", excerpt(method));
            Err(Failure::new(Code::UnknownMethod, message))
        }
    }
}

/// Refuses a web page of another origin. After DNS rebinding, such a page could send requests from inside a network.
fn ensure_own_page(request: &Request) -> Result<(), Problem> {
    let Some(origin) = request.header("origin") else { return Ok(()) };
    let host = request.header("host").unwrap_or_default();
    let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
    if !host.is_empty() && authority.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    let detail =
        format!("No web page of another origin is answered; Origin is {:?}.", excerpt(origin));
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

fn server() -> Value {
    json!({"name": "roomtide", "title": "Roomtide", "version": env!("CARGO_PKG_VERSION")})
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The answer to `initialize`.
fn initialized(params: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    let Some(version) = params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(Failure::new(Code::InvalidParams, "protocolVersion: expected a text"));
    };
    Ok(members([
        ("protocolVersion", json!(agreed(version))),
        ("capabilities", json!({"tools": {}})),
        ("serverInfo", server()),
        ("instructions", json!(INSTRUCTIONS)),
    ]))
}

/// The answer to `server/discover`.
fn discovered() -> Map<String, Value> {
    members([
        ("supportedVersions", json!(versions())),
        ("capabilities", json!({"tools": {}})),
        ("instructions", json!(INSTRUCTIONS)),
        ("ttlMs", json!(LIST_AGE)),
        ("cacheScope", json!("private")),
    ])
}

/// The answer to `tools/list`: all tools on one page.
fn listed(is_modern: bool) -> Map<String, Value> {
    let tools: Vec<Value> = TOOLS.iter().map(Tool::definition).collect();
    let mut list = members([("tools", json!(tools))]);
    if is_modern {
        list.extend(members([("ttlMs", json!(LIST_AGE)), ("cacheScope", json!("private"))]));
    }
    list
}

/// The tool that `tools/call` names, with the arguments for it.
fn tool_and_arguments(
    params: &Map<String, Value>,
) -> Result<(&'static Tool, Map<String, Value>), Failure> {
    let refused = |message: String| Err(Failure::new(Code::InvalidParams, message));
    let Some(name) = params.get("name").and_then(Value::as_str) else {
        return refused("name: expected the name of a tool".to_owned());
    };
    let Some(tool) = Tool::named(name) else {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let names = names.join(", ");
        return refused(format!("Unknown tool: {}; there are {names}", excerpt(name)));
    };

    match params.get("arguments") {
        None | Some(Value::Null) => Ok((tool, Map::new())),
        Some(Value::Object(arguments)) => Ok((tool, arguments.clone())),
        Some(_) => refused("arguments: expected an object".to_owned()),
    }
}

/// The answer to `tools/call`. A problem is a result too, so that a model learns what to ask instead.
async fn called(
    tool: &Tool,
    given: Map<String, Value>,
    call: &mut Call<'_, impl Store>,
) -> Map<String, Value> {
    let now = call.session.now;

    let found = async {
        let request = tool.request(&given)?;
        let answer = ToolApi { call: &mut *call }.answer(tool.answer, request).await?;
        let home = call.shared.rollup_state.horizon(call.session).await?.zone();
        Ok::<_, Problem>(timed(answer, home, now))
    };
    let content = |text: &str| json!([{"type": "text", "text": text}]);

    match found.await {
        Ok(answer) => members([
            ("content", content(&answer.to_string())),
            ("structuredContent", answer),
            ("isError", json!(false)),
        ]),
        Err(problem) => {
            call.log.cause(&problem);
            members([("content", content(&problem.detail)), ("isError", json!(true))])
        }
    }
}

/// Writes an answer's timestamps in local time, and adds the time zone and the current time.
fn timed(answer: Map<String, Value>, home: Zone, now: Timestamp) -> Value {
    let own = answer.get("tz").and_then(Value::as_str).and_then(|name| name.parse().ok());
    let zone: Zone = own.unwrap_or(home);
    let mut answer = Value::Object(answer);
    shorten::localise(&mut answer, zone);
    answer["tz"] = json!(zone.name());
    answer["now"] = json!(shorten::local(now, zone));
    answer
}
