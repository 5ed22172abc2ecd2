//! Prices that are known a day ahead: whoever asks for the newest one gets that of now.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::Timestamp;
use domain::given::at as moment;

use super::*;

const QUARTER: i64 = 900;

/// A market that tells the prices of the next day of Berlin at 12:00 UTC, for each quarter of an hour.
struct Market(TestClock);

impl FetchAnswer for Market {
    fn fetch(&self, _: &Request) -> Result<Fetched, Unanswered> {
        let now = self.0.now();
        let is_out = now >= moment("2026-03-10T12:00:00Z");
        let end = if is_out { "2026-03-11T23:00:00Z" } else { "2026-03-10T23:00:00Z" };
        let seconds = |text: &str| moment(text).as_millis() / 1_000;
        let quarters = seconds("2026-03-09T23:00:00Z")..seconds(end);
        let times: Vec<i64> = quarters.step_by(900).collect();
        let prices: Vec<i64> = times.iter().map(|time| euros_per_megawatt_hour(*time)).collect();
        let body = json!({"unix_seconds": times, "price": prices, "unit": "EUR / MWh"});
        Ok(Fetched { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() })
    }
}

/// The price of a quarter of an hour, which is that of no other.
fn euros_per_megawatt_hour(seconds: i64) -> i64 {
    seconds / QUARTER % 1_000
}

/// The newest price as all say it who may be asked for it.
async fn newest(home: &Home<MemoryDb>) -> BTreeMap<String, (Value, Value)> {
    let of =
        |latest: &Value| (latest["timestamp"].clone(), latest["metrics"]["price"]["value"].clone());
    let latest = home.found("/devices/price-de-lu/latest", "").await.body;
    let mut said = BTreeMap::from([("latest".to_owned(), of(&latest))]);

    // What the page asks for.
    for path in ["/devices", "/rooms/price/devices"] {
        let list = home.found(path, "latest=1").await.body;
        let is_price = |device: &&Value| device["device_id"] == "price-de-lu";
        let device = list["data"].as_array().expect("devices").iter().find(is_price);
        said.insert(path.to_owned(), of(&device.expect("the device")["latest"]));
    }

    for arguments in [json!({"device": "price-de-lu"}), json!({"room": "price"})] {
        let tool = json!({"name": "latest_values", "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool});
        let answer = home.ask("POST", "/mcp", "", Some(&body)).await.body;
        let device = &answer["result"]["structuredContent"]["devices"][0];
        let time = device["timestamp"].as_str().map(|text| json!(moment(text)));
        let price = device["values"]["price"]["value"].clone();
        said.insert(format!("MCP {arguments}"), (time.unwrap_or_default(), price));
    }

    for statement in [
        "SELECT last(value) FROM price",
        "SELECT last(value) FROM price WHERE time > now() - 1h",
        "SELECT last(value) FROM price GROUP BY device",
        "SELECT last FROM (SELECT last(value) FROM price)",
    ] {
        let query = format!("db=home&q={}", crate::given::percent_encoded(statement));
        let answer = home.found("/query", &query).await.body;
        let row = &answer["results"][0]["series"][0]["values"][0];
        let time = row[0].as_str().map(|text| json!(moment(text)));
        said.insert(statement.to_owned(), (time.unwrap_or_default(), row[1].clone()));
    }
    said
}

#[tokio::test(start_paused = true)]
async fn a_day_of_prices_is_there_ahead_and_the_newest_is_the_one_of_now() {
    let home = Home::at(MemoryDb::default(), moment("2026-03-10T11:30:00Z"));
    let fetching = asking(&home, Arc::new(Market(home.clock.clone())));
    save(&home, "price", json!({"kind": "price", "zone": "DE-LU"}), BTreeMap::new()).await;
    while home.clock.now() < moment("2026-03-10T13:05:00Z") {
        home.clock.advance(Duration::from_secs(60));
        Box::pin(fetching.handle(Event::Schedule, minute())).await.expect("done");
    }

    let stored: BTreeSet<Timestamp> = home
        .store
        .readings()
        .iter()
        .filter(|it| it.device.as_str() == "price-de-lu")
        .map(|it| it.at)
        .collect();
    let quarter = TimeDelta::seconds(QUARTER);
    let last = moment("2026-03-11T23:00:00Z").saturating_add(-quarter);
    assert_eq!((stored.len(), stored.last()), (2 * 96, Some(&last)), "35 hours from 12:00 on");
    let ahead =
        home.found("/devices/price-de-lu/readings", "from=now&to=2026-03-12T00:00:00Z&limit=1000");
    let ahead = ahead.await.body;
    assert_eq!(
        ahead["data"].as_array().map(Vec::len),
        Some(135),
        "whoever asks for a time gets it"
    );

    for now in [
        "2026-03-10T13:14:59.999Z",
        "2026-03-10T18:00:00Z",
        "2026-03-10T23:59:59Z",
        "2026-03-11T00:00:00Z",
    ] {
        home.clock.set(moment(now));
        let seconds = moment(now).as_millis() / 1_000 / QUARTER * QUARTER;
        let time = json!(Timestamp::from_millis(seconds * 1_000).expect("a time"));
        for (who, (at, price)) in newest(&home).await {
            assert_eq!(at, time, "{who} at {now}");
            let price = price.as_f64().map(|euros| (euros * 1_000.0).round());
            let expected = f64::from(u32::try_from(euros_per_megawatt_hour(seconds)).expect("few"));
            assert_eq!(price, Some(expected), "{who} at {now}");
        }
    }
}
