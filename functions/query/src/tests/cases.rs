//! The API in cases: below a sentence, a text of `cases/` has the readings, the requests and what their answers have. The
//! grammar of requests and answers is in `tests/scenario.rs`.
//!
//! A case begins at 17:00 of 2026-01-11. Steps:
//!
//! - `DEVICE ROOM TIME METRIC=VALUE ...` stores a reading; `-` is no room, `d00..99` are a hundred devices. `DEVICE ROOM TIME every 15m METRIC=LIST ...`
//!   stores several. An item of a list is a number, `1..9`, `10..90/10`, `20*60` (sixty times) or nothing; a list of one
//!   item is the value of each reading. Lines of readings that follow each other are stored at once.
//! - `house NAME` takes the steps of that name in `houses.txt`.
//! - `PAGES URL` walks along the links; its answer has the number of `pages` and all `data`. `QUERY TEXT` asks InfluxQL
//!   and takes the first result. `TOOL NAME ARGUMENTS` calls a tool of `POST /mcp`; its answer is the tool's structure,
//!   or an `error`.
//! - `wait 60s` and `now TIME` set the clock. `another instance` answers from here on; `loaded`: it has read the registry.
//!   `beyond memory`: the registry has more devices and rooms than memory holds.
//! - `rolled up to TIME in ZONE`; `readings expire` leaves the rollups of days alone; `index by conditions` takes a table that has it;
//!   `about DEVICE JSON` is what a sender says of its device.
//! - `token NAME admin`, `read`, `write DEVICE` or `view ROOM HOME` makes a token, and who has none is refused. `as NAME`
//!   sends requests with it. `revoke NAME`.
//!
//! Lines below a request may also be:
//!
//! - `reads NUMBER`, `writes NUMBER`: the calls of the table. `log ~ TEXT`, `log !~ TEXT`.
//! - `as NAME STATUS, NAME STATUS`, by itself: the request with each of these tokens.

mod text;

use domain::{DeviceUpdate, TokenHash, ViewScope, WritableDevices, WriteScope};
use form_urlencoded::byte_serialize;
use table::memory_db::Calls;
use table::{DeleteReadings as _, ManageTokens as _, PutRollups as _, ReadingKey};

use super::*;
use crate::tests::scenario::{
    Case, Line, Step, differs, duration, fail, headers, names, parsed, read,
};

/// A test of each text.
mod texts {
    use crate::tests::scenario;

    scenario::texts! {
        annotations channels conditions cost deletion general homes influxql mcp meters readings registry rooms rules search
        series sources tokens
    }
}

#[test]
fn each_text_is_tested() {
    let mut names = names();
    names.retain(|name| name != "houses");
    assert_eq!(names, texts::TEXTS);
}

async fn run(case: &Case) -> Vec<String> {
    let has_token = |steps: &[Step]| steps.iter().any(|step| step.line.text.starts_with("token "));
    let house = case.steps[0].line.text.strip_prefix("house ").map(house);
    let needs_token = has_token(&case.steps) || house.is_some_and(|house| has_token(&house.steps));

    let mut run = Run::on(Bench::with(needs_token));
    run.take(&case.steps).await;
    run.failures
}

fn house(name: &str) -> Case {
    read("houses").into_iter().find(|house| house.sentence == name).expect(name)
}

impl Bench {
    /// A house of `houses.txt`.
    pub(super) async fn house(name: &str) -> Self {
        Self::empty().with_house(name).await
    }

    pub(super) async fn with_house(self, name: &str) -> Self {
        let mut run = Run::on(self);
        run.take(&house(name).steps).await;
        assert_eq!(run.failures, [""; 0]);
        run.bench
    }

    /// Tells of a device what its sender would.
    async fn describe(&self, text: &str) {
        let (id, about) = text.split_once(' ').expect("a device and what is said");
        let device = self.store.device(&given::device(id), &invocation()).await.expect("memory");
        let about = Some(serde_json::from_str(about).expect("JSON"));
        let learned = DeviceUpdate { about, ..DeviceUpdate::default() };
        let device = device.expect("it is there");
        self.store.update_device(&device, &learned, &invocation()).await.expect("memory");
    }

    /// Leaves the rollups of days alone, as those of quarters of an hour and readings expire before them.
    async fn expire_readings(&self) {
        let keys: Vec<ReadingKey> = self.store.readings().iter().map(ReadingKey::of).collect();
        self.store.delete_readings(&keys, &invocation()).await;
        for mut stored in self.store.rollups() {
            if matches!(stored.key.bucket, Bucket::QuarterHour(_)) {
                self.store.delete_rollup(&stored.key);
                continue;
            }
            let expected = Expected::Version(stored.version);
            (stored.raw_until, stored.version) = (Some(self.clock.now()), stored.version + 1);
            let put = self.store.put_rollup(&stored, expected, &invocation()).await;
            assert!(put.expect("memory"));
        }
    }

    async fn make_token(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let scope = match words[1..] {
            ["admin"] => Scope::Admin,
            ["read"] => Scope::Read,
            ["write", "*"] => {
                let devices = WritableDevices::Any;
                Scope::Write(WriteScope { devices, device_tags: Vec::new(), room_tag: None })
            }
            ["write", device] => Scope::Write([given::device(device)].into()),
            ["view", room, home] => {
                let view = ViewScope::new([given::room(room)].into(), [given::home(home)].into());
                Scope::View(view.expect("a scope"))
            }
            _ => panic!("{text} is no token"),
        };
        let token = given::token(words[0], scope);
        self.store.add_token(&token, &invocation()).await.expect("memory");
    }
}

/// A case that is on its way.
struct Run {
    bench: Bench,
    /// The answer of the last request.
    answer: Answer,
    /// The calls of the table that this request made.
    calls: Calls,
    /// The name of the token that requests have.
    token: String,
    failures: Vec<String>,
}

impl Run {
    fn on(bench: Bench) -> Self {
        let (calls, answer) = (Calls::default(), Answer::of(&Value::Null));
        Self { bench, answer, calls, token: String::new(), failures: Vec::new() }
    }

    async fn take(&mut self, steps: &[Step]) {
        let mut readings = Vec::new();
        for step in steps {
            let text = self.answer.filled_in(&step.line.text);
            if let Some(of_line) = text::readings(&text) {
                readings.extend(of_line);
                continue;
            }
            self.bench.store(&std::mem::take(&mut readings)).await;

            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            match word {
                "house" => Box::pin(self.take(&house(rest).steps)).await,
                "loaded" => self.bench.query.load().await,
                "beyond" => self.bench.fill_beyond_memory().await,
                "the" => assert!(fail(&self.bench.store, &text), "{text}"),
                "revoke" => {
                    let (hash, now) = (TokenHash::of(&given::secret(rest)), self.bench.clock.now());
                    let revoked = self.bench.store.revoke_token(&hash, now, &invocation()).await;
                    assert!(revoked.expect("memory"));
                }
                "wait" => {
                    let time = duration(rest).to_std();
                    self.bench.clock.advance(time.expect("positive"));
                }
                "now" => self.bench.clock.set(given::at(rest)),
                "another" => self.bench = self.bench.again(),
                "rolled" => {
                    let (until, zone) = rest.split_once(" in ").expect("up to TIME in ZONE");
                    let until = given::at(until.trim_start_matches("up to "));
                    self.bench.roll_up(given::zone(zone), until).await;
                }
                "readings" => self.bench.expire_readings().await,
                "index" => self.bench = Bench::on(MemoryDb::with_conditions_index(), false),
                "about" => self.bench.describe(rest).await,
                "token" => self.bench.make_token(rest).await,
                "as" => rest.clone_into(&mut self.token),
                _ => self.ask(step, &text).await,
            }
        }
        self.bench.store(&readings).await;
    }

    /// Sends a request, and checks its answer.
    async fn ask(&mut self, step: &Step, request: &str) {
        let expected = step.expected.iter();
        let expected: Vec<Line> = expected
            .map(|line| Line { number: line.number, text: self.answer.filled_in(&line.text) })
            .collect();
        if let [Line { number, text }] = &expected[..]
            && let Some(tokens) = text.strip_prefix("as ")
        {
            return self.ask_as(tokens, *number, request).await;
        }

        let before = self.bench.store.calls();
        self.answer = self.send(request).await;
        let after = self.bench.store.calls();
        self.calls = Calls {
            reads: after.reads - before.reads,
            registry_writes: after.registry_writes - before.registry_writes,
            puts: after.puts - before.puts,
        };

        let request = Line { number: step.line.number, text: request.to_owned() };
        let expected: Vec<&Line> = expected.iter().collect();
        let differences =
            self.answer.differences(&request, &expected, |line| self.difference(line));
        self.failures.extend(differences);
    }

    /// What the table or the log has in the place of what a line says of it.
    fn difference(&self, expected: &str) -> Option<String> {
        let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        let found = match first {
            "reads" => self.calls.reads.to_string(),
            "writes" => self.calls.registry_writes.to_string(),
            "log" => return differs(&json!(self.bench.log()), rest),
            _ => panic!("{expected}"),
        };
        (found != rest).then_some(found)
    }

    /// Sends a request with each of some tokens, and compares the status.
    async fn ask_as(&mut self, tokens: &str, number: usize, request: &str) {
        for token in tokens.split(", ") {
            let (name, status) = token.split_once(' ').expect("a name and a status");
            name.clone_into(&mut self.token);
            let answer = self.send(request).await;
            if answer.status.to_string() != status {
                let found = format!("{name} {}: {}", answer.status, answer.text);
                self.failures.push(format!("{number}: {request}\n    but {found}"));
            }
        }
    }

    async fn send(&self, request: &str) -> Answer {
        let (method, rest) = request.split_once(' ').unwrap_or((request, ""));
        let (url, body) = rest.split_once(' ').unwrap_or((rest, ""));
        match method {
            "PAGES" => {
                let pages = self.bench.pages(url).await;
                let data: Vec<Value> = pages.iter().flat_map(Answer::rows).collect();
                return Answer::of(&json!({"pages": pages.len(), "data": data}));
            }
            "QUERY" => {
                let query: String = byte_serialize(rest.as_bytes()).collect();
                let answer = self.bench.get(&format!("/query?db=home&epoch=ms&q={query}")).await;
                return Answer::of(&answer.json()["results"][0]);
            }
            "TOOL" => return Answer::of(&self.bench.tool(url, &parsed(body)).await),
            _ => {}
        }

        let (mut headers, body) = headers(body);
        if !matches!(&*self.token, "" | "nobody") {
            headers["authorization"] = json!(format!("Bearer {}", given::secret(&self.token)));
        }
        self.bench.send(method, url, headers, body).await
    }
}
