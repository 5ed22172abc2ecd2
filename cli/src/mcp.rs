//! `roomtide mcp`: passes messages of the Model Context Protocol between standard input and output and a server.
//! Answers no message itself.
//!
//! Source: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::io::{self, BufRead, Write};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::at::{SystemAt, Unnamed};
use crate::client::{Ask, Client, MAX_REQUEST};
use crate::output::print_error;

/// The path of the server's MCP endpoint.
const PATH: &str = "/mcp";
/// JSON-RPC's code for an internal error: the server cannot be reached, or refuses the token.
const INTERNAL_ERROR: i32 = -32_603;

/// Answer a language model's tools on standard input and output.
///
/// For programs that start an MCP server themselves, as Claude Desktop does: one JSON message a line comes and goes. Each
/// is passed to POST /mcp of a server, which may also be asked directly, with its address and the header Authorization.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    at: SystemAt,
}

/// Passes messages to the system until standard input ends. A program may keep this command running for days, so each
/// message opens the system anew. Otherwise no server could use the data directory meanwhile.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let open = || Ok(args.at.open(Unnamed::Server)?.that_asks_once(MAX_REQUEST));
    Ok(serve(open, io::stdin().lock(), io::stdout().lock())?)
}

/// Answers each line of the input that expects an answer, one after the other.
fn serve(
    open: impl Fn() -> anyhow::Result<Client>,
    input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    thread::scope(|closing| {
        for line in input.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).trim().to_owned();
            if line.is_empty() {
                continue;
            }
            let client = open();
            if let Some(answer) = answer(client.as_ref(), &line) {
                writeln!(output, "{answer}")?;
                output.flush()?;
            }
            // Closing waits for other commands that use the data through this one. The next message does not.
            if let Ok(client) = client {
                closing.spawn(move || close(client));
            }
        }
        Ok(())
    })
}

fn close(client: Client) {
    if let Err(error) = client.close() {
        print_error(format_args!("{error:#}"));
    }
}

/// The server's answer to a message, or an error with the reason why no answer came. A notification has no answer.
fn answer(client: Result<&Client, &anyhow::Error>, line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let failure = match client.map(|client| pass(client, line, &message)) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(error)) => format!("{error:#}"),
        Err(error) => format!("{error:#}"),
    };

    let Some(id) = message.get("id") else {
        print_error(failure);
        return None;
    };
    let error = json!({"code": INTERNAL_ERROR, "message": failure});
    Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// Passes a message to the server. `None` if the server takes it and does not answer.
fn pass(client: &Client, line: &str, message: &Value) -> anyhow::Result<Option<Value>> {
    let headers = headers(message);
    let answer = client.send(Ask { headers: &headers, ..Ask::json("POST", PATH, line) })?;
    if answer.status == 202 {
        return Ok(None);
    }

    match serde_json::from_str::<Value>(&answer.text) {
        Ok(text) if text["jsonrpc"] == "2.0" => Ok(Some(text)),
        _ => Err(client.error(PATH, &answer)),
    }
}

/// The headers that repeat parts of a message, since the protocol of 2026-07-28; empty for earlier versions.
fn headers(message: &Value) -> Vec<(&'static str, String)> {
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let Some(version) = version else { return Vec::new() };
    let texts = [
        ("mcp-protocol-version", Some(version)),
        ("mcp-method", message["method"].as_str()),
        ("mcp-name", params["name"].as_str()),
    ];
    texts.into_iter().filter_map(|(name, text)| Some((name, coded(text?)))).collect()
}

/// Encodes a text for a header: unchanged, or as base64 with a prefix.
fn coded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    if is_plain && !text.starts_with("=?base64?") {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tests::fake_server::{self, Reply};

    fn served(open: impl Fn() -> Client, input: &str) -> Vec<Value> {
        let mut output = Vec::new();
        serve(|| Ok(open()), input.as_bytes(), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_line_is_a_request_of_its_own_and_notifications_have_no_answer() {
        let server = fake_server::serve(|_, request| {
            if request.method == "GET" {
                return Reply::of(200, r#"{"status":"ready","up":"0s"}"#);
            }
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/mcp"));
            assert!(request.headers.contains(&"authorization: bearer rt_a".to_owned()));
            let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
                let refusal =
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
                return Reply::of(400, refusal);
            };
            match message.get("id") {
                None => Reply::of(202, ""),
                Some(id) => {
                    Reply::of(200, &json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string())
                }
            }
        });
        let open = || Client::new(&server.url, Some("rt_a")).unwrap();
        let input = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\n\
                     {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\nno JSON\n\
                     {\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}";
        let answers = served(open, input);
        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(ids, [json!(1), json!(null), json!("b")]);
        assert_eq!(answers[1]["error"]["code"], -32_700);
    }

    #[test]
    fn a_server_that_refuses_or_is_away_is_named_in_the_answer() {
        let request = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
        let server = fake_server::always(401, r#"{"detail": "no token"}"#);
        let refused = &served(|| server.client(), request)[0];
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(7), &json!(INTERNAL_ERROR))
        );
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("401") && message.contains("--token"), "{message}");
        let away = || Client::new("http://127.0.0.1:1", None).unwrap();
        let message = served(away, request)[0]["error"]["message"].to_string();
        assert!(message.contains("cannot reach http://127.0.0.1:1"), "{message}");
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(served(away, notification), Vec::<Value>::new());
    }

    /// Who asks waits for the answer, and may ask again.
    #[test]
    fn a_busy_server_is_asked_once() {
        let request = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
        let server = fake_server::serve(|n, _| match n {
            0 => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
            1 => Reply::with(429, "retry-after: 100000\r\n", "{}"),
            _ => panic!("asked again"),
        });
        let open = || Client::new(&server.url, None).unwrap().that_asks_once(MAX_REQUEST);
        let message = served(open, request)[0]["error"]["message"].to_string();
        assert!(message.contains("answers 429"), "{message}");
    }

    #[test]
    fn a_newer_message_is_repeated_in_headers() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let call = json!({"method": "tools/call", "params": {"name": "Küche", "_meta": meta}});
        let expected = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?S8O8Y2hl?="),
        ];
        assert_eq!(headers(&call), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(headers(&json!({"method": "tools/list", "params": {}})), []);
        assert_eq!(coded("series"), "series");
        assert_eq!(coded("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
