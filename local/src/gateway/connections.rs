//! The gateway's connections: their number and their time limits. Answers no request.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::warning::warn;

/// Limits for the gateway's clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The largest number of connections at once; further clients wait until one ends.
    pub(super) connections: usize,
    /// The time for a request's head, from the connection's start or the last answer on.
    pub(super) head: Duration,
    /// The time for a request's head while all connections are taken, because others may be waiting.
    pub(super) head_when_full: Duration,
    /// The time for a request's body.
    pub(super) body: Duration,
}

impl ConnectionLimits {
    /// The limits of a running server. A device that sends 1 MiB within the time needs 280 kbit/s.
    pub(crate) const OWN: Self = Self {
        connections: 512,
        head: Duration::from_secs(10),
        head_when_full: Duration::from_secs(1),
        body: Duration::from_secs(30),
    };
}

/// How long unread bytes are received after an answer that ends the connection.
const LINGER: Duration = Duration::from_secs(2);
/// The pause after a failed accept: the process may have too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves requests with `answer` until it is stopped, then answers the requests under way.
pub(super) async fn serve<F, A>(
    listener: TcpListener,
    limits: ConnectionLimits,
    answer: F,
    mut stop: watch::Receiver<bool>,
) where
    F: Fn(Request<Incoming>, IpAddr) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(limits.connections));
    let full = watch::Sender::new(false);

    loop {
        full.send_replace(slots.available_permits() == 0);
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await.expect("it is never closed");
            full.send_replace(false);
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            next = next => next,
            () = becomes_true(&mut stop) => break,
        };

        match accepted {
            Ok((stream, peer)) => {
                let connection = Connection {
                    limits,
                    full: full.subscribe(),
                    stop: stop.clone(),
                    answer: answer.clone(),
                };
                tokio::spawn(async move {
                    connection.serve(stream, peer.ip()).await;
                    drop(slot);
                });
            }
            Err(error) => {
                warn(format_args!("a connection cannot be accepted: {error}"));
                sleep(PAUSE).await;
            }
        }
    }

    drop(listener);
    // All slots are free again when the last connection has ended.
    let all = u32::try_from(limits.connections).expect("a process has not so many files");
    drop(slots.acquire_many(all).await);
}

struct Connection<F> {
    limits: ConnectionLimits,
    full: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
    answer: F,
}

impl<F, A> Connection<F>
where
    F: Fn(Request<Incoming>, IpAddr) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    async fn serve(mut self, stream: TcpStream, peer: IpAddr) {
        let asked = AtomicBool::new(false);
        let service = service_fn(|request| {
            asked.store(true, Ordering::Relaxed);
            let answer = (self.answer)(request, peer);
            Box::pin(async move { Ok::<_, Infallible>(answer.await) })
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .serve_connection(TokioIo::new(stream), service);

        let mut is_ending = false;
        loop {
            let has_ended = tokio::select! {
                // An error is the client's: it disconnected, was too slow or did not speak HTTP.
                _ = poll_fn(|cx| connection.poll_without_shutdown(cx)) => true,
                () = is_to_end(&mut self.stop, &mut self.full, self.limits), if !is_ending => false,
            };
            if has_ended {
                break;
            }

            // A connection without a request ends now; others end after their answer.
            if !asked.load(Ordering::Relaxed) {
                return;
            }

            Pin::new(&mut connection).graceful_shutdown();
            is_ending = true;
        }

        if asked.load(Ordering::Relaxed) {
            linger(connection.into_parts().io.into_inner()).await;
        }
    }
}

/// Waits until the connection has to end: the server stops, or all connections are taken and this client had its time
/// to send a request.
async fn is_to_end(
    stop: &mut watch::Receiver<bool>,
    full: &mut watch::Receiver<bool>,
    limits: ConnectionLimits,
) {
    let wanted = async {
        sleep(limits.head_when_full).await;
        becomes_true(full).await;
    };
    tokio::select! {
        () = becomes_true(stop) => {}
        () = wanted => {}
    }
}

/// Waits until the value is true or the sender is dropped.
async fn becomes_true(value: &mut watch::Receiver<bool>) {
    drop(value.wait_for(|value| *value).await);
}

/// Receives and drops the bytes that the client still sends. Closing a connection with unread bytes resets it, and the
/// client would lose the answer.
async fn linger(mut stream: TcpStream) {
    let drain = async {
        stream.shutdown().await?;
        let mut unread = [0; 4_096];
        while stream.read(&mut unread).await? > 0 {}
        std::io::Result::Ok(())
    };
    drop(timeout(LINGER, drain).await);
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use runtime::clock::Stopwatch;
    use tokio::task::JoinHandle;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const LIMITS: ConnectionLimits = ConnectionLimits {
        connections: 8,
        head: Duration::from_millis(400),
        head_when_full: Duration::from_millis(50),
        body: Duration::from_secs(1),
    };

    struct Server {
        address: SocketAddr,
        stop: watch::Sender<bool>,
        ended: JoinHandle<()>,
    }

    /// A server that says "ok" after `delay`.
    async fn server(limits: ConnectionLimits, delay: Duration) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = watch::Sender::new(false);
        let answer = move |_, _| async move {
            sleep(delay).await;
            Response::new(Body::from("ok"))
        };
        let ended = tokio::spawn(serve(listener, limits, answer, stop.subscribe()));
        Server { address, stop, ended }
    }

    impl Server {
        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }

        async fn ask(&self) -> String {
            let mut stream = self.connect().await;
            stream.write_all(REQUEST).await.unwrap();
            answer(&mut stream).await
        }

        async fn stop(self) {
            self.stop.send_replace(true);
            timeout(Duration::from_secs(5), self.ended).await.expect("it stops").unwrap();
        }
    }

    /// What comes until the server closes the connection or has said "ok".
    async fn answer(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"ok") && matches!(stream.read(&mut byte).await, Ok(1)) {
            text.push(byte[0]);
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn a_head_that_is_sent_too_slowly_is_not_waited_for() {
        let server = server(LIMITS, Duration::ZERO).await;
        let mut stream = server.connect().await;

        let dribble = async {
            for byte in REQUEST.iter().cycle() {
                if stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                if *byte != b'\r' {
                    sleep(Duration::from_millis(100)).await;
                }
            }
        };

        timeout(Duration::from_secs(5), dribble).await.expect("the connection is closed");
        server.stop().await;
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed_and_a_busy_one_is_kept() {
        let server = server(LIMITS, Duration::from_millis(600)).await;
        let mut stream = server.connect().await;
        for _ in 0..2 {
            stream.write_all(REQUEST).await.unwrap();
            assert!(answer(&mut stream).await.contains(" 200 "));
        }
        let closed = timeout(Duration::from_secs(5), answer(&mut stream)).await;
        assert!(!closed.expect("the connection is closed").contains("ok"));
        server.stop().await;
    }

    #[tokio::test]
    async fn connections_that_ask_nothing_keep_nobody_out() {
        let patient = ConnectionLimits { head: Duration::from_secs(600), ..LIMITS };
        let server = server(patient, Duration::ZERO).await;

        let mut silent = Vec::new();
        for n in 0..10 * LIMITS.connections {
            silent.push(server.connect().await);
            // Half of them have had an answer.
            if n % 2 == 0 && n < LIMITS.connections {
                silent[n].write_all(REQUEST).await.unwrap();
                answer(&mut silent[n]).await;
            }
        }

        let asked = timeout(Duration::from_secs(10), server.ask()).await;
        assert!(asked.expect("it is answered").contains(" 200 "));
        server.stop().await;
    }

    #[tokio::test]
    async fn more_requests_than_connections_are_all_answered_in_turn() {
        let server = Arc::new(server(LIMITS, Duration::from_millis(100)).await);
        let watch = Stopwatch::start();
        let asking: Vec<_> = (0..4 * LIMITS.connections)
            .map(|_| {
                let server = Arc::clone(&server);
                tokio::spawn(async move { server.ask().await })
            })
            .collect();

        for asked in asking {
            assert!(asked.await.unwrap().contains(" 200 "));
        }
        assert!(watch.elapsed() >= Duration::from_millis(400), "no more than the bound at once");
        Arc::into_inner(server).unwrap().stop().await;
    }

    #[tokio::test]
    async fn a_request_under_way_is_answered_when_the_server_stops() {
        let server = server(LIMITS, Duration::from_millis(300)).await;
        let (mut asking, idle) = (server.connect().await, server.connect().await);
        asking.write_all(REQUEST).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        server.stop().await;
        assert!(answer(&mut asking).await.contains(" 200 "));
        drop(idle);
    }

    #[tokio::test]
    async fn an_answer_arrives_though_the_body_is_not_taken() {
        let server = server(LIMITS, Duration::ZERO).await;
        let mut stream = server.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        stream.write_all(head).await.unwrap();

        let (mut reading, mut writing) = stream.into_split();
        let sending = tokio::spawn(async move {
            for _ in 0..100 {
                writing.write_all(&[b' '; 10_000]).await?;
                sleep(Duration::from_millis(5)).await;
            }
            std::io::Result::Ok(())
        });
        sending.await.unwrap().expect("the connection is not reset");

        let mut text = String::new();
        reading.read_to_string(&mut text).await.unwrap();
        assert!(text.contains(" 200 "), "{text}");
        server.stop().await;
    }
}
