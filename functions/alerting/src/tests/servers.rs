//! Channels at servers of this machine that are absent, wrong, slow, that redirect, ask for a pause or lead elsewhere.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use alerts::News;
use chrono::TimeDelta;
use domain::Timestamp;
use outgoing::Reach;
use sending::{HttpSender, LookUpHost};

use super::{Receiver, World};

/// A server that reads a request and writes `answer`, after a pause; its port and the number of its requests.
fn server(answer: &'static str, pause: Duration) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 8_192]);
                thread::sleep(pause);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    (port, count)
}

/// Names that lead to this machine at first, and then to where clouds give a machine its credentials.
#[derive(Default)]
struct Rebound(AtomicUsize);

impl LookUpHost for Rebound {
    fn look_up(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let is_first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let ip = if is_first { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(169, 254, 169, 254) };
        Ok(vec![ip.into()])
    }
}

async fn tell(world: &World, channels: &[&str]) {
    let rule = world.rule("r", false).await;
    let channels: Vec<_> = channels.iter().map(|id| (*id, Timestamp::MIN)).collect();
    world.tell(&rule, "freezer", News::Fired, &channels).await;
}

#[tokio::test]
async fn servers_that_take_no_message_hold_up_no_other_and_each_has_its_reason() {
    let now = Duration::ZERO;
    let (good, received) = server("HTTP/1.1 204 .\r\ncontent-length: 0\r\n\r\n", now);
    let (redirecting, _) =
        server("HTTP/1.1 302 .\r\nlocation: http://127.0.0.1/x\r\ncontent-length: 0\r\n\r\n", now);
    let (busy, _) = server("HTTP/1.1 429 .\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n", now);
    let (wrong, _) = server("220 mail.example.org ESMTP\r\n", now);
    let (slow, slow_count) =
        server("HTTP/1.1 204 .\r\ncontent-length: 0\r\n\r\n", Duration::from_secs(12));
    let absent =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let world = World::with(HttpSender::new(Reach::Local), Receiver::default(), None);
    let all = [
        ("absent", absent),
        ("busy", busy),
        ("good", good),
        ("redirecting", redirecting),
        ("slow", slow),
        ("wrong", wrong),
    ];
    for (id, port) in all {
        world.channel_at(id, &format!("http://127.0.0.1:{port}/geheim"), None).await;
    }
    tell(&world, &all.map(|(id, _)| id)).await;
    world.minute().await.expect("done");
    assert_eq!(received.load(Ordering::SeqCst), 1);
    let line = world.line();
    assert_eq!(line["alerting.messages"], 1);
    assert!(!line.to_string().contains("geheim"));
    let failures = line["alerting.failures"].as_array().expect("failures").clone();
    for (reason, expected) in failures.iter().zip([
        "absent: address of the webhook: nothing listens at its port",
        "busy: the webhook answers 429",
        "redirecting: the webhook answers 302; redirects are not followed",
        "slow: address of the webhook: has not answered within 10 seconds",
        "wrong: address of the webhook: ",
    ]) {
        assert!(reason.as_str().expect("text").starts_with(expected), "{reason}: {expected}");
    }
    assert_eq!(failures.len(), 5);
    assert!(world.stored("redirecting").await.failing.is_some(), "a person has to mend it");
    // What had the whole request may have taken it: the message keeps its lease, and its next attempt says so.
    let waiting = world.store.all_waiting();
    let leased = waiting.iter().filter(|it| it.lease.is_some()).map(|it| it.channel.as_str());
    assert_eq!(leased.collect::<Vec<_>>(), ["slow", "wrong"]);
    assert_eq!(slow_count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_later_is_checked_each_time() {
    let (good, received) = server("HTTP/1.1 204 .\r\ncontent-length: 0\r\n\r\n", Duration::ZERO);
    let sender = HttpSender::with_names(Reach::Local, Arc::new(Rebound::default()));
    let world = World::with(sender, Receiver::default(), None);
    world.channel_at("a", &format!("http://rebound.example.org:{good}/"), None).await;
    tell(&world, &["a"]).await;
    world.minute().await.expect("done");
    assert_eq!(received.load(Ordering::SeqCst), 1);
    world.pass(TimeDelta::minutes(1));
    let rule = world.rule("q", false).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", Timestamp::MIN)]).await;
    world.minute().await.expect("done");
    assert_eq!(received.load(Ordering::SeqCst), 1);
    let why = world.line()["alerting.failures"][0].as_str().expect("why").to_owned();
    assert!(why.contains("169.254.169.254, which is link-local"), "{why}");
    assert!(world.stored("a").await.failing.is_some());
}
