//! Tests of what is read of an InfluxDB 2, against answers in its documented form.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::import::fake_server::{self, Reply};
use crate::import::sources::influxdb::{FIRST_WINDOW, Server, Window, Windows, contexts};

const BUCKETS: &str = r#"{"links": {"self": "/api/v2/buckets"}, "buckets": [
    {"id": "1", "orgID": "0f", "type": "system", "name": "_monitoring", "retentionRules": []},
    {"id": "2", "orgID": "0f", "type": "user", "name": "telegraf/auto.gen", "retentionRules": [{"type": "expire", "everySeconds": 0}]}]}"#;

const MEASUREMENTS: &str = "#datatype,string,long,string\r\n#group,false,false,false\r\n#default,_result,,\r\n\
    ,result,table,_value\r\n,,0,m ${a}\r\n\r\n";

fn times(times: &[&str]) -> String {
    let rows = times.iter().enumerate().map(|(n, at)| format!(",,{n},{at}\r\n"));
    let head = "#datatype,string,long,dateTime:RFC3339\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_time\r\n";
    format!("{head}{}\r\n", rows.collect::<String>())
}

/// Tables of different types: a float, an integer, a boolean and a text, with tags that change.
const POINTS: &str = "\
#group,false,false,false,false,true,true,true,true\r
#datatype,string,long,dateTime:RFC3339,double,string,string,string,string\r
#default,_result,,,,,,,\r
,result,table,_time,_value,_field,_measurement,host,place\r
,,0,1970-01-02T00:00:01Z,15.43,mem,m ${a},A,Küche\r
,,0,1970-01-02T00:00:02.000000001Z,12345678901234567890,mem,m ${a},A,Küche\r
,,0,1970-01-02T00:00:03Z,,mem,m ${a},A,Küche\r
,,1,1970-01-02T00:00:01Z,59.25,mem,m ${a},B=,\r
\r
#group,false,false,false,false,true,true,true\r
#datatype,string,long,dateTime:RFC3339,long,string,string,string\r
#default,_result,,,,,,\r
,result,table,_time,_value,_field,_measurement,table\r
,,2,1970-01-02T00:00:01Z,-7,n,m ${a},B\r
\r
#group,false,false,false,false,true,true\r
#datatype,string,long,dateTime:RFC3339,boolean,string,string\r
#default,_result,,,,,\r
,result,table,_time,_value,_field,_measurement\r
,,3,1970-01-02T00:00:01Z,true,up,m ${a}\r
,,3,1970-01-02T00:00:02Z,false,up,m ${a}\r
\r
#group,false,false,false,false,true,true\r
#datatype,string,long,dateTime:RFC3339,string,string,string\r
#default,_result,,,,,\r
,result,table,_time,_value,_field,_measurement\r
,,4,1970-01-02T00:00:01Z,\"a \"\"q\"\",\r\nb\",note,m ${a}\r
\r
#group,false,false,false,false,true,true\r
#datatype,string,long,dateTime:RFC3339,unsignedLong,string,string\r
#default,_result,,,18446744073709551615,,\r
,result,table,_time,_value,_field,_measurement\r
,,5,1970-01-02T00:00:01Z,,big,m ${a}\r
\r
";

/// The answer to a query without rows.
const NONE: &str = "\r\n";

/// A server with one measurement; `answer` is asked for each query for points.
fn server(
    answer: impl Fn(usize, &str) -> String + Send + Sync + 'static,
) -> (fake_server::Server, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let server = fake_server::serve(move |_, request| {
        if request.path == "/ping" {
            return Reply::with(204, "x-influxdb-version: v2.7.1\r\n", "");
        }
        if !request.headers.contains(&"authorization: token secret".to_owned()) {
            return Reply::of(401, r#"{"code":"unauthorized","message":"unauthorized access"}"#);
        }
        if request.path == "/api/v2/buckets?limit=100&offset=0" {
            return Reply::of(200, BUCKETS);
        }
        assert_eq!((&*request.method, &*request.path), ("POST", "/api/v2/query?orgID=0f"));
        assert!(request.headers.contains(&"content-type: application/json".to_owned()));
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(
            body["dialect"]["annotations"],
            serde_json::json!(["datatype", "group", "default"])
        );
        let query = body["query"].as_str().unwrap();
        assert!(
            query.starts_with("from(bucket: \"telegraf/auto.gen\") |> range(start: "),
            "{query}"
        );
        let body = if query.ends_with("|> distinct(column: \"_measurement\")") {
            MEASUREMENTS.to_owned()
        } else if query.contains("first()") {
            times(&["1970-01-02T00:00:05Z", "1970-01-02T00:00:01.0005Z"])
        } else if query.contains("last()") {
            times(&["1970-01-02T00:00:05Z", "1970-03-02T00:00:00Z"])
        } else {
            let mut seen = seen.lock().unwrap();
            seen.push(query.to_owned());
            answer(seen.len(), query)
        };
        Reply::of(200, &body)
    });
    (server, asked)
}

fn windows(server: &fake_server::Server) -> anyhow::Result<Vec<Window>> {
    let server = Arc::new(Server::connect(&server.url, Some("secret"))?);
    let contexts = contexts(&server, &[], |_| {})?;
    let span = (i64::MIN, 8 * FIRST_WINDOW);
    Windows::new(server, contexts[0].clone(), None, span)?.collect()
}

#[test]
fn types_come_from_the_annotations_and_windows_grow() {
    let (server, asked) = server(|n, _| if n == 1 { POINTS } else { NONE }.to_owned());
    let all = windows(&server).unwrap();
    let lines: Vec<String> = all
        .iter()
        .flat_map(|window| &window.points)
        .map(|point| {
            let (key, value) = &point.fields[0];
            assert_eq!(point.fields.len(), 1);
            format!("{} {key}={value} {}", point.series(), point.nanos - FIRST_WINDOW)
        })
        .collect();
    let series = "m\\ ${a}";
    assert_eq!(
        lines,
        [
            format!("{series},host=A,place=Küche mem=15.43 1000000000"),
            format!("{series},host=A,place=Küche mem=12345678901234567890 2000000001"),
            format!("{series},host=B\\= mem=59.25 1000000000"),
            format!("{series},table=B n=-7i 1000000000"),
            format!("{series} up=t 1000000000"),
            format!("{series} up=f 2000000000"),
            format!("{series} note=\"a \\\"q\\\",\r\nb\" 1000000000"),
            format!("{series} big=18446744073709551615u 1000000000"),
        ]
    );
    let asked = asked.lock().unwrap();
    let spans = [
        ("1970-01-02T00:00:01.000000000Z", "1970-01-03T00:00:01.000000000Z"),
        ("1970-01-03T00:00:01.000000000Z", "1970-01-07T00:00:01.000000000Z"),
        ("1970-01-07T00:00:01.000000000Z", "1970-01-23T00:00:01.000000000Z"),
    ];
    assert_eq!(
        *asked,
        spans.map(|(start, stop)| format!(
            r#"from(bucket: "telegraf/auto.gen") |> range(start: {start}, stop: {stop}) |> filter(fn: (r) => r._measurement == "m \${{a}}") |> drop(columns: ["_start", "_stop"])"#
        ))
    );
}

#[test]
fn an_error_and_an_answer_that_is_not_whole_are_read_again_and_named() {
    let whole = POINTS.lines().count();
    let cut = |lines: usize| -> String { POINTS.split_inclusive('\n').take(lines).collect() };
    let error = "#datatype,string,string\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,\"engine: unknown field, xyz\",\r\n";
    for (bad, expected) in [
        (error.to_owned(), "InfluxDB answers: engine: unknown field, xyz"),
        (format!("{POINTS}{error}"), "InfluxDB answers: engine: unknown field, xyz"),
        // The documentation's form of an error.
        (
            "#datatype,string,long\n,error,reference\n,Failed to parse query,897\n".to_owned(),
            "InfluxDB answers: Failed to parse query",
        ),
        (String::new(), "ends before its last line"),
        (cut(6), "ends before its last line"),
        (cut(whole - 1), "ends before its last line"),
        (POINTS[..POINTS.len() - 2].to_owned(), "ends before its last line"),
        (POINTS[..POINTS.len() - 9].to_owned(), "not whole"),
        (",result,table\r\n,,0\r\n\r\n".to_owned(), "without annotations"),
        (r#"{"code": "internal"}"#.to_owned(), "without annotations"),
        (
            POINTS.replace("long,dateTime:RFC3339,boolean", "long,dateTime:RFC3339,duration"),
            "\"duration\"",
        ),
        (POINTS.replace("1970-01-02T00:00:01Z,true", "yesterday,true"), "\"yesterday\""),
    ] {
        let first = bad.clone();
        let (once, asked) =
            server(move |n, _| if n == 1 { first.clone() } else { NONE.to_owned() });
        windows(&once).unwrap();
        assert!(
            asked.lock().unwrap()[1].contains("stop: 1970-01-02T12:00:01.000000000Z"),
            "half of it"
        );
        let (always, asked) = server(move |_, _| bad.clone());
        let error = format!("{:#}", windows(&always).err().unwrap());
        assert!(
            error.starts_with("m ${a} of telegraf/auto.gen: ") && error.contains(expected),
            "{error}"
        );
        assert_eq!(asked.lock().unwrap().len(), 4);
    }
}

#[test]
fn buckets_are_named_and_a_wrong_token_says_so() {
    let (server, _) = server(|_, _| NONE.to_owned());
    let connect = |token: &str| Server::connect(&server.url, Some(token)).unwrap();
    let error = contexts(&connect("wrong"), &[], |_| {}).unwrap_err().to_string();
    assert!(
        error.contains("unauthorized access")
            && error.ends_with("a token that may read the bucket"),
        "{error}"
    );
    let connected = connect("secret");
    let error = contexts(&connected, &["a.b".parse().unwrap()], |_| {}).unwrap_err().to_string();
    assert!(error.ends_with("has no bucket \"a.b\"; it has telegraf/auto.gen"), "{error}");
    let mut said = Vec::new();
    let wanted = ["_monitoring".parse().unwrap()];
    let chosen = contexts(&connected, &wanted, |text| said.push(text)).unwrap();
    assert_eq!((&*chosen[0].database, &*chosen[0].policy), ("_monitoring", "0f"));
    let left_out = "left out     bucket telegraf/auto.gen; --database telegraf/auto.gen imports it";
    assert_eq!(said, ["bucket       _monitoring", left_out]);
}

#[test]
fn a_list_of_buckets_has_pages() {
    let page = move |organization: &str, from: usize, to: usize| {
        let bucket =
            |n| format!(r#"{{"orgID": "{organization}", "name": "b{n}", "type": "user"}}"#);
        let buckets: Vec<String> = (from..to).map(bucket).collect();
        Reply::of(200, &format!(r#"{{"buckets": [{}]}}"#, buckets.join(",")))
    };
    let server = fake_server::serve(move |_, request| match &*request.path {
        "/ping" => Reply::with(204, "x-influxdb-version: v2.7.1\r\n", ""),
        "/api/v2/buckets?limit=100&offset=0" => page("0f", 0, 100),
        "/api/v2/buckets?limit=100&offset=100" => page("1f", 99, 101),
        other => panic!("{other}"),
    });
    let connected = Server::connect(&server.url, Some("secret")).unwrap();
    let chosen = |name: &str| contexts(&connected, &[name.parse().unwrap()], |_| {});
    assert_eq!(chosen("b100").unwrap()[0].database, "b100");
    let error = chosen("b99").unwrap_err().to_string();
    assert!(error.contains("several buckets \"b99\", in different organizations"), "{error}");
}

#[test]
fn a_server_that_answers_the_same_page_for_ever_has_one_page_of_buckets() {
    let names = (0..100).map(|n| format!(r#"{{"orgID": "0f", "type": "user", "name": "b{n}"}}"#));
    let page = format!(r#"{{"buckets": [{}]}}"#, names.collect::<Vec<_>>().join(","));
    let server = fake_server::serve(move |n, request| {
        if request.path == "/ping" {
            return Reply::with(204, "x-influxdb-version: v2.7.1\r\n", "");
        }
        assert!(n < 5, "asked for ever: {request:?}");
        Reply::of(200, &page)
    });
    let server = Server::connect(&server.url, Some("secret")).unwrap();
    let error = contexts(&server, &[], |_| {}).unwrap_err().to_string();
    assert!(error.contains("has the buckets b0, b1"), "{error}");
}
