//! What the function answers and stores, in cases: the texts of `cases/`. The grammar of requests and answers is in
//! `tests/scenario.rs`.
//!
//! A case begins at 16:00 of 2026-01-11, on a table without tokens. Steps:
//!
//! - `METHOD URL [HEADER: VALUE] BODY`; ` ⏎ ` is an end of a line of the body, `{fields 0..256}` are fields of a line,
//!   `f0=0` to `f255=255`, and `{metrics 0..64}` are members of a reading, `"m0": 1` to `"m63": 1`. The headers `gateway-id` and `gateway-time`
//!   are not sent: they are the id and the time, after 16:00, that the gateway gives to the request.
//! - `MQTT DEVICE PAYLOAD` is a message that the broker took at 16:00:00.007, `TOPIC TOPIC PAYLOAD` a payload of its own
//!   at 16:00:03. Their answer is the receipt; a message that AWS repeats has the status 500.
//! - `FETCHED MEMBERS <- BODY` is an answer that a source gave at 16:00:00.007, with these members of the event beside
//!   those of [`fetched`].
//! - `guarded`: there are the tokens `one` (writes `d`), `two` (writes `d` and `e`), `read`, `admin` and `revoked`. `as NAME`
//!   sends requests with it, `{secret NAME}` is its text. `revoke NAME`. `at most 2 devices a token` sets the limit.
//! - `loaded`: the instance has read the registry. `another instance` answers from here on; `another table` is empty.
//!   `wait 60s` sets the clock.
//! - `beyond memory`: the registry has more devices than memory holds, `d0` to `d10000` in the room `r`. `deleted`: all
//!   readings are.
//! - `left out 1, 2`: the table does not store these readings of the next write. `throttled 0`: it throttles the first of
//!   those that are merged next.
//! - `zone NAME` is the home's; `damaged rollups`: their state is. `learned`: the function registry has read what is
//!   stored.
//! - `person DEVICE room ROOM`, `name NAME` and `role METRIC none` are edits of a person; `role METRIC -` takes the role
//!   away.
//!
//! Lines below a step may also be:
//!
//! - `stored DEVICE ROOM TIME METRIC=VALUE ...`: the lines are all stored readings, by time and device. `-` is no room,
//!   `(ROOM)` one that the registry filled in, `NAMED>ROOM` another than the sender named. `stored NUMBER`: so many are.
//! - `known DEVICE ROOM NAME`: the lines are all devices of the registry; `-` is no room or no name.
//! - `room ROOM NAME`: the lines are all rooms of the registry. `metric DEVICE METRIC KIND UNIT HOLD`: a metric as the
//!   registry has it; behind the unit are its hold, `net`, its cycle and its role, if it has some. `metrics DEVICE NUMBER`: so many are known of the device.
//! - `reads NUMBER`, `puts NUMBER`, `writes NUMBER`: the calls of the table; writes are of the registry. `log ~ TEXT`, `log !~ TEXT`.
//! - `as NAME STATUS, NAME STATUS`, by itself: the request with each of these tokens, a millisecond after the other.

use domain::given::metric;
use domain::{Label, MetricPatch, Unit};
use table::memory_db::{Calls, on};
use table::{Action, Target};

use super::fetched::fetched;
use super::payloads::topic_message;
use super::*;
use crate::tests::scenario::{Case, Line, Step, differs, duration, fail, headers, names};

/// A test of each text.
mod texts {
    use crate::tests::scenario;

    scenario::texts! {
        arrivals fetched limits lines mqtt payloads readings registry tokens
    }
}

#[test]
fn each_text_is_tested() {
    assert_eq!(names(), texts::TEXTS);
}

async fn run(case: &Case) -> Vec<String> {
    let is_guarded = case.steps[0].line.text == "guarded";
    let bench = if is_guarded { Bench::guarded().await } else { Bench::new() };
    let mut run = Run {
        bench,
        is_guarded,
        answer: Answer::of(&Value::Null),
        calls: Calls::default(),
        token: String::new(),
        failures: Vec::new(),
    };
    for step in &case.steps {
        run.take(step).await;
    }
    run.failures
}

/// A case that is on its way.
struct Run {
    bench: Bench,
    is_guarded: bool,
    /// The answer to the last request.
    answer: Answer,
    /// The calls of the table that the last step made.
    calls: Calls,
    /// The name of the token that requests have.
    token: String,
    failures: Vec<String>,
}

impl Bench {
    /// The rooms of the registry, each with its name.
    async fn rooms(&self) -> Vec<String> {
        let rooms = self.store.rooms(&invocation()).await.expect("memory").found;
        let name = |room: &domain::Room| room.name.clone().map_or("-".to_owned(), String::from);
        rooms.iter().map(|room| format!("{} {}", room.id, name(room))).collect()
    }
}

impl Run {
    async fn take(&mut self, step: &Step) {
        let text = with_many(&with_secrets(&self.answer.filled_in(&step.line.text)));
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let expected = step.expected.iter();
        let expected = expected
            .map(|line| Line { number: line.number, text: self.answer.filled_in(&line.text) })
            .collect::<Vec<Line>>();
        let store = &self.bench.store;
        let mut before = store.calls();
        match word {
            "guarded" => {}
            "as" => rest.clone_into(&mut self.token),
            "revoke" => {
                let (hash, now) = (TokenHash::of(&given::secret(rest)), self.bench.clock.now());
                let revoked = self.bench.store.revoke_token(&hash, now, &invocation()).await;
                assert!(revoked.expect("memory"));
            }
            "at" => {
                let number = rest.split(' ').nth(1).expect("at most NUMBER");
                let settings = &mut self.bench.ingest.pipeline.settings;
                settings.max_devices_per_token = number.parse().expect(number);
            }
            "loaded" => self.bench.ingest.load().await,
            "another" => {
                let is_empty = rest == "table";
                let store = if is_empty { MemoryDb::default() } else { self.bench.store.clone() };
                self.bench = Bench::with(store, self.is_guarded);
                before = self.bench.store.calls();
            }
            "wait" => self.bench.clock.advance(duration(rest).to_std().expect("positive")),
            "left" => {
                let positions = rest.trim_start_matches("out ").split(", ");
                let positions = positions.map(|position| position.parse().expect(position));
                store.leave_not_stored(&positions.collect::<Vec<usize>>());
            }
            "throttled" => {
                let throttled = StoreError::Throttled("for now".into());
                let before = rest.parse().expect(rest);
                store.fail(on(Action::UpdateItem, Target::Readings), before, throttled);
            }
            "the" => assert!(fail(store, &text), "{text}"),
            "damaged" => given::damage_rollup_state(&self.bench.store).await,
            "zone" => given::seal(&self.bench.store, rest, Timestamp::MIN).await,
            "person" => {
                let [device, member, value] = rest.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{rest}")
                };
                let patch = match member {
                    "room" => {
                        DevicePatch { room: Edit::Set(given::room(value)), ..Default::default() }
                    }
                    "name" => {
                        DevicePatch { name: Edit::Set(given::label(value)), ..Default::default() }
                    }
                    "role" => {
                        let (name, role) = value.split_once(' ').expect("a metric and a role");
                        let role = match role {
                            "-" => Edit::Clear,
                            "none" => Edit::Set(domain::Role::None),
                            _ => panic!("{rest}"),
                        };
                        let settings = MetricPatch { role, ..MetricPatch::default() };
                        let metrics = [(metric(name), Some(settings))].into();
                        DevicePatch { metrics, ..DevicePatch::default() }
                    }
                    _ => panic!("{rest}"),
                };
                self.bench.edit(device, patch).await;
            }
            "learned" => self.bench.learn().await,
            "beyond" => fill_beyond_memory(&self.bench).await,
            "deleted" => {
                let keys: Vec<_> = store.readings().iter().map(ReadingKey::of).collect();
                store.delete_readings(&keys, &invocation()).await;
            }
            _ => {
                if let [Line { number, text: tokens }] = &step.expected[..]
                    && let Some(tokens) = tokens.strip_prefix("as ")
                {
                    return self.ask_as(tokens, *number, &text).await;
                }
                self.answer = self.send(word, rest).await;
            }
        }
        let after = self.bench.store.calls();
        self.calls = Calls {
            reads: after.reads - before.reads,
            registry_writes: after.registry_writes - before.registry_writes,
            puts: after.puts - before.puts,
        };
        self.compare(&step.line, &expected).await;
    }

    /// Sends a request with each of some tokens, and compares the status.
    async fn ask_as(&mut self, tokens: &str, number: usize, request: &str) {
        let (method, rest) = request.split_once(' ').expect("a method");
        for token in tokens.split(", ") {
            let (name, status) = token.split_once(' ').expect("a name and a status");
            name.clone_into(&mut self.token);
            self.bench.clock.advance(Duration::from_millis(1));
            let answer = self.send(method, rest).await;
            if answer.status.to_string() != status {
                let found = format!("{name} {}: {}", answer.status, answer.text);
                self.failures.push(format!("{number}: {request}\n    but {found}"));
            }
        }
    }

    async fn send(&self, method: &str, rest: &str) -> Answer {
        let (url, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let event = match method {
            "FETCHED" => {
                let (members, body) = rest.split_once(" <- ").expect("members and a body");
                fetched(members, body)
            }
            "MQTT" => mqtt(url, with_lines(body).as_bytes()),
            "TOPIC" => topic_message(url, body),
            _ => self.request(method, url, body),
        };

        let event: Event = serde_json::from_str(&event.to_string()).expect("an event");
        match self.bench.ingest.handle(event, Deadline::after(TIMEOUT)).await {
            Ok(Reply::Http(answer)) => Answer::in_reply(&json!(answer)),
            Ok(Reply::Iot(receipt)) => Answer::of(&json!(receipt)),
            Ok(Reply::Fetched(receipt)) => Answer::of(&json!(receipt)),
            Err(failed) => Answer { status: 500, ..Answer::of(&json!(failed.to_string())) },
        }
    }

    fn request(&self, method: &str, url: &str, body: &str) -> Value {
        let (mut headers, body) = headers(body);
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let mut event = http(method, path, &with_lines(body));
        event["rawQueryString"] = json!(query);

        let of_headers = headers.as_object_mut().expect("headers");
        if let Some(id) = of_headers.remove("gateway-id") {
            event["requestContext"]["requestId"] = id;
        }
        if let Some(time) = of_headers.remove("gateway-time") {
            let time = duration(time.as_str().expect("a duration"));
            let time = given::START + time.num_milliseconds();
            event["requestContext"]["timeEpoch"] = json!(time);
        }
        if !matches!(&*self.token, "" | "nobody") {
            let authorization = format!("Bearer {}", given::secret(&self.token));
            of_headers.insert("authorization".to_owned(), authorization.into());
        }
        event["headers"] = headers;
        event
    }

    /// Compares the answer, the table and the log with the lines below a step.
    async fn compare(&mut self, step: &Line, expected: &[Line]) {
        let devices = self.bench.store.all_devices();
        let known: Vec<String> = devices.iter().map(shown_device).collect();
        let stored: Vec<String> = self.bench.store.readings().iter().map(shown_reading).collect();

        let (of_table, of_answer): (Vec<&Line>, Vec<&Line>) = expected.iter().partition(|line| {
            ["stored ", "known ", "room "].iter().any(|word| line.text.starts_with(word))
        });
        let rooms = if of_table.iter().any(|line| line.text.starts_with("room ")) {
            self.bench.rooms().await
        } else {
            Vec::new()
        };
        for (word, found) in [("stored ", &stored), ("known ", &known), ("room ", &rooms)] {
            let expected = of_table.iter().filter_map(|line| line.text.strip_prefix(word));
            let expected: Vec<&str> = expected.collect();
            let is_so = match expected[..] {
                [] => true,
                [number] if !number.contains(' ') => number.parse() == Ok(found.len()),
                _ => *found == expected,
            };
            if !is_so {
                let found = format!("{word}\n    {}", found.join(&format!("\n    {word}")));
                let Line { number, text } = step;
                self.failures.push(format!("{number}: {text}\n    but {found}"));
            }
        }

        let is_request = step.text.split(' ').next().is_some_and(is_method);
        let answer = if is_request { &self.answer } else { &Answer::of(&Value::Null) };
        let differences =
            answer.differences(step, &of_answer, |line| self.difference(line, &devices));
        self.failures.extend(differences);
    }

    /// What the table or the log has in the place of what a line says of it.
    fn difference(&self, expected: &str, devices: &[Device]) -> Option<String> {
        let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        let found = match first {
            "reads" => self.calls.reads.to_string(),
            "puts" => self.calls.puts.to_string(),
            "writes" => self.calls.registry_writes.to_string(),
            "metric" => return different_metric(rest, devices),
            "metrics" => {
                let of_device = |device: &&Device| rest.starts_with(&format!("{} ", device.id()));
                let device = devices.iter().find(of_device).expect("it is known");
                format!("{} {}", device.id(), device.metrics().len())
            }
            "log" => return differs(&json!(self.bench.log()), rest),
            _ => panic!("{expected}"),
        };
        (found != rest).then_some(found)
    }
}

/// Whether a word is the method of a request, and not another step.
fn is_method(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn with_lines(body: &str) -> String {
    body.replace("⏎ ", "\n").replace(" \n", "\n")
}

/// A text with many fields in the place of `{fields 0..9}`, and many members in that of `{metrics 0..9}`.
fn with_many(text: &str) -> String {
    let field = |n: usize| format!("f{n}={n}");
    let member = |n: usize| format!("\"m{n}\": 1");
    let texts: [(&str, &dyn Fn(usize) -> String); 2] =
        [("{fields ", &field), ("{metrics ", &member)];
    let mut whole = text.to_owned();
    for (opening, written) in texts {
        while let Some((before, rest)) = whole.split_once(opening) {
            let (numbers, behind) = rest.split_once('}').expect("its end");
            let (first, end) = numbers.split_once("..").expect("a range");
            let numbers = first.parse().expect(first)..end.parse().expect(end);
            let many: Vec<String> = numbers.map(written).collect();
            whole = format!("{before}{}{behind}", many.join(","));
        }
    }
    whole
}

/// A text with the secrets in the place of `{secret NAME}`.
fn with_secrets(text: &str) -> String {
    let mut parts = text.split("{secret ");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').expect("{secret NAME}");
        whole.extend([&given::secret(name), rest]);
    }
    whole
}

fn shown_reading(reading: &Reading) -> String {
    let room = match (&reading.named_room, &reading.room) {
        (_, None) => "-".to_owned(),
        (None, Some(room)) => format!("({room})"),
        (Some(named), Some(room)) if named == room => room.to_string(),
        (Some(named), Some(room)) => format!("{named}>{room}"),
    };
    let mut shown = format!("{} {room} {}", reading.device, reading.at);
    for (name, value) in reading.metrics() {
        shown += &format!(" {name}={value}");
    }
    shown
}

/// The id, the room and the name of a device.
fn shown_device(device: &Device) -> String {
    let room = device.place().room().map_or("-", RoomId::as_str);
    let name = device.shown_name().map_or("-", Label::as_str);
    format!("{} {room} {name}", device.id())
}

/// What a metric is instead of `DEVICE METRIC KIND UNIT`.
fn different_metric(expected: &str, devices: &[Device]) -> Option<String> {
    let words: Vec<&str> = expected.split(' ').collect();
    let device = devices.iter().find(|device| device.id().as_str() == words[0]);
    let info = device.and_then(|device| device.metrics().get(&metric(words[1])));
    let found = info.map_or_else(String::new, |info| {
        let unit = info.unit.as_ref().map_or("-", Unit::as_str);
        let hold = info.hold.map(|hold| format!(" {}m", hold.num_minutes())).unwrap_or_default();
        let net = if info.is_net { " net" } else { "" };
        let cycle = info.cycle.as_ref().map(|cycle| format!(" cycle {cycle}")).unwrap_or_default();
        let role = info.role.map(|role| format!(" {}", role.as_str())).unwrap_or_default();
        format!("{} {unit}{hold}{net}{cycle}{role}", info.kind.as_str())
    });
    (found != words[2..].join(" ")).then_some(found)
}
