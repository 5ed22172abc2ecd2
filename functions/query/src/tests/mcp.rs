//! `POST /mcp` as clients of both eras send to it, and each tool as a model calls it.

use super::series::numbers;
use super::*;
use domain::given::cases;

const VERSION: &str = "mcp-protocol-version";
const MODERN: &str = "2026-07-28";

impl Bench {
    /// A kitchen with a thermometer that is 20 °C, then 30 °C for half an hour, and an hour of a meter that is
    /// exchanged; a loft with a plug. The home's clocks are an hour ahead of UTC.
    async fn house() -> Self {
        let bench = Self::empty();
        let mut readings = Vec::new();
        for n in 0..60 {
            let kwh = if n < 30 { format!("80.{n:02}") } else { format!("0.{:02}", n - 30) };
            let warm = if n < 30 { "20" } else { "30" };
            readings.push(numbers("meter", n, "kitchen", &[("cumulative_kwh_p", &kwh)]));
            readings.push(numbers(
                "air",
                n,
                "kitchen",
                &[("temperature", warm), ("humidity", "50")],
            ));
        }
        readings.push(numbers("plug", 5, "loft", &[("current_w", "100")]));
        bench.store(&readings).await;
        for (device, body) in [
            ("meter", r#"{"metrics": {"cumulative_kwh_p": {"kind": "counter", "unit": "kWh"}}}"#),
            ("air", r#"{"name": "Window", "metrics": {"temperature": {"unit": "°C"}}}"#),
            (
                "plug",
                r#"{"kind": "plug", "tags": ["old"], "metrics": {"current_w": {"unit": "W"}}}"#,
            ),
        ] {
            assert_eq!(bench.patch(&format!("/devices/{device}"), body).await.status, 200);
        }
        for room in ["kitchen", "loft"] {
            let answer = bench.patch(&format!("/rooms/{room}"), r#"{"home": "villa"}"#).await;
            assert_eq!(answer.status, 200);
        }
        bench.seal(0, "Europe/Berlin").await;
        bench
    }

    async fn post(&self, headers: Value, body: &Value) -> Answer {
        self.send("POST", "/mcp", headers, &body.to_string()).await
    }

    /// A request of 2025-11-25.
    async fn request(&self, method: &str, params: Value) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.post(json!({VERSION: "2025-11-25"}), &body).await
    }

    /// A request of 2026-07-28.
    async fn modern(&self, method: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut headers = json!({VERSION: MODERN, "mcp-method": method});
        if let Some(name) = params.get("name") {
            headers["mcp-name"] = name.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
        self.post(headers, &body).await
    }

    /// The result of a tool.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", params).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["result"].clone()
    }

    /// What a tool answers if nothing is wrong; its text says the same.
    async fn told(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        let structured = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), structured);
        structured
    }

    /// What a tool says is wrong.
    async fn wrong(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(true), None));
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }
}

fn ids(answer: &Value) -> Vec<&str> {
    let devices = answer["devices"].as_array().expect("a list");
    devices.iter().map(|it| it["device_id"].as_str().expect("an id")).collect()
}

fn rows(answer: &Value) -> Vec<Value> {
    answer["rows"].as_array().expect("rows").clone()
}

#[tokio::test]
async fn a_client_that_initializes_agrees_on_a_version_and_lists_the_tools() {
    let bench = Bench::empty();
    for (asked, agreed) in
        [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25")]
    {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = bench.post(json!({}), &body).await;
        let (status, answer) = (answer.status, answer.json());
        assert_eq!((status, &answer["id"]), (200, &json!(0)));
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "roomtide");
        assert!(
            answer["result"]["instructions"].as_str().is_some_and(|it| it.contains("list_devices"))
        );
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = bench.post(json!({}), &notification).await;
    assert_eq!((answer.status, answer.text.as_str()), (202, ""));
    assert_eq!(bench.request("ping", json!({})).await.json()["result"], json!({}));
    let tools = bench.request("tools/list", json!({})).await.json()["result"]["tools"].clone();
    let tools = tools.as_array().expect("a list");
    assert_eq!(tools.len(), 8);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    }
    let of = |name: &str| {
        tools.iter().find(|it| it["name"] == name).expect("it is there")["inputSchema"].clone()
    };
    assert_eq!(of("series")["required"], json!(["metric"]));
    assert_eq!(of("series")["properties"]["every"]["default"], "1h");
    let words = of("series")["properties"]["every"]["enum"].clone();
    assert!(
        words
            .as_array()
            .is_some_and(|it| it.contains(&json!("1mo")) && it.contains(&json!("total")))
    );
    assert_eq!(of("health")["properties"], json!({}));
}

#[tokio::test]
async fn a_client_of_the_newer_version_needs_no_handshake() {
    let bench = Bench::house().await;
    let answer = bench.modern("server/discover", json!({})).await;
    let (status, result) = (answer.status, answer.json()["result"].clone());
    assert_eq!((status, &result["resultType"]), (200, &json!("complete")));
    assert_eq!(result["supportedVersions"], json!([MODERN, "2025-11-25", "2025-06-18"]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "roomtide");
    let list = bench.modern("tools/list", json!({})).await.json()["result"].clone();
    assert_eq!(
        (list["tools"].as_array().map(Vec::len), &list["cacheScope"]),
        (Some(8), &json!("private"))
    );
    assert!(list["ttlMs"].is_u64());
    let params = json!({"name": "find_devices", "arguments": {"name": "win*"}});
    let found = bench.modern("tools/call", params).await.json()["result"].clone();
    assert_eq!(ids(&found["structuredContent"]), ["air"]);
    assert_eq!(found["resultType"], "complete");

    for (method, status, code) in
        [("ping", 404, -32_601), ("initialize", 404, -32_601), ("resources/list", 404, -32_601)]
    {
        let answer = bench.modern(method, json!({})).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (status, &json!(code)),
            "{method}"
        );
    }
    let answer = bench.modern("tools/call", json!({"name": "open_door"})).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32_602)));
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_the_code_of_json_rpc() {
    let bench = Bench::empty();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (headers, body, status, code) in [
        (json!({}), "{".to_owned(), 400, -32_700),
        (json!({}), json!([ping]).to_string(), 400, -32_600),
        (json!({}), json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string(), 400, -32_600),
        (json!({VERSION: "2030-01-01"}), ping.to_string(), 400, -32_022),
        (json!({VERSION: MODERN}), ping.to_string(), 400, -32_602),
    ] {
        let answer = bench.send("POST", "/mcp", headers, &body).await;
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (status, &json!(code)), "{body}");
    }
    for (method, params, code, why) in [
        ("tools/move", json!({}), -32_601, "Unknown method: tools/move"),
        ("server/discover", json!({}), -32_601, "Unknown method"),
        ("initialize", json!({}), -32_602, "protocolVersion"),
        ("tools/call", json!({}), -32_602, "name"),
        (
            "tools/call",
            json!({"name": "open_door"}),
            -32_602,
            "Unknown tool: open_door; there are list_devices",
        ),
        ("tools/call", json!({"name": "health", "arguments": []}), -32_602, "arguments"),
    ] {
        let answer = bench.request(method, params).await;
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (200, &json!(code)), "{method}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains(why)), "{error}");
        assert_eq!(answer.json()["id"], 7);
    }
    for method in ["GET", "DELETE"] {
        let answer = bench.send(method, "/mcp", json!({}), "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, "POST"));
    }
    let answer = bench.send("POST", "/mcp", json!({"content-type": "text/html"}), "{}").await;
    assert_eq!(answer.status, 415);
}

#[tokio::test]
async fn a_token_that_reads_is_needed_and_pages_of_others_are_refused() {
    let bench = Bench::new_with(true).await;
    let write = Scope::Write(["a".parse().expect("an id")].into());
    for (secret, scope) in [("read", Scope::Read), ("write", write), ("admin", Scope::Admin)] {
        bench.store.add_token(&given::token(secret, scope), &invocation()).await.expect("memory");
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_devices"}});
    for (secret, status) in [("", 401), ("x", 401), ("write", 403), ("read", 200), ("admin", 200)] {
        let headers = json!({"authorization": format!("Bearer {}", given::secret(secret))});
        let answer = bench.post(headers, &call).await;
        assert_eq!(answer.status, status, "{secret}: {}", answer.text);
    }
    for (origin, status) in [
        ("https://home.example.org", 200),
        ("https://HOME.example.org", 200),
        ("https://other.example.org", 403),
        ("null", 403),
        ("", 403),
    ] {
        let headers = json!({"authorization": format!("Bearer {}", given::secret("read")), "host": "home.example.org", "origin": origin});
        assert_eq!(bench.post(headers, &call).await.status, status, "{origin}");
    }
}

#[tokio::test]
async fn rooms_and_devices_are_listed_with_metrics_and_units() {
    let bench = Bench::house().await;
    let all = bench.told("list_devices", json!({})).await;
    assert_eq!(ids(&all), ["air", "meter", "plug"]);
    assert_eq!(
        all["rooms"],
        json!([{"room_id": "kitchen", "home": "villa"}, {"room_id": "loft", "home": "villa"}])
    );
    assert_has(&all, &json!({"tz": "Europe/Berlin", "now": "2026-01-11T18:00:00+01:00"}));
    let air = json!({
        "device_id": "air", "name": "Window", "room": "kitchen",
        "metrics": {"temperature": {"unit": "°C"}, "humidity": all["devices"][0]["metrics"]["humidity"]},
        "first_seen": "2026-01-11T17:00:00+01:00",
    });
    assert_eq!(all["devices"][0], air);
    assert_eq!(
        all["devices"][1]["metrics"]["cumulative_kwh_p"],
        json!({"kind": "counter", "unit": "kWh"})
    );
    assert_eq!(all["devices"][2]["tags"], json!(["old"]));
    let room = bench.told("list_devices", json!({"room": "kitchen"})).await;
    assert_eq!((ids(&room), room.get("rooms")), (vec!["air", "meter"], None));
    let home = bench.told("list_devices", json!({"home": "villa"})).await;
    assert_eq!((ids(&home).len(), home["rooms"].as_array().map(Vec::len)), (3, Some(2)));
}

#[tokio::test]
async fn a_long_list_goes_on_behind_its_cursor() {
    let bench = Bench::house().await;
    let mut arguments = json!({"limit": 2});
    let first = bench.told("list_devices", arguments.clone()).await;
    assert_eq!(ids(&first), ["air", "meter"]);
    assert!(first["more"]["how"].as_str().is_some_and(|it| it.contains("cursor")));
    arguments["cursor"] = first["more"]["cursor"].clone();
    let second = bench.told("list_devices", arguments).await;
    assert_eq!((ids(&second), second.get("more"), second.get("rooms")), (vec!["plug"], None, None));
}

#[tokio::test]
async fn of_many_rooms_some_are_listed_and_it_is_said_that_there_are_more() {
    let bench = Bench::empty();
    for (count, listed) in [(100, 100), (101, 100)] {
        for n in 0..count {
            given::register_room(&bench.store, &format!("r{n:03}"), at_minute(0)).await;
        }
        let answer = bench.again().told("list_devices", json!({})).await;
        assert_eq!(answer["rooms"].as_array().map(Vec::len), Some(listed));
        assert_eq!(answer.get("more_rooms").is_some(), count > listed, "{count}");
    }
}

/// Devices with so many metrics that fewer fit than are asked for: no device is lost or told twice.
#[tokio::test]
async fn an_answer_is_small_however_much_devices_measure() {
    let bench = Bench::empty();
    let names: Vec<String> = (0..60).map(|n| format!("a_metric_with_a_long_name_{n:02}")).collect();
    let values: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1.5")).collect();
    let readings: Vec<Reading> =
        (0..40).map(|n| numbers(&format!("d{n:02}"), 0, "r", &values)).collect();
    bench.store(&readings).await;
    for tool in ["list_devices", "latest_values"] {
        let (mut seen, mut arguments) = (Vec::new(), json!({"limit": 200}));
        let mut pages = 0;
        loop {
            let answer = bench.told(tool, arguments.clone()).await;
            let size = answer["devices"].to_string().len();
            assert!(size < 45_000, "{tool}: {size} bytes");
            seen.extend(ids(&answer).into_iter().map(ToOwned::to_owned));
            pages += 1;
            let Some(more) = answer.get("more") else { break };
            arguments["cursor"] = more["cursor"].clone();
        }
        assert!(pages > 1, "{tool}");
        assert_eq!(seen, (0..40).map(|n| format!("d{n:02}")).collect::<Vec<_>>(), "{tool}");
    }
}

#[tokio::test]
async fn devices_are_found_by_what_is_said_of_them() {
    let bench = Bench::house().await;
    for (arguments, expected) in [
        (json!({"name": "win*"}), &["air"][..]),
        (json!({"kind": "PLUG"}), &["plug"]),
        (json!({"tag": ["old"]}), &["plug"]),
        (json!({"tag": "old", "room": "kitchen"}), &[]),
        (json!({"where": ["temperature>25", "humidity=50"]}), &["air"]),
        (json!({"silent": "30m"}), &["plug"]),
        (json!({"silent": null}), &["air", "meter", "plug"]),
    ] {
        let found = bench.told("find_devices", arguments.clone()).await;
        assert_eq!(ids(&found), expected, "{arguments}");
    }
}

#[tokio::test]
async fn newest_values_have_units_and_local_times() {
    let bench = Bench::house().await;
    let device = bench.told("latest_values", json!({"device": "air"})).await;
    let humidity = device["devices"][0]["values"]["humidity"].clone();
    assert_eq!(humidity["value"], 50);
    let expected = json!([{
        "device_id": "air", "name": "Window", "room": "kitchen", "timestamp": "2026-01-11T17:59:00+01:00",
        "values": {"temperature": {"value": 30, "unit": "°C"}, "humidity": humidity},
    }]);
    assert_eq!(device["devices"], expected);
    let room = bench.told("latest_values", json!({"room": "kitchen"})).await;
    assert_eq!(ids(&room), ["air", "meter"]);
    let metric = json!({"home": "villa", "metric": ["current_w", "temperature"]});
    let home = bench.told("latest_values", metric).await;
    assert_eq!(ids(&home), ["air", "plug"]);
    assert_eq!(home["devices"][0]["values"].as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(ids(&bench.told("latest_values", json!({})).await), ["air", "meter", "plug"]);
    // A metric that is older than the newest reading says when it was.
    bench.store(&[numbers("air", 60, "kitchen", &[("temperature", "31")])]).await;
    let device = bench.told("latest_values", json!({"device": "air"})).await;
    assert_eq!(
        device["devices"][0]["values"]["humidity"]["timestamp"],
        "2026-01-11T17:59:00+01:00"
    );
    assert_eq!(device["devices"][0]["values"]["temperature"].get("timestamp"), None);
}

#[tokio::test]
async fn a_series_has_rows_of_local_hours_and_no_readings() {
    let bench = Bench::house().await;
    let answer = bench.told("series", json!({"room": "kitchen", "metric": ["temperature"]})).await;
    assert_eq!((&answer["every"], &answer["tz"]), (&json!("1h"), &json!("Europe/Berlin")));
    assert_eq!(answer["units"], json!({"temperature": "°C"}));
    let warm = rows(&answer).into_iter().find(|row| !row["temperature"].is_null()).expect("a row");
    assert_eq!(warm["timestamp"], "2026-01-11T17:00:00+01:00");
    assert_eq!(warm["temperature"], json!({"count": 60, "max": 30, "mean": 25, "min": 20}));

    let range = json!({"from": at_minute(0), "to": at_minute(60)});
    let asked = |more: Value| {
        let mut arguments = range.clone();
        let more = more.as_object().expect("an object").clone();
        arguments.as_object_mut().expect("an object").extend(more);
        arguments
    };
    let total = asked(
        json!({"device": "air", "metric": "temperature", "every": "total", "fn": ["max", "last"]}),
    );
    let total = bench.told("series", total).await;
    assert_eq!(rows(&total).len(), 1);
    assert_eq!(total["rows"][0]["temperature"], json!({"last": 30, "max": 30}));
    let apart = asked(
        json!({"home": "villa", "metric": ["temperature", "current_w"], "every": "1h", "devices": true}),
    );
    let apart = bench.told("series", apart).await;
    assert_eq!(rows(&apart).len(), 2, "{apart}");
    let tokyo = asked(json!({"device": "air", "metric": "humidity", "tz": "Asia/Tokyo"}));
    let tokyo = bench.told("series", tokyo).await;
    assert_eq!(tokyo["rows"][0]["timestamp"], "2026-01-12T01:00:00+09:00");
    let all = asked(json!({"metric": "temperature", "rooms": true}));
    assert_eq!(bench.told("series", all).await["rows"][0]["room_id"], "kitchen");
}

#[tokio::test]
async fn rows_beyond_the_limit_are_told_of_and_found() {
    let bench = Bench::house().await;
    let mut arguments = json!({"device": "air", "metric": "temperature", "every": "1m", "from": "-1h", "limit": 25});
    let (mut seen, mut counts) = (Vec::new(), Vec::new());
    loop {
        let answer = bench.told("series", arguments.clone()).await;
        counts.push(rows(&answer).len());
        seen.extend(rows(&answer).into_iter().map(|row| row["timestamp"].to_string()));
        let Some(more) = answer.get("more") else { break };
        assert_eq!(more["rows"], 60);
        assert!(
            more["how"].as_str().is_some_and(|it| it.contains(&at_minute(0).to_string())),
            "{more}"
        );
        arguments["offset"] = more["offset"].clone();
    }
    assert_eq!(counts, [25, 25, 10]);
    seen.dedup();
    assert_eq!(seen.len(), 60);
    // However many rows are wanted, an answer stays small.
    let long = json!({"device": "air", "metric": ["temperature", "humidity"], "every": "1m", "limit": 500,
        "fn": ["mean", "min", "max", "sum", "count", "first", "last"], "from": "-1h"});
    let long = bench.told("series", long).await;
    assert!(long["rows"].to_string().len() <= 40_100);
}

#[tokio::test]
async fn energy_is_in_kwh_by_local_days() {
    let bench = Bench::house().await;
    let answer = bench.told("energy", json!({"home": "villa"})).await;
    let day = rows(&answer).into_iter().find(|row| !row["kwh"].is_null()).expect("a day");
    assert_eq!(day["timestamp"], "2026-01-11T00:00:00+01:00");
    assert_eq!(answer["total_kwh"], day["kwh"]);
    let direct = bench.get("/homes/villa/energy?from=-7d&every=1d").await.json();
    assert_eq!(answer["total_kwh"], direct["total_kwh"]);
    let device = bench.told("energy", json!({"device": "meter", "every": "total"})).await;
    assert_eq!((rows(&device).len(), &device["source"]), (1, &json!("counter")));
    let apart = bench.told("energy", json!({"devices": true, "every": "1mo"})).await;
    let devices: Vec<Value> = rows(&apart).iter().map(|row| row["device_id"].clone()).collect();
    assert_eq!(devices, ["meter", "plug"]);
}

#[tokio::test]
async fn events_and_conditions_have_the_units_of_their_metrics() {
    let bench = Bench::house().await;
    let events = bench.told("events", json!({"device": "meter"})).await;
    assert_eq!(events["units"], json!({"cumulative_kwh_p": "kWh"}));
    let event = &rows(&events)[0];
    assert_eq!(event["metric"], "cumulative_kwh_p");
    assert!(event["timestamp"].as_str().is_some_and(|it| it.ends_with("+01:00")), "{event}");

    for of in [json!({"device": "air"}), json!({"room": "kitchen"}), json!({"home": "villa"})] {
        let mut arguments = of;
        arguments["conditions"] = json!({"temperature": "25.."});
        let found = bench.told("conditions", arguments.clone()).await;
        assert_eq!(found["units"], json!({"temperature": "°C"}), "{arguments}");
        let episode = &rows(&found)[0];
        assert_eq!(episode["from"], "2026-01-11T17:30:00+01:00", "{arguments}");
        assert_eq!(episode["temperature"], json!({"max": 30, "min": 30}));
    }
    // The metric is named like a parameter of the API.
    bench.store(&[numbers("odd", 0, "loft", &[("from", "1")])]).await;
    let odd = json!({"device": "odd", "conditions": {"from": 1}});
    let found = bench.call("conditions", odd).await;
    let text = found["content"][0]["text"].as_str().expect("text");
    assert!(!text.contains("unknown parameter"), "{text}");
}

#[tokio::test]
async fn health_tells_the_time_and_how_far_rollups_reach() {
    let health = Bench::house().await.told("health", json!({})).await;
    assert_has(&health, &json!({"status": "pass", "now": "2026-01-11T18:00:00+01:00"}));
    let until = health["rollups"]["folded_until"].as_str().expect("a timestamp");
    assert!(until.ends_with("+01:00"), "{until}");
    let empty = Bench::empty().told("health", json!({})).await;
    assert_eq!((&empty["rollups"], &empty["tz"]), (&json!(null), &json!("UTC")));
}

#[tokio::test]
async fn whatever_a_model_gets_wrong_is_named() {
    let bench = Bench::house().await;
    for case in cases(include_str!("refused/tools.txt")) {
        let (tool, arguments) = case.given.split_once(' ').expect("a tool and its arguments");
        let told = bench.wrong(tool, serde_json::from_str(arguments).expect("JSON")).await;
        assert!(told.contains(case.answer()), "{case}: {told}");
    }
    bench.store.fail_with([StoreError::Unavailable("connection refused".into())]);
    let told = bench.wrong("series", json!({"device": "air", "metric": "temperature"})).await;
    assert!(told.contains("cannot be reached") && !told.contains("refused"), "{told}");
    assert!(bench.log().contains(r#""mcp.tool":"series""#), "{}", bench.log());
}
