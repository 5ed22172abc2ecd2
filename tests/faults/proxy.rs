//! A proxy before an engine that counts requests and spoils some of them, as a plan says.
//!
//! It speaks HTTP itself, so the store behind it is the deployed one to the last setting: its SDK's
//! retries, time limits and connections meet what a network does.

use std::io::Result;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::wire::{self, Connection, Message};

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Refused for want of capacity; nothing is done.
    Throttled,
    /// Answered with a 500.
    Failed(Effect),
    /// Answered with a 503 that says nothing, as whatever stands before a service may.
    NoService,
    /// Some puts of a `BatchWriteItem`, or keys of a `BatchGetItem`, are not done and come back with a 200.
    Unprocessed(Share),
    /// The connection ends before an answer.
    Reset(Effect),
    /// The connection ends within the answer.
    CutShort,
    /// No answer ever comes.
    Silent(Effect),
}

/// Whether a request that fails was done all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    Done,
}

/// How much of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    One,
    Half,
    All,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) operation: String,
    pub(crate) body: Value,
}

impl Call {
    /// Whether the request's body holds this text anywhere.
    pub(crate) fn names(&self, text: &str) -> bool {
        self.body.to_string().contains(text)
    }
}

type Plan = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

/// A running proxy, for as long as it is held.
pub(crate) struct Proxy {
    url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    upstream: String,
    plan: Mutex<Plan>,
    operations: Mutex<Vec<String>>,
}

impl Proxy {
    /// A proxy before `upstream` that spoils what `plan` says.
    pub(crate) async fn start(
        upstream: &str,
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            plan: Mutex::new(Box::new(plan)),
            operations: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { url: format!("http://{address}"), shared, serving }
    }

    /// Where it answers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Goes on by another plan.
    pub(crate) fn replan(&self, plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        *self.shared.plan.lock().expect("no plan panics") = Box::new(plan);
    }

    /// The operations asked for since the last time, in order.
    pub(crate) fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.operations.lock().expect("nothing panics with it"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // A connection that breaks is what this is for.
        tokio::spawn(async move { drop(converse(Connection::new(stream), &shared).await) });
    }
}

/// Answers request after request on one connection, until it ends or is to end.
async fn converse(mut client: Connection, shared: &Shared) -> Result<()> {
    let mut engine = wire::connect(&shared.upstream).await?;
    while let Some(request) = Message::read(&mut client).await? {
        let target = request.header("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let call = Call { operation, body: request.json() };
        shared.operations.lock().expect("nothing panics with it").push(call.operation.clone());
        let fault = (shared.plan.lock().expect("no plan panics"))(&call);
        match fault {
            None => forward(&mut engine, &request).await?.write(&mut client).await?,
            Some(Fault::Throttled) => {
                error(400, "ProvisionedThroughputExceededException").write(&mut client).await?;
            }
            Some(Fault::Failed(effect)) => {
                take_effect(&mut engine, &request, effect).await?;
                error(500, "InternalServerError").write(&mut client).await?;
            }
            Some(Fault::NoService) => {
                let body = b"<html>Service Unavailable</html>".to_vec();
                let head = format!(
                    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/html\r\ncontent-length: {}\r\n",
                    body.len()
                );
                Message { head, body }.write(&mut client).await?;
            }
            Some(Fault::Unprocessed(share)) => {
                leave_unprocessed(&mut engine, &request, call, share)
                    .await?
                    .write(&mut client)
                    .await?;
            }
            Some(Fault::Reset(effect)) => {
                take_effect(&mut engine, &request, effect).await?;
                return client.into_inner().set_zero_linger();
            }
            Some(Fault::CutShort) => {
                let mut answer = forward(&mut engine, &request).await?;
                answer.body.truncate(answer.body.len() / 2);
                return answer.write(&mut client).await;
            }
            Some(Fault::Silent(effect)) => {
                take_effect(&mut engine, &request, effect).await?;
                std::future::pending::<()>().await;
            }
        }
    }
    Ok(())
}

async fn forward(engine: &mut Connection, request: &Message) -> Result<Message> {
    request.write(engine).await?;
    Message::read(engine).await?.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

async fn take_effect(engine: &mut Connection, request: &Message, effect: Effect) -> Result<()> {
    if effect == Effect::Done {
        forward(engine, request).await?;
    }
    Ok(())
}

fn error(status: u16, name: &str) -> Message {
    let body =
        json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{name}"), "message": "by plan"});
    Message::answer(status, &body)
}

/// Does a part of a batch and hands the rest back; anything but a batch is done whole.
async fn leave_unprocessed(
    engine: &mut Connection,
    request: &Message,
    mut call: Call,
    share: Share,
) -> Result<Message> {
    let tables = call.body["RequestItems"].as_object_mut();
    let Some((table, puts)) = tables.and_then(|tables| tables.iter_mut().next()) else {
        return forward(engine, request).await;
    };
    let table = table.clone();
    // The puts of a table are a list, the keys are a member of what is asked of it.
    let (unprocessed, puts) = match puts {
        Value::Array(puts) => ("UnprocessedItems", puts),
        asked => ("UnprocessedKeys", asked["Keys"].as_array_mut().expect("keys are a list")),
    };
    let left = match share {
        Share::One => 1,
        Share::Half => puts.len().div_ceil(2),
        Share::All => puts.len(),
    };
    // From the front, so that what is left is not simply the end.
    let left: Vec<Value> = puts.drain(..left).collect();
    let mut answer = json!({});
    if !puts.is_empty() {
        let rest = Message::request(&call.operation, request.access_key(), &call.body);
        answer = forward(engine, &rest).await?.json();
    }
    answer[unprocessed] = match unprocessed {
        "UnprocessedKeys" => json!({table: {"Keys": left, "ConsistentRead": true}}),
        _ => json!({table: left}),
    };
    Ok(Message::answer(200, &answer))
}
