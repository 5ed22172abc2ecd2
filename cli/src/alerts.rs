//! `roomtide alerts`: manages a server's alert rules and channels, with one request for each. Judges and sends nothing.

mod file;
mod members;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Subcommand;
use domain::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::at::Unnamed;
use crate::client::{Ask, Client};
use crate::moment::from_now;
use crate::objects::{self, FilePart, ObjectArgs, encoded};
use crate::output::{counted, print};
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
Examples:

    roomtide alerts set-channel phone kind=ntfy name=Phone topic=a-long-random-word
    roomtide alerts test phone
    roomtide alerts set freezer name=Freezer device=freezer metric=temperature above=-12 clear=-15 for=5m
    roomtide alerts preview freezer --from -30d";

/// The command line of `roomtide alerts`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Command,
    #[command(flatten)]
    objects: ObjectArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the rules with their states
    List,
    /// Show a rule with its states
    Show {
        /// The rule
        rule: String,
    },
    /// Make a rule, or change members of one
    ///
    /// A member is NAME=VALUE, as docs/guide/alerts.md names them; NAME= removes one. With --file, the rule in the file
    /// replaces the saved rule.
    Set {
        /// The rule
        rule: String,
        /// Its members
        members: Vec<String>,
        /// A file with the rule in JSON; - is standard input
        #[arg(long, conflicts_with = "members")]
        file: Option<PathBuf>,
    },
    /// Delete a rule with its states and its waiting messages
    Delete {
        /// The rule
        rule: String,
    },
    /// Pause a rule until a time: it sends no messages
    Pause {
        /// The rule
        rule: String,
        /// A time such as 2026-01-11T16:00:00Z, a duration such as 2h or 7d, or off to end the pause
        until: String,
    },
    /// Acknowledge an alert that fires: its message is not repeated
    Acknowledge {
        /// The rule
        rule: String,
        /// A subject of the rule, such as device:freezer; by default all subjects that fire
        subject: Option<String>,
    },
    /// Show the messages of a rule in the last 90 days, newest first
    History {
        /// The rule
        rule: String,
        /// Only messages from this time on
        #[arg(long, allow_hyphen_values = true, value_parser = from_now)]
        from: Option<Timestamp>,
        /// The largest number of messages
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// Show the episodes that a rule would have had in the past
    ///
    /// The rule is a saved rule with the given members changed, or a new rule.
    Preview {
        /// The rule, which need not be saved
        rule: String,
        /// The members to change
        members: Vec<String>,
        /// The start of the range, at most 31 days before its end; by default 7 days
        #[arg(long, allow_hyphen_values = true, value_parser = from_now)]
        from: Option<Timestamp>,
        /// The end of the range; by default now
        #[arg(long, allow_hyphen_values = true, value_parser = from_now)]
        to: Option<Timestamp>,
        /// A subject of the rule, such as device:freezer
        #[arg(long)]
        subject: Option<String>,
    },
    /// List the channels
    Channels,
    /// Make a channel, or change members of one
    ///
    /// A member is NAME=VALUE, as docs/guide/channels.md names them; NAME=@FILE reads a secret from a file, and NAME=
    /// removes a member. Without a secret member the secret stays as it is; with one, give all that the kind needs.
    SetChannel {
        /// The channel
        channel: String,
        /// Its members
        #[arg(required = true)]
        members: Vec<String>,
    },
    /// Delete a channel and its secret
    DeleteChannel {
        /// The channel
        channel: String,
    },
    /// Send a test message by a channel, within a minute
    Test {
        /// The channel
        channel: String,
    },
    /// Write rules and channels, without their secrets, as TOML
    Export {
        /// The file; by default standard output
        file: Option<PathBuf>,
    },
    /// Save the rules and channels of a file that export wrote
    ///
    /// A new channel needs its secret in the file. The exit code is 3 if the server refuses some rules or channels.
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// Only read the file and say what would be saved
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_file = matches!(args.action, Command::Export { .. } | Command::Import { .. });
    if args.objects.json && is_file {
        bail!("--json: what alerts export writes and alerts import reads is TOML");
    }
    args.objects.at.work(Unnamed::Server, |client| act(args, client))
}

fn act(args: &Args, client: &Client) -> anyhow::Result<ExitCode> {
    let show = |answer: anyhow::Result<Value>, text: &dyn Fn(&Value) -> String| {
        answer.map(|answer| args.objects.show(&answer, text))
    };
    match &args.action {
        Command::List => show(client.value(Ask::get("/alerts"), "data"), &text::rules)?,
        Command::Show { rule } => {
            show(client.value(Ask::get(&of_rule(rule, "")), "id"), &text::rule)?;
        }
        Command::Set { rule, members, file } => {
            let path = of_rule(rule, "");
            // As it stands: a number keeps its digits, and the server refuses a member that stands twice.
            let wanted = match file {
                Some(file) => settings_file::json::<Box<RawValue>>(file)?.to_string(),
                None => members::over(objects::known(client, &path)?, members, false)?.to_string(),
            };
            show(objects::change(client, "PUT", &path, &wanted, "id"), &text::rule)?;
        }
        Command::Delete { rule } => {
            let deleted = objects::delete(client, &of_rule(rule, ""));
            show(deleted, &|_| format!("{rule} is deleted"))?;
        }
        Command::Pause { rule, until } => {
            let until = Some(until).filter(|until| *until != "off");
            let path = of_rule(rule, "/pause");
            let body = json!({"until": until});
            show(objects::change(client, "POST", &path, &body, "id"), &text::rule)?;
        }
        Command::Acknowledge { rule, subject } => {
            let path = of_rule(rule, "/acknowledge");
            let body = with_given(json!({}), [("subject", subject.clone())]);
            show(objects::change(client, "POST", &path, &body, "id"), &text::rule)?;
        }
        Command::History { rule, from, limit } => {
            let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
            let path = of_rule(rule, &format!("/history?limit={limit}{from}"));
            show(client.value(Ask::get(&path), "data"), &text::history)?;
        }
        Command::Preview { rule, members, from, to, subject } => {
            let known = objects::known(client, &of_rule(rule, ""))?;
            ensure!(
                !known.is_empty() || !members.is_empty(),
                "there is no rule {rule}; with members it shows what a new one would tell"
            );
            let body = json!({ "rule": members::over(known, members, false)? });
            let [from, to] = [from, to].map(|at| at.map(|at| at.to_string()));
            let members = [("from", from), ("to", to), ("subject", subject.clone())];
            let body = with_given(body, members);
            let answer = objects::change(client, "POST", "/alerts/preview", &body, "episodes");
            show(answer, &text::preview)?;
        }
        Command::Channels => show(client.value(Ask::get("/channels"), "data"), &text::channels)?,
        Command::SetChannel { channel, members } => {
            let path = of_channel(channel, "");
            let wanted = members::over(objects::known(client, &path)?, members, true)?;
            show(objects::change(client, "PUT", &path, &wanted, "id"), &text::channel)?;
        }
        Command::DeleteChannel { channel } => {
            let deleted = objects::delete(client, &of_channel(channel, ""));
            show(deleted, &|_| format!("{channel} is deleted"))?;
        }
        Command::Test { channel } => {
            let path = of_channel(channel, "/test");
            let answer = objects::change(client, "POST", &path, &json!({}), "waiting");
            show(answer, &|_| format!("the channel {channel} gets a test within a minute"))?;
        }
        Command::Export { file } => return export(client, file.as_deref()),
        Command::Import { file, dry_run } => return import(client, file, *dry_run),
    }

    Ok(ExitCode::SUCCESS)
}

/// The body with the members that are given.
fn with_given<const N: usize>(mut body: Value, members: [(&str, Option<String>); N]) -> Value {
    for (name, value) in members {
        if let Some(value) = value {
            body[name] = value.into();
        }
    }
    body
}

fn export(client: &Client, to: Option<&Path>) -> anyhow::Result<ExitCode> {
    let rules = client.value(Ask::get("/alerts"), "data")?;
    let channels = client.value(Ask::get("/channels"), "data")?;
    let text = file::text(&rules["data"], &channels["data"])?;
    objects::say_damaged(&rules);
    settings_file::export(to, &text)
}

fn import(client: &Client, from: &Path, dry_run: bool) -> anyhow::Result<ExitCode> {
    let parts = file::read(from)?;
    if dry_run {
        let (rules, channels) = (parts.rules.len() as u64, parts.channels.len() as u64);
        let (rules, channels) = (counted(rules, "rule"), counted(channels, "channel"));
        print(format_args!("{rules} and {channels} would be saved"));
        return Ok(ExitCode::SUCCESS);
    }

    // Channels first: a rule may fire as soon as it is saved.
    let channels = parts.channels.iter();
    let channels = channels.map(|(id, members)| FilePart { path: of_channel(id, ""), members });
    let rules = parts.rules.iter().map(|(id, members)| FilePart { path: of_rule(id, ""), members });
    objects::save_all(channels.chain(rules), |part| part.save(client))
}

fn of_rule(id: &str, rest: &str) -> String {
    format!("/alerts/{}{rest}", encoded(id))
}

fn of_channel(id: &str, rest: &str) -> String {
    format!("/channels/{}{rest}", encoded(id))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::others_refused::ensure_others_are_refused;
    use crate::tests::parsed;

    #[test]
    fn what_something_else_answers_is_neither_a_list_nor_done() {
        let cases = [
            (&["list"][..], "/alerts"),
            (&["channels"], "/channels"),
            (&["export"], "/alerts"),
            (&["show", "a"], "/alerts/a"),
            (&["set", "a", "name=A"], "/alerts/a"),
            (&["delete", "a"], "/alerts/a"),
            (&["pause", "a", "2h"], "/alerts/a/pause"),
            (&["history", "a"], "/alerts/a/history"),
            (&["test", "a"], "/channels/a/test"),
        ];
        ensure_others_are_refused("alerts", &cases, |words| run(&parsed(words).unwrap()));
    }

    #[test]
    fn a_file_of_rules_is_toml_whatever_is_asked() {
        for words in [&["export"][..], &["import", "alerts.toml"]] {
            let words = [&["alerts", "--json", "--url", "http://127.0.0.1:1"], words].concat();
            let error = run(&parsed(words).unwrap()).unwrap_err().to_string();
            assert!(error.starts_with("--json: ") && error.contains("TOML"), "{error}");
        }
    }

    #[test]
    fn a_rule_of_a_file_is_sent_as_it_stands() {
        let rule = r#"{"name": "R", "above": 0.1234567890123456789012345, "above": 1e400}"#;
        let server = fake_server::serve(move |_, request| match &*request.method {
            "GET" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
            _ if request.body == rule => Reply::of(200, r#"{"id": "r"}"#),
            _ => panic!("{}", request.body),
        });
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rule.json");
        fs::write(&file, rule).unwrap();
        let words = ["alerts", "--url", &server.url, "set", "r", "--file", file.to_str().unwrap()];
        run(&parsed(words).unwrap()).unwrap();
    }

    #[test]
    fn an_import_that_stops_says_how_far_it_came() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("alerts.toml");
        fs::write(&file, "[channels.a]\n[rules.odd]\n[rules.r]\n").unwrap();
        for status in [403, 405] {
            let server = fake_server::serve(move |_, request| match request.path.as_str() {
                "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
                "/channels/a" => Reply::of(200, r#"{"id": "a"}"#),
                "/alerts/odd" => Reply::of(400, r#"{"detail": "name: is missing"}"#),
                _ => Reply::of(status, r#"{"detail": "no"}"#),
            });
            let words = ["alerts", "--url", &server.url, "import", file.to_str().unwrap()];
            let error = format!("{:#}", run(&parsed(words).unwrap()).unwrap_err());
            let expected = "1 saved and 1 refused before it; the same command saves the others: ";
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains(&format!("/alerts/r answers {status}")), "{error}");
        }
    }
}
