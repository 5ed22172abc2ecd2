//! A client of the API of a system: over HTTP, or by functions in this process. The only place that repeats requests.
//! Knows no endpoint.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use aws::StoreConfig;
use local::{DataDirectory, TableApi};
use runtime::clock::Stopwatch;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;

pub(crate) use history::address::READY;
use history::address::{
    ensure_no_query, is_http, proxy_to, redirection, says_roomtide, split_login,
};

pub(crate) use crate::ask::{Answer, Ask, FieldError, Problem};
use crate::defaults::{DATA_DIR, SERVER};
use crate::here::Here;
use crate::interrupted::Interrupted;
use crate::output::print_error;
use crate::pace::{ATTEMPTS, FIRST_PAUSE, HALF, Pace};
use crate::settings_file;

/// The maximum pause between two attempts of a request.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The time after which a request whose answer was lost has surely ended: longer than a function's time-out.
pub(crate) const MAX_REQUEST: Duration = Duration::from_secs(30);

/// The end of an error message about an invalid token.
const TOKEN_FORM: &str = "a token is one word of ASCII without blanks, alone in its file; one of Roomtide begins with rt_, and \
    `roomtide token create --quiet` prints it so";

/// A client of one system: a server, a deployed table, or the data of a directory. Blocks, so it must not be used on a
/// thread of the runtime.
pub(crate) struct Client {
    to: To,
    /// The name of the system, for messages: the address of a server without user name and password, or else the path or
    /// the table.
    url: String,
    /// The pace of GET requests: half of the table's read units.
    reads: Pace,
    /// The number of attempts of a request.
    attempts: u32,
    first_pause: Duration,
    max_request: Duration,
    interrupted: Arc<AtomicBool>,
}

/// Where the requests go.
enum To {
    Server(RemoteServer),
    /// The functions run in this process, on a table that others use, too.
    Table(Box<TableApi>, Handle),
    /// The functions run in this process, or on the table of the process that has the data open.
    Data(DataDirectory, Handle),
    /// This process has the data open for an import.
    Loading(Arc<Here>),
}

/// A server, over HTTP.
struct RemoteServer {
    agent: ureq::Agent,
    /// The address of requests. A user name and password in it belong to a proxy in front of Roomtide.
    address: String,
    authorization: Option<String>,
    /// Whether the server has answered before. Until then, a failed connection is not retried.
    reached: AtomicBool,
    /// Whether the server is known to be Roomtide. No other server gets a token or a change.
    recognized: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// The result of one attempt of a request.
enum RequestAttempt {
    Answered(Answer),
    /// The same request may get another answer after this pause.
    Failed {
        why: anyhow::Error,
        pause: Duration,
    },
}

impl Client {
    /// Makes a client of the server at `url`.
    pub(crate) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        if !is_http(url) {
            // Without a scheme, a user name and password are not told from the rest.
            bail!("--url: expected an address that begins with http:// or https://");
        }

        ensure_no_query(url).context("--url")?;
        let address = url.trim_end_matches('/').to_owned();
        let url = without_login(&address);
        let server = RemoteServer {
            agent: agent(&address, MAX_REQUEST * 2),
            address,
            authorization: token.map(|token| format!("Bearer {token}")),
            reached: AtomicBool::new(false),
            recognized: AtomicBool::new(false),
        };
        Ok(Self::to(To::Server(server), url))
    }

    /// Opens the API of a deployed table, or of one restored from a backup. Only the table has to exist.
    pub(crate) fn of_table(config: StoreConfig) -> anyhow::Result<Self> {
        let runtime = Handle::current();
        let (table, region) = (config.table.clone(), config.region.clone());
        let api = runtime.block_on(Box::pin(TableApi::connect(config)));
        let api = api.with_context(|| format!("the table {table} cannot be read"))?;
        let name = format!("table {table} in {region}");
        let reads = Pace::half_of(api.max_read_units());
        Ok(Self { reads, ..Self::to(To::Table(Box::new(api), runtime), name) })
    }

    /// Opens the data in a directory, which a server may have open.
    pub(crate) fn of_data(directory: &Path) -> anyhow::Result<Self> {
        let runtime = Handle::current();
        let data = runtime.block_on(async {
            let data = open_data(directory).await?;
            // The registry lacks changes that the stream still holds.
            data.settle().await?;
            anyhow::Ok(data)
        })?;
        let name = format!("data in {}", directory.display());
        Ok(Self::to(To::Data(data, runtime), name))
    }

    /// Makes a client of data that no server has open, for an import. New data are made by the first request.
    pub(crate) fn loading(directory: &Path) -> anyhow::Result<Self> {
        let here = Here::of(directory)?;
        Ok(Self::to(To::Loading(Arc::new(here)), directory.display().to_string()))
    }

    fn to(to: To, url: String) -> Self {
        Self {
            to,
            url,
            reads: Pace::of(HALF),
            attempts: ATTEMPTS,
            first_pause: FIRST_PAUSE,
            max_request: MAX_REQUEST,
            interrupted: Arc::default(),
        }
    }

    /// Makes a client for a caller who waits for each answer: a single attempt of at most this time.
    pub(crate) fn that_asks_once(mut self, time_limit: Duration) -> Self {
        if let To::Server(server) = &mut self.to {
            server.agent = agent(&server.address, time_limit);
        }
        Self { attempts: 1, ..self }
    }

    /// Closes what was opened. New data are removed if the import stored nothing there.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        match self.to {
            To::Data(data, runtime) => runtime.block_on(data.close()),
            To::Loading(here) => Arc::into_inner(here).map_or(Ok(()), Here::close),
            To::Server(_) | To::Table(..) => Ok(()),
        }
    }

    /// The flag that stops the client.
    pub(crate) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Sends a GET request until its answer is final.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Ask::get(path))
    }

    /// Sends a request until its answer is final. Before a token or a change is sent, the server has to prove to be
    /// Roomtide: at the default address any program may listen.
    pub(crate) fn send(&self, ask: Ask<'_>) -> anyhow::Result<Answer> {
        self.send_unless(ask, &AtomicBool::new(false))
    }

    /// Sends a request as [`send`](Self::send) does, unless `stop` is set meanwhile.
    pub(crate) fn send_unless(&self, ask: Ask<'_>, stop: &AtomicBool) -> anyhow::Result<Answer> {
        let To::Server(RemoteServer { authorization, .. }) = &self.to else {
            return self.send_until_final(ask, None, stop);
        };
        if authorization.is_some() || ask.method != "GET" {
            self.ensure_roomtide()?;
        }
        self.send_until_final(ask, authorization.as_deref(), stop)
    }

    /// Fails with [`NotRoomtide`] if another program answers. That program gets one request and no token.
    pub(crate) fn ensure_roomtide(&self) -> anyhow::Result<()> {
        let To::Server(RemoteServer { recognized, .. }) = &self.to else { return Ok(()) };
        if recognized.load(Ordering::Relaxed) {
            return Ok(());
        }
        let answer = self.send_until_final(Ask::get(READY), None, &AtomicBool::new(false))?;
        if !says_roomtide(answer.status, &answer.text) {
            return Err(NotRoomtide { url: self.url.clone(), answer }.into());
        }
        recognized.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sends a request until its answer is final. GET requests keep to the pace of reads.
    fn send_until_final(
        &self,
        ask: Ask<'_>,
        authorization: Option<&str>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Answer> {
        let mut pause = self.first_pause;
        for attempt in 1.. {
            if ask.method == "GET" {
                sleep(self.reads.take(0.0), &[stop, &self.interrupted]);
            }
            if self.interrupted.load(Ordering::Acquire) {
                return Err(Interrupted.into());
            }
            if stop.load(Ordering::Acquire) {
                bail!("another request failed");
            }

            match self.attempt(ask, authorization, pause)? {
                RequestAttempt::Answered(answer) => return Ok(answer),
                RequestAttempt::Failed { why, .. } if attempt == self.attempts => return Err(why),
                RequestAttempt::Failed { why, pause } => self.wait(pause, &why, stop),
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
        unreachable!("the last attempt returns")
    }

    /// Sends a request once. `pause` is the usual one before the next attempt.
    fn attempt(
        &self,
        ask: Ask<'_>,
        authorization: Option<&str>,
        pause: Duration,
    ) -> anyhow::Result<RequestAttempt> {
        let answer = match &self.to {
            To::Server(server) => match self.ask_server(server, ask, authorization, pause)? {
                RequestAttempt::Answered(answer) => answer,
                failed @ RequestAttempt::Failed { .. } => return Ok(failed),
            },
            To::Table(api, runtime) => in_process(ask, |ask| runtime.block_on(api.send(ask)))?,
            To::Data(data, runtime) => in_process(ask, |ask| runtime.block_on(data.send(ask)))?,
            To::Loading(here) => in_process(ask, |ask| here.send(ask))?,
        };

        if ask.method == "GET" {
            self.reads.learn(answer.units.max_read);
            self.reads.settle(0.0, answer.units.read);
        }

        // Data in this process answer no better a moment later.
        let may_change = matches!(self.to, To::Server(_) | To::Table(..));
        if may_change && answer.is_worth_repeating() {
            let why = self.error(ask.path, &answer);
            return Ok(RequestAttempt::Failed { why, pause: answer.retry_after.unwrap_or(pause) });
        }
        Ok(RequestAttempt::Answered(answer))
    }

    /// Sends a request to a server once. A write whose answer is lost may still be running. Its retry waits until the
    /// write has surely ended, so that it never overwrites a later write.
    fn ask_server(
        &self,
        server: &RemoteServer,
        ask: Ask<'_>,
        authorization: Option<&str>,
        pause: Duration,
    ) -> anyhow::Result<RequestAttempt> {
        let watch = Stopwatch::start();
        match server.send_once(ask, authorization) {
            Ok(Received { redirection: Some(redirection), .. }) => {
                bail!("{} {redirection}", self.asked(ask.path));
            }
            Ok(Received { answer, .. }) => {
                server.reached.store(true, Ordering::Relaxed);
                Ok(RequestAttempt::Answered(answer))
            }
            Err(error) if is_about_request(&error) => {
                let asked = format!("{} cannot be asked", self.asked(ask.path));
                Err(anyhow::Error::new(error).context(asked))
            }
            Err(error) => {
                let may_be_running = ask.method != "GET" && !is_unsent(&error);
                let why = anyhow::Error::new(Unreached { url: self.url.clone(), why: error });
                if !server.reached.load(Ordering::Relaxed) {
                    return Err(why);
                }
                let rest = self.max_request.saturating_sub(watch.elapsed());
                let pause = if may_be_running { pause.max(rest) } else { pause };
                Ok(RequestAttempt::Failed { why, pause })
            }
        }
    }

    /// Waits before the readings that an answer names are sent again. The server's `Retry-After` decides; else the
    /// pause grows with each futile attempt.
    pub(crate) fn wait_after(&self, answer: &Answer, in_vain: u32, stop: &AtomicBool) {
        let pause = (self.first_pause * 2_u32.pow(in_vain)).min(MAX_PAUSE);
        self.wait(answer.retry_after.unwrap_or(pause), &self.error("", answer), stop);
    }

    /// Waits, and says so if it is for long.
    fn wait(&self, pause: Duration, why: &anyhow::Error, stop: &AtomicBool) {
        if pause > MAX_PAUSE {
            print_error(format_args!("{why}; asked again in {} s", pause.as_secs()));
        }
        sleep(pause, &[stop, &self.interrupted]);
    }

    /// The data that this process has open for an import. What they have answered may still be in memory only.
    pub(crate) fn here(&self) -> Option<&Arc<Here>> {
        match &self.to {
            To::Loading(here) => Some(here),
            To::Server(_) | To::Table(..) | To::Data(..) => None,
        }
    }

    /// The name that is the same wherever the command runs.
    pub(crate) fn identity(&self) -> String {
        self.here().map_or_else(|| self.url.clone(), |here| here.identity())
    }

    /// Whether requests go to a server.
    pub(crate) const fn is_server(&self) -> bool {
        matches!(self.to, To::Server(_))
    }

    /// The name of the system: the address of a server without user name and password, or else the path or the table.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Makes the error for an unexpected answer.
    pub(crate) fn error(&self, path: &str, answer: &Answer) -> anyhow::Error {
        let Answer { status, .. } = answer;
        let hint = if matches!(status, 401 | 403) { " (see --token)" } else { "" };
        anyhow::anyhow!("{} answers {status}: {}{hint}", self.asked(path), answer.reason())
    }

    /// Sends a request and returns its answer, which must be an object with `member`, as every answer of Roomtide is.
    pub(crate) fn value(&self, ask: Ask<'_>, member: &str) -> anyhow::Result<Value> {
        self.read(ask.path, &self.send(ask)?, member)
    }

    /// Parses an answer. Fails unless the status is 200 and the body is an object with `member`.
    pub(crate) fn read(&self, path: &str, answer: &Answer, member: &str) -> anyhow::Result<Value> {
        if answer.status != 200 {
            return Err(self.error(path, answer));
        }
        let value = answer.json_with(member);
        value.with_context(|| self.strange(path, answer))
    }

    /// Asks for what a path names; `None` if it is not there, or is being deleted.
    pub(crate) fn find<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        let answer = self.get(path)?;
        match answer.status {
            200 => self.parsed(path, &answer).map(Some),
            404 | 410 => Ok(None),
            _ => Err(self.error(path, &answer)),
        }
    }

    /// Parses an answer of any status.
    pub(crate) fn parsed<T: DeserializeOwned>(
        &self,
        path: &str,
        answer: &Answer,
    ) -> anyhow::Result<T> {
        serde_json::from_str(&answer.text).with_context(|| self.strange(path, answer))
    }

    /// The text of an error about an answer that is not in Roomtide's form.
    pub(crate) fn strange(&self, path: &str, answer: &Answer) -> String {
        let (asked, reason) = (self.asked(path), answer.reason());
        format!("{asked} answers {}, but not as Roomtide does: {reason}", answer.status)
    }

    /// The address of a request without its query, for messages.
    fn asked(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        if self.is_server() {
            format!("{}{path}", self.url)
        } else {
            format!("{path} of {}", self.url)
        }
    }
}

impl RemoteServer {
    fn send_once(
        &self,
        ask: Ask<'_>,
        authorization: Option<&str>,
    ) -> Result<Received, ureq::Error> {
        let mut request = ask.request(&self.address);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let mut response = match ask.body {
            Some((_, body)) => self.agent.run(request.body(body)?),
            None => self.agent.run(request.body(())?),
        }?;

        let redirection = redirection(&response);
        let text = response.body_mut().read_to_string()?;
        let (parts, _) = response.into_parts();
        Ok(Received { answer: Answer::of(&parts, text), redirection })
    }
}

/// Sends a request to functions in this process.
fn in_process(
    ask: Ask<'_>,
    send: impl FnOnce(http::Request<Vec<u8>>) -> anyhow::Result<http::Response<Vec<u8>>>,
) -> anyhow::Result<Answer> {
    let bytes = ask.body.map_or_else(Vec::new, |(_, body)| body.as_bytes().to_vec());
    let (parts, body) = send(ask.request("").body(bytes)?)?.into_parts();
    Ok(Answer::of(&parts, String::from_utf8(body)?))
}

/// Makes an HTTP agent of an address, with this time limit. Any status is an answer, and redirects are not followed.
fn agent(url: &str, time: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .proxy(proxy_to(url))
        .timeout_global(Some(time))
        .http_status_as_error(false)
        .max_redirects(0)
        .build();
    config.into()
}

/// The answer of a server, and whether it is a redirect.
struct Received {
    answer: Answer,
    /// The text of [`redirection`], if the answer is a redirect.
    redirection: Option<String>,
}

/// A server without an answer: nothing listens, or no answer comes in time.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub(crate) struct Unreached {
    url: String,
    why: ureq::Error,
}

impl Unreached {
    fn said(&self) -> String {
        let Self { url, why } = self;
        match why {
            ureq::Error::Timeout(_) => {
                format!("{url} gives no answer in time; is a Roomtide running there?")
            }
            _ if url == SERVER => format!(
                "cannot reach {url}, the default address: {why}; is it running? --url names another server"
            ),
            _ => format!("cannot reach {url}: {why}; is it running?"),
        }
    }

    /// Whether nothing listens at the address. A time-out does not prove that.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(&self.why, ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused)
    }
}

/// An answer to `GET /ready` that is not Roomtide's, such as the login page of a proxy.
#[derive(Debug, thiserror::Error)]
#[error(
    "{url}{READY} answers {}, {}, and is no Roomtide: nothing was sent to it; --url names the address of another server",
    .answer.status, .answer.reason()
)]
pub(crate) struct NotRoomtide {
    url: String,
    answer: Answer,
}

/// Opens the data in a directory, which a server may have open.
pub(crate) async fn open_data(directory: &Path) -> anyhow::Result<DataDirectory> {
    let data = DataDirectory::open(directory).await?;
    let default = if directory == Path::new(DATA_DIR) { ", the default" } else { "" };
    data.with_context(|| {
        format!(
            "there is no data in {}{default}; start the server once, or name another --data-dir or a --table",
            directory.display()
        )
    })
}

/// An address without its user name and password: what is printed stays in logs.
pub(crate) fn without_login(url: &str) -> String {
    split_login(url).1
}

/// Returns the token itself, or the token in the file that `@FILE` names. Fails for a text that cannot be a token,
/// because no request can carry it.
pub(crate) fn token(text: &str) -> anyhow::Result<String> {
    let Some(file) = text.strip_prefix('@') else {
        ensure!(is_word(text), "that is no token: {TOKEN_FORM}");
        return Ok(text.to_owned());
    };

    let no_token = || format!("{file} is no file with one token: {TOKEN_FORM}");
    let text = settings_file::content(Path::new(file)).with_context(no_token)?;
    let token = text.trim();
    ensure!(is_word(token), no_token());
    Ok(token.to_owned())
}

/// Whether a text can be a token in a header.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns whether the request itself is wrong, such as its address or a header, or the answer exceeds the size limit.
/// Another attempt would fail the same way.
const fn is_about_request(error: &ureq::Error) -> bool {
    use ureq::Error::{BadUri, BodyExceedsLimit, Http, InvalidProxyUrl, RequireHttpsOnly};
    matches!(
        error,
        BadUri(_) | BodyExceedsLimit(_) | Http(_) | InvalidProxyUrl | RequireHttpsOnly(_)
    )
}

/// Returns whether a failed request certainly did not reach the server.
fn is_unsent(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(at) => matches!(at, ureq::Timeout::Resolve | ureq::Timeout::Connect),
        ureq::Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        _ => false,
    }
}

/// Waits for `pause`, or until one of the flags is set.
pub(crate) fn sleep(pause: Duration, flags: &[&AtomicBool]) {
    let watch = Stopwatch::start();
    let is_set = |flag: &&AtomicBool| flag.load(Ordering::Acquire);
    while !flags.iter().any(is_set) && watch.elapsed() < pause {
        let left = pause.saturating_sub(watch.elapsed());
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use local::{Options, System};

    use super::*;
    use crate::output::{OutputText, say_to};
    use crate::tests::fake_server::{self, Reply};

    impl Client {
        /// Makes a client for tests that takes the server for Roomtide, and waits at most `pause` after a lost answer.
        pub(crate) fn impatient(url: &str, pause: Duration) -> Self {
            let client = Self::new(url, None).expect("an address");
            if let To::Server(server) = &client.to {
                server.recognized.store(true, Ordering::Relaxed);
            }
            Self { first_pause: Duration::from_millis(1), max_request: pause, ..client }
        }
    }

    fn unrecognized(url: &str) -> Client {
        let client = Client::new(url, None).unwrap();
        Client { first_pause: Duration::from_millis(1), ..client }
    }

    #[test]
    fn an_address_with_a_query_is_refused_without_a_word_of_it() {
        let error = Client::new("http://localhost/x?token=secret", None).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.starts_with("--url: an address ends before a ?"), "{error}");
    }

    #[test]
    fn an_unreached_default_says_how_another_is_named() {
        let why = |url: &str| {
            let refused = ureq::Error::Io(ErrorKind::ConnectionRefused.into());
            Unreached { url: url.to_owned(), why: refused }.to_string()
        };
        let default = why(SERVER);
        assert!(default.starts_with("cannot reach http://127.0.0.1:8080, the default address: "));
        assert!(default.ends_with("; is it running? --url names another server"), "{default}");
        assert!(!why("http://example.org").contains("default"));

        let runtime = tokio::runtime::Runtime::new().unwrap();
        let opened = runtime.block_on(open_data(Path::new(DATA_DIR)));
        let error = opened.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("there is no data in roomtide-data, the default; "), "{error}");
    }

    #[test]
    fn a_long_wait_that_a_server_asks_for_is_said() {
        let server = fake_server::serve(|_, _| {
            Reply::with(503, "retry-after: 3600\r\n", r#"{"detail": "busy"}"#)
        });
        let (client, said) = (server.client(), OutputText::default());
        say_to(&said);
        let interrupted = client.interrupted();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            interrupted.store(true, Ordering::Release);
        });

        let asked = client.get("/x");
        assert!(asked.unwrap_err().is::<Interrupted>());
        let url = &server.url;
        let expected = format!("roomtide: {url}/x answers 503: busy; asked again in 120 s\n");
        assert_eq!(said.text(), expected);
    }

    #[test]
    fn a_change_is_sent_to_roomtide_only() {
        for (ready, is_roomtide) in [(r#"{"status":"ready","up":"0s"}"#, true), ("hello", false)] {
            let methods = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&methods);
            let server = fake_server::serve(move |_, request| {
                seen.lock().unwrap().push(request.method.clone());
                Reply::of(200, if request.path == READY { ready } else { "{}" })
            });

            let client = unrecognized(&server.url);
            client.get("/devices").unwrap();
            for method in ["DELETE", "PATCH", "POST", "PUT"] {
                let body = (method != "DELETE").then_some(("application/json", "{}"));
                let sent = client.send(Ask { method, path: "/x", body, headers: &[] });
                match sent {
                    Ok(_) => assert!(is_roomtide, "{method}"),
                    Err(error) => assert!(!is_roomtide && error.is::<NotRoomtide>(), "{error}"),
                }
            }

            let expected: &[&str] = if is_roomtide {
                &["GET", "GET", "DELETE", "PATCH", "POST", "PUT"]
            } else {
                &["GET"; 5]
            };
            assert_eq!(*methods.lock().unwrap(), expected);
        }
    }

    #[test]
    fn a_token_is_sent_to_roomtide_only() {
        for (status, body, is_roomtide) in [
            (200, r#"{"status":"ready","started":"2026-01-11T16:00:00.000Z","up":"0s"}"#, true),
            (200, r#"{"status":"ready","started":"2026-01-11T16:00:00Z","up":"1h2m3.45s"}"#, false),
            (200, "<html>", false),
            (404, "{}", false),
        ] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&seen);
            let server = fake_server::serve(move |_, request| {
                let has_token = request.headers.iter().any(|it| it.starts_with("authorization:"));
                told.lock().unwrap().push((request.path.clone(), has_token));
                if request.path == READY { Reply::of(status, body) } else { Reply::of(200, "{}") }
            });
            let client = Client::new(&server.url, Some("rt_secret")).unwrap();
            for _ in 0..2 {
                let sent = client.get("/devices");
                assert_eq!(sent.is_ok(), is_roomtide, "{body}: {sent:?}");
            }
            let asked = |path: &str, has_token| (path.to_owned(), has_token);
            let expected = if is_roomtide {
                vec![asked(READY, false), asked("/devices", true), asked("/devices", true)]
            } else {
                vec![asked(READY, false), asked(READY, false)]
            };
            assert_eq!(*seen.lock().unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_roomtide_is_told_by_path_status_and_beginning() {
        let page = "\n <html>\n<title>Log in</title>";
        for (status, body, expected) in [
            (200, page, "/ready answers 200, \"<html> <title>Log in</title>\", and is no Roomtide"),
            (404, "", "/ready answers 404, with an empty body, and is no Roomtide"),
            (401, r#"{"detail": "no token"}"#, "/ready answers 401, no token, and is no Roomtide"),
            (502, "<h1>Bad Gateway</h1>", "/ready answers 502: \"<h1>Bad Gateway</h1>\""),
        ] {
            let server = fake_server::always(status, body);
            let client = unrecognized(&server.url);
            let error = client.ensure_roomtide().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}{expected}", server.url)), "{error}");
        }
    }

    #[test]
    fn a_password_in_the_address_is_sent_and_not_shown() {
        let server = fake_server::serve(|_, request| {
            // The headers are in lower case, as is this `u:pw`.
            let has_login = request.headers.contains(&"authorization: basic dtpwdw==".to_owned());
            Reply::of(if has_login { 404 } else { 401 }, "{}")
        });
        let address = server.url.replace("http://", "http://u:pw@");
        let client = Client::new(&address, None).unwrap();
        let path = "/devices";
        let answer = client.get(path).unwrap();
        assert_eq!(answer.status, 404, "the login was sent");
        let shown = [client.url().to_owned(), client.error(path, &answer).to_string()];
        assert_eq!(shown[0], server.url);
        assert!(!shown[1].contains("pw"), "{}", shown[1]);
    }

    #[test]
    fn no_redirect_is_followed() {
        for status in [301, 302, 303, 307, 308] {
            let paths = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&paths);
            let server = fake_server::serve(move |_, request| {
                seen.lock().unwrap().push(request.path.clone());
                match request.path.as_str() {
                    "/elsewhere" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
                    _ => Reply::with(status, "location: /elsewhere\r\n", ""),
                }
            });

            let client = server.client();
            let told = format!("answers {status} and points to /elsewhere");
            for method in ["PATCH", "PUT", "POST", "DELETE", "GET"] {
                let has_body = !matches!(method, "GET" | "DELETE");
                let body = has_body.then_some(("application/json", "{}"));
                let ask = Ask { method, path: "/devices/a?x=1", body, headers: &[] };
                let error = client.send(ask).unwrap_err().to_string();
                assert!(error.contains(&told) && error.starts_with(&server.url), "{error}");
            }
            let asked = unrecognized(&server.url).ensure_roomtide();
            let error = asked.unwrap_err().to_string();
            assert!(error.contains(&told), "{error}");

            let paths = paths.lock().unwrap();
            assert!(!paths.is_empty() && !paths.contains(&"/elsewhere".to_owned()), "{paths:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn roomtide_is_recognized_at_both_of_its_addresses() {
        let options = Options { auth: true, ingest_port: Some(0), port: 0, ..Options::default() };
        let system = System::start(options).await.unwrap();
        for url in [system.url(), system.ingest_url().unwrap()] {
            let client = Client::new(url, None).unwrap();
            let recognized = move || client.ensure_roomtide();
            tokio::task::spawn_blocking(recognized).await.unwrap().unwrap();
        }
        system.shutdown().await.unwrap();
    }

    #[test]
    fn a_token_may_be_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "rt_a\n").unwrap();
        assert_eq!(token(&format!("@{}", file.display())).unwrap(), "rt_a");
        assert_eq!(token("rt_b").unwrap(), "rt_b");
        let missing = format!("{:#}", token("@no/such/file").unwrap_err());
        assert!(missing.contains("no/such/file"), "{missing}");

        for wrong in ["token\nrt_a\n", "rt_a rt_b", "rt_\u{1b}[31m", "rt_é", "", "\n"] {
            std::fs::write(&file, wrong).unwrap();
            let error = token(&format!("@{}", file.display())).unwrap_err().to_string();
            assert!(error.contains(&*file.to_string_lossy()), "{error}");
            assert!(error.contains(TOKEN_FORM) && !error.contains("rt_a"), "{error}");
            assert!(token(wrong).unwrap_err().to_string().contains(TOKEN_FORM), "{wrong:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_of_a_token_is_not_read_without_end() {
        let error = token("@/dev/zero").unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero is no file with one token"), "{error}");
    }

    #[test]
    fn a_request_that_cannot_be_made_is_not_repeated() {
        let server = fake_server::always(200, "{}");
        let client = Client::impatient(&server.url, Duration::from_secs(60));
        client.get("/devices").unwrap();

        let headers = [("x-name", "a\nb".to_owned())];
        let body = Some(("application/json", "{}"));
        let ask = Ask { method: "POST", path: "/readings?x=1", body, headers: &headers };
        let watch = Stopwatch::start();
        let error = format!("{:#}", client.send(ask).unwrap_err());
        let expected = format!("{}/readings cannot be asked: ", server.url);
        assert!(error.starts_with(&expected), "{error}");
        assert!(watch.elapsed() < Duration::from_secs(30), "it was sent once");
    }
}
