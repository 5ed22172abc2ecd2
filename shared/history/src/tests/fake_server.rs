//! A server for tests: a function answers each request. Knows no endpoint.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A running server. It ends with the process.
pub struct FakeServer {
    /// The address of the server.
    pub url: String,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The body; empty without one.
    pub body: String,
    /// In lower case, each as `name: value`.
    pub headers: Vec<String>,
}

/// An answer; `NONE` closes the connection without one.
#[derive(Debug)]
pub struct Reply {
    text: Option<String>,
    /// Whether the connection stays open after the answer.
    is_held: bool,
}

impl Reply {
    /// No answer.
    pub const NONE: Self = Self { text: None, is_held: false };

    /// Makes an answer with a body.
    pub fn of(status: u16, body: &str) -> Self {
        Self::with(status, "", body)
    }

    /// Makes the answer of a server that has stored all readings of a request, a line each.
    pub fn stored(request: &Request) -> Self {
        Self::of(201, &format!(r#"{{"accepted": {}}}"#, request.body.lines().count()))
    }

    /// Makes an answer with further headers, each ending with a new line.
    pub fn with(status: u16, headers: &str, body: &str) -> Self {
        let length = format!("content-length: {}\r\n", body.len());
        Self::raw(status, &format!("{headers}{length}"), body)
    }

    /// Makes an answer that stops after the beginning of its body, without an end.
    pub fn stalled(beginning: &str) -> Self {
        let length = format!("content-length: {}\r\n", beginning.len() + 1);
        Self { is_held: true, ..Self::raw(200, &length, beginning) }
    }

    fn raw(status: u16, headers: &str, body: &str) -> Self {
        let text = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n{headers}\r\n{body}");
        Self { text: Some(text), is_held: false }
    }
}

/// Starts a server that answers every request so.
pub fn always(status: u16, body: &str) -> FakeServer {
    in_turn(&[(status, body)])
}

/// Starts a server with these answers one after the other. The last one is that of all further requests, too.
pub fn in_turn(answers: &[(u16, &str)]) -> FakeServer {
    let answers: Vec<_> =
        answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
    serve(move |n, _| {
        let (status, body) = &answers[n.min(answers.len() - 1)];
        Reply::of(*status, body)
    })
}

/// Starts a server that answers the n-th request, from 0, with `answer(n, request)`, several at once.
pub fn serve(answer: impl Fn(usize, Request) -> Reply + Send + Sync + 'static) -> FakeServer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new((answer, AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                let stream = stream.unwrap();
                let request = read(&stream);
                let n = answer.1.fetch_add(1, Ordering::SeqCst);
                let reply = (answer.0)(n, request);
                if let Some(text) = reply.text {
                    drop((&stream).write_all(text.as_bytes()));
                }
                if reply.is_held {
                    // Until the other side closes.
                    drop((&stream).read_to_end(&mut Vec::new()));
                }
            });
        }
    });
    FakeServer { url }
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    reader.read_line(&mut head).unwrap();
    let mut words = head.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
    let (mut length, mut headers) = (0, Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { method, path, body: String::from_utf8(body).unwrap(), headers }
}
