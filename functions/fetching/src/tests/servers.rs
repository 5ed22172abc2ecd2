//! Real requests to servers of this machine: one hangs, one answers too much, one is at its limit, one leads elsewhere.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use sending::HttpSender;

use super::*;

/// A server that reads a request and writes an answer after a pause; its port.
fn server(answer: String, pause: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let answer = answer.clone();
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 8_192]);
                thread::sleep(pause);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    port
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn four_sources_that_fail_in_their_ways_delay_no_other_and_each_says_why() {
    let world = World::new();
    let sender: Arc<dyn FetchAnswer> = Arc::new(HttpSender::new(Reach::Local));
    let World { store, clock, makers, ingest, .. } = world;
    let world = World::asking(store, clock, makers, ingest, sender);

    let good = http("200 OK", r#"{"flow": 21.5}"#);
    let long = http("200 OK", &format!(r#"{{"flow": 1, "rest": "{}"}}"#, "x".repeat(600 * 1024)));
    let away =
        "HTTP/1.1 302 .\r\nlocation: http://127.0.0.1/x\r\ncontent-length: 0\r\n\r\n".to_owned();
    let busy = "HTTP/1.1 429 .\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n".to_owned();
    let at_once = Duration::ZERO;
    let bad = [
        (
            "hangs",
            server(good.clone(), Duration::from_secs(12)),
            "The address: has not answered within 10 seconds",
        ),
        ("long", server(long, at_once), "The address: answers more than 512 KiB"),
        ("busy", server(busy, at_once), "The address takes no more requests now; asked again at"),
        ("away", server(away, at_once), "The address answers 302; redirects are not followed"),
    ];
    let settings = |id: &str, port: u16| {
        json!({"kind": "json", "url": format!("http://127.0.0.1:{port}/"), "every": "1m", "device": id,
            "metrics": {"temperature": "/flow"}})
    };
    let port = server(good, at_once);
    let others: Vec<String> = (0..16).map(|n| format!("good-{n}")).collect();
    for id in &others {
        world.save(id, settings(id, port), &[]).await;
    }
    for (id, port, _) in &bad {
        world.save(id, settings(id, *port), &[]).await;
    }

    let watch = runtime::clock::Stopwatch::start();
    world.clock.advance(Duration::from_secs(60));
    tokio::join!(world.minute(), async {
        while world.values().len() < others.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(watch.elapsed() < Duration::from_secs(8), "{:?}", world.values().len());
        }
    });
    // A request without an answer is told to nobody the first time.
    world.clock.advance(Duration::from_secs(60));
    world.minute().await;
    for (id, _, why) in bad {
        let error = world.stored(id).await.status.error.unwrap_or_default();
        assert!(error.starts_with(why), "{id}: {error}");
    }
    for id in &others {
        assert_eq!(world.state(id).await, SourceState::Ok, "{id}");
    }
}
