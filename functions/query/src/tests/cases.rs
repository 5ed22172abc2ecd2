//! The API in cases: a text of `cases/` has sentences, and below each the readings, the requests and the answers that
//! show it.
//!
//! `# SENTENCE` begins a case: an empty table at 17:00 of 2026-01-11. Lines without an indent are done in their order:
//!
//! - `house NAME` does what `houses.txt` says below that name.
//! - `DEVICE ROOM TIME METRIC=VALUE` stores a reading; `-` is no room. With `every 15m` behind the time it stores several:
//!   a value is a list of `1`, of `1..9` by the last digit or `10..90/10`, of `20*60` repeated and of nothing, and a list of one is in
//!   each reading. Readings below each other are stored at once.
//! - `METHOD URL [HEADER: VALUE] BODY` is a request. `PAGES URL` walks along the links: the answer has the number of
//!   `pages` and their `data`. `QUERY TEXT` is one of InfluxQL, whose first result is the answer. `TOOL NAME ARGUMENTS`
//!   is a call of a tool, whose answer is its structure, or its `error`.
//! - `wait 60s`, `now TIME`, `another instance`, `index by conditions`, `rolled up to TIME in ZONE`, `readings expire`, and `about DEVICE
//!   JSON` with what a sender says of its device.
//! - `token NAME SCOPE IDS` makes a token, as only those of an admin and a reader are there; `as NAME` takes it from then
//!   on. A case of tokens refuses whoever has none.
//!
//! Below a request, indented by four, is what its answer must have:
//!
//! - `STATUS` (2xx if none is written), `STATUS TEXT` with what the detail of a problem begins with, `STATUS JSON` with members of the body.
//! - `PLACE = JSON` is all that is there, `PLACE has JSON` has these members, `!= JSON` is another; `~ TEXT` and `!~ TEXT`
//!   contains, or not; `counts NUMBER`. The place is that of JSON pointers; `*` is each row, `1..` the rest of a row, `.`
//!   the whole. A member that is absent is null; `PLACE is absent` refuses null too.
//! - `HEADER: TEXT`, which is empty without the header. `| TEXT` is a line of the body, `reads NUMBER` and `writes
//!   NUMBER` how often the registry was, `log ~ TEXT` what is logged. `as NAME STATUS, NAME STATUS` sends the request with each of these tokens.
//!
//! Lines that are indented by eight go on with the line above. `@16:05` is a time of that day, `@10T16:05` of another day of
//! the month; `{/place}` and `{:header}` are
//! from the answer before, `{:link}` the address of the next page. `//` is a comment.

use chrono::TimeDelta;
use domain::{DeviceUpdate, ViewScope};
use form_urlencoded::byte_serialize;
use table::PutRollups as _;
use table::memory_db::Calls;

use super::*;

/// A test of each text.
mod texts {
    macro_rules! texts {
        ($($name:ident)+) => {
            pub(super) const TEXTS: &[&str] = &[$(stringify!($name)),+];

            $(#[tokio::test]
            async fn $name() {
                super::check(stringify!($name)).await;
            })+
        };
    }

    texts! {
        annotations channels conditions deletion general homes influxql mcp meters readings registry rooms rules search series tokens
    }
}

/// A line of a text, with its number.
struct Line {
    number: usize,
    text: String,
}

/// What is done, and what its answer must have.
struct Step {
    line: Line,
    expected: Vec<Line>,
}

struct Case {
    sentence: String,
    steps: Vec<Step>,
}

fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/cases")
}

fn read(name: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.txt"))).expect(name);
    let mut cases: Vec<Case> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.starts_with("//") {
            continue;
        }
        if let Some(sentence) = text.strip_prefix("# ") {
            cases.push(Case { sentence: sentence.to_owned(), steps: Vec::new() });
            continue;
        }

        let steps = &mut cases.last_mut().expect("a sentence is first").steps;
        let line = Line { number, text: with_times(text.trim_start()) };
        let indent = text.len() - text.trim_start().len();
        match (indent, steps.last_mut()) {
            (0, _) => steps.push(Step { line, expected: Vec::new() }),
            (4, Some(step)) => step.expected.push(line),
            (8.., Some(step)) => {
                let above = step.expected.last_mut().unwrap_or(&mut step.line);
                above.text = format!("{} {}", above.text, line.text);
            }
            _ => panic!("{name}.txt:{number}: is indented by {indent}"),
        }
    }
    cases
}

/// A text with whole timestamps in the place of `@16:05`.
fn with_times(text: &str) -> String {
    let mut parts = text.split('@');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.find(|c: char| !matches!(c, '0'..='9' | ':' | 'T' | '.'));
        let time = part[..length.unwrap_or(part.len())].trim_end_matches([':', '.']);
        let rest = &part[time.len()..];
        if !time.contains(':') {
            whole.extend(["@", part]);
            continue;
        }
        let (day, time) = time.split_once('T').unwrap_or(("11", time));
        let seconds = if time.len() == 5 { ":00" } else { "" };
        let time = given::at(&format!("2026-01-{day}T{time}{seconds}Z"));
        whole.extend([&time.to_string(), rest]);
    }
    whole
}

fn duration(text: &str) -> TimeDelta {
    let (number, unit) = text.split_at(text.len() - 1);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => panic!("{text} is no duration"),
    };
    TimeDelta::seconds(number.parse::<i64>().expect(text) * unit)
}

/// A number of the last decimal's units.
fn shown(number: i64, decimals: usize) -> String {
    let digits = format!("{:0>1$}", number.abs(), decimals + 1);
    let (whole, rest) = digits.split_at(digits.len() - decimals);
    let (sign, point) = (if number < 0 { "-" } else { "" }, if decimals > 0 { "." } else { "" });
    format!("{sign}{whole}{point}{rest}")
}

/// The values of a list, of which those that are empty are missing.
fn values(list: &str) -> Vec<String> {
    let mut values = Vec::new();
    for item in list.split(',') {
        if let Some((value, times)) = item.split_once('*') {
            values.extend(vec![value.to_owned(); times.parse().expect(item)]);
        } else if let Some((first, last)) = item.split_once("..") {
            let decimals = first.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let whole = |text: &str| text.replace('.', "").parse::<i64>().expect(item);
            let (last, step) = last.split_once('/').unwrap_or((last, "1"));
            let numbers = (whole(first)..=whole(last)).step_by(step.parse().expect(item));
            values.extend(numbers.map(|number| shown(number, decimals)));
        } else {
            values.push(item.to_owned());
        }
    }
    values
}

/// The readings of a line.
fn readings(text: &str) -> Vec<Reading> {
    let (head, metrics): (Vec<&str>, Vec<&str>) =
        text.split(' ').partition(|word| !word.contains('='));
    let [device, room, at, ref every @ ..] = head[..] else { panic!("{text} is no step") };
    let step = every.get(1).map_or(TimeDelta::zero(), |step| duration(step));
    let columns = metrics.iter().map(|metric| metric.split_once('=').expect("a value"));
    let columns: Vec<(&str, Vec<String>)> =
        columns.map(|(name, list)| (name, values(list))).collect();
    let rows = columns.iter().map(|(_, values)| values.len()).max().expect("a metric");

    let mut at = given::at(at);
    let mut readings = Vec::new();
    for row in 0..rows {
        let cell = |values: &[String]| match values {
            [one] => one.clone(),
            values => values.get(row).cloned().unwrap_or_default(),
        };
        let cells: Vec<(&str, String)> =
            columns.iter().map(|(name, values)| (*name, cell(values))).collect();
        let cells: Vec<(&str, &str)> =
            cells.iter().map(|(name, value)| (*name, &**value)).collect();
        let cells: Vec<_> = cells.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        if !cells.is_empty() {
            readings.push(given::reading(
                device,
                at,
                Some(room).filter(|room| *room != "-"),
                &cells,
            ));
        }
        at = at.saturating_add(step);
    }
    readings
}

// ---- Steps -------------------------------------------------------------------------------------

/// A case that is on its way.
struct Run {
    bench: Bench,
    /// The answer of the last request.
    answer: Answer,
    /// What that request asked of the table.
    calls: Calls,
    /// The name of the token that requests have.
    token: String,
    failures: Vec<String>,
}

async fn check(name: &str) {
    let mut failures = Vec::new();
    for case in read(name) {
        for failure in run(&case).await {
            let place = format!("functions/query/src/tests/cases/{name}.txt:{failure}");
            failures.push(format!("{}\n  {place}", case.sentence));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

async fn run(case: &Case) -> Vec<String> {
    let has_token = |steps: &[Step]| steps.iter().any(|step| step.line.text.starts_with("token "));
    let first = case.steps[0].line.text.strip_prefix("house ");
    let needs_tokens = has_token(&case.steps) || first.is_some_and(|name| has_token(&house(name)));
    let mut run = Run::on(Bench::with(needs_tokens));
    run.take(&case.steps).await;
    run.failures
}

/// The steps of a house of `houses.txt`.
fn house(name: &str) -> Vec<Step> {
    read("houses").into_iter().find(|house| house.sentence == name).expect(name).steps
}

impl Bench {
    /// A house of `houses.txt`.
    pub(super) async fn house(name: &str) -> Self {
        Self::empty().with_house(name).await
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

    /// Marks each rollup as one whose readings have expired.
    async fn expire(&self) {
        for mut stored in self.store.rollups() {
            let expected = Expected::Version(stored.version);
            (stored.raw_until, stored.version) = (Some(self.clock.now()), stored.version + 1);
            let put = self.store.put_rollup(&stored, expected, &invocation()).await;
            assert!(put.expect("memory"));
        }
    }

    pub(super) async fn with_house(self, name: &str) -> Self {
        let mut run = Run::on(self);
        run.take_house(name).await;
        assert_eq!(run.failures, [""; 0]);
        run.bench
    }
}

impl Run {
    fn on(bench: Bench) -> Self {
        let (calls, answer) = (Calls::default(), Answer::of(&Value::Null));
        Self { bench, answer, calls, token: String::new(), failures: Vec::new() }
    }

    async fn take_house(&mut self, name: &str) {
        Box::pin(self.take(&house(name))).await;
    }

    async fn take(&mut self, steps: &[Step]) {
        let mut together = Vec::new();
        for step in steps {
            let text = self.filled_in(&step.line.text);
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            if rest.split(' ').nth(1).is_some_and(|time| Timestamp::parse_absolute(time).is_ok()) {
                together.extend(readings(&text));
                continue;
            }
            self.bench.store(&std::mem::take(&mut together)).await;

            match word {
                "house" => self.take_house(rest).await,
                "wait" => self.bench.clock.advance(duration(rest).to_std().expect("positive")),
                "now" => self.bench.clock.set(given::at(rest)),
                "another" => self.bench = self.bench.again(),
                "rolled" => {
                    let (until, zone) = rest.split_once(" in ").expect("up to TIME in ZONE");
                    let until = given::at(until.trim_start_matches("up to "));
                    self.bench.roll_up(given::zone(zone), until).await;
                }
                "index" => self.bench = Bench::on(MemoryDb::with_conditions_index(), false),
                "about" => self.bench.describe(rest).await,
                "readings" => self.bench.expire().await,
                "token" => self.make_token(rest).await,
                "as" => rest.clone_into(&mut self.token),
                _ => self.ask(step, word, rest).await,
            }
        }
        self.bench.store(&together).await;
    }

    /// A text with what it takes from the answer before.
    fn filled_in(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{/").into_iter().chain(rest.find("{:")).min() {
            let end = start + rest[start..].find('}').expect("{/place}");
            let place = &rest[start + 1..end];
            filled.push_str(&rest[..start]);
            match place.strip_prefix(':') {
                Some("link") => filled.push_str(self.answer.next().expect("a link")),
                Some(header) => filled.push_str(self.answer.header(header)),
                None => match find(&self.answer.body(), place.trim_end_matches('/')) {
                    Some(Value::String(text)) => filled.push_str(&text),
                    found => filled.push_str(&found.unwrap_or_default().to_string()),
                },
            }
            rest = &rest[end + 1..];
        }
        filled + rest
    }

    async fn make_token(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let scope = match words[1..] {
            ["admin"] => Scope::Admin,
            ["read"] => Scope::Read,
            ["write", device] => Scope::Write([given::device(device)].into()),
            ["view", room, home] => {
                let view = ViewScope::new([given::room(room)].into(), [given::home(home)].into());
                Scope::View(view.expect("a scope"))
            }
            _ => panic!("{text} is no token"),
        };
        let token = given::token(words[0], scope);
        self.bench.store.add_token(&token, &invocation()).await.expect("memory");
    }

    /// Sends a request, and checks its answer.
    async fn ask(&mut self, step: &Step, method: &str, rest: &str) {
        let mut expected: Vec<(usize, String)> =
            step.expected.iter().map(|line| (line.number, self.filled_in(&line.text))).collect();
        if let Some((number, text)) = expected.iter().find(|(_, text)| text.starts_with("as ")) {
            assert_eq!(
                expected.len(),
                1,
                "{number}: of tokens the status is compared, and no more"
            );
            let wrong = self.ask_as(&text[3..], method, rest).await;
            let failure = |found| format!("{number}: {method} {rest}\n    but {found}");
            self.failures.extend(wrong.map(failure));
            return;
        }

        let before = self.bench.store.calls();
        self.answer = self.send(method, rest).await;
        let after = self.bench.store.calls();
        self.calls = Calls {
            reads: after.reads - before.reads,
            registry_writes: after.registry_writes - before.registry_writes,
            puts: after.puts - before.puts,
        };

        let states_status =
            |text: &str| text.starts_with("as ") || text.as_bytes()[0].is_ascii_digit();
        if !expected.iter().any(|(_, text)| states_status(text))
            && !(200..300).contains(&self.answer.status)
        {
            expected.insert(0, (step.line.number, "200".to_owned()));
        }
        let lines: Vec<&str> =
            expected.iter().filter_map(|(_, text)| text.strip_prefix("| ")).collect();
        if !lines.is_empty() && self.answer.text.lines().ne(lines) {
            let number = step.line.number;
            self.failures
                .push(format!("{number}: {method} {rest}\n    answered\n{}", self.answer.text));
        }
        for (number, text) in expected {
            if let Some(found) = self.difference(&text) {
                self.failures.push(format!(
                    "{number}: {method} {rest}\n    expected {text}\n    but {found}"
                ));
            }
        }
    }

    /// Sends a request with tokens, of each of which the status is expected.
    async fn ask_as(&mut self, tokens: &str, method: &str, rest: &str) -> Option<String> {
        let mut wrong = Vec::new();
        for token in tokens.split(", ") {
            let (name, status) = token.split_once(' ').expect("a name and a status");
            name.clone_into(&mut self.token);
            let answer = self.send(method, rest).await;
            if answer.status.to_string() != status {
                wrong.push(format!("{name} {}: {}", answer.status, answer.text));
            }
        }
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }

    async fn send(&self, method: &str, rest: &str) -> Answer {
        let (mut url, mut body) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut headers = json!({});
        if !self.token.is_empty() && self.token != "nobody" {
            headers["authorization"] = json!(format!("Bearer {}", given::secret(&self.token)));
        }
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

        while let Some((header, rest)) =
            body.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            let Some((name, value)) = header.split_once(": ") else { break };
            if name.contains('"') {
                break;
            }
            headers[name] = json!(value);
            body = rest.trim_start();
        }
        if url.is_empty() {
            url = "/";
        }
        self.bench.send(method, url, headers, body).await
    }

    // ---- Answers -------------------------------------------------------------------------------

    /// What is there in the place of what is expected.
    fn difference(&self, expected: &str) -> Option<String> {
        let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        let answer = &self.answer;
        if first == "|" {
            return None;
        }
        if first.parse::<i64>().is_ok() {
            let found = format!("{} {}", answer.status, answer.text);
            let is_so = first == answer.status.to_string()
                && match rest.chars().next() {
                    None => true,
                    Some('{' | '[') => holds(&answer.body(), &parsed(rest)),
                    Some('=') => answer.body() == parsed(&rest[2..]),
                    Some(_) => answer.problem().starts_with(expected),
                };
            return (!is_so).then_some(found);
        }
        if first.starts_with(['/', '.']) {
            return self.difference_at(first.trim_start_matches('.'), rest);
        }
        let found = match first {
            "reads" => self.calls.reads.to_string(),
            "writes" => self.calls.registry_writes.to_string(),
            "log" => return differs(&json!(self.bench.log()), rest),
            header => {
                let name = header.strip_suffix(':').unwrap_or_else(|| panic!("{expected}"));
                answer.header(name).to_owned()
            }
        };
        (found != rest).then_some(found)
    }

    fn difference_at(&self, place: &str, expected: &str) -> Option<String> {
        if place.is_empty() && expected.contains("~ ") {
            return differs(&json!(self.answer.text), expected);
        }
        let body = self.answer.body();
        let found = find(&body, place);
        if expected == "is absent" {
            return found.map(|found| found.to_string());
        }
        let difference = differs(&found.unwrap_or_default(), expected);
        difference.map(|found| if found == "null" { format!("nothing in {body}") } else { found })
    }
}

impl Answer {
    /// The body as JSON, or as a text.
    fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| json!(self.text))
    }

    fn of(body: &Value) -> Self {
        Self { status: 200, headers: Value::Null, text: body.to_string(), event_bytes: 0 }
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// What is there in the place of what a verb and its value say.
fn differs(found: &Value, expected: &str) -> Option<String> {
    let (verb, text) = expected.split_once(' ').expect("a verb and a value");
    let shown = || found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned);
    let is_so = match verb {
        "=" => *found == parsed(text),
        "!=" => *found != parsed(text),
        "has" => holds(found, &parsed(text)),
        "~" => shown().contains(text),
        "!~" => !shown().contains(text),
        "counts" => found.as_array().map(Vec::len) == text.parse().ok(),
        _ => panic!("{verb} is no verb"),
    };
    (!is_so).then(shown)
}

/// Whether a value has the members of another, where null is absent.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(_), Value::Object(members)) => {
            members.iter().all(|(name, expected)| holds(&found[name], expected))
        }
        (Value::Array(rows), Value::Array(expected)) => {
            rows.len() == expected.len() && rows.iter().zip(expected).all(|(row, e)| holds(row, e))
        }
        _ => found == expected,
    }
}

/// What is at a place.
fn find(value: &Value, place: &str) -> Option<Value> {
    let Some(path) = place.strip_prefix('/') else { return Some(value.clone()) };
    let (name, _) = path.split_once('/').unwrap_or((path, ""));
    let further = &path[name.len()..];
    if name == "*" {
        let rows = value.as_array()?.iter();
        return Some(rows.map(|row| find(row, further).unwrap_or_default()).collect());
    }
    if let Some(first) = name.strip_suffix("..") {
        let cells = value.as_array()?.get(first.parse().expect(name)..)?;
        return Some(json!(cells));
    }
    find(value.pointer(&format!("/{name}"))?, further)
}

#[test]
fn each_text_is_tested() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("a folder")
        .map(|file| file.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|name| name != "houses")
        .collect();
    names.sort();
    assert_eq!(names, texts::TEXTS);
}
