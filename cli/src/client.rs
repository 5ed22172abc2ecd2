//! A client of the API: over HTTP with retries, or directly on data that this process has open. Knows no endpoint.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use runtime::clock::Stopwatch;
use serde_json::Value;

pub(crate) use crate::ask::{Answer, Ask, FieldError, Problem, Units};
use crate::here::Here;
use crate::interrupted::Interrupted;
use crate::output::print_error;

/// The maximum number of attempts of a request, and the maximum pause between two attempts.
pub(crate) const ATTEMPTS: u32 = 8;
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The maximum pause accepted from a server's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);
/// The time after which a request whose answer was lost has surely ended: longer than a function's time-out.
const MAX_REQUEST: Duration = Duration::from_secs(30);

/// The path that every Roomtide and InfluxDB answers without a token, at each address and in each version.
pub(crate) const READY: &str = "/ready";

/// The size limit of a token file, in bytes; a larger file is not one.
const MAX_TOKEN_FILE: u64 = 64 << 10;

/// The end of an error message about an invalid token.
const TOKEN_FORM: &str = "a token is one word of ASCII without blanks, such as rt_..., alone in its file; `roomtide token create \
    --quiet` prints it so";

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    /// The data, if this process has them open. Then nothing goes over HTTP.
    here: Option<Arc<Here>>,
    /// The address of requests. A user name and password in it belong to a proxy in front of Roomtide.
    address: String,
    /// The address without user name and password, for messages.
    url: String,
    authorization: Option<String>,
    /// Whether the server has answered before. Until then, a failed connection is not retried.
    reached: AtomicBool,
    /// Whether the server is known to be Roomtide. No other server gets a token or a change.
    recognized: AtomicBool,
    attempts: u32,
    first_pause: Duration,
    max_request: Duration,
    interrupted: Arc<AtomicBool>,
}

impl Client {
    /// Makes a client of the server at `url`.
    pub(crate) fn new(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            // Without a scheme, a user name and password are not told from the rest.
            bail!("--url: expected an address that begins with http:// or https://");
        }
        Ok(Self {
            agent: agent(url, MAX_REQUEST * 2),
            here: None,
            address: url.trim_end_matches('/').to_owned(),
            url: without_login(url.trim_end_matches('/')),
            authorization: token.map(|token| format!("Bearer {token}")),
            reached: AtomicBool::new(false),
            recognized: AtomicBool::new(false),
            attempts: ATTEMPTS,
            first_pause: Duration::from_millis(250),
            max_request: MAX_REQUEST,
            interrupted: Arc::default(),
        })
    }

    /// Makes a client for a person who waits for each answer: a single attempt of at most half a minute.
    pub(crate) fn that_asks_once(self) -> Self {
        Self { agent: agent(&self.address, MAX_REQUEST), attempts: 1, ..self }
    }

    /// Makes a client of data that this process has open.
    pub(crate) fn of(here: &Arc<Here>) -> anyhow::Result<Self> {
        let client = Self::new("http://here", None)?;
        Ok(Self { here: Some(Arc::clone(here)), url: here.name().to_owned(), ..client })
    }

    /// Makes a client for tests that takes the server for Roomtide, and waits at most `pause` after a lost answer.
    #[cfg(test)]
    pub(crate) fn impatient(url: &str, pause: Duration) -> Self {
        let client = Self::new(url, None).expect("an address");
        let (first_pause, recognized) = (Duration::from_millis(1), AtomicBool::new(true));
        Self { first_pause, recognized, max_request: pause, ..client }
    }

    /// The flag that stops the client.
    pub(crate) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    /// Sends a request until its answer is final, or until `stop` is set. Before a token or a change is sent, the
    /// server has to prove to be Roomtide: at the default address any program may listen.
    pub(crate) fn send(&self, ask: Ask<'_>, stop: &AtomicBool) -> anyhow::Result<Answer> {
        if self.authorization.is_some() || ask.method != "GET" {
            self.ensure_roomtide(stop)?;
        }
        self.send_until_final(ask, self.authorization.as_deref(), stop)
    }

    /// Fails with [`NotRoomtide`] if another program answers. That program gets one request and no token.
    pub(crate) fn ensure_roomtide(&self, stop: &AtomicBool) -> anyhow::Result<()> {
        if self.here.is_some() || self.recognized.load(Ordering::Relaxed) {
            return Ok(());
        }
        let answer = self.send_until_final(Ask::get(READY), None, stop)?;
        if !says_roomtide(answer.status, &answer.text) {
            return Err(NotRoomtide { url: self.url.clone(), answer }.into());
        }
        self.recognized.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Sends a request until its answer is final. A write whose answer is lost may still be running. Its retry waits
    /// until the write has surely ended, so that it never overwrites a later write.
    fn send_until_final(
        &self,
        ask: Ask<'_>,
        authorization: Option<&str>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Answer> {
        let mut pause = self.first_pause;
        let mut last = anyhow::anyhow!("not sent");
        for attempt in 1..=self.attempts {
            if self.interrupted.load(Ordering::Acquire) {
                return Err(Interrupted.into());
            }
            if stop.load(Ordering::Acquire) {
                bail!("another request failed");
            }
            if let Some(here) = &self.here {
                return here.send(ask);
            }
            let watch = Stopwatch::start();
            let mut wait = pause;
            match self.send_once(ask, authorization) {
                Ok(Received { redirection: Some(redirection), .. }) => {
                    bail!("{} {redirection}", self.asked(ask.path));
                }
                Ok(Received { answer, .. }) => {
                    self.reached.store(true, Ordering::Relaxed);
                    if !answer.is_worth_repeating() {
                        return Ok(answer);
                    }
                    last = self.error(ask.path, &answer);
                    wait = answer.retry_after.unwrap_or(pause);
                }
                Err(error) if is_about_request(&error) => {
                    let asked = format!("{} cannot be asked", self.asked(ask.path));
                    return Err(anyhow::Error::new(error).context(asked));
                }
                Err(error) => {
                    let unsent = is_unsent(&error);
                    last = Unreached { url: self.url.clone(), why: error }.into();
                    if !self.reached.load(Ordering::Relaxed) {
                        return Err(last);
                    }
                    if ask.method != "GET" && !unsent {
                        wait = pause.max(self.max_request.saturating_sub(watch.elapsed()));
                    }
                }
            }
            if attempt == self.attempts {
                break;
            }
            self.wait(wait, &last, stop);
            pause = (pause * 2).min(MAX_PAUSE);
        }
        Err(last)
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

    /// Returns whether answered readings may still be in memory only, as for data that this process has open.
    pub(crate) const fn holds_back(&self) -> bool {
        self.here.is_some()
    }

    /// Returns the number of readings that this process has stored; `None` where a server stores.
    pub(crate) fn stored_here(&self) -> Option<u64> {
        self.here.as_ref().map(|here| here.stored())
    }

    /// Returns whether this process has created the data and they have no reading.
    pub(crate) fn is_unused(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.is_unused())
    }

    /// Removes a file when the data are closed, if this process created them and removes them again.
    pub(crate) fn remove_at_close(&self, file: PathBuf) {
        if let Some(here) = &self.here {
            here.remove_at_close(file);
        }
    }

    /// Starts a thread that stores the answered readings. Returns `None` if nothing is held back: a server stores
    /// before it answers.
    pub(crate) fn store(&self) -> Option<thread::JoinHandle<anyhow::Result<()>>> {
        let here = Arc::clone(self.here.as_ref()?);
        Some(thread::spawn(move || here.store()))
    }

    fn send_once(
        &self,
        ask: Ask<'_>,
        authorization: Option<&str>,
    ) -> Result<Received, ureq::Error> {
        let address = format!("{}{}", self.address, ask.path);
        let mut request = http::Request::builder().method(ask.method).uri(address);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        for (name, value) in ask.headers {
            request = request.header(*name, value);
        }
        let mut response = match ask.body {
            Some((content_type, body)) => {
                self.agent.run(request.header("content-type", content_type).body(body)?)
            }
            None => self.agent.run(request.body(())?),
        }?;

        let redirection = redirection(&response);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header("retry-after").and_then(|value| value.parse().ok());
        let retry_after = retry_after.map(|secs| Duration::from_secs(secs).min(MAX_RETRY_AFTER));
        let units = Units::of(response.headers());
        let text = response.body_mut().read_to_string()?;

        let answer = Answer { status: response.status().as_u16(), text, units, retry_after };
        Ok(Received { answer, redirection })
    }

    /// Returns the server's address without user name and password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Makes the error for an unexpected answer.
    pub(crate) fn error(&self, path: &str, answer: &Answer) -> anyhow::Error {
        let Answer { status, .. } = answer;
        let hint = if matches!(status, 401 | 403) { " (see --token)" } else { "" };
        anyhow::anyhow!("{} answers {status}: {}{hint}", self.asked(path), answer.reason())
    }

    /// Parses an answer. Fails unless the status is 200 and the body is an object with `member`, which every answer of
    /// Roomtide has.
    pub(crate) fn read(&self, path: &str, answer: &Answer, member: &str) -> anyhow::Result<Value> {
        if answer.status != 200 {
            return Err(self.error(path, answer));
        }
        let value = answer.json_with(member);
        value.with_context(|| format!("{} {}", self.asked(path), answer.strange()))
    }

    /// The address of a request without its query, for messages.
    pub(crate) fn asked(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        format!("{}{path}", self.url)
    }
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

/// The proxy to an address, as the environment names it. Requests to this machine take none: at the proxy, the same
/// address means the proxy's machine.
pub(crate) fn proxy_to(url: &str) -> Option<ureq::Proxy> {
    let uri: http::Uri = url.parse().unwrap_or_default();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    if host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_local) {
        return None;
    }
    ureq::Proxy::try_from_env()
}

/// The answer of a server, and whether it is a redirect.
struct Received {
    answer: Answer,
    /// The text of [`redirection`], if the answer is a redirect.
    redirection: Option<String>,
}

/// The predicate of a sentence about a server that redirects; `None` for any other answer. No redirect is followed: the
/// next request would be a GET even if the first was a change, and would go to an address that the user did not name.
pub(crate) fn redirection<B>(response: &http::Response<B>) -> Option<String> {
    let status = response.status();
    if !status.is_redirection() {
        return None;
    }

    let location = response.headers().get("location").and_then(|value| value.to_str().ok());
    let location = location.unwrap_or("no address");
    Some(format!(
        "answers {} and points to {location}; no redirect is followed: name the address of the server itself",
        status.as_u16()
    ))
}

/// A server without an answer: nothing listens, or no answer comes in time.
#[derive(Debug)]
pub(crate) struct Unreached {
    url: String,
    why: ureq::Error,
}

impl Unreached {
    /// Whether nothing listens at the address. A time-out does not prove that.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(&self.why, ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused)
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot reach {}: {}; is it running?", self.url, self.why)
    }
}

impl Error for Unreached {}

/// An answer to `GET /ready` that is not Roomtide's, such as the login page of a proxy.
#[derive(Debug)]
pub(crate) struct NotRoomtide {
    url: String,
    answer: Answer,
}

impl fmt::Display for NotRoomtide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, answer } = self;
        let (status, reason) = (answer.status, answer.reason());
        write!(
            f,
            "{url}{READY} answers {status}, {reason}, and is no Roomtide: nothing was sent to it; --url names the address \
             of another server"
        )
    }
}

impl Error for NotRoomtide {}

/// An address without its user name and password: what is printed stays in logs.
pub(crate) fn without_login(url: &str) -> String {
    split_login(url).1
}

/// The user name and password of an address, and the address without them.
pub(crate) fn split_login(url: &str) -> (Option<&str>, String) {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        rest.rsplit_once('@').map(|(login, host)| (login, format!("{scheme}://{host}")))
    });
    match parts {
        Some((login, address)) => (Some(login), address),
        None => (None, url.to_owned()),
    }
}

/// Returns the token itself, or the token in the file that `@FILE` names. Fails for a text that cannot be a token,
/// because no request can carry it.
pub(crate) fn token(text: &str) -> anyhow::Result<String> {
    let Some(file) = text.strip_prefix('@') else {
        ensure!(is_word(text), "that is no token: {TOKEN_FORM}");
        return Ok(text.to_owned());
    };

    let mut text = String::new();
    let read = File::open(file).and_then(|opened| {
        // Reading a device file such as `/dev/zero` may never end.
        opened.take(MAX_TOKEN_FILE).read_to_string(&mut text)
    });
    let read = read.with_context(|| format!("cannot read the token in {file}"))?;

    let token = text.trim();
    let is_whole = (read as u64) < MAX_TOKEN_FILE;
    ensure!(is_whole && is_word(token), "{file} is no file with one token: {TOKEN_FORM}");
    Ok(token.to_owned())
}

/// Whether a text can be a token in a header.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether an answer to `GET /ready` comes from Roomtide. InfluxDB answers with its uptime. Roomtide's uptime is always
/// 0, because its functions do not run between requests.
pub(crate) fn says_roomtide(status: u16, text: &str) -> bool {
    let told: Value = serde_json::from_str(text).unwrap_or_default();
    status == 200 && told["status"] == "ready" && told["up"] == "0s"
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

/// Waits for `pause`, or until the flag is set.
pub(crate) fn wait(pause: Duration, flag: &AtomicBool) {
    sleep(pause, &[flag]);
}

/// Waits for `pause`, or until one of the flags is set.
fn sleep(pause: Duration, flags: &[&AtomicBool]) {
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
    use crate::import::fake_server::{self, Reply};
    use crate::output::{Said, say_to};

    fn unrecognized(url: &str) -> Client {
        Client { recognized: AtomicBool::new(false), ..Client::impatient(url, Duration::ZERO) }
    }

    #[test]
    fn a_long_wait_that_a_server_asks_for_is_said() {
        let server = fake_server::serve(|_, _| {
            Reply::with(503, "retry-after: 3600\r\n", r#"{"detail": "busy"}"#)
        });
        let (client, said) = (server.client(), Said::default());
        say_to(&said);
        let interrupted = client.interrupted();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            interrupted.store(true, Ordering::Release);
        });

        let asked = client.send(Ask::get("/x"), &AtomicBool::new(false));
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

            let (client, stop) = (unrecognized(&server.url), AtomicBool::new(false));
            client.send(Ask::get("/devices"), &stop).unwrap();
            for method in ["DELETE", "PATCH", "POST", "PUT"] {
                let body = (method != "DELETE").then_some(("application/json", "{}"));
                let sent = client.send(Ask { method, path: "/x", body, headers: &[] }, &stop);
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
                let sent = client.send(Ask::get("/devices"), &AtomicBool::new(false));
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
            let error = client.ensure_roomtide(&AtomicBool::new(false)).unwrap_err().to_string();
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
        let answer = client.send(Ask::get(path), &AtomicBool::new(false)).unwrap();
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
                let error = client.send(ask, &AtomicBool::new(false)).unwrap_err().to_string();
                assert!(error.contains(&told) && error.starts_with(&server.url), "{error}");
            }
            let asked = unrecognized(&server.url).ensure_roomtide(&AtomicBool::new(false));
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
            let recognized = move || client.ensure_roomtide(&AtomicBool::new(false));
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
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "a".repeat(64 << 10)).unwrap();
        let error = token(&format!("@{}", file.display())).unwrap_err().to_string();
        assert!(error.contains(TOKEN_FORM), "{error}");
    }

    #[test]
    fn a_request_that_cannot_be_made_is_not_repeated() {
        let server = fake_server::always(200, "{}");
        let client = Client::impatient(&server.url, Duration::from_secs(60));
        let stop = AtomicBool::new(false);
        client.send(Ask::get("/devices"), &stop).unwrap();

        let headers = [("x-name", "a\nb".to_owned())];
        let body = Some(("application/json", "{}"));
        let ask = Ask { method: "POST", path: "/readings?x=1", body, headers: &headers };
        let watch = Stopwatch::start();
        let error = format!("{:#}", client.send(ask, &stop).unwrap_err());
        let expected = format!("{}/readings cannot be asked: ", server.url);
        assert!(error.starts_with(&expected), "{error}");
        assert!(watch.elapsed() < Duration::from_secs(30), "it was sent once");
    }
}
