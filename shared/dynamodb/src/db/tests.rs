//! The operations compared with those of the SDK: each request, and what both read of each answer.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    self, AttributeValue, BatchStatementRequest, ConditionCheck, KeysAndAttributes, PutRequest,
    ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    WriteRequest,
};
use aws_smithy_runtime_api::client::result::SdkError;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::*;
use crate::tests::attribute::{SdkItem, from_sdk, to_sdk, value_to_sdk};
use crate::tests::canned::{Canned, SentRequest};
use domain::Order;
use table::Deadline;
use table::db::{
    self, If, Keys, Op, absent, absent_or, any, at_most, below, fewer, holds, is, member, present,
    put, upsert,
};
use table::item::Attribute;
use table::layout::{CONDITIONS_INDEX, ROOM_INDEX};

const TABLE: &str = "t\"";

fn invocation() -> Invocation {
    Invocation::until(Deadline::after(Duration::from_millis(300)))
}

fn text(text: &str) -> Attribute {
    Attribute::S(text.to_owned())
}

fn number(number: &str) -> Attribute {
    Attribute::N(SmolStr::new(number))
}

fn set(elements: &[&str]) -> Attribute {
    Attribute::Ss(elements.iter().map(ToString::to_string).collect())
}

fn key(pk: &str, sk: &str) -> ItemKey {
    ItemKey { pk: pk.to_owned(), sk: sk.to_owned() }
}

fn sdk_key(pk: &str, sk: &str) -> SdkItem {
    to_sdk(key(pk, sk).into_item())
}

/// An item with all types of attributes that the table holds.
fn item() -> Item {
    let members = Item::from([("a".to_owned(), Attribute::Bool(true)), (String::new(), text(""))]);
    let list = vec![number("1"), Attribute::L(vec![]), Attribute::M(Item::new())];
    [
        ("pk", text("雪 \u{1f525} \"quoted\" \\ \n")),
        ("sk", text("b")),
        ("", number("-1.5E-130")),
        ("bytes", Attribute::B(vec![0, 1, 255])),
        ("list", Attribute::L(list)),
        ("map", Attribute::M(members)),
        ("set", set(&["b", "a"])),
        ("other", Attribute::Other),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

struct SomeItems(Vec<Item>);

impl Items for SomeItems {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn attributes(&self, position: usize) -> impl Iterator<Item = (&str, Attribute)> {
        self.0[position].iter().map(|(name, value)| (name.as_str(), value.clone()))
    }
}

fn some_items(count: usize) -> SomeItems {
    let numbered = |n: usize| {
        let mut item = item();
        item.insert("sk".to_owned(), text(&n.to_string()));
        item
    };
    SomeItems((0..count).map(numbered).collect())
}

/// The units that an answer tells to have been consumed.
const UNITS: f64 = 2.5;

fn consumed() -> Value {
    json!({"TableName": TABLE, "CapacityUnits": UNITS})
}

#[track_caller]
fn assert_units(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.1, "{found} units and not {expected}");
}

/// Asserts that a request of ours is the one of the SDK.
async fn assert_same(
    ours: impl AsyncFnOnce(DynamoStore, Invocation),
    sdk: impl AsyncFnOnce(Client),
) {
    let canned = Canned::new(200, "{}");
    ours(canned.store(), invocation()).await;
    let sent = canned.last();
    sdk(canned.client()).await;
    assert_eq!(sent, canned.last());
    assert_eq!(canned.count(), 0);
}

fn no_item(_: &mut dyn Iterator<Item = (String, Attribute)>) {
    panic!("an answer without items")
}

#[tokio::test]
async fn an_item_is_read_as_the_sdk_reads_it() {
    let ours = async |store: DynamoStore, at| {
        assert_eq!(store.get(&key("a", "b\""), &at).await.expect("an answer"), None);
    };
    assert_same(ours, async |client| {
        let request = client.get_item().table_name(TABLE).consistent_read(true);
        let request = request.set_key(Some(sdk_key("a", "b\"")));
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;

    let answer = json!({"ConsumedCapacity": consumed(), "Item": sdk_item_as_json(&item())});
    let canned = Canned::new(200, &answer.to_string());
    let at = invocation();
    let found = canned.store().get(&key("a", "b"), &at).await.expect("an answer");
    let request = canned.client().get_item().table_name(TABLE).set_key(Some(sdk_key("a", "b")));
    let expected = request.send().await.expect("an answer").item.map(from_sdk);
    assert_eq!(found, expected.map(Iterator::collect));
    assert_eq!(found, Some(item()));
    assert_units(at.read_units(), UNITS);
}

/// The JSON that the SDK writes for an item.
fn sdk_item_as_json(item: &Item) -> Value {
    let members = item.iter().map(|(name, value)| {
        let value = serde_json::to_value(crate::json::Value(value.clone())).expect("JSON");
        (name.clone(), value)
    });
    Value::Object(members.collect())
}

#[tokio::test]
async fn items_are_read_as_the_sdk_reads_them() {
    let ours = async |store: DynamoStore, at| {
        let keys = vec![key("a", "1"), key("a", "2")];
        let left = store.get_all(keys, &at, &mut no_item).await.expect("an answer");
        assert_eq!(left, []);
    };
    assert_same(ours, async |client| {
        let keys = KeysAndAttributes::builder().keys(sdk_key("a", "1")).keys(sdk_key("a", "2"));
        let keys = keys.consistent_read(true).build().expect("keys");
        let request = client.batch_get_item().request_items(TABLE, keys);
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;
}

#[tokio::test]
async fn keys_that_the_capacity_does_not_let_in_are_asked_for_again_and_are_left_over() {
    let left = json!({"Keys": [{"sk": {"S": "7"}, "pk": {"S": "a"}}], "ConsistentRead": true});
    let answer = json!({
        "Responses": {TABLE: [sdk_item_as_json(&item())]},
        "UnprocessedKeys": {TABLE: left},
        "ConsumedCapacity": [consumed()],
    });
    let canned = Canned::new(200, &answer.to_string());
    let keys: Vec<_> = (0..150).map(|n| key("a", &n.to_string())).collect();
    let at = invocation();
    let mut found = Vec::new();
    let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
        found.push(attributes.collect::<Item>());
    };
    let left = canned.store().get_all(keys.clone(), &at, &mut each).await.expect("an answer");

    let sent = canned.count();
    assert!(sent > 1, "asked for once");
    assert!(at.is_out_of_patience() || at.patience() < Duration::from_millis(300));
    assert_eq!(left, [&[key("a", "7")], &keys[100..]].concat());
    assert_eq!(found, vec![item(); sent]);
    assert_units(at.read_units(), UNITS * f64::from(u32::try_from(sent).expect("few")));
    let again = canned.last();
    assert_eq!(
        again.body["RequestItems"][TABLE],
        json!({
            "Keys": [{"pk": {"S": "a"}, "sk": {"S": "7"}}], "ConsistentRead": true,
        })
    );
}

#[tokio::test]
async fn a_throttled_read_of_many_items_leaves_over_what_was_not_asked() {
    let canned = Canned::new(400, r#"{"__type": "x#ThrottlingException"}"#);
    let keys: Vec<_> = (0..150).map(|n| key("a", &n.to_string())).collect();
    let left = canned.store().get_all(keys.clone(), &invocation(), &mut no_item).await;
    assert_eq!(left.expect("no error"), keys);

    let canned = Canned::new(400, r#"{"__type": "x#AccessDeniedException"}"#);
    let refused = canned.store().get_all(keys, &invocation(), &mut no_item).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))));
}

/// Sends a query.
async fn queried(query: ItemQuery, store: DynamoStore, at: Invocation) {
    let end = store.query(&query, &at, &mut no_item).await.expect("an answer");
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_range_is_asked_for_as_the_sdk_asks_for_it() {
    let query = ItemQuery {
        keys: Keys::between("b".to_owned()..="c".to_owned()),
        order: Order::Descending,
        start: Some(key("a", "bb").into_item()),
        limit: Some(7),
        consistent: false,
        ..ItemQuery::of("a")
    };
    assert_same(
        async |store, at| queried(query, store, at).await,
        async |client| {
            let request = client.query().table_name(TABLE);
            let request = request
                .key_condition_expression(crate::BETWEEN)
                .expression_attribute_names(crate::BETWEEN_NAMES[0], "pk")
                .expression_attribute_names(crate::BETWEEN_NAMES[1], "sk")
                .expression_attribute_values(":p", AttributeValue::S("a".to_owned()))
                .expression_attribute_values(":a", AttributeValue::S("b".to_owned()))
                .expression_attribute_values(":b", AttributeValue::S("c".to_owned()))
                .scan_index_forward(false)
                .consistent_read(false)
                .limit(7)
                .set_exclusive_start_key(Some(sdk_key("a", "bb")))
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            request.send().await.expect("an answer");
        },
    )
    .await;
}

#[tokio::test]
async fn a_range_of_an_index_is_asked_for_as_the_sdk_asks_for_it() {
    let (first, last) = (Attribute::B(vec![0]), Attribute::B(vec![1, 255]));
    let query = ItemQuery {
        keys: Keys::Between(first.clone(), last.clone()),
        ..ItemQuery::of_index(&CONDITIONS_INDEX, "m")
    };
    assert_same(
        async |store, at| queried(query, store, at).await,
        async |client| {
            let request = client.query().table_name(TABLE).index_name(CONDITIONS_INDEX.name);
            let request = request
                .key_condition_expression("#p = :p AND #s BETWEEN :a AND :b")
                .expression_attribute_names("#p", CONDITIONS_INDEX.partition_key)
                .expression_attribute_names("#s", CONDITIONS_INDEX.sort_key)
                .expression_attribute_values(":p", AttributeValue::S("m".to_owned()))
                .expression_attribute_values(":a", value_to_sdk(first))
                .expression_attribute_values(":b", value_to_sdk(last))
                .scan_index_forward(true)
                .consistent_read(false)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            request.send().await.expect("an answer");
        },
    )
    .await;

    let query = ItemQuery {
        keys: Keys::From("d".to_owned()),
        limit: Some(2),
        ..ItemQuery::of_index(&ROOM_INDEX, "r")
    };
    assert_same(
        async |store, at| queried(query, store, at).await,
        async |client| {
            let request = client.query().table_name(TABLE).index_name(ROOM_INDEX.name);
            let request = request
                .key_condition_expression("#p = :p AND #s >= :a")
                .expression_attribute_names("#p", ROOM_INDEX.partition_key)
                .expression_attribute_names("#s", ROOM_INDEX.sort_key)
                .expression_attribute_values(":p", AttributeValue::S("r".to_owned()))
                .expression_attribute_values(":a", AttributeValue::S("d".to_owned()))
                .scan_index_forward(true)
                .consistent_read(false)
                .limit(2)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            request.send().await.expect("an answer");
        },
    )
    .await;
}

#[tokio::test]
async fn a_filter_and_a_projection_are_asked_for_as_the_sdk_asks_for_them() {
    let late = any([at_most("next", text("3")), db::above("next", text("9"))]);
    let query = ItemQuery {
        filter: vec![late, absent_or("lease", Op::AtMost, text("3"))],
        only: &["pk", "sk", "stay_room"],
        ..ItemQuery::of("a")
    };
    assert_same(
        async |store, at| queried(query, store, at).await,
        async |client| {
            let value = |text: &str| AttributeValue::S(text.to_owned());
            let request = client.query().table_name(TABLE);
            let request = request
                .key_condition_expression("#p = :p")
                .filter_expression(
                    "(#n1 <= :v1 OR #n1 > :v2) AND (attribute_not_exists(#n2) OR #n2 <= :v3)",
                )
                .projection_expression("#p, #n3, #n4")
                .expression_attribute_names("#p", "pk")
                .expression_attribute_names("#n1", "next")
                .expression_attribute_names("#n2", "lease")
                .expression_attribute_names("#n3", "sk")
                .expression_attribute_names("#n4", "stay_room")
                .expression_attribute_values(":p", value("a"))
                .expression_attribute_values(":v1", value("3"))
                .expression_attribute_values(":v2", value("9"))
                .expression_attribute_values(":v3", value("3"))
                .scan_index_forward(true)
                .consistent_read(true)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            request.send().await.expect("an answer");
        },
    )
    .await;
}

#[tokio::test]
async fn a_put_is_the_sdks() {
    let ours = async |store: DynamoStore, at| {
        let write = put(item()).when([absent("pk")]);
        let outcome = store.write(write, &at).await.expect("an answer");
        assert_eq!(outcome, WriteOutcome::Done(None));
    };
    assert_same(ours, async |client| {
        let request = client.put_item().table_name(TABLE).set_item(Some(to_sdk(item())));
        let request = request
            .condition_expression("attribute_not_exists(#n0)")
            .expression_attribute_names("#n0", "pk")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;

    let ours = async |store: DynamoStore, at| {
        store.write(put(item()), &at).await.expect("an answer");
    };
    assert_same(ours, async |client| {
        let request = client.put_item().table_name(TABLE).set_item(Some(to_sdk(item())));
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;
}

/// Conditions of all kinds.
fn conditions() -> Vec<If> {
    vec![
        present("pk"),
        present(member("metrics", "co2")),
        is("changed", text("now")),
        below("since", number("1")),
        any([absent("rooms"), holds("rooms", "hall"), fewer("rooms", 5)]),
        at_most("a", number("2")),
        db::above("a", number("3")),
        db::at_least("a", number("4")),
    ]
}

const CONDITION: &str = "attribute_exists(#n0) AND attribute_exists(#n1.#n2) AND #n3 = :v0 \
    AND #n4 < :v1 AND (attribute_not_exists(#n5) OR contains(#n5, :v2) OR size(#n5) < :v3) \
    AND #n6 <= :v4 AND #n6 > :v5 AND #n6 >= :v6";

fn condition_names() -> Vec<(String, String)> {
    let names = ["pk", "metrics", "co2", "changed", "since", "rooms", "a"];
    let placed = names.iter().enumerate();
    placed.map(|(n, name)| (format!("#n{n}"), (*name).to_owned())).collect()
}

fn condition_values() -> SdkItem {
    let values = [
        text("now"),
        number("1"),
        text("hall"),
        number("5"),
        number("2"),
        number("3"),
        number("4"),
    ];
    to_sdk(values.into_iter().enumerate().map(|(n, value)| (format!(":v{n}"), value)))
}

#[tokio::test]
async fn a_deletion_is_the_sdks() {
    let ours = async |store: DynamoStore, at| {
        let write = db::delete(key("a", "b")).when(conditions());
        let outcome = store.write(write, &at).await.expect("an answer");
        assert_eq!(outcome, WriteOutcome::Done(None));
    };
    assert_same(ours, async |client| {
        let request = client.delete_item().table_name(TABLE).set_key(Some(sdk_key("a", "b")));
        let request = request
            .condition_expression(CONDITION)
            .set_expression_attribute_names(Some(condition_names().into_iter().collect()))
            .set_expression_attribute_values(Some(condition_values()))
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;
}

/// An update with changes of all kinds.
fn changes() -> Write {
    upsert(key("a", "b")).when([is("name", text("old")), absent("gone")]).with([
        db::add("number", number("2")),
        db::set("name", text("new")),
        db::remove(member("metrics", "co2")),
        db::take("behind", set(&["d"])),
        db::set_if_absent(member("metrics", "t"), Attribute::M(Item::new())),
        db::add("rooms", set(&["hall"])),
        db::remove("gone"),
    ])
}

const UPDATE: &str = "SET #n1 = :v1, #n2.#n5 = if_not_exists(#n2.#n5, :v3) \
    REMOVE #n2.#n3, #n7 ADD #n0 :v0, #n6 :v4 DELETE #n4 :v2";
const UPDATE_CONDITION: &str = "#n1 = :v5 AND attribute_not_exists(#n7)";

fn update_names() -> Vec<(String, String)> {
    let names = ["number", "name", "metrics", "co2", "behind", "t", "rooms", "gone"];
    let placed = names.iter().enumerate();
    placed.map(|(n, name)| (format!("#n{n}"), (*name).to_owned())).collect()
}

fn update_values() -> SdkItem {
    let (behind, rooms) = (set(&["d"]), set(&["hall"]));
    let map = Attribute::M(Item::new());
    let values = [number("2"), text("new"), behind, map, rooms, text("old")];
    to_sdk(values.into_iter().enumerate().map(|(n, value)| (format!(":v{n}"), value)))
}

#[tokio::test]
async fn an_update_is_the_sdks() {
    let ours = async |store: DynamoStore, at| {
        let outcome = store.write(changes(), &at).await.expect("an answer");
        assert_eq!(outcome, WriteOutcome::Done(None));
    };
    assert_same(ours, async |client| {
        let request = client.update_item().table_name(TABLE).set_key(Some(sdk_key("a", "b")));
        let request = request
            .update_expression(UPDATE)
            .condition_expression(UPDATE_CONDITION)
            .set_expression_attribute_names(Some(update_names().into_iter().collect()))
            .set_expression_attribute_values(Some(update_values()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;

    // Without a change and without a condition.
    let ours = async |store: DynamoStore, at| {
        store.write(upsert(key("a", "b")), &at).await.expect("an answer");
    };
    assert_same(ours, async |client| {
        let request = client.update_item().table_name(TABLE).set_key(Some(sdk_key("a", "b")));
        let request = request
            .return_values(ReturnValue::AllNew)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;
}

/// Writes of all kinds, for a transaction.
fn writes() -> Vec<Write> {
    let check = db::check(key("a", "check")).when(conditions());
    vec![put(item()), changes(), db::delete(key("a", "delete")), check]
}

/// The same for the SDK.
fn sdk_writes() -> Vec<TransactWriteItem> {
    let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
    let put = types::Put::builder().table_name(TABLE).set_item(Some(to_sdk(item())));
    let update = types::Update::builder()
        .table_name(TABLE)
        .set_key(Some(sdk_key("a", "b")))
        .update_expression(UPDATE)
        .condition_expression(UPDATE_CONDITION)
        .set_expression_attribute_names(Some(update_names().into_iter().collect()))
        .set_expression_attribute_values(Some(update_values()))
        .return_values_on_condition_check_failure(all_old.clone());
    let key = Some(sdk_key("a", "delete"));
    let delete = types::Delete::builder().table_name(TABLE).set_key(key);
    let check = ConditionCheck::builder()
        .table_name(TABLE)
        .set_key(Some(sdk_key("a", "check")))
        .condition_expression(CONDITION)
        .set_expression_attribute_names(Some(condition_names().into_iter().collect()))
        .set_expression_attribute_values(Some(condition_values()))
        .return_values_on_condition_check_failure(all_old);
    let part = TransactWriteItem::builder;
    vec![
        part().put(put.build().expect("a put")).build(),
        part().update(update.build().expect("an update")).build(),
        part().delete(delete.build().expect("a deletion")).build(),
        part().condition_check(check.build().expect("a check")).build(),
    ]
}

/// Takes the token of a transaction, and what is as long as it was.
fn token_of(sent: &mut SentRequest) -> String {
    let token = sent.body.as_object_mut().expect("an object").remove("ClientRequestToken");
    sent.headers[2] = None;
    token.and_then(|token| token.as_str().map(str::to_owned)).expect("a token")
}

#[tokio::test]
async fn a_transaction_is_the_sdks_with_a_token_of_its_own() {
    let canned = Canned::new(200, &json!({"ConsumedCapacity": [consumed()]}).to_string());
    let at = invocation();
    let request = canned.client().transact_write_items();
    let request = request
        .set_transact_items(Some(sdk_writes()))
        .return_consumed_capacity(ReturnConsumedCapacity::Total);
    request.send().await.expect("an answer");
    let mut expected = canned.last();
    token_of(&mut expected);

    let mut tokens = Vec::new();
    for _ in 0..2 {
        let outcome = canned.store().transact(writes(), &at).await.expect("an answer");
        assert_eq!(outcome, Ok(()));
        let mut sent = canned.last();
        tokens.push(token_of(&mut sent));
        assert_eq!(sent, expected);
    }
    assert!(tokens.iter().all(|token| (1..=36).contains(&token.len())));
    assert_ne!(tokens[0], tokens[1]);
    assert_units(at.write_units(), 2.0 * UNITS);
}

#[tokio::test]
async fn the_sdks_attempts_at_a_transaction_share_its_token() {
    let canned = Canned::new(500, "{}");
    let store = Canned::store_of(canned.repeating_client());
    let error = store.transact(writes(), &invocation()).await.expect_err("500");
    assert!(matches!(error, StoreError::Unavailable(_)));
    assert_eq!(canned.count(), 3);
    let attempts = [canned.last(), canned.last(), canned.last()];
    assert_eq!(attempts[0], attempts[1]);
    assert_eq!(attempts[0], attempts[2]);
}

/// A status, a code, and what they are for the callers.
type ErrorCase = (u16, &'static str, fn(&StoreError) -> bool);

/// Errors as `DynamoDB` answers with them, each with what they are for the callers.
fn errors() -> [ErrorCase; 9] {
    [
        (400, "ThrottlingException", |error| matches!(error, StoreError::Throttled(_))),
        (400, "ProvisionedThroughputExceededException", |error| {
            matches!(error, StoreError::Throttled(_))
        }),
        (400, "RequestLimitExceeded", |error| matches!(error, StoreError::Throttled(_))),
        (400, "TransactionConflictException", |error| matches!(error, StoreError::Throttled(_))),
        (400, "ValidationException", |error| matches!(error, StoreError::Inapplicable(_))),
        (400, "AccessDeniedException", |error| matches!(error, StoreError::Refused(_))),
        (400, "ResourceNotFoundException", |error| matches!(error, StoreError::Refused(_))),
        (500, "InternalServerError", |error| matches!(error, StoreError::Unavailable(_))),
        (503, "ServiceUnavailable", |error| matches!(error, StoreError::Unavailable(_))),
    ]
}

#[tokio::test]
async fn errors_are_told_and_repeated_as_the_sdks() {
    for (status, code, is_expected) in errors() {
        let body =
            json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "m"});
        let canned = Canned::new(status, &body.to_string());
        let request = TableRequest::new("PutItem", &json!({}));
        let store = Canned::store_of(canned.repeating_client());
        let Err(ours) = store.send(&request).await else { panic!("{code}") };
        let sent = canned.count();

        let put = canned.repeating_client().put_item().table_name(TABLE);
        let theirs = put.set_item(Some(to_sdk(item()))).send().await.expect_err(code);
        assert_eq!(told(&ours), told(&theirs));
        assert_eq!(canned.count(), 2 * sent, "{code}: attempts");
        let repeated = status >= 500 || code.contains("Throttling") || code.contains("Exceeded");
        assert_eq!(sent, if repeated { 3 } else { 1 }, "{code}");
        let error = store_error(ours);
        assert!(is_expected(&error), "{code}: {error:?}");
    }

    let canned = Canned::new(503, "<html>");
    let request = TableRequest::new("PutItem", &json!({}));
    let Err(error) = canned.store().send(&request).await else { panic!("an answer") };
    assert!(matches!(store_error(error), StoreError::Unavailable(_)));
}

type RawAnswer = aws_smithy_runtime_api::client::orchestrator::HttpResponse;

fn told<E: ProvideErrorMetadata>(
    error: &SdkError<E, RawAnswer>,
) -> (Option<String>, Option<String>) {
    let error = error.as_service_error().expect("an error of the service");
    (error.code().map(str::to_owned), error.message().map(str::to_owned))
}

#[tokio::test]
async fn an_item_that_is_written_or_deleted_comes_with_the_answer() {
    let answer = json!({"Attributes": sdk_item_as_json(&item()), "ConsumedCapacity": consumed()});
    let canned = Canned::new(200, &answer.to_string());
    let at = invocation();
    for write in [changes(), db::delete(key("a", "b"))] {
        let outcome = canned.store().write(write, &at).await.expect("an answer");
        assert_eq!(outcome, WriteOutcome::Done(Some(item())));
    }
    assert_units(at.write_units(), 2.0 * UNITS);
}

#[tokio::test]
async fn a_refused_write_costs_one_unit_and_brings_the_item() {
    for known in [None, Some(item())] {
        let mut answer = json!({"__type": "x#ConditionalCheckFailedException", "message": "m"});
        if let Some(item) = &known {
            answer["Item"] = sdk_item_as_json(item);
        }
        let canned = Canned::new(400, &answer.to_string());
        for write in [put(item()), changes(), db::delete(key("a", "b"))] {
            let at = invocation();
            let outcome = canned.store().write(write, &at).await.expect("an answer");
            assert_eq!(outcome, WriteOutcome::Refused(known.clone()));
            assert_units(at.write_units(), REFUSED_WRITE);
        }
        assert_eq!(canned.count(), 3);
    }
}

/// A table that cancels every transaction of four writes.
fn cancelling(reasons: &Value) -> Canned {
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    let answer = json!({"__type": kind, "Message": "m", "CancellationReasons": reasons});
    Canned::new(400, &answer.to_string())
}

#[tokio::test]
async fn a_condition_that_does_not_hold_is_a_refusal_of_its_write_alone() {
    let canned = cancelling(&json!([
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Item": sdk_item_as_json(&item()), "Message": "m"},
        {"Code": "TransactionConflict", "Message": "m"},
        {"Code": "ConditionalCheckFailed", "Message": "m"},
    ]));
    let at = invocation();
    let outcome = canned.store().transact(writes(), &at).await.expect("no error");
    let refused: RefusedWrites = [(1, Some(item())), (3, None)].into_iter().collect();
    assert_eq!(outcome, Err(refused));
    assert_units(at.write_units(), 4.0 * CANCELLED_WRITE);

    let request = canned.client().transact_write_items().set_transact_items(Some(sdk_writes()));
    let error = request.send().await.expect_err("a cancelled transaction").into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        panic!("{error:?}")
    };
    let is_refusal = |position: usize| {
        let reason = &cancelled.cancellation_reasons()[position];
        (reason.code() == Some("ConditionalCheckFailed")).then(|| reason.item.clone())
    };
    let theirs = (0..4).filter_map(|position| {
        let item = is_refusal(position)?;
        Some((position, item.map(|item| from_sdk(item).collect())))
    });
    assert_eq!(outcome, Err(theirs.collect()));
}

#[tokio::test]
async fn a_transaction_is_never_repeated() {
    let none = json!({"Code": "None"});
    for (code, is_expected) in [
        (BUSY[0], (|error| matches!(error, StoreError::Throttled(_))) as fn(&StoreError) -> bool),
        (BUSY[1], |error| matches!(error, StoreError::Throttled(_))),
        (BUSY[2], |error| matches!(error, StoreError::Throttled(_))),
        ("ValidationError", |error| matches!(error, StoreError::Inapplicable(_))),
        ("ItemCollectionSizeLimitExceeded", |error| matches!(error, StoreError::Refused(_))),
    ] {
        let canned = cancelling(&json!([none, {"Code": code}]));
        let at = invocation();
        let error = canned.store().transact(writes(), &at).await.expect_err(code);
        assert!(is_expected(&error), "{code}: {error:?}");
        assert_eq!(canned.count(), 1, "{code}");
        assert_units(at.write_units(), 2.0 * CANCELLED_WRITE);
    }
}

#[tokio::test]
async fn what_is_throttled_is_repeated_while_there_is_patience() {
    let canned = Canned::new(400, r#"{"__type": "x#ProvisionedThroughputExceededException"}"#);
    let store = canned.store();
    let query = ItemQuery::of("a");
    for operation in ["get", "query", "write", "put_all"] {
        let before = canned.count();
        let at = invocation();
        let error = match operation {
            "get" => store.get(&key("a", "b"), &at).await.expect_err(operation),
            "query" => store.query(&query, &at, &mut no_item).await.expect_err(operation),
            "write" => store.write(put(item()), &at).await.expect_err(operation),
            _ => store.put_all(&some_items(1), &at).await.cause.expect(operation),
        };
        assert!(matches!(error, StoreError::Throttled(_)), "{operation}: {error:?}");
        assert!(canned.count() - before > 1, "{operation} is sent once");
    }
}

#[tokio::test]
async fn items_are_put_as_the_sdk_puts_them() {
    for count in [1, 25] {
        let ours = async |store: DynamoStore, at| {
            let outcome = store.put_all(&some_items(count), &at).await;
            assert!(outcome.not_stored.is_empty());
        };
        assert_same(ours, async |client| {
            let puts = some_items(count).0.into_iter().map(|item| {
                let put = PutRequest::builder().set_item(Some(to_sdk(item))).build();
                WriteRequest::builder().put_request(put.expect("an item")).build()
            });
            let request = client.batch_write_item().request_items(TABLE, puts.collect());
            let request = request.return_consumed_capacity(ReturnConsumedCapacity::Total);
            request.send().await.expect("an answer");
        })
        .await;
    }
}

#[tokio::test]
async fn puts_that_are_left_undone_are_repeated_and_are_not_stored() {
    let items = some_items(60);
    let put =
        |position: usize| json!({"PutRequest": {"Item": sdk_item_as_json(&items.0[position])}});
    // Of each request, those are left undone that were in it.
    let answer = json!({
        "UnprocessedItems": {TABLE: [put(30), put(7)]}, "ConsumedCapacity": [consumed()],
    });
    let canned = Canned::new(200, &answer.to_string());
    let at = invocation();
    let outcome = canned.store().put_all(&items, &at).await;
    assert_eq!(outcome.not_stored, [7, 30]);
    assert!(matches!(outcome.cause, Some(StoreError::Throttled(_))));

    let mut sent: Vec<_> = (0..canned.count()).map(|_| canned.last().body).collect();
    assert_units(at.write_units(), UNITS * f64::from(u32::try_from(sent.len()).expect("few")));
    let puts = |body: &Value| body["RequestItems"][TABLE].as_array().expect("a list").len();
    sent.sort_by_key(puts);
    let sizes: Vec<_> = sent.iter().map(puts).rev().take(4).collect();
    assert_eq!(sizes, [25, 25, 10, 1]);
    assert!(sent.len() > 4, "the two are tried once more");
}

#[tokio::test]
async fn items_are_inserted_as_the_sdk_inserts_them() {
    let positions: Vec<usize> = (0..50).step_by(2).collect();
    let ours = async |store: DynamoStore, at| {
        let inserted = store.insert_all(&some_items(50), &positions, &at).await;
        assert_eq!(inserted, [false; 25]);
    };
    assert_same(ours, async |client| {
        let items = some_items(50);
        let statements = positions.iter().map(|position| {
            let (names, values): (Vec<_>, Vec<_>) = items
                .attributes(*position)
                .map(|(name, value)| (format!("'{name}': ?"), value_to_sdk(value)))
                .unzip();
            let statement = format!("INSERT INTO \"{TABLE}\" VALUE {{{}}}", names.join(", "));
            let statement = BatchStatementRequest::builder().statement(statement);
            statement.set_parameters(Some(values)).build().expect("a statement")
        });
        let request = client.batch_execute_statement();
        let request = request
            .set_statements(Some(statements.collect()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        request.send().await.expect("an answer");
    })
    .await;
}

#[tokio::test]
async fn an_insertion_says_of_each_item_whether_it_is_stored() {
    let is_there = json!({"Error": {"Code": "DuplicateItem", "Message": "m"}});
    let stored = json!({"TableName": TABLE});
    let answer = json!({
        "Responses": [stored, is_there, stored], "ConsumedCapacity": [consumed(), consumed()],
    });
    let canned = Canned::new(200, &answer.to_string());
    let at = invocation();
    let mut items = some_items(4);
    // A statement is as long as its names.
    let name = "n".repeat(8_192);
    items.0[1].insert(name, number("1"));
    let inserted = canned.store().insert_all(&items, &[0, 1, 2, 3], &at).await;
    assert_eq!(inserted, [true, false, false, true]);
    assert_units(at.write_units(), 2.0 * UNITS);
    let body = canned.last().body;
    assert_eq!(body["Statements"].as_array().map(Vec::len), Some(3));

    let canned = Canned::new(400, r#"{"__type": "x#ThrottlingException"}"#);
    assert_eq!(canned.store().insert_all(&items, &[0, 2], &at).await, [false, false]);
    assert_eq!(canned.count(), 1);
    assert_eq!(canned.store().insert_all(&items, &[1], &at).await, [false]);
    assert_eq!(canned.count(), 1);
}
