//! `roomtide failures`: lists, replays and drops the messages of a deployed dead-letter queue.
//!
//! The local system has no such queue: it keeps nothing that failed, and says so on standard error.

mod invoke;
mod message;
mod queue;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use aws::QueueConfig;
use clap::{Args as ClapArgs, Subcommand};
use domain::Timestamp;
use runtime::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use self::invoke::Lambda;
use self::message::{Kind, Message, Replay};
use self::queue::{Queue, Received};
use crate::output::{counted, print, print_error};
use crate::place::NO_CREDENTIALS;

/// Part of the help.
const AFTER_HELP: &str = "\
The queue is the stack's output FailuresUrl; its messages expire after 14 days. Credentials are those of the \
environment. Messages are hidden from others while they are looked at, for five minutes at most.";
/// The exit code when some messages could not be replayed.
const SOME_LEFT: u8 = 3;

/// The command line of `roomtide failures`.
#[derive(Debug, ClapArgs)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the messages: what each is about, and why it is there
    List {
        #[command(flatten)]
        place: Place,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Do again what failed, and delete the messages that are done. Nothing is stored twice
    Replay {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        choice: Choice,
        /// The function that stores MQTT messages, where a message does not name it
        #[arg(long, value_name = "NAME")]
        function: Option<String>,
        /// The rollup function's queue; by default the queue whose failed messages come to this one
        #[arg(long, value_name = "URL")]
        work_queue: Option<String>,
    },
    /// Delete messages without doing anything
    Drop {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        choice: Choice,
    },
}

/// The queue.
#[derive(Debug, ClapArgs)]
struct Place {
    /// The dead-letter queue: the stack's output `FailuresUrl`
    #[arg(long, value_name = "URL")]
    queue: String,
    /// The queue's region, where its URL does not have it
    #[arg(long)]
    region: Option<String>,
    /// The address of AWS's services, if it is not AWS
    #[arg(long)]
    endpoint: Option<String>,
}

/// Some of the messages.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
struct Choice {
    /// Ids of messages, or their beginnings, as the list shows them
    id: Vec<String>,
    /// All messages of a kind
    #[arg(long)]
    kind: Option<Kind>,
    /// All messages
    #[arg(long)]
    all: bool,
}

impl Choice {
    fn has(&self, id: &str, kind: Kind) -> bool {
        self.all
            || self.kind == Some(kind)
            || self.id.iter().any(|it| !it.is_empty() && id.starts_with(it.as_str()))
    }
}

/// What became of the messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    done: u64,
    left: u64,
}

/// Runs the subcommand. Returns the exit code.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let counts = match args.action {
        Action::List { place, json } => {
            let rows = list(&place.open()?.0).await?;
            if json {
                print(Value::Array(rows.iter().map(Row::as_json).collect()));
            } else {
                rows.iter().for_each(|row| print(row.as_text()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        Action::Replay { place, choice, function, work_queue } => {
            let (queue, lambda) = place.open()?;
            let replaying = Replaying { queue: &queue, lambda, function, work_queue };
            let counts = each(&queue, &choice, async |message| replaying.replay(message).await);
            let counts = counts.await?;
            let done = counted(counts.done, "message");
            print(format_args!("{done} done and deleted, {} left in the queue", counts.left));
            counts
        }
        Action::Drop { place, choice } => {
            let counts = each(&place.open()?.0, &choice, async |_| Ok(())).await?;
            print(format_args!("{} deleted", counted(counts.done, "message")));
            counts
        }
    };
    Ok(if counts.left == 0 { ExitCode::SUCCESS } else { SOME_LEFT.into() })
}

impl Place {
    fn open(self) -> anyhow::Result<(Queue, Lambda)> {
        let Self { queue: url, region, endpoint } = self;
        let (credentials, known) = runtime::config::credentials().context(NO_CREDENTIALS)?;
        let region = region.or_else(|| region_of(&url)).or(known);
        let region = region.context("no region; add --region, such as eu-west-1")?;
        let lambda = Lambda::connect(&region, endpoint.as_deref(), credentials.clone());
        let ca_bundle = runtime::config::ca_bundle()?;
        let config = QueueConfig { url, region, endpoint, credentials, ca_bundle };
        Ok((Queue::connect(&config), lambda))
    }
}

/// The region in a queue's URL, `https://sqs.REGION.amazonaws.com/...`.
fn region_of(url: &str) -> Option<String> {
    let (region, _) = url.strip_prefix("https://sqs.")?.split_once('.')?;
    Some(region.to_owned())
}

/// A message in the list.
struct Row {
    id: String,
    sent: String,
    message: Message,
}

impl Row {
    fn as_text(&self) -> String {
        let Self { id, sent, message: Message { kind, about, replay } } = self;
        let todo = match replay {
            Replay::Impossible(todo) => format!("\n          {todo}"),
            _ => String::new(),
        };
        format!("{}  {sent}  {kind:<7}  {about}{todo}", &id[..id.len().min(8)])
    }

    fn as_json(&self) -> Value {
        let Self { id, sent, message: Message { kind, about, replay } } = self;
        let todo = if let Replay::Impossible(todo) = replay { Some(todo) } else { None };
        let kind = kind.to_string();
        json!({"id": id, "sent": sent, "kind": kind, "about": about, "can_be_replayed": todo.is_none(), "todo": todo})
    }
}

/// Reads the whole queue, and gives every message back.
async fn list(queue: &Queue) -> anyhow::Result<Vec<Row>> {
    let mut hidden = Vec::new();
    let result = receive_all(queue, &mut hidden).await;
    for message in &hidden {
        queue.give_back(message).await?;
    }
    result?;
    let mut rows: Vec<Row> = hidden.into_iter().map(row).collect();
    rows.sort_by(|a, b| a.sent.cmp(&b.sent));
    Ok(rows)
}

async fn receive_all(queue: &Queue, hidden: &mut Vec<Received>) -> anyhow::Result<()> {
    loop {
        let received = queue.receive().await?;
        if received.is_empty() {
            return Ok(());
        }
        hidden.extend(received);
    }
}

fn row(received: Received) -> Row {
    let message = Message::of(&received.body, received.sent);
    let sent = Timestamp::from_millis(received.sent).map(|it| it.to_string()).unwrap_or_default();
    Row { id: received.id, sent, message }
}

/// Does something with each message that is chosen. Deletes those with which it succeeds, and gives the others back.
async fn each(
    queue: &Queue,
    choice: &Choice,
    action: impl AsyncFn(&Message) -> anyhow::Result<()>,
) -> anyhow::Result<Counts> {
    let (mut hidden, mut counts) = (Vec::new(), Counts::default());
    let mut matched = 0;
    let result = async {
        loop {
            let received = queue.receive().await?;
            if received.is_empty() {
                return Ok(());
            }
            for received in received {
                let message = Message::of(&received.body, received.sent);
                if !choice.has(&received.id, message.kind) {
                    hidden.push(received);
                    continue;
                }
                matched += 1;
                match action(&message).await {
                    Ok(()) => {
                        queue.delete(&received).await?;
                        counts.done += 1;
                    }
                    Err(why) => {
                        let Message { kind, about, .. } = &message;
                        print_error(format_args!("left: {kind}, {about}: {why:#}"));
                        hidden.push(received);
                        counts.left += 1;
                    }
                }
            }
        }
    };
    let result: anyhow::Result<()> = result.await;
    for message in &hidden {
        queue.give_back(message).await?;
    }
    result?;
    if matched == 0 && !choice.all {
        bail!("no message of the queue is meant; `failures list` shows them");
    }
    Ok(counts)
}

/// Where messages are done again.
struct Replaying<'a> {
    queue: &'a Queue,
    lambda: Lambda,
    function: Option<String>,
    work_queue: Option<String>,
}

impl Replaying<'_> {
    async fn replay(&self, message: &Message) -> anyhow::Result<()> {
        match &message.replay {
            Replay::Impossible(todo) => bail!("{todo}"),
            Replay::Fold(body) => {
                let url = match &self.work_queue {
                    Some(url) => url.clone(),
                    None => self.queue.source().await?,
                };
                self.queue.send(&url, body).await
            }
            Replay::Invoke { function, event } => {
                let function = self.function.as_ref().or(function.as_ref());
                let function = function.context("the message names no function; add --function")?;
                let reply = self.lambda.invoke(function, event, SystemClock.now())?;
                let refused = reply["rejected"].as_array().is_some_and(|it| !it.is_empty());
                if refused && reply["accepted"] == 0 && reply["accepted_before"].is_null() {
                    bail!("nothing of it is stored: {}", reply["rejected"]);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
