//! `roomtide failures`: lists, replays and drops the messages of a deployed dead-letter queue.
//!
//! The local system has no such queue: it keeps nothing that failed, and says so on standard error.

mod invoke;
mod message;
mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use aws::{QueueConfig, ServiceConfig};
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
/// The messages that are received at once where each is done with in a moment; the most that SQS hands out.
///
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
const RECEIVED_AT_ONCE: i32 = 10;
/// The characters of an id that the list shows. A beginning of so many names one message.
const SHOWN_OF_ID: usize = 8;
/// How often what is received may be nothing new, before nothing new is expected: SQS hands out in any order.
const MAX_IN_VAIN: usize = 100;
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
    /// Ids of messages, or their first eight characters at least, as the list shows them
    #[arg(value_parser = beginning_of_id)]
    id: Vec<String>,
    /// All messages of a kind
    #[arg(long)]
    kind: Option<Kind>,
    /// All messages
    #[arg(long)]
    all: bool,
}

impl Choice {
    /// Whether a message is named by its id.
    fn names(&self, id: &str) -> bool {
        self.id.iter().any(|beginning| id.starts_with(beginning))
    }

    fn has(&self, id: &str, kind: Kind) -> bool {
        self.all || self.kind == Some(kind) || self.names(id)
    }

    /// The beginnings with which no id of some begins.
    fn unknown(&self, ids: &BTreeSet<String>) -> Vec<&str> {
        let is_unknown = |beginning: &&str| !ids.iter().any(|id| id.starts_with(*beginning));
        self.id.iter().map(String::as_str).filter(is_unknown).collect()
    }

    /// Whether no further message can be meant, after those with these ids: each beginning names one message, and it
    /// is among them.
    fn is_met_by(&self, ids: &BTreeSet<String>) -> bool {
        !self.id.is_empty() && self.unknown(ids).is_empty()
    }
}

/// So much of an id that it names one message.
fn beginning_of_id(text: &str) -> Result<String, String> {
    if text.chars().count() < SHOWN_OF_ID {
        return Err(format!(
            "at least {SHOWN_OF_ID} characters of an id are needed, as `failures list` shows them"
        ));
    }
    Ok(text.to_owned())
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
            let replay = async |message: &Message| replaying.replay(message).await;
            // Those of a whole batch would be visible again before the last is done.
            let counts = Pass::of(&queue, &choice, 1).run(replay).await?;
            let done = counted(counts.done, "message");
            print(format_args!("{done} done and deleted, {} left in the queue", counts.left));
            counts
        }
        Action::Drop { place, choice } => {
            let queue = place.open()?.0;
            let pass = Pass::of(&queue, &choice, RECEIVED_AT_ONCE);
            let counts = pass.run(async |_| Ok(())).await?;
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
        let ca_bundle = runtime::config::ca_bundle()?;
        let lambda = ServiceConfig { region, endpoint, credentials, ca_bundle };
        let ServiceConfig { region, endpoint, credentials, ca_bundle } = lambda.clone();
        let queue = QueueConfig { url, region, endpoint, credentials, ca_bundle };
        Ok((Queue::connect(&queue), Lambda::connect(&lambda)))
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
        let about = in_one_line(about);
        format!("{id:.SHOWN_OF_ID$}  {sent}  {kind:<7}  {about}{todo}")
    }

    fn as_json(&self) -> Value {
        let Self { id, sent, message: Message { kind, about, replay } } = self;
        let todo = if let Replay::Impossible(todo) = replay { Some(todo) } else { None };
        let kind = kind.to_string();
        json!({"id": id, "sent": sent, "kind": kind, "about": about, "can_be_replayed": todo.is_none(), "todo": todo})
    }
}

/// A text that others have sent, without the line breaks that would make it look like several messages.
fn in_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Messages that are hidden, by their ids. Only the newest handle of a message that came again gives it back.
type Hidden = BTreeMap<String, Received>;

/// Reads the whole queue, and gives every message back.
async fn list(queue: &Queue) -> anyhow::Result<Vec<Row>> {
    let mut hidden = Hidden::new();
    let read = receive_all(queue, SystemClock.now(), &mut hidden).await;
    give_back(queue, &hidden).await;
    read?;

    let mut rows: Vec<Row> = hidden.into_values().map(row).collect();
    rows.sort_by(|a, b| a.sent.cmp(&b.sent));
    Ok(rows)
}

/// Receives until nothing comes, or only what was there before or was sent since: reading a long queue takes longer than
/// messages stay hidden.
async fn receive_all(queue: &Queue, begun: Timestamp, hidden: &mut Hidden) -> anyhow::Result<()> {
    let mut in_vain = 0;
    while in_vain < MAX_IN_VAIN {
        let received = queue.receive(RECEIVED_AT_ONCE).await?;
        if received.is_empty() {
            break;
        }
        let known = sent_until(begun, hidden);
        hidden.extend(received.into_iter().map(|message| (message.id.clone(), message)));
        in_vain = if sent_until(begun, hidden) == known { in_vain + 1 } else { 0 };
    }
    Ok(())
}

/// The number of messages that were sent until then.
fn sent_until(begun: Timestamp, hidden: &Hidden) -> usize {
    hidden.values().filter(|message| message.is_sent_until(begun)).count()
}

/// Makes messages visible again, each of them whatever becomes of the others.
async fn give_back(queue: &Queue, hidden: &Hidden) {
    let mut failed = Vec::new();
    for message in hidden.values() {
        failed.extend(queue.give_back(message).await.err());
    }
    if let Some(why) = failed.first() {
        let count = counted(failed.len() as u64, "message");
        print_error(format_args!(
            "{count} could not be shown to others at once, and will be in five minutes at most: {why:#}"
        ));
    }
}

fn row(received: Received) -> Row {
    let message = Message::of(&received.body, received.sent);
    let sent = Timestamp::from_millis(received.sent).map(|it| it.to_string()).unwrap_or_default();
    Row { id: received.id, sent, message }
}

/// What became of the messages so far, and those that are to be given back.
#[derive(Default)]
struct Tried {
    hidden: Hidden,
    /// The ids of the messages that were chosen.
    chosen: BTreeSet<String>,
    counts: Counts,
}

/// One pass over the queue, which does something with each message that is chosen, once. Deletes those with which it
/// succeeds, and gives the others back.
struct Pass<'a> {
    queue: &'a Queue,
    choice: &'a Choice,
    /// What was sent later is left: a fold that fails again would come back, and be done again, for ever.
    begun: Timestamp,
    /// The messages that are received at once.
    at_once: i32,
}

impl<'a> Pass<'a> {
    /// A pass that begins now.
    fn of(queue: &'a Queue, choice: &'a Choice, at_once: i32) -> Self {
        Self { queue, choice, begun: SystemClock.now(), at_once }
    }

    /// Makes the pass.
    async fn run(
        &self,
        action: impl AsyncFn(&Message) -> anyhow::Result<()>,
    ) -> anyhow::Result<Counts> {
        let mut tried = Tried::default();
        let done = self.receive(action, &mut tried).await;
        give_back(self.queue, &tried.hidden).await;
        done?;

        let unknown = self.choice.unknown(&tried.chosen);
        if !unknown.is_empty() {
            let (unknown, Counts { done, left }) = (unknown.join(", "), tried.counts);
            let done = counted(done, "message");
            bail!(
                "no message of the queue has the id {unknown}; `failures list` shows them. {done} done with and deleted, {left} left"
            );
        }
        if tried.chosen.is_empty() && !self.choice.all {
            bail!("no message of the queue is meant; `failures list` shows them");
        }
        Ok(tried.counts)
    }

    /// Receives until every message that was named is found, or nothing new comes any more.
    async fn receive(
        &self,
        action: impl AsyncFn(&Message) -> anyhow::Result<()>,
        tried: &mut Tried,
    ) -> anyhow::Result<()> {
        // The answers one after the other that had nothing new.
        let mut in_vain = 0;
        while !self.choice.is_met_by(&tried.chosen)
            && in_vain <= sent_until(self.begun, &tried.hidden) + MAX_IN_VAIN
        {
            let received = self.queue.receive(self.at_once).await?;
            if received.is_empty() {
                break;
            }

            let new = self.hide(received, &mut tried.hidden);
            in_vain = if new.is_empty() { in_vain + 1 } else { 0 };
            for id in new {
                self.try_one(&id, &action, tried).await?;
            }
        }
        Ok(())
    }

    /// Notes received messages as hidden. Returns the ids of the new ones that were there when the pass began; the
    /// queue's clock may be ahead of this machine's, so a message that a person names is among them in any case.
    fn hide(&self, received: Vec<Received>, hidden: &mut Hidden) -> Vec<String> {
        let mut new = Vec::new();
        for message in received {
            let is_meant = self.choice.names(&message.id) || message.is_sent_until(self.begun);
            if is_meant && !hidden.contains_key(&message.id) {
                new.push(message.id.clone());
            }
            hidden.insert(message.id.clone(), message);
        }
        new
    }

    /// Does something with a hidden message if it is chosen, and deletes it if that succeeds.
    async fn try_one(
        &self,
        id: &str,
        action: &impl AsyncFn(&Message) -> anyhow::Result<()>,
        tried: &mut Tried,
    ) -> anyhow::Result<()> {
        let received = &tried.hidden[id];
        let message = Message::of(&received.body, received.sent);
        if !self.choice.has(id, message.kind) {
            return Ok(());
        }

        tried.chosen.insert(id.to_owned());
        match action(&message).await {
            Ok(()) => {
                self.queue.delete(received).await?;
                tried.hidden.remove(id);
                tried.counts.done += 1;
            }
            Err(why) => {
                let Message { kind, about, .. } = &message;
                print_error(format_args!("left: {kind}, {}: {why:#}", in_one_line(about)));
                tried.counts.left += 1;
            }
        }
        Ok(())
    }
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
                let function = function.as_ref().or(self.function.as_ref());
                let function = function.context("the message names no function; add --function")?;
                let reply = self.lambda.invoke(function, event).await?;
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
