//! Tools of `POST /mcp` in a large house and without a table. All else is in `tests/cases/mcp.txt`.

use super::series::numbers;
use super::*;

impl Bench {
    /// The structure that a tool answers, as its text says it too, or the `error` that it says.
    pub(super) async fn tool(&self, name: &str, arguments: &Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let headers = json!({"mcp-protocol-version": "2025-11-25"});
        let answer = self.send("POST", "/mcp", headers, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let result = answer.json()["result"].clone();

        let text = result["content"][0]["text"].as_str().expect("text");
        if result["isError"] == true {
            assert_eq!(result.get("structuredContent"), None);
            return json!({"error": text});
        }
        assert_eq!(result["isError"], false, "{result}");
        let said: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(said, result["structuredContent"]);
        said
    }
}

#[tokio::test]
async fn of_many_rooms_some_are_listed_and_it_is_said_that_there_are_more() {
    let bench = Bench::empty();
    for (count, listed) in [(100, 100), (101, 100)] {
        for n in 0..count {
            given::register_room(&bench.store, &format!("r{n:03}"), at_minute(0)).await;
        }
        let answer = bench.again().tool("list_devices", &json!({})).await;
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
            let answer = bench.tool(tool, &arguments).await;
            let size = answer["devices"].to_string().len();
            assert!(size < 45_000, "{tool}: {size} bytes");
            let devices = answer["devices"].as_array().expect("a list").iter();
            seen.extend(
                devices.map(|device| device["device_id"].as_str().expect("an id").to_owned()),
            );
            pages += 1;
            let Some(more) = answer.get("more") else { break };
            arguments["cursor"] = more["cursor"].clone();
        }
        assert!(pages > 1, "{tool}");
        assert_eq!(seen, (0..40).map(|n| format!("d{n:02}")).collect::<Vec<_>>(), "{tool}");
    }
}

/// However many rows are wanted.
#[tokio::test]
async fn an_answer_of_many_rows_stays_small() {
    let bench = Bench::house("of a villa").await;
    let long = json!({"device": "air", "metric": ["temperature", "humidity"], "every": "1m", "limit": 500,
        "fn": ["mean", "min", "max", "sum", "count", "first", "last"], "from": "-1h"});
    let long = bench.tool("series", &long).await;
    assert!(long["rows"].to_string().len() <= 40_100);
}
