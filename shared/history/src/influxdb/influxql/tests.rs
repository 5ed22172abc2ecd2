//! Tests of what is read of an InfluxDB 1 or 2, against answers in their form.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::fake_server::{self, Reply, Request};
use crate::influxdb::{Context, FIRST_WINDOW, NanosecondRange, Server, Window, Windows};

/// The answer of a server with one measurement; `points` gets the statement of a query for points.
fn reply(request: &Request, points: impl FnOnce(&str) -> String) -> Reply {
    if request.path == "/ping" {
        return Reply::with(204, "x-influxdb-version: 1.8.10\r\n", "");
    }
    let (_, query) = request.path.split_once('?').unwrap();
    let find = |name: &str| {
        form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .unwrap()
            .1
            .into_owned()
    };
    assert_eq!((find("epoch"), find("chunked")), ("ns".to_owned(), "true".to_owned()));
    let q = find("q");
    let body = if q == "SHOW DATABASES" {
        r#"{"results":[{"series":[{"name":"databases","columns":["name"],"values":[["_internal"],["ho.me"]]}]}]}"#.to_owned()
    } else if q.starts_with("SHOW RETENTION") {
        r#"{"results":[{"series":[{"columns":["name","duration","default"],"values":[["autogen","0s",false],["years","0s",true]]}]}]}"#.to_owned()
    } else if q == "SHOW FIELD KEYS" {
        r#"{"results":[{"series":[{"name":"°C, a","columns":["fieldKey","fieldType"],"values":[["v","float"],["v","integer"],["v","string"],["ok","boolean"]]}]}]}"#.to_owned()
    } else if q.contains("LIMIT 1") {
        // As InfluxDB, which leaves out what has another type than the one that is asked for.
        assert!(
            q.starts_with(r#"SELECT "ok"::boolean, "v"::float, "v"::string FROM "years"."°C, a" ORDER BY time "#),
            "{q}"
        );
        let at = if q.contains("ASC") { 1_000_000_500_i64 } else { 99 * FIRST_WINDOW };
        format!(
            r#"{{"results":[{{"series":[{{"name":"m","columns":["time","v"],"values":[[{at},1]]}}]}}]}}"#
        )
    } else {
        points(&q)
    };
    Reply::of(200, &body)
}

/// A server with one measurement; `answer` gets the statement of each query for points.
fn server(
    answer: impl Fn(usize, &str) -> String + Send + Sync + 'static,
) -> (fake_server::FakeServer, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = fake_server::serve(move |_, request| {
        reply(&request, |q| {
            let mut seen = seen.lock().unwrap();
            seen.push(q.to_owned());
            answer(seen.len(), q)
        })
    });
    (server, asked)
}

const ROWS: &str = r#"{"results":[{"series":[{"name":"m","tags":{"a b":"x,y","none":""},"columns":["time","ok","v","v_1"],"values":[[1000000500,true,1.0,null]],"partial":true}],"partial":true}]}
{"results":[{"series":[{"name":"m","tags":{"a b":"x,y","none":""},"columns":["time","ok","v","v_1"],"values":[[2000000000,null,12345678901234567890.5,null],[3000000000,null,null,"a \"b\""]]}]}]}"#;
const NONE: &str = r#"{"results":[{"statement_id":0}]}"#;

fn windows(
    server: &fake_server::FakeServer,
    after: Option<(String, i64)>,
) -> anyhow::Result<Vec<Window>> {
    let server = Arc::new(Server::connect(&server.url, None)?);
    let contexts = server.contexts(&[], |_| {})?;
    assert_eq!(contexts, [Context { database: "ho.me".to_owned(), policy: "years".to_owned() }]);
    let span = NanosecondRange { from: i64::MIN, to: 8 * FIRST_WINDOW };
    Windows::new(server, contexts[0].clone(), after, span)?.collect()
}

#[test]
fn points_keep_the_text_of_their_numbers_and_windows_grow() {
    let (server, asked) = server(|n, _| if n == 1 { ROWS } else { NONE }.to_owned());
    let all = windows(&server, None).unwrap();
    let lines: Vec<String> = all
        .iter()
        .flat_map(|window| &window.points)
        .map(|point| {
            let fields: Vec<_> =
                point.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{} {} {}", point.series(), fields.join(","), point.nanos)
        })
        .collect();
    let series = "°C\\,\\ a,a\\ b=x\\,y";
    assert_eq!(
        lines,
        [
            format!("{series} ok=t,v=1.0 1000000500"),
            format!("{series} v=12345678901234567890.5 2000000000"),
            format!("{series} v=\"a \\\"b\\\"\" 3000000000"),
        ]
    );
    let asked = asked.lock().unwrap();
    let from = r#"FROM "years"."°C, a" WHERE"#;
    let begin = 1_000_000_000;
    assert_eq!(
        *asked,
        [(begin, begin + FIRST_WINDOW), (begin + FIRST_WINDOW, begin + 5 * FIRST_WINDOW), (begin + 5 * FIRST_WINDOW, 8 * FIRST_WINDOW)]
            .map(|(begin, end)| format!(r#"SELECT "ok"::boolean, "v"::float, "v"::string {from} time >= {begin} AND time < {end} GROUP BY *"#))
    );
    assert_eq!(all.last().unwrap().until, 8 * FIRST_WINDOW, "nothing is asked behind --to");
}

#[test]
fn an_interrupted_import_goes_on_at_its_window() {
    let (server, asked) = server(|_, _| NONE.to_owned());
    let after = Some(("°C, a".to_owned(), 5 * FIRST_WINDOW));
    assert_eq!(windows(&server, after).unwrap().len(), 2);
    assert!(asked.lock().unwrap()[0].contains(&format!("time >= {}", 5 * FIRST_WINDOW)));
    assert_eq!(windows(&server, Some(("°D".to_owned(), 0))).unwrap().len(), 0, "behind it");
}

#[test]
fn an_error_and_an_answer_that_is_not_whole_are_read_again_and_named() {
    for (bad, expected) in [
        (r#"{"results":[{"statement_id":0,"error":"timeout"}]}"#, "InfluxDB answers: timeout"),
        (r#"{"error":"shard closed"}"#, "InfluxDB answers: shard closed"),
        (r#"{"results":[{"series":[],"partial":true}]}"#, "is not whole"),
        (r#"{"results":[{"series":[{"name""#, "cannot be read"),
        ("", "answers nothing"),
    ] {
        let (once, asked) = server(move |n, _| if n == 1 { bad } else { NONE }.to_owned());
        windows(&once, None).unwrap();
        assert!(
            asked.lock().unwrap()[1]
                .contains(&format!("time < {}", 1_000_000_000 + FIRST_WINDOW / 2)),
            "half of it"
        );
        assert!(
            asked.lock().unwrap()[2]
                .contains(&format!("time < {}", 1_000_000_000 + FIRST_WINDOW / 16 * 17)),
            "and little more at once"
        );
        let (always, asked) = server(move |_, _| bad.to_owned());
        let error = format!("{:#}", windows(&always, None).err().unwrap());
        assert!(error.starts_with("°C, a of ho.me: ") && error.contains(expected), "{error}");
        assert_eq!(asked.lock().unwrap().len(), 4);
    }
}

#[test]
fn each_question_but_ping_and_windows_is_asked_again_after_a_bad_answer() {
    let bad: [fn() -> Reply; 8] = [
        || Reply::of(429, "{}"),
        || Reply::of(502, "<html>"),
        || Reply::of(503, ""),
        || Reply::of(504, ""),
        || Reply::of(200, ""),
        || Reply::of(200, r#"{"results":[{"series":[{"name""#),
        || Reply::with(200, "transfer-encoding: chunked\r\n", "5\r\n{\"res"),
        || Reply::NONE,
    ];
    for (n, bad) in bad.into_iter().enumerate() {
        let asked = Mutex::new(BTreeSet::new());
        let server = fake_server::serve(move |_, request| {
            // A window that is read again is another question: it is shorter.
            let is_window = request.path.contains("GROUP+BY");
            let is_first = asked.lock().unwrap().insert(request.path.clone());
            if is_first && !is_window && request.path != "/ping" {
                return bad();
            }
            reply(&request, |_| NONE.to_owned())
        });
        let read = windows(&server, None);
        assert!(read.is_ok(), "bad answer {n}: {:#}", read.err().unwrap());
    }
}

#[test]
fn a_refusal_of_the_login_is_final_and_alone_advises_on_the_login() {
    for (status, times, is_of_login) in
        [(401, 1, true), (403, 1, true), (404, 1, false), (429, 4, false), (503, 4, false)]
    {
        let count = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&count);
        let server = fake_server::serve(move |_, request| {
            match request.path.as_str() {
                "/ping" => return Reply::with(204, "x-influxdb-version: 1.8.10\r\n", ""),
                "/ready" => return Reply::of(404, ""),
                _ => {}
            }
            asked.fetch_add(1, Ordering::SeqCst);
            Reply::of(status, r#"{"error":"not now"}"#)
        });
        let connected = Server::connect(&server.url, None).unwrap();
        let error = connected.contexts(&[], |_| {}).unwrap_err().to_string();

        assert!(error.contains(&format!("answers {status}")), "{error}");
        assert!(error.contains("not now"), "{error}");
        assert_eq!(error.contains("name and password stand in the address"), is_of_login);
        assert_eq!(count.load(Ordering::SeqCst), times, "{status}");
    }
}

#[test]
fn databases_and_policies_are_named() {
    let (one, _) = server(|_, _| NONE.to_owned());
    let connected = Server::connect(&one.url, None).unwrap();
    let chosen = |name: &str| connected.contexts(&[name.parse().unwrap()], |_| {});
    assert_eq!(chosen("ho.me.autogen").unwrap()[0].policy, "autogen");
    assert_eq!(chosen("ho.me/autogen").unwrap()[0].policy, "autogen", "as InfluxDB 2 writes it");
    assert_eq!(chosen("ho.me").unwrap()[0].policy, "years");
    assert!(chosen("x").unwrap_err().to_string().contains("has no database \"x\"; it has ho.me"));
    assert!(
        chosen("ho.me.x")
            .unwrap_err()
            .to_string()
            .contains("no retention policy \"x\"; it has autogen, years")
    );
}

/// A bucket of InfluxDB 2 as a database, whose virtual mapping is not the default.
#[test]
fn influxdb_2_takes_a_token_and_its_only_policy() {
    const POLICIES: &str = r#"{"results":[{"series":[{"columns":["name","duration","default"],"values":[["autogen","0s",false]]}]}]}"#;
    const DATABASES: &str =
        r#"{"results":[{"series":[{"values":[["_monitoring"],["_tasks"],["home"]]}]}]}"#;
    const KNOWN: [&str; 2] = ["authorization: token secret", "authorization: basic bwu6c2vjcmv0"];
    let is_mapped = Arc::new(Mutex::new(true));
    let seen = Arc::clone(&is_mapped);
    let server = fake_server::serve(move |_, request| {
        if request.path == "/ping" {
            return Reply::with(204, "x-influxdb-version: v2.7.1\r\n", "");
        }
        if request.path == "/ready" {
            return Reply::of(404, "");
        }
        if !request.headers.iter().any(|header| KNOWN.contains(&header.as_str())) {
            return Reply::of(401, r#"{"code":"unauthorized","message":"unauthorized access"}"#);
        }
        match (request.path.contains("SHOW+DATABASES"), *seen.lock().unwrap()) {
            (true, true) => Reply::of(200, DATABASES),
            (true, false) => Reply::of(200, r#"{"results":[{"statement_id":0}]}"#),
            (false, _) => Reply::of(200, POLICIES),
        }
    });
    let contexts = |url: &str, token| Server::connect(url, token)?.contexts(&[], |_| {});
    let home = [Context { database: "home".to_owned(), policy: "autogen".to_owned() }];
    assert_eq!(contexts(&server.url, Some("secret")).unwrap(), home);
    let with_login = server.url.replace("://", "://me:secret@");
    assert_eq!(contexts(&with_login, None).unwrap(), home, "the token as password");

    let error = contexts(&server.url, None).unwrap_err().to_string();
    assert!(error.contains("is InfluxDB 2.7.1, which takes a token"), "{error}");
    let error = contexts(&server.url, Some("wrong")).unwrap_err().to_string();
    assert!(error.contains("unauthorized access; --source-token names a token"), "{error}");
    *is_mapped.lock().unwrap() = false;
    let error = contexts(&server.url, Some("secret")).unwrap_err().to_string();
    assert!(
        error.contains("shows no database") && error.contains("influx v1 dbrp create"),
        "{error}"
    );
}
