//! Requests to servers that are right, slow, wrong, absent, or somewhere else a moment later.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use alerts::{Message, Names, News, Notice, Outgoing, Post, Rule, Secret};
use domain::Timestamp;
use outgoing::AnswerVerdict;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use ureq::tls::{Certificate, RootCerts};

use super::*;

/// Long enough for a loaded machine, and short enough to wait for.
const PATIENCE: Duration = Duration::from_millis(700);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn now() -> Timestamp {
    Timestamp::parse_absolute("2026-01-11T16:00:00Z").expect("a timestamp")
}

/// The request of a message to a channel with this secret.
fn request(stored: &str) -> Request {
    let rule = r#"{"name": "Warm", "device": "f", "metric": "temperature", "above": 8}"#;
    let rule = serde_json::from_str(rule).expect("JSON");
    let rule = Rule::from_json(rule, Timestamp::MIN).expect("a rule");
    let message = Message {
        number: 1,
        news: News::Fired,
        since: now(),
        fired: now(),
        ended: None,
        value: None,
        seen: None,
        is_silent: false,
    };
    let zone = "Europe/Berlin".parse().expect("a zone");
    let rule_id = "warm".parse().expect("an id");
    let names = Names { subject: "Kühltruhe", unit: None, zone, now: now() };
    let notice =
        Notice { rule_id: &rule_id, rule: &rule, subject_id: "f", names, message: &message };
    let link = "https://home.example/#k=1";
    let storms = &std::collections::BTreeMap::new();
    let post = Post { notices: &[notice], storms, link, is_repeated: false, now: now() };
    match post.by(&Secret::from_stored(stored).expect(stored)) {
        Outgoing::Http(request) => request,
        Outgoing::Email(_) => panic!("an e-mail"),
    }
}

fn webhook(address: &str) -> Request {
    request(&format!(r#"{{"kind": "webhook", "address": "{address}", "key": "{KEY}"}}"#))
}

/// A sender of a laptop that waits no longer than a test does.
fn sender(names: impl LookUpHost, reach: Reach) -> HttpSender {
    HttpSender::build(reach, Arc::new(names), PATIENCE, TlsConfig::default())
}

/// Names that lead to these addresses, to the next ones each time.
struct Lookups(Mutex<VecDeque<Vec<&'static str>>>, Arc<Mutex<Vec<String>>>);

impl Lookups {
    fn new(answers: &[&[&'static str]]) -> (Self, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers = answers.iter().map(|it| it.to_vec()).collect();
        (Self(Mutex::new(answers), Arc::clone(&asked)), asked)
    }
}

impl LookUpHost for Lookups {
    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.1.lock().unwrap().push(host.to_owned());
        let answer = self.0.lock().unwrap().pop_front();
        let answer = answer.ok_or_else(|| io::Error::other("no such host"))?;
        Ok(answer.iter().map(|ip| ip.parse().expect("an address")).collect())
    }
}

/// A request as a server reads it.
#[derive(Debug)]
struct Received {
    head: String,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).expect("JSON")
    }
}

fn receive(connection: &mut impl Read) -> Option<Received> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut received = Received { head, body: String::new() };
    let length = received.header("content-length").map_or(0, |it| it.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8(body).expect("UTF-8");
    Some(received)
}

/// Starts a server that does this with each connection; returns its port.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(connection));
        }
    });
    port
}

/// Starts a server that answers each request with this text.
fn answering(answer: impl Into<String>) -> (u16, Receiver<Received>) {
    let (sender, receiver): (Sender<Received>, _) = channel();
    let answer = answer.into();
    let port = server(move |mut connection| {
        if let Some(received) = receive(&mut connection) {
            sender.send(received).ok();
            connection.write_all(answer.as_bytes()).ok();
        }
    });
    (port, receiver)
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/geheim/x")
}

#[track_caller]
fn fails(port: u16) -> Unanswered {
    let failed = sender(SystemNames, Reach::Local).send(&webhook(&url(port))).unwrap_err();
    let shown = format!("{failed} {failed:?}");
    assert!(!shown.contains("geheim") && !shown.contains(&port.to_string()), "{shown}");
    failed
}

#[test]
fn each_kind_arrives_as_its_makers_server_reads_it() {
    let (port, received) = answering(OK);
    let local = format!("http://127.0.0.1:{port}");
    for (stored, line, member, authorization) in [
        (
            format!(r#"{{"kind": "ntfy", "topic": "t", "token": "tk_1", "server": "{local}"}}"#),
            "POST / HTTP/1.1",
            "message",
            Some("Bearer tk_1"),
        ),
        (
            format!(
                r#"{{"kind": "telegram", "token": "12:Ab-_", "chat": -5, "server": "{local}"}}"#
            ),
            "POST /bot12:Ab-_/sendMessage HTTP/1.1",
            "text",
            None,
        ),
        (
            format!(r#"{{"kind": "slack", "address": "{local}/services/T/B/x"}}"#),
            "POST /services/T/B/x HTTP/1.1",
            "text",
            None,
        ),
        (
            format!(r#"{{"kind": "discord", "address": "{local}/api/webhooks/1/x"}}"#),
            "POST /api/webhooks/1/x?wait=true HTTP/1.1",
            "content",
            None,
        ),
        (
            format!(r#"{{"kind": "home_assistant", "address": "{local}/api/webhook/x"}}"#),
            "POST /api/webhook/x HTTP/1.1",
            "text",
            None,
        ),
        (
            format!(r#"{{"kind": "webhook", "address": "{local}/a?b=c", "key": "{KEY}"}}"#),
            "POST /a?b=c HTTP/1.1",
            "text",
            None,
        ),
    ] {
        let request = request(&stored);
        let answer = sender(SystemNames, Reach::Local).send(&request).expect(&stored);
        assert_eq!(answer.verdict(now()), AnswerVerdict::Delivered);
        assert_eq!((answer.status, answer.text.as_str()), (200, ""));
        let received = received.recv().expect("a request");
        assert_eq!(received.head.lines().next(), Some(line));
        assert_eq!(received.body, request.body());
        assert_eq!(received.header("authorization"), authorization);
        assert_eq!(received.header("host"), Some(format!("127.0.0.1:{port}").as_str()));
        assert_eq!(received.header("user-agent"), Some(USER_AGENT));
        assert_eq!(received.header("transfer-encoding"), None);
        let text = received.json()[member].as_str().expect("a text").to_owned();
        assert!(text.contains("temperature above 8 since 17:00"), "{text}");
        let signature = received.header("webhook-signature").is_some();
        assert_eq!(signature, stored.contains("whsec_"));
    }
}

#[test]
fn a_heartbeat_is_asked_for_without_a_body() {
    let (port, received) = answering(OK);
    let address = outgoing::Url::parse(&url(port), Reach::Local).expect("an address");
    let answer = sender(SystemNames, Reach::Local).send(&Request::get(
        "the heartbeat",
        "address",
        address.clone(),
    ));
    assert_eq!(answer.expect("an answer").status, 200);
    let received = received.recv().expect("a request");
    assert!(received.head.starts_with("GET /geheim/x HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.body, "");
}

#[test]
fn an_answer_says_how_long_to_wait() {
    for (header, pause) in
        [("120", 120), ("Sun, 11 Jan 2026 16:01:30 GMT", 90), ("Sunday, 11-Jan-26 16:00:05 GMT", 5)]
    {
        let (port, _) = answering(format!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: {header}\r\ncontent-length: 4\r\n\r\nslow"
        ));
        let request = webhook(&url(port));
        let answer = sender(SystemNames, Reach::Local).send(&request).expect("an answer");
        let AnswerVerdict::Later { retry_after: Some(asked) } = answer.verdict(now()) else {
            panic!("{answer:?}");
        };
        assert_eq!(asked.num_seconds(), pause);
        assert_eq!(answer.reason(&request), "the webhook answers 429: slow");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let (elsewhere, followed) = answering(OK);
    for status in [301, 302, 303, 307, 308] {
        let (port, _) = answering(format!(
            "HTTP/1.1 {status} Moved\r\nlocation: http://127.0.0.1:{elsewhere}/\r\ncontent-length: 0\r\n\r\n"
        ));
        let request = webhook(&url(port));
        let answer = sender(SystemNames, Reach::Local).send(&request).expect("an answer");
        assert_eq!(answer.verdict(now()), AnswerVerdict::Failing { retry_after: None });
        assert!(answer.reason(&request).contains("redirects are not followed"));
    }
    assert!(followed.try_recv().is_err());
}

#[test]
fn a_slow_server_is_given_up() {
    // It never answers, or sends a byte of the head now and then.
    let silent = server(|mut connection| {
        receive(&mut connection);
        thread::sleep(PATIENCE * 4);
    });
    let dripping = server(|mut connection| {
        receive(&mut connection);
        for byte in OK.bytes() {
            if connection.write_all(&[byte]).is_err() {
                break;
            }
            thread::sleep(PATIENCE / 10);
        }
    });
    for port in [silent, dripping] {
        let failed = fails(port);
        assert_eq!((&failed.cause, failed.may_have_arrived), (&Cause::TimedOut, true));
        assert_eq!(failed.verdict(), AnswerVerdict::UNANSWERED);
        let text = "address of the webhook: has not answered within 10 seconds";
        assert_eq!(failed.to_string(), text);
    }
    // The system accepts the connection, and nobody reads from it.
    let deaf = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let failed = fails(deaf.local_addr().expect("an address").port());
    assert_eq!(failed.cause, Cause::TimedOut);
}

#[test]
fn a_slow_name_is_given_up() {
    struct Slow;
    impl LookUpHost for Slow {
        fn look_up(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            thread::sleep(PATIENCE * 4);
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
    }
    let request = webhook("http://example.org/geheim");
    let failed = sender(Slow, Reach::Local).send(&request).unwrap_err();
    assert_eq!((failed.cause, failed.may_have_arrived), (Cause::TimedOut, false));
}

#[test]
fn an_error_with_a_body_without_end_is_read_in_part() {
    let long = server(|mut connection| {
        receive(&mut connection);
        let head = "HTTP/1.1 500 Internal Server Error\r\n\r\n";
        let _ = connection.write_all(head.as_bytes());
        while connection.write_all(&[b'x'; 1_024]).is_ok() {}
    });
    let hanging = server(|mut connection| {
        receive(&mut connection);
        let answer = "HTTP/1.1 503 Unavailable\r\ncontent-length: 1000\r\n\r\nbusy";
        let _ = connection.write_all(answer.as_bytes());
        thread::sleep(PATIENCE * 4);
    });
    for (port, status, length) in [(long, 500, 4_096), (hanging, 503, 4)] {
        let answer = sender(SystemNames, Reach::Local).send(&webhook(&url(port)));
        let answer = answer.expect("an answer");
        assert_eq!((answer.status, answer.text.len()), (status, length));
        assert_eq!(answer.verdict(now()), AnswerVerdict::UNANSWERED);
    }
}

#[test]
fn what_is_no_answer_is_an_error() {
    let endless = server(|mut connection| {
        receive(&mut connection);
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n");
        while connection.write_all(b"x-more: and more\r\n").is_ok() {}
    });
    assert_eq!(fails(endless).cause, Cause::NotHttp);
    let (wrong, _) = answering("220 mail.example ESMTP\r\n\r\n");
    assert_eq!(fails(wrong).to_string(), "address of the webhook: does not answer in HTTP");
    let (closing, _) = answering("");
    let failed = fails(closing);
    assert_eq!((&failed.cause, failed.may_have_arrived), (&Cause::Closed, true));
    assert_eq!(failed.verdict(), AnswerVerdict::UNANSWERED);
}

#[test]
fn nothing_at_a_port_or_behind_a_name_is_an_error() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let failed = fails(port);
    assert_eq!((&failed.cause, failed.may_have_arrived), (&Cause::Refused, false));
    assert_eq!(failed.to_string(), "address of the webhook: nothing listens at its port");
    let (names, _) = Lookups::new(&[&[]]);
    let sender = sender(names, Reach::Public);
    let ntfy = request(r#"{"kind": "ntfy", "topic": "t", "server": "https://ntfy.example"}"#);
    // A name without addresses, then one that is not known.
    for _ in 0..2 {
        let failed = sender.send(&ntfy).unwrap_err();
        assert_eq!(failed.to_string(), "server of ntfy: the name of its host leads nowhere");
        assert_eq!(failed.verdict(), AnswerVerdict::UNANSWERED);
    }
}

#[test]
fn a_deployed_server_sends_to_public_addresses_only() {
    let (port, received) = answering(OK);
    for ips in [
        &["127.0.0.1"][..],
        &["::1", "127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["fd00::1"],
        &["100.64.0.1"],
        &["224.0.0.1"],
        &["64:ff9b::7f00:1"],
    ] {
        let (names, _) = Lookups::new(&[ips]);
        let request = webhook(&format!("https://geheim.example:{port}/x"));
        let failed = sender(names, Reach::Public).send(&request).unwrap_err();
        assert!(matches!(failed.cause, Cause::Forbidden(_)), "{ips:?}: {failed}");
        assert_eq!(failed.verdict(), AnswerVerdict::Failing { retry_after: None });
        assert!(!failed.may_have_arrived && !format!("{failed:?}").contains("geheim"));
    }
    let (names, _) = Lookups::new(&[&["127.0.0.1"]]);
    let failed = sender(names, Reach::Public).send(&webhook("https://a.example/")).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "address of the webhook: its host has the address 127.0.0.1, which is loopback; a deployed server \
         connects to public addresses only"
    );
    assert!(received.try_recv().is_err());
}

/// What was stored on a laptop is checked again where it is sent: literals, and addresses without TLS.
#[test]
fn a_stored_address_is_checked_again() {
    let (port, received) = answering(OK);
    let deployed = sender(SystemNames, Reach::Public);
    let failed = deployed.send(&webhook(&url(port))).unwrap_err();
    assert_eq!(
        (&failed.cause, failed.verdict()),
        (&Cause::NotHttps, AnswerVerdict::Failing { retry_after: None })
    );
    assert!(!failed.to_string().contains("geheim"));
    let failed = deployed.send(&webhook(&format!("https://127.0.0.1:{port}/"))).unwrap_err();
    assert!(matches!(failed.cause, Cause::Forbidden(_)), "{failed}");
    assert!(received.try_recv().is_err());
}

#[test]
fn a_laptop_sends_to_its_network_and_never_to_a_link_local_address() {
    let (port, received) = answering(OK);
    // Of several addresses, those that are forbidden are left out.
    let (names, _) = Lookups::new(&[&["169.254.169.254", "127.0.0.1"], &["169.254.169.254"]]);
    let sender = sender(names, Reach::Local);
    let request = webhook(&format!("http://home.example:{port}/x"));
    assert_eq!(sender.send(&request).expect("an answer").status, 200);
    received.recv().expect("a request");
    let failed = sender.send(&request).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "address of the webhook: its host has the address 169.254.169.254, which is link-local; messages go to \
         public addresses and to the local network only"
    );
}

/// A name that leads to a public address when it is checked and to this machine a moment later. The public one is in a
/// block that nobody has, so that nothing leaves the machine for long.
#[test]
fn a_name_that_leads_elsewhere_a_moment_later_is_connected_to_where_it_was_checked() {
    let (port, received) = answering(OK);
    let (names, asked) = Lookups::new(&[&["2d00::1"], &["127.0.0.1"], &["127.0.0.1"]]);
    let deployed = sender(names, Reach::Public);
    let request = webhook(&format!("https://rebinding.example:{port}/x"));
    let failed = deployed.send(&request).unwrap_err();
    assert!(
        matches!(failed.cause, Cause::Unreachable | Cause::TimedOut | Cause::Closed),
        "{failed}"
    );
    assert_eq!(*asked.lock().unwrap(), ["rebinding.example"], "one look-up for one request");
    let failed = deployed.send(&request).unwrap_err();
    assert!(matches!(failed.cause, Cause::Forbidden(_)), "{failed}");
    assert!(received.try_recv().is_err(), "nobody was connected to");

    // The same on a laptop, where the first address answers; no connection of before is used.
    let (names, asked) = Lookups::new(&[&["127.0.0.1"], &["169.254.1.1"]]);
    let local = sender(names, Reach::Local);
    let request = webhook(&format!("http://rebinding.example:{port}/x"));
    assert_eq!(local.send(&request).expect("an answer").status, 200);
    assert!(matches!(local.send(&request).unwrap_err().cause, Cause::Forbidden(_)));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

/// The system's resolver reads such hosts as numbers; a check of the text alone would let them through.
#[test]
fn odd_spellings_of_addresses_lead_nowhere_that_is_forbidden() {
    for host in ["localhost", "127.0.0.1.nip.invalid"] {
        let failed = sender(SystemNames, Reach::Public).send(&webhook(&format!("https://{host}/")));
        let cause = failed.unwrap_err().cause;
        assert!(matches!(cause, Cause::Forbidden(_) | Cause::UnknownHost | Cause::TimedOut));
    }
    for host in ["0x7f.1", "2130706433", "127.1", "017700000001"] {
        let Ok(found) = SystemNames.look_up(host) else { continue };
        assert!(found.iter().all(|ip| Reach::Public.check(*ip).is_err()), "{host}: {found:?}");
    }
}

/// Starts a server with TLS; returns its port and its certificate.
fn tls_server(name: &str) -> (u16, Certificate<'static>) {
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new([name.to_owned()]).expect("a name");
    let certificate = certificate.self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a certificate");
    let config = Arc::new(config);
    let port = server(move |connection| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        let mut stream = StreamOwned::new(session, connection);
        if receive(&mut stream).is_some() {
            let _ = stream.write_all(OK.as_bytes());
            let _ = stream.flush();
        }
    });
    (port, Certificate::from_der(certificate.der()).to_owned())
}

#[test]
fn tls_needs_a_certificate_of_the_host_by_a_public_authority() {
    let (port, own) = tls_server("home.example");
    let plain = server(|mut connection| {
        let _ = connection.read(&mut [0; 1_024]);
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let trusting = || {
        TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(std::slice::from_ref(&own)))
            .build()
    };
    let send = |host: &str, port: u16, tls: TlsConfig| {
        let (names, _) = Lookups::new(&[&["127.0.0.1"]]);
        let sender = HttpSender::build(Reach::Local, Arc::new(names), PATIENCE * 3, tls);
        sender.send(&webhook(&format!("https://{host}:{port}/geheim")))
    };
    let answer = send("home.example", port, trusting()).expect("an answer");
    assert_eq!(answer.status, 200);
    for (host, port, tls, fault, text) in [
        (
            "home.example",
            port,
            TlsConfig::default(),
            TlsFault::UnknownIssuer,
            "address of the webhook: has a certificate that no public authority issued",
        ),
        (
            "other.example",
            port,
            trusting(),
            TlsFault::OtherHost,
            "address of the webhook: has a certificate of another host",
        ),
        (
            "home.example",
            plain,
            trusting(),
            TlsFault::NoTls,
            "address of the webhook: does not speak TLS 1.2 or 1.3",
        ),
    ] {
        let failed = send(host, port, tls).unwrap_err();
        assert_eq!((&failed.cause, failed.to_string().as_str()), (&Cause::Tls(fault), text));
        assert_eq!(failed.verdict(), AnswerVerdict::Failing { retry_after: None });
        assert!(!failed.may_have_arrived);
        assert!(!format!("{failed:?}").contains("example"));
    }
}

/// Takes the records of the crate `log` at the level `DEBUG`, which is more than any part of Roomtide takes; each test's
/// for itself.
struct Records;

thread_local! {
    static RECORDS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        RECORDS.with_borrow_mut(|records| records.push(record.args().to_string()));
    }

    fn flush(&self) {}
}

#[test]
fn no_record_has_a_secret() {
    log::set_logger(&Records).expect("the only logger");
    log::set_max_level(log::LevelFilter::Debug);
    let (port, _) = answering("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let local = format!("http://127.0.0.1:{port}");
    let telegram = format!(
        r#"{{"kind": "telegram", "token": "12:geheim", "chat": "@geheim", "server": "{local}"}}"#
    );
    let ntfy =
        format!(r#"{{"kind": "ntfy", "topic": "geheim", "token": "geheim", "server": "{local}"}}"#);
    for stored in [telegram, ntfy] {
        let request = request(&stored);
        let answer = sender(SystemNames, Reach::Local).send(&request).expect("an answer");
        assert!(!answer.reason(&request).contains("geheim"));
        assert!(!format!("{request:?}").contains("geheim"));
    }
    let records = RECORDS.take();
    assert!(!records.is_empty());
    for record in records {
        assert!(!record.contains("geheim"), "{record}");
    }
}
