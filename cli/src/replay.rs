//! `roomtide replay`: invokes the functions with sample events. Sends no HTTP request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws_lambda_events::encodings::Body;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::event::dynamodb::Event;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use local::{
    AlertingEvent, Data, FetchingEvent, IngestEvent, NewDirectory, Options, RollupEvent, System,
};
use serde_json::Value;

use crate::output::{print, print_error};
use crate::settings_file;

/// The command line of `roomtide replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// JSON files: an event of API Gateway, the message of an `IoT` rule, stream records, messages of
    /// the rollup function's queue, the event of a schedule, or the hint to the alerting function
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replay into the data in this directory, instead of into an empty table that is not kept
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Replays the files in order. A file that fails does not stop the others.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let is_new = |directory: &PathBuf| NewDirectory::of(directory).is_some();
    if let Some(directory) = args.data_dir.as_ref().filter(|directory| is_new(directory)) {
        let name = directory.display();
        bail!("there is no data in {name}; start the server once, or name another --data-dir");
    }

    let options = Options {
        data: args.data_dir.map_or(Data::Memory, Data::Dir),
        listens: false,
        // Without a cache, each event sees the changes of the events before.
        registry_max_age: Duration::ZERO,
        ..Options::default()
    };
    let system = System::start(options).await?;
    let mut failed = 0;
    for file in &args.files {
        match replay(&system, file).await {
            Ok(answer) => print(format_args!("{}\n{answer}\n", file.display())),
            Err(error) => {
                print_error(format_args!("{}: {error:#}\n", file.display()));
                failed += 1;
            }
        }
    }

    system.shutdown().await?;
    if failed > 0 {
        bail!("{failed} of {} files could not be replayed", args.files.len());
    }
    Ok(())
}

async fn replay(system: &System, file: &Path) -> anyhow::Result<String> {
    let text = settings_file::content(file)?;
    let answer = match recognise(&text)? {
        SampleEvent::Http(event) => {
            let line = format!(
                "{} {}",
                event.request_context.http.method,
                event.raw_path.as_deref().unwrap_or("/")
            );
            let answer = system.invoke_http(*event).await?;
            format!("{line} -> {}", shown(answer)?)
        }
        SampleEvent::Iot(event) => {
            let reply = system.invoke_ingest(event).await?;
            format!("ingest -> {}", serde_json::to_string_pretty(&reply)?)
        }
        SampleEvent::Stream(event) => {
            let records = event.records.len();
            let registry = system.invoke_registry(event.clone()).await;
            let registry = serde_json::to_string_pretty(&registry)?;
            let rollup = system.invoke_rollup(RollupEvent::Stream(event)).await?;
            let rollup = serde_json::to_string_pretty(&rollup)?;
            format!("registry, {records} records -> {registry}\nrollup, the same -> {rollup}")
        }
        SampleEvent::Rollup(event) => {
            let reply = system.invoke_rollup(event).await?;
            format!("rollup -> {}", serde_json::to_string_pretty(&reply)?)
        }
        SampleEvent::Alerting(event) => {
            system.invoke_alerting(event).await?;
            "alerting -> done".to_owned()
        }
        SampleEvent::Fetching(event) => {
            system.invoke_fetching(event).await?;
            "fetching -> done".to_owned()
        }
    };

    system.settle().await?;
    Ok(answer)
}

/// The events of the functions.
enum SampleEvent {
    Http(Box<ApiGatewayV2httpRequest>),
    Iot(IngestEvent),
    Stream(Event),
    Rollup(RollupEvent),
    Alerting(AlertingEvent),
    Fetching(FetchingEvent),
}

/// Recognises an event by its members.
fn recognise(text: &str) -> anyhow::Result<SampleEvent> {
    let event: Value = serde_json::from_str(text).context("not JSON")?;
    if event.get("requestContext").is_some() {
        let event =
            serde_json::from_value(event).context("not an HTTP event of payload format 2.0")?;
        return Ok(SampleEvent::Http(event));
    }

    if let Some(records) = event.get("Records").and_then(Value::as_array) {
        let of = |source: &'static str| move |record: &Value| record["eventSource"] == source;
        if !records.is_empty() && records.iter().all(of("aws:sqs")) {
            let event = serde_json::from_value(event).context("not messages of a queue")?;
            return Ok(SampleEvent::Rollup(event));
        }
        if let Some(other) = records.iter().find(|record| !of("aws:dynamodb")(record)) {
            let other = &other["eventSource"];
            bail!("no function takes these records of {other}; expected aws:dynamodb or aws:sqs");
        }
        return Ok(SampleEvent::Stream(
            serde_json::from_value(event).context("not stream records")?,
        ));
    }

    if event["source"] == "roomtide.fetching" {
        return Ok(SampleEvent::Iot(
            serde_json::from_value(event).context("not what was fetched")?,
        ));
    }

    if is_of(&event["resources"], "FetchingFunction") {
        return Ok(SampleEvent::Fetching(serde_json::from_value(event)?));
    }

    if event["source"] == "roomtide.hint" || is_of(&event["resources"], "AlertingFunction") {
        return Ok(SampleEvent::Alerting(serde_json::from_value(event)?));
    }

    if event["source"] == "aws.events" {
        return Ok(SampleEvent::Rollup(serde_json::from_value(event)?));
    }

    let named = ["device_id", "topic"].into_iter().find(|name| event.get(name).is_some());
    if let Some(named) = named {
        let event = serde_json::from_value(event).with_context(|| {
            format!("not a message of an IoT rule, with {named}, timestamp and data")
        })?;
        return Ok(SampleEvent::Iot(event));
    }

    bail!(
        "no function takes this; expected an event of API Gateway (with requestContext), \
         an IoT rule's message (with device_id or topic), stream records or a queue's messages (with Records), \
         a schedule's event or a hint (with source)"
    )
}

/// Whether a schedule's rule belongs to a function. `CloudFormation` names a rule by the logical id from SAM, which
/// begins with the function's logical id.
fn is_of(resources: &Value, function: &str) -> bool {
    let mut rules = resources.as_array().into_iter().flatten().filter_map(Value::as_str);
    rules.any(|rule| rule.contains(&format!("-{function}")))
}

/// Writes an answer's status and its body; JSON is indented.
fn shown(answer: ApiGatewayV2httpResponse) -> anyhow::Result<String> {
    let body = match answer.body.unwrap_or_default() {
        Body::Text(text) if answer.is_base64_encoded => STANDARD.decode(text)?,
        Body::Text(text) => text.into_bytes(),
        Body::Binary(bytes) => bytes,
        _ => Vec::new(),
    };
    let body = match serde_json::from_slice::<Value>(&body) {
        Ok(json) => serde_json::to_string_pretty(&json)?,
        Err(_) => String::from_utf8(body).unwrap_or_else(|error| {
            format!("({} bytes that are not text)", error.into_bytes().len())
        }),
    };
    Ok(format!("{}\n{}", answer.status_code, body.trim_end()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn data_that_are_not_there_are_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("typo");
        let args = Args { files: vec!["event.json".into()], data_dir: Some(directory.clone()) };
        let error = run(args).await.unwrap_err().to_string();
        assert!(error.starts_with("there is no data in ") && !directory.exists(), "{error}");
    }

    #[test]
    fn an_event_is_recognised_by_its_shape() {
        let http = json!({"version": "2.0", "requestContext": {"http": {"method": "GET"}}});
        assert!(matches!(recognise(&http.to_string()), Ok(SampleEvent::Http(_))));
        assert!(matches!(
            recognise(r#"{"device_id": "remo", "timestamp": 1768147200000, "data": "e30="}"#),
            Ok(SampleEvent::Iot(_))
        ));
        let payload = r#"{"topic": "r/tasmota/plug/tele/SENSOR", "timestamp": 1, "data": "e30="}"#;
        let payload = recognise(payload);
        assert!(matches!(payload, Ok(SampleEvent::Iot(IngestEvent::Payload(_)))));
        assert!(matches!(recognise(r#"{"Records": []}"#), Ok(SampleEvent::Stream(_))));
        let message = json!({"eventSource": "aws:sqs", "messageId": "m", "body": "{}"});
        let queued = recognise(&json!({"Records": [message]}).to_string());
        assert!(matches!(queued, Ok(SampleEvent::Rollup(RollupEvent::Queue(_)))));
        let due = recognise(r#"{"source": "aws.events", "detail-type": "Scheduled Event"}"#);
        assert!(matches!(due, Ok(SampleEvent::Rollup(RollupEvent::Schedule))));
        let rule =
            "arn:aws:events:eu-west-1:123456789012:rule/roomtide-AlertingFunctionMinute-1A2B";
        let due = recognise(&json!({"source": "aws.events", "resources": [rule]}).to_string());
        assert!(matches!(due, Ok(SampleEvent::Alerting(AlertingEvent::Schedule))));
        let hint = recognise(r#"{"source": "roomtide.hint"}"#);
        assert!(matches!(hint, Ok(SampleEvent::Alerting(AlertingEvent::Hint))));
    }

    #[test]
    fn anything_else_is_refused() {
        for (event, why) in [
            ("{", "not JSON"),
            ("[1]", "expected"),
            (r#"{"temperature": 20}"#, "device_id"),
            (r#"{"device_id": "d", "timestamp": 1, "temperature": 20}"#, "data"),
            (r#"{"topic": "r/tasmota/d/tele/SENSOR", "timestamp": 1}"#, "with topic"),
            (r#"{"Records": [{"eventSource": "aws:s3"}]}"#, "aws:s3"),
            (r#"{"Records": [{"eventSource": "aws:sqs"}]}"#, "a queue"),
            (r#"{"source": "aws.s3"}"#, "expected"),
            (r#"{"requestContext": {}}"#, "2.0"),
        ] {
            let error = recognise(event).err().unwrap();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
