//! `roomtide alerts`: manages a server's alert rules and channels, with one request for each. Judges and sends nothing.

mod file;
mod members;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::json_server::{self, FilePart, JsonServer, encoded};
use crate::output::{counted, print};
use crate::settings_file;

/// The part of the help after the options.
const AFTER_HELP: &str = "\
roomtide alerts set-channel phone kind=ntfy name=Phone topic=a-long-random-word
roomtide alerts test phone
roomtide alerts set freezer name=Freezer device=freezer metric=temperature above=-12 clear=-15 for=5m
roomtide alerts preview freezer --from -30d";

/// The command line of `roomtide alerts`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// The address of the server, which it prints at its start; another --port there needs --url here
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An admin token, or @FILE with one; a read token suffices to look
    #[arg(long, global = true)]
    token: Option<String>,
    /// Print what the server answers, in JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the rules and what they say now
    List,
    /// Show a rule with its states
    Show {
        /// The rule
        rule: String,
    },
    /// Make a rule, or change members of one
    ///
    /// A member is NAME=VALUE, as docs/guide/alerts.md names them; NAME= removes one. With --file the rule is
    /// replaced by that of a file of JSON.
    Set {
        /// The rule
        rule: String,
        /// Its members
        members: Vec<String>,
        /// A file with the rule in JSON; - is standard input
        #[arg(long, conflicts_with = "members")]
        file: Option<PathBuf>,
    },
    /// Delete a rule: its states end, and what waits to be sent is dropped
    Delete {
        /// The rule
        rule: String,
    },
    /// Let a rule tell nothing until a time
    Pause {
        /// The rule
        rule: String,
        /// A time such as 2026-01-11T16:00:00Z, a duration such as 2h or 7d, or off to end the pause
        until: String,
    },
    /// Acknowledge what fires: it is not repeated
    Acknowledge {
        /// The rule
        rule: String,
        /// One of its subjects, such as device:freezer; without it, all that fire
        subject: Option<String>,
    },
    /// Show what a rule told in the last 90 days, newest first
    History {
        /// The rule
        rule: String,
        /// Only messages that were told at it or after
        #[arg(long, allow_hyphen_values = true)]
        from: Option<String>,
        /// The largest number of messages
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// Try a rule on the past: the episodes that it would have had
    ///
    /// Of a rule that is saved, changed by the members that are given; or of one that is not.
    Preview {
        /// The rule, which need not be saved
        rule: String,
        /// Members that differ
        members: Vec<String>,
        /// The start of the time, at most 31 days before its end; 7 days without it
        #[arg(long, allow_hyphen_values = true)]
        from: Option<String>,
        /// The end of the time; now without it
        #[arg(long, allow_hyphen_values = true)]
        to: Option<String>,
        /// One of its subjects, such as device:freezer
        #[arg(long)]
        subject: Option<String>,
    },
    /// List the channels
    Channels,
    /// Make a channel, or change members of one
    ///
    /// A member is NAME=VALUE, as docs/guide/alerts.md names them; NAME=@FILE reads a secret from a file, and NAME=
    /// removes a member. A secret that is not given stays as it is.
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
    /// Send a test by a channel, within a minute
    Test {
        /// The channel
        channel: String,
    },
    /// Write rules and channels, without what is secret, as TOML
    Export {
        /// The file; standard output without it
        file: Option<PathBuf>,
    },
    /// Save the rules and channels of a file that export wrote
    ///
    /// A channel that is not there needs its secret in the file. The exit code is 3 if the server refuses some.
    Import {
        /// The file; - is standard input
        file: PathBuf,
        /// Only read the file and say what would be saved
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the subcommand.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Reading files and waiting for the server block the thread.
    tokio::task::spawn_blocking(move || act(&args)).await?
}

fn act(args: &Args) -> anyhow::Result<ExitCode> {
    let is_file = matches!(args.action, Action::Export { .. } | Action::Import { .. });
    if args.json && is_file {
        bail!("--json: what alerts export writes and alerts import reads is TOML");
    }
    let server = JsonServer::new(&args.url, args.token.as_deref())?;
    let show = |answer: &Value, text: String| {
        if args.json { print(answer) } else { print(text.trim_end()) }
    };
    match &args.action {
        Action::List => {
            let answer = server.get("/alerts", "data")?;
            show(&answer, text::rules(&answer));
        }
        Action::Show { rule } => {
            let answer = server.get(&of_rule(rule, ""), "id")?;
            show(&answer, text::rule(&answer));
        }
        Action::Set { rule, members, file } => {
            let wanted = match file {
                Some(file) => settings_file::json(file)?,
                None => members::over(server.known(&of_rule(rule, ""))?, members, false)?,
            };
            let answer = server.send("PUT", &of_rule(rule, ""), &wanted, "id")?;
            show(&answer, text::rule(&answer));
        }
        Action::Delete { rule } => {
            let answer = server.send("DELETE", &of_rule(rule, ""), &Value::Null, "deleted")?;
            show(&answer, format!("{rule} is deleted"));
        }
        Action::Pause { rule, until } => {
            let until = if until == "off" { Value::Null } else { until.as_str().into() };
            let answer =
                server.send("POST", &of_rule(rule, "/pause"), &json!({"until": until}), "id")?;
            show(&answer, text::rule(&answer));
        }
        Action::Acknowledge { rule, subject } => {
            let body = subject.as_ref().map_or(json!({}), |it| json!({"subject": it}));
            let answer = server.send("POST", &of_rule(rule, "/acknowledge"), &body, "id")?;
            show(&answer, text::rule(&answer));
        }
        Action::History { rule, from, limit } => {
            let from = from.as_ref().map(|from| format!("&from={}", encoded(from)));
            let query = format!("/history?limit={limit}{}", from.unwrap_or_default());
            let answer = server.get(&of_rule(rule, &query), "data")?;
            show(&answer, text::history(&answer));
        }
        Action::Preview { rule, members, from, to, subject } => {
            let known = server.known(&of_rule(rule, ""))?;
            ensure!(
                !known.is_empty() || !members.is_empty(),
                "there is no rule {rule}; with members it shows what a new one would tell"
            );
            let wanted = members::over(known, members, false)?;
            let mut body = json!({ "rule": wanted });
            for (name, value) in [("from", from), ("to", to), ("subject", subject)] {
                if let Some(value) = value {
                    body[name] = value.as_str().into();
                }
            }
            let answer = server.send("POST", "/alerts/preview", &body, "episodes")?;
            show(&answer, text::preview(&answer));
        }
        Action::Channels => {
            let answer = server.get("/channels", "data")?;
            show(&answer, text::channels(&answer));
        }
        Action::SetChannel { channel, members } => {
            let known = server.known(&of_channel(channel, ""))?;
            let answer = server.send(
                "PUT",
                &of_channel(channel, ""),
                &members::over(known, members, true)?,
                "id",
            )?;
            show(&answer, text::channel(&answer));
        }
        Action::DeleteChannel { channel } => {
            let answer =
                server.send("DELETE", &of_channel(channel, ""), &Value::Null, "deleted")?;
            show(&answer, format!("{channel} is deleted"));
        }
        Action::Test { channel } => {
            let answer =
                server.send("POST", &of_channel(channel, "/test"), &json!({}), "waiting")?;
            show(&answer, format!("a test is sent by {channel} within a minute"));
        }
        Action::Export { file } => return export(&server, file.as_deref()),
        Action::Import { file, dry_run } => return import(&server, file, *dry_run),
    }
    Ok(ExitCode::SUCCESS)
}

fn export(server: &JsonServer, to: Option<&Path>) -> anyhow::Result<ExitCode> {
    let (rules, channels) = (server.get("/alerts", "data")?, server.get("/channels", "data")?);
    let text = file::text(&rules["data"], &channels["data"])?;
    json_server::say_damaged(&rules);
    settings_file::export(to, &text)
}

fn import(server: &JsonServer, from: &Path, dry_run: bool) -> anyhow::Result<ExitCode> {
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
    json_server::save_all(channels.chain(rules), |part| server.save(part))
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
    use crate::fake_server::{self, Reply};
    use crate::json_server::given::ensure_others_are_refused;
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
        ensure_others_are_refused("alerts", &cases, |words| act(&parsed(words).unwrap()));
    }

    #[test]
    fn a_file_of_rules_is_toml_whatever_is_asked() {
        for words in [&["export"][..], &["import", "alerts.toml"]] {
            let words = [&["alerts", "--json", "--url", "http://127.0.0.1:1"], words].concat();
            let error = act(&parsed(words).unwrap()).unwrap_err().to_string();
            assert!(error.starts_with("--json: ") && error.contains("TOML"), "{error}");
        }
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
            let error = format!("{:#}", act(&parsed(words).unwrap()).unwrap_err());
            let expected = "1 saved and 1 refused before it; the same command saves the others: ";
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains(&format!("/alerts/r answers {status}")), "{error}");
        }
    }
}
