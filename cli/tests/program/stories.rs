//! Stories of the command, each in lines of a text: what is there, what is run or requested, what is then said.
//!
//! `= SENTENCE` begins a story and says what it shows; what stands before the first one is done in each. A line without an
//! indent is an action, `| TEXT` below it is its input, and the other indented lines state what the action answers:
//!
//! - `server NAME [in place of OTHER]` starts one on the directory `NAME`, on the port of the other one; `at NAME` turns
//!   to it again, `stop NAME` ends it;
//! - `file NAME`, `more NAME` and `directory NAME` write, with `of A..B` once for each `n`, where `<1 + 2 * n>` is a
//!   number; `edit NAME` replaces by lines `FROM => TO`; `database NAME` runs SQL;
//! - `roomtide WORDS` runs the command here, `process WORDS [< FILE]` as a process of its own, `dynamodb WORDS` so on the
//!   table of the server, without the server;
//! - `GET PATH`, `POST PATH BODY` and others ask the server, `await PATH` until its answer is as stated, `look PATHS`
//!   for several answers, whatever they are;
//! - `cat FILE`, `read FILE` (of bytes) and `list DIRECTORY` answer what is there;
//! - `let NAME = TEXT` makes `{NAME}` that text, as `{place}` is the directory and `{url}` the address of the server;
//! - `take back REPORT until NOTE` takes an import back until a look is as it was noted.
//!
//! Statements: `exit N` and `status N` (else it has to be success), `has`, `lacks`, `is`, `begins` and `ends` with a text
//! (in quotes as JSON has it), `counts N TEXT`, `lines N`, `PLACE = JSON`. `keep FILE` writes the answer, `note NAME`
//! notes it; `same as NAME`, `other than NAME` and `PLACE as NAME` compare with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use local::Options;
use serde_json::Value;

use crate::private::engine_of;
use crate::server::{PROGRAM, Server, run, run_process};

/// An action, with its input and the statements about its answer.
struct Step<'a> {
    line: usize,
    text: &'a str,
    input: Vec<&'a str>,
    stated: Vec<&'a str>,
}

/// The exit code or the status, and what is said.
type Answer = (Option<i32>, String);

/// Where a story takes place.
struct Stage {
    place: tempfile::TempDir,
    servers: BTreeMap<String, Server>,
    at: String,
    /// By name, texts that a story says often.
    words: BTreeMap<String, String>,
    /// By name, the request that was answered so, and the answer.
    notes: BTreeMap<String, (String, String)>,
}

/// Plays the stories of a text, all at once.
fn play(text: &str) {
    let mut stories: Vec<(&str, Vec<Step<'_>>)> = vec![("in each story", Vec::new())];
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.is_empty()) {
        let text = text.trim_end();
        if let Some(shown) = text.strip_prefix("= ") {
            stories.push((shown, Vec::new()));
        } else if !text.trim_start().starts_with("//") {
            let steps = &mut stories.last_mut().expect("the first one").1;
            match text.strip_prefix("    ") {
                None => steps.push(Step { line, text, input: Vec::new(), stated: Vec::new() }),
                Some(text) => {
                    let step = steps.last_mut().expect("an action");
                    let input = text.strip_prefix('|');
                    let lines = if input.is_some() { &mut step.input } else { &mut step.stated };
                    lines
                        .push(input.map_or(text, |input| input.strip_prefix(' ').unwrap_or(input)));
                }
            }
        }
    }

    thread::scope(|scope| {
        let (before, stories) = stories.split_first().expect("the first one");
        for (shown, steps) in stories {
            scope.spawn(move || {
                let mut stage = Stage::new();
                before.1.iter().chain(steps).for_each(|step| stage.take(shown, step));
            });
        }
    });
}

impl Stage {
    fn new() -> Self {
        Self {
            place: tempfile::tempdir().unwrap(),
            servers: BTreeMap::new(),
            at: String::new(),
            words: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }

    /// Does what a step says, and checks what is stated.
    fn take(&mut self, shown: &str, step: &Step<'_>) {
        let text = self.filled(step.text);
        let (action, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let is_repeated = action == "await";
        for attempt in 0.. {
            let answer = self.answer(action, rest, &step.input);
            let is_code =
                |stated: &&str| stated.starts_with("exit ") || stated.starts_with("status ");
            let is_success = matches!(answer.0, None | Some(0 | 200..300));
            let wrong = if is_success || step.stated.iter().any(is_code) {
                step.stated.iter().find(|stated| !self.holds(stated, &text, &answer))
            } else {
                Some(&"success")
            };
            if wrong.is_none() {
                return;
            }
            assert!(
                is_repeated && attempt < 3_000,
                "{shown}\nline {}: {text}\n    {wrong:?}\n{answer:?}\n{:?}",
                step.line,
                self.notes
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A text with the values of `{place}`, `{version}`, `{url}` and of the story's own words.
    fn filled(&self, text: &str) -> String {
        let mut text = text.replace("{place}", self.place.path().to_str().unwrap());
        text = text.replace("{version}", env!("CARGO_PKG_VERSION"));
        for (name, words) in &self.words {
            text = text.replace(&format!("{{{name}}}"), words);
        }
        if let Some(server) = self.servers.get(&self.at) {
            text = text.replace("{url}", &server.url);
        }
        text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn server(&self) -> &Server {
        &self.servers[&self.at]
    }

    fn answer(&mut self, action: &str, rest: &str, input: &[&str]) -> Answer {
        let (name, span) = rest.split_once(" of ").unwrap_or((rest, "0..1"));
        match action {
            "server" => {
                let (name, before) = rest.split_once(" in place of ").unwrap_or((rest, ""));
                // The port of a server that is stopped here.
                let url = self.servers.remove(before).map(|server| server.url.clone());
                let port = url.map_or(0, |url| url.rsplit(':').next().unwrap().parse().unwrap());
                let server = Server::with(&self.path(name), Options { port, ..Options::default() });
                name.clone_into(&mut self.at);
                self.servers.insert(name.to_owned(), server);
            }
            "let" => {
                let (name, words) = rest.split_once(" = ").expect("a name and words");
                self.words.insert(name.to_owned(), words.to_owned());
            }
            "stop" => drop(self.servers.remove(rest).expect("a server")),
            "at" => rest.clone_into(&mut self.at),
            "file" => fs::write(self.path(name), written(input, span)).unwrap(),
            "more" => {
                let text = fs::read_to_string(self.path(name)).unwrap();
                fs::write(self.path(name), text + &written(input, span)).unwrap();
            }
            "directory" => fs::create_dir(self.path(rest)).unwrap(),
            "edit" => {
                let mut text = fs::read_to_string(self.path(rest)).unwrap();
                for (from, to) in input.iter().map(|line| line.split_once(" => ").unwrap()) {
                    let (from, to) = (text_of(from), text_of(to));
                    assert!(text.contains(&from), "{from} is not in {text}");
                    text = text.replace(&from, &to);
                }
                fs::write(self.path(rest), text).unwrap();
            }
            "database" => {
                let database = rusqlite::Connection::open(self.path(rest)).unwrap();
                database.execute_batch(&input.join("\n")).unwrap();
            }
            "cat" => return (None, fs::read_to_string(self.path(rest)).unwrap()),
            "read" => {
                let bytes = fs::read(self.path(rest)).unwrap();
                return (None, bytes.into_iter().map(char::from).collect());
            }
            "list" => return (None, self.names(rest)),
            "roomtide" => return run(Command::new(PROGRAM).args(words(rest))),
            "process" => return self.run_process(rest, &[]),
            "dynamodb" => return self.run_on_table(rest),
            "look" => return (None, self.look(rest)),
            "take" => return (None, self.take_back(rest)),
            "await" => return self.request("GET", rest),
            method => return self.request(method, rest),
        }
        (None, String::new())
    }

    fn names(&self, directory: &str) -> String {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.join("\n")
    }

    fn request(&self, method: &str, rest: &str) -> Answer {
        let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let body = match body.strip_prefix("< ") {
            Some(file) => fs::read_to_string(self.path(file)).unwrap(),
            None => body.to_owned(),
        };
        let (status, text) = self.server().request(method, path, &body);
        (Some(i32::from(status)), text)
    }

    fn look(&self, paths: &str) -> String {
        let texts = paths.split(' ').map(|path| self.server().request("GET", path, "").1);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Runs a command as a process, which has no credentials and no region but those of this environment.
    fn run_process(&self, text: &str, environment: &[(&str, &str)]) -> Answer {
        let (text, file) = text.split_once(" < ").unwrap_or((text, ""));
        let mut command = Command::new(PROGRAM);
        for name in
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"]
        {
            command.env_remove(name);
        }
        command.args(words(text)).envs(environment.iter().copied());
        if !file.is_empty() {
            command.stdin(fs::File::open(self.path(file)).unwrap());
        }
        run_process(&mut command)
    }

    /// Runs a command on the table that the server has, by the API of `DynamoDB` alone.
    fn run_on_table(&self, text: &str) -> Answer {
        let config = engine_of(&self.path(&self.at));
        let (credentials, endpoint) = (config.credentials, config.endpoint.unwrap());
        let environment = [
            ("AWS_ACCESS_KEY_ID", &*credentials.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", &credentials.secret_access_key),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL", &endpoint),
        ];
        self.run_process(text, &environment)
    }

    /// The command goes on to wait some minutes for the end of a device's deletion: it is ended before.
    fn take_back(&self, rest: &str) -> String {
        let (report, note) = rest.strip_prefix("back ").unwrap().split_once(" until ").unwrap();
        let (paths, expected) = &self.notes[note];
        let mut command = Command::new(PROGRAM);
        command.args(["import", "--take-back", "--yes"]).arg(self.path(report));
        let mut taking = command.stdout(Stdio::null()).spawn().unwrap();
        let is_back = |_| {
            thread::sleep(Duration::from_millis(300));
            self.look(paths) == *expected
        };
        let back = (0..200).any(is_back);
        drop(taking.kill());
        taking.wait().unwrap();
        assert!(back, "{} is not {expected}", self.look(paths));
        String::new()
    }

    /// The answer that was noted under a name, which follows `as` or `than`.
    fn noted(&self, rest: &str) -> &str {
        &self.notes[rest.split_once(' ').unwrap().1].1
    }

    /// Whether a statement is true of an answer. A note is made.
    fn holds(&mut self, stated: &str, action: &str, (code, said): &Answer) -> bool {
        let stated = self.filled(stated);
        let (word, rest) = stated.split_once(' ').expect("a statement has words");
        let text = text_of(rest);
        match word {
            "exit" | "status" => *code == rest.parse().ok(),
            "has" => said.contains(&text),
            "lacks" => !said.contains(&text),
            "is" => said.trim_end() == text.trim_end(),
            "begins" => said.starts_with(&text),
            "ends" => said.trim_end().ends_with(&text),
            "lines" => said.lines().count() == rest.parse::<usize>().unwrap(),
            "counts" => {
                let (number, text) = rest.split_once(' ').unwrap();
                said.matches(&text_of(text)).count() == number.parse::<usize>().unwrap()
            }
            "note" => {
                let (_, request) = action.split_once(' ').unwrap();
                self.notes.insert(rest.to_owned(), (request.to_owned(), said.clone()));
                true
            }
            "keep" => fs::write(self.path(rest), said).is_ok(),
            "same" => self.noted(rest).trim_end() == said.trim_end(),
            "other" => self.noted(rest) != said,
            place => {
                let found = |said: &str| -> Option<Value> {
                    let json: Value = serde_json::from_str(said)
                        .unwrap_or_else(|why| panic!("{action}: {why}: {said:?}"));
                    json.pointer(place).cloned()
                };
                match rest.strip_prefix("= ") {
                    Some(json) => found(said) == serde_json::from_str(json).unwrap(),
                    None => found(said).is_some() && found(said) == found(self.noted(rest)),
                }
            }
        }
    }
}

/// The text that a statement names, with its spaces and line ends where it is in quotes.
fn text_of(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

/// The words of a command line. One with spaces is in quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let (word, behind) = match first {
            '"' | '\'' => rest[1..].split_once(first).expect("a quote ends"),
            _ => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}

/// The lines of a file, once for each number of a span.
fn written(lines: &[&str], span: &str) -> String {
    let (from, to) = span.split_once("..").unwrap();
    let mut text = String::new();
    for n in from.parse::<i64>().unwrap()..to.parse().unwrap() {
        for line in lines {
            let mut rest = *line;
            while let Some((before, sum, behind)) =
                rest.split_once('<').and_then(|(before, rest)| {
                    rest.split_once('>').map(|(sum, rest)| (before, sum, rest))
                })
            {
                text += before;
                text += &number(sum, n).to_string();
                rest = behind;
            }
            text += rest;
            text.push('\n');
        }
    }
    text
}

/// A sum of products, in which `n` is a number.
fn number(text: &str, n: i64) -> i64 {
    let parts = |signs: [&str; 3]| {
        let split = |sign: &str| text.rfind(sign).map(|at| (at, sign.to_owned()));
        signs.iter().filter_map(|sign| split(sign)).max()
    };
    let Some((at, sign)) = parts([" + ", " - ", " - "]).or_else(|| parts([" * ", " / ", " % "]))
    else {
        return if text == "n" { n } else { text.parse().unwrap() };
    };
    let (left, right) = (number(&text[..at], n), number(&text[at + sign.len()..], n));
    match sign.trim() {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        _ => left % right,
    }
}

macro_rules! stories {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            play(include_str!(concat!("stories/", stringify!($name), ".txt")));
        }
    )*};
}

stories! { alerts bill history imported readings refusals report sources table totals }
