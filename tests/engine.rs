//! Engines that speak `DynamoDB`'s protocol, and fresh tables on them. Decides nothing about the tables.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aws::{Credentials, StoreConfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dynamodb::DynamoStore;
use futures_util::{StreamExt as _, stream};
use local::System;
use local::table_definition::create_request;
use serde_json::{Map, Value, json};
use table::item::{self, Attribute};
use table::layout::Layout;
use table::shards::Shards;
use tokio::sync::Mutex;

use crate::wire::{self, Message};

/// An engine for as long as somebody holds it.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    endpoint: String,
    key: String,
    _embedded: Option<Arc<local::Engine>>,
}

impl Engine {
    /// The embedded engine, one for all tests of a process that run at the same time: each has tables of
    /// its own. Its file goes with the last of them.
    pub(crate) async fn embedded() -> Self {
        static RUNNING: Mutex<Weak<local::Engine>> = Mutex::const_new(Weak::new());
        let mut running = RUNNING.lock().await;

        let embedded = match running.upgrade() {
            Some(embedded) => embedded,
            None => {
                let start = tokio::task::spawn_blocking(local::Engine::in_memory);
                Arc::new(start.await.expect("no panic").expect("the engine starts"))
            }
        };
        *running = Arc::downgrade(&embedded);

        let config = embedded.store_config();
        let endpoint = config.endpoint.expect("it is on this machine");
        Self { endpoint, key: config.credentials.access_key_id, _embedded: Some(embedded) }
    }

    /// An engine that runs already.
    pub(crate) fn at(endpoint: String) -> Self {
        Self { endpoint, key: "local".to_owned(), _embedded: None }
    }

    /// A fresh table, as the template deploys it with or without its index by room.
    pub(crate) async fn table(&self, room_index: bool) -> Table {
        self.table_of(&[("RoomIndex", if room_index { "on" } else { "off" })]).await
    }

    /// A fresh table, as the template deploys it with these parameters.
    pub(crate) async fn table_of(&self, parameters: &[(&str, &str)]) -> Table {
        self.create(parameters, |_| ()).await
    }

    /// The same without its stream, which would keep each of many items a second time.
    pub(crate) async fn table_without_stream(&self, parameters: &[(&str, &str)]) -> Table {
        let without = |request: &mut Value| {
            request.as_object_mut().expect("a request is an object").remove("StreamSpecification");
        };
        self.create(parameters, without).await
    }

    async fn create(&self, parameters: &[(&str, &str)], change: impl Fn(&mut Value)) -> Table {
        static TABLES: AtomicUsize = AtomicUsize::new(0);
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        // An engine that outlives the process keeps the tables of earlier runs.
        let name = format!("roomtide-{}-{number}", std::process::id());
        let layout = layout_of(parameters);
        let credentials = Credentials {
            access_key_id: self.key.clone(),
            secret_access_key: "local".to_owned(),
            session_token: None,
        };
        let config = StoreConfig {
            table: name.clone(),
            region: "us-east-1".to_owned(),
            endpoint: Some(self.endpoint.clone()),
            credentials,
            ca_bundle: None,
            attempt_timeout: ATTEMPT_TIMEOUT,
        };
        let table = Table { engine: self.clone(), config, layout };
        let mut request = create_request(&name, layout);
        change(&mut request);
        // Nothing in it expires: an engine deletes by the clock on the wall, and the clocks of tests lag behind.
        table.ask("CreateTable", request).await;
        table
    }
}

/// How a table is laid out that the template deploys with these parameters.
pub(crate) fn layout_of(parameters: &[(&str, &str)]) -> Layout {
    let mut layout = Layout::default();
    for (name, value) in parameters {
        match *name {
            "RoomIndex" => layout.room_index = *value == "on",
            "AttributeIndex" => layout.attribute_index = *value == "on",
            "ConditionsIndex" => layout.conditions_index = *value == "on",
            "DeviceShards" => layout.shards = value.parse().expect("a number of partitions"),
            other => panic!("{other} lays out no table"),
        }
    }
    layout
}

/// How long an attempt may take: a busy machine is no fault, and a repeated put refuses itself.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    engine: Engine,
    config: StoreConfig,
    layout: Layout,
}

impl Table {
    /// The table of a running system.
    pub(crate) fn of(system: &System) -> Self {
        let config = system.store_config().clone();
        let key = config.credentials.access_key_id.clone();
        let engine = Engine { endpoint: system.engine_endpoint().to_owned(), key, _embedded: None };
        Self { engine, config, layout: Layout::default() }
    }

    /// A store on the table, with connections of its own.
    pub(crate) fn store(&self) -> DynamoStore {
        DynamoStore::connect(&self.config, self.layout)
    }

    /// A store that takes the table to have no index of attributes.
    pub(crate) fn store_without_attribute_index(&self) -> DynamoStore {
        DynamoStore::connect(&self.config, Layout { attribute_index: false, ..self.layout })
    }

    /// A fresh table with the default parameters on the same engine.
    pub(crate) async fn another(&self) -> Self {
        self.engine.table_of(&[]).await
    }

    /// A store that takes the table for one with so many partitions of the registry's devices.
    pub(crate) fn store_with_shards(&self, number: u64) -> DynamoStore {
        let shards = Shards::new(number).expect("a number of partitions");
        DynamoStore::connect(&self.config, Layout { shards, ..self.layout })
    }

    /// A store that takes the table for one without the index by conditions.
    pub(crate) fn store_without_conditions_index(&self) -> DynamoStore {
        DynamoStore::connect(&self.config, Layout { conditions_index: false, ..self.layout })
    }

    /// A store that reaches the table by another address.
    ///
    /// Its region is one of its own: the SDK's clients of one region share what they may spend on
    /// retries, so one test's faults would leave another without any.
    pub(crate) fn store_by_way_of(&self, endpoint: &str) -> DynamoStore {
        static REGIONS: AtomicUsize = AtomicUsize::new(0);
        let region = format!("nowhere-{}", REGIONS.fetch_add(1, Ordering::Relaxed));
        let endpoint = Some(endpoint.to_owned());
        let attempt_timeout = aws::ATTEMPT_TIMEOUT;
        let config = StoreConfig { endpoint, region, attempt_timeout, ..self.config.clone() };
        DynamoStore::connect(&config, self.layout)
    }

    /// How the table is laid out.
    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    /// Where the engine answers.
    pub(crate) fn endpoint(&self) -> &str {
        &self.engine.endpoint
    }

    /// The items of a partition as they are in the table, by sort key.
    pub(crate) async fn items(&self, pk: &str) -> Vec<Value> {
        let request = json!({
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "ConsistentRead": true,
        });
        let answer = self.ask("Query", request).await;
        assert!(answer["LastEvaluatedKey"].is_null(), "a test's partition is below 1 MB");
        answer["Items"].as_array().cloned().unwrap_or_default()
    }

    /// All items of the table.
    pub(crate) async fn scan(&self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut request = json!({"ConsistentRead": true});
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let mut answer = self.ask("Scan", request).await;
            items.extend(answer["Items"].as_array().cloned().unwrap_or_default());
            start = answer["LastEvaluatedKey"].take();
            if start.is_null() {
                return items;
            }
        }
    }

    /// Puts an item past every rule of ours, as another program might.
    pub(crate) async fn put_item(&self, item: Value) {
        self.ask("PutItem", json!({"Item": item})).await;
    }

    /// Puts items as the ports make them, past every rule of ours: 25 a request, in no order.
    pub(crate) async fn put_all(&self, items: impl Iterator<Item = item::Item>) {
        let mut puts = items.map(|item| json!({"PutRequest": {"Item": object(item)}})).peekable();
        let batches = std::iter::from_fn(|| {
            puts.peek()?;
            Some(puts.by_ref().take(25).collect::<Vec<_>>())
        });
        let put = |batch: Vec<Value>| async move {
            let request = json!({"RequestItems": {self.config.table.as_str(): batch}});
            let left = &self.ask("BatchWriteItem", request).await["UnprocessedItems"];
            assert!(left.as_object().is_none_or(Map::is_empty), "{left}");
        };
        stream::iter(batches).for_each_concurrent(16, put).await;
    }

    async fn ask(&self, operation: &str, mut request: Value) -> Value {
        request["TableName"] = self.config.table.as_str().into();
        let asked = async {
            let mut connection = wire::connect(&self.engine.endpoint).await?;
            Message::request(operation, &self.engine.key, &request).write(&mut connection).await?;
            Message::read(&mut connection).await
        };
        let answer = asked.await.expect("the engine is reached").expect("the engine answers");
        assert_eq!(answer.status(), 200, "{operation}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }
}

/// An item as the engine is sent it.
fn object(item: item::Item) -> Map<String, Value> {
    item.into_iter().map(|(name, value)| (name, to_json(value))).collect()
}

fn to_json(attribute: Attribute) -> Value {
    match attribute {
        Attribute::S(text) => json!({"S": text}),
        Attribute::N(number) => json!({"N": number}),
        Attribute::L(list) => json!({"L": list.into_iter().map(to_json).collect::<Vec<_>>()}),
        Attribute::M(item) => json!({"M": object(item)}),
        Attribute::Ss(set) => json!({"SS": set}),
        Attribute::B(bytes) => json!({"B": STANDARD.encode(bytes)}),
        Attribute::Bool(_) | Attribute::Other => unreachable!("no device, room or rollup has one"),
    }
}
