//! `roomtide failures`: lists, replays and drops the messages of a deployed dead-letter queue.
//!
//! The local system has no such queue: it keeps nothing that failed, and says so on standard error.

mod invoke;
mod message;
mod queue;
mod receipt;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use aws::{QueueConfig, ServiceConfig};
use clap::{Args as ClapArgs, Subcommand};
use domain::Timestamp;
use runtime::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use self::invoke::Lambda;
use self::message::{FailureMessage, Kind, Replay};
use self::queue::{Depth, FailureQueue, Received};
use crate::at::aws_service;
use crate::interrupted::{Interrupted, stop_on_ctrl_c};
use crate::moment::shown_millis;
use crate::output::{counted, print, print_error};

/// The part of the help after the options.
const AFTER_HELP: &str = "\
The queue is the stack's output FailuresUrl; its messages expire after 14 days. Credentials are those of the \
environment. While the command reads messages, they are hidden from others, for five minutes at most. The exit code is 3 \
if messages are left or hidden.";
/// The number of messages received at once if each is processed quickly; SQS returns no more.
///
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
const RECEIVED_AT_ONCE: i32 = 10;
/// The number of characters of an id that the list shows. A prefix of this length identifies a message.
const SHOWN_OF_ID: usize = 8;
/// The number of successive receives without a new message after which no more is expected: SQS returns messages in any
/// order.
const MAX_IN_VAIN: usize = 100;
/// The exit code if some messages could not be replayed or could not be seen.
const SOME_LEFT: u8 = 3;

/// The command line of `roomtide failures`.
#[derive(Debug, ClapArgs)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the messages, each with its subject and its error
    List {
        #[command(flatten)]
        place: QueuePlace,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Process messages again, and delete those that succeed. Nothing is stored twice
    Replay {
        #[command(flatten)]
        place: QueuePlace,
        #[command(flatten)]
        choice: Choice,
    },
    /// Delete messages without doing anything
    Drop {
        #[command(flatten)]
        place: QueuePlace,
        #[command(flatten)]
        choice: Choice,
    },
}

/// The location of the queue.
#[derive(Debug, ClapArgs)]
struct QueuePlace {
    /// The dead-letter queue: the stack's output `FailuresUrl`
    #[arg(long, value_name = "URL")]
    queue: String,
}

/// The messages that a person chooses.
#[derive(Debug, Default, ClapArgs)]
#[group(required = true, multiple = false)]
struct Choice {
    /// Ids of messages as the list shows them, or at least their first eight characters
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
    /// Whether an id or prefix on the command line names this message.
    fn names(&self, id: &str) -> bool {
        self.id.iter().any(|beginning| id.starts_with(beginning))
    }

    fn has(&self, id: &str, kind: Kind) -> bool {
        self.all || self.kind == Some(kind) || self.names(id)
    }

    /// The given prefixes that match no id in `ids`.
    fn unknown(&self, ids: &BTreeSet<String>) -> Vec<&str> {
        let is_unknown = |beginning: &&str| !ids.iter().any(|id| id.starts_with(*beginning));
        self.id.iter().map(String::as_str).filter(is_unknown).collect()
    }

    /// Whether all named messages are in `ids`, because each prefix names one message.
    fn is_met_by(&self, ids: &BTreeSet<String>) -> bool {
        !self.id.is_empty() && self.unknown(ids).is_empty()
    }
}

/// Parses a prefix of an id that is long enough to name one message.
fn beginning_of_id(text: &str) -> Result<String, String> {
    if text.chars().count() < SHOWN_OF_ID {
        return Err(format!(
            "at least {SHOWN_OF_ID} characters of an id are needed, as `failures list` shows them"
        ));
    }
    Ok(text.to_owned())
}

/// The results of a command, counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    done: u64,
    left: u64,
    /// Chosen messages that were sent after the command began.
    later: u64,
    /// The approximate number of messages that other readers hide. Whether a person has chosen them is unknown.
    hidden: u64,
}

impl Counts {
    fn exit_code(self) -> ExitCode {
        let Self { left, later, hidden, .. } = self;
        let is_empty = left == 0 && later == 0 && hidden == 0;
        if is_empty { ExitCode::SUCCESS } else { SOME_LEFT.into() }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, left, later, hidden } = *self;
        let done = counted(done, "message");
        write!(f, "{done} done with and deleted, {left} left in the queue")?;
        if later > 0 {
            let later = counted(later, "message");
            write!(
                f,
                "; {later} sent since the command began, by the queue's clock: run it again for them"
            )?;
        }

        if hidden > 0 {
            write!(f, "; {}", hidden_text(hidden))?;
        }
        Ok(())
    }
}

/// Says that messages could not be seen. Their number, `hidden`, is an estimate.
fn hidden_text(hidden: u64) -> String {
    format!(
        "about {} hidden, because somebody else looks at them or a command was stopped: try again in five minutes",
        counted(hidden, "message")
    )
}

/// Runs the subcommand. Returns the exit code.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stopped = Arc::new(AtomicBool::new(false));
    stop_on_ctrl_c(Arc::clone(&stopped));
    let counts = match args.action {
        Command::List { place, json } => {
            let ListedFailures { rows, hidden } = list(&place.open()?.0, &stopped).await?;
            if json {
                print(Value::Array(rows.iter().map(Received::as_json).collect()));
            } else {
                rows.iter().for_each(|row| print(row.as_text()));
            }
            if hidden > 0 {
                print_error(hidden_text(hidden));
            }
            Counts { hidden, ..Counts::default() }
        }
        Command::Replay { place, choice } => {
            let (queue, lambda) = place.open()?;
            Pass::of(&queue, &choice, Some(lambda), &stopped).run().await?
        }
        Command::Drop { place, choice } => {
            Pass::of(&place.open()?.0, &choice, None, &stopped).run().await?
        }
    };
    Ok(counts.exit_code())
}

impl QueuePlace {
    fn open(self) -> anyhow::Result<(FailureQueue, Lambda)> {
        let url = self.queue;
        let lambda = aws_service("AWS_ENDPOINT_URL_LAMBDA", region_of(&url))?;
        let sqs = aws_service("AWS_ENDPOINT_URL_SQS", region_of(&url))?;
        let ServiceConfig { region, endpoint, credentials, ca_bundle } = sqs;
        let queue = QueueConfig { url, region, endpoint, credentials, ca_bundle };
        Ok((FailureQueue::connect(&queue), Lambda::connect(&lambda)))
    }
}

/// The region in a queue's URL, `https://sqs.REGION.amazonaws.com/...`.
fn region_of(url: &str) -> Option<String> {
    let (region, _) = url.strip_prefix("https://sqs.")?.split_once('.')?;
    Some(region.to_owned())
}

impl Received {
    /// The message as a row of the list.
    fn as_text(&self) -> String {
        let FailureMessage { kind, replay, .. } = &self.message;
        let todo = match replay {
            Replay::Impossible(todo) => format!("\n          {todo}"),
            _ => String::new(),
        };
        let (id, sent, about) =
            (&self.id, shown_millis(self.sent), self.message.about_in_one_line());
        format!("{id:.SHOWN_OF_ID$}  {sent}  {kind:<7}  {about}{todo}")
    }

    fn as_json(&self) -> Value {
        let FailureMessage { kind, about, replay } = &self.message;
        let todo = if let Replay::Impossible(todo) = replay { Some(todo) } else { None };
        let (id, sent, kind) = (&self.id, shown_millis(self.sent), kind.to_string());
        json!({"id": id, "sent": sent, "kind": kind, "about": about, "can_be_replayed": todo.is_none(), "todo": todo})
    }
}

/// Hidden messages by id. If a message was received twice, only its newest handle makes it visible again.
type Hidden = BTreeMap<String, Received>;

/// The messages of the queue, oldest first, and the approximate number of messages that others hide.
struct ListedFailures {
    rows: Vec<Received>,
    hidden: u64,
}

/// Reads the whole queue, and makes every message visible again.
async fn list(queue: &FailureQueue, stopped: &AtomicBool) -> anyhow::Result<ListedFailures> {
    let depth = depth_of(queue).await;
    let (none, mut tried) = (Choice::default(), Tried::default());
    let read = Pass::of(queue, &none, None, stopped).receive(&mut tried).await;
    give_back(queue, &tried.hidden).await;
    read?;

    let mut rows: Vec<Received> = tried.hidden.into_values().collect();
    rows.sort_by_key(|message| message.sent);
    let hidden = depth.unseen(rows.len() as u64);
    Ok(ListedFailures { rows, hidden })
}

/// The queue's own count of its messages, taken before this command hides any. Without the permission to read it,
/// replay and drop still work.
async fn depth_of(queue: &FailureQueue) -> Depth {
    queue.depth().await.unwrap_or_else(|why| {
        print_error(format_args!("nobody knows whether others are hidden: {why:#}"));
        Depth::default()
    })
}

/// Fails if a person has stopped the command.
fn ensure_goes_on(stopped: &AtomicBool) -> anyhow::Result<()> {
    if stopped.load(Ordering::Acquire) {
        bail!(Interrupted);
    }
    Ok(())
}

/// The number of hidden messages that were sent before the command began.
fn sent_until(begun: Timestamp, hidden: &Hidden) -> usize {
    hidden.values().filter(|message| message.is_sent_until(begun)).count()
}

/// Makes messages visible again. A failure of one does not stop the others.
async fn give_back(queue: &FailureQueue, hidden: &Hidden) {
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

/// The results of a pass so far, and the messages to make visible again.
#[derive(Default)]
struct Tried {
    hidden: Hidden,
    /// The ids of the messages that were chosen.
    chosen: BTreeSet<String>,
    counts: Counts,
}

/// One pass over the queue. Replays each chosen message once, or passes over that; deletes the message on success, else
/// makes it visible again.
struct Pass<'a> {
    queue: &'a FailureQueue,
    choice: &'a Choice,
    /// The start of the pass. Later messages are left: a fold that fails again returns to the queue, and would be
    /// replayed for ever.
    begun: Timestamp,
    /// The client that replays messages. Without one, messages are only deleted.
    lambda: Option<Lambda>,
    /// Whether a person has stopped the command. The current message is then the last.
    stopped: &'a AtomicBool,
}

impl<'a> Pass<'a> {
    /// A pass that begins now.
    fn of(
        queue: &'a FailureQueue,
        choice: &'a Choice,
        lambda: Option<Lambda>,
        stopped: &'a AtomicBool,
    ) -> Self {
        Self { queue, choice, begun: SystemClock.now(), lambda, stopped }
    }

    /// Runs the pass, and prints the results. An error also says how many messages were done before.
    async fn run(&self) -> anyhow::Result<Counts> {
        let depth = depth_of(self.queue).await;
        let mut tried = Tried::default();
        let done = self.receive(&mut tried).await;
        give_back(self.queue, &tried.hidden).await;

        done.with_context(|| {
            let Counts { done, left, .. } = tried.counts;
            let done = counted(done, "message");
            format!("{done} done with and deleted, {left} in vain, the others not tried")
        })?;
        let counts = self.counts(&tried, depth);
        let unknown = self.choice.unknown(&tried.chosen);
        if !unknown.is_empty() {
            bail!(
                "no message of the queue has the id {}; `failures list` shows them. {counts}",
                unknown.join(", ")
            );
        }

        if tried.chosen.is_empty() && counts.later == 0 && !self.choice.all {
            bail!("no message of the queue is meant; `failures list` shows them. {counts}");
        }
        print(counts);
        Ok(counts)
    }

    /// The results for all messages of the queue.
    fn counts(&self, tried: &Tried, depth: Depth) -> Counts {
        let later = tried.hidden.values().filter(|message| self.is_chosen_later(message)).count();
        // A pass that has found all named messages ends before it has seen the others.
        let hidden = if self.choice.is_met_by(&tried.chosen) {
            0
        } else {
            depth.unseen(tried.counts.done + sent_until(self.begun, &tried.hidden) as u64)
        };
        Counts { later: later as u64, hidden, ..tried.counts }
    }

    /// Whether a chosen message is left to the next command, because it was sent after this one began.
    fn is_chosen_later(&self, received: &Received) -> bool {
        let Received { id, message: FailureMessage { kind, .. }, .. } = received;
        let is_later = !received.is_sent_until(self.begun) && !self.choice.names(id);
        is_later && self.choice.has(id, *kind)
    }

    /// Receives until every named message is found, or no new message comes any more. Messages become visible again while
    /// a long queue is read, and new ones are sent meanwhile.
    async fn receive(&self, tried: &mut Tried) -> anyhow::Result<()> {
        // One message at a time is replayed: those of a batch would become visible again before the last is processed.
        let at_once = if self.lambda.is_some() { 1 } else { RECEIVED_AT_ONCE };
        // The number of successive answers without a new message.
        let mut in_vain = 0;
        while !self.choice.is_met_by(&tried.chosen)
            && in_vain <= sent_until(self.begun, &tried.hidden) + MAX_IN_VAIN
        {
            ensure_goes_on(self.stopped)?;
            let received = self.queue.receive(at_once).await?;
            if received.is_empty() {
                break;
            }

            let new = self.hide(received, &mut tried.hidden);
            in_vain = if new.is_empty() { in_vain + 1 } else { 0 };
            for id in new {
                ensure_goes_on(self.stopped)?;
                self.try_one(&id, tried).await?;
            }
        }
        Ok(())
    }

    /// Notes received messages as hidden. Returns the ids of new messages that were sent before the pass began. The
    /// queue's clock may be ahead of this machine's, so messages that a person names are always among them.
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

    /// Replays a hidden message if it is chosen, and deletes it on success.
    async fn try_one(&self, id: &str, tried: &mut Tried) -> anyhow::Result<()> {
        let received = &tried.hidden[id];
        let kind = received.message.kind;
        if !self.choice.has(id, kind) {
            return Ok(());
        }

        tried.chosen.insert(id.to_owned());
        let about = received.message.about_in_one_line();
        match self.replay(&received.message).await {
            Ok(()) => {
                let deleted = self.queue.delete(received).await;
                deleted
                    .with_context(|| format!("{kind}, {about}: done, and still in the queue"))?;
                tried.hidden.remove(id);
                tried.counts.done += 1;
            }
            Err(why) => {
                print_error(format_args!("left: {kind}, {about}: {why:#}"));
                tried.counts.left += 1;
            }
        }

        Ok(())
    }

    /// Replays a message, if the pass replays. Fails unless the answer says that everything is done.
    async fn replay(&self, message: &FailureMessage) -> anyhow::Result<()> {
        let Some(lambda) = &self.lambda else { return Ok(()) };
        match &message.replay {
            Replay::Impossible(todo) => bail!("{todo}"),
            Replay::Fold(body) => {
                let url = self.queue.source().await?;
                self.queue.send(&url, body).await
            }
            Replay::Invoke { function, event } => {
                let function = function.as_ref().context("the message names no function")?;
                let reply = lambda.invoke(function, event).await?;
                receipt::ensure_all_stored(function, &reply)
            }
        }
    }
}

#[cfg(test)]
mod tests;
