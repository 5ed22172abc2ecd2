//! Reads the answers to requests from their JSON. While it reads, it hands out each attribute of each item. Knows no
//! operation.

use std::collections::HashMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::json::{ItemJson, OneItem, Visited};
use table::db::{Each, RefusedWrites};
use table::item::Item;
use table::{ItemKey, StoreError, StoreResult};

/// An answer with one item or none. The struct has the members of all such answers, and of answers with an error.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Reply {
    #[serde(alias = "Attributes")]
    item: Option<ItemJson>,
    consumed_capacity: Option<ConsumedCapacity>,
    /// Why a transaction was cancelled: one reason for each write.
    pub(super) cancellation_reasons: Vec<Reason>,
    unprocessed_items: HashMap<String, Vec<UnprocessedPut>>,
    /// The result of each statement.
    responses: Vec<StatementReply>,
}

/// Why a transaction was cancelled, as far as one write is concerned:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CancellationReason.html>
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Reason {
    #[serde(default)]
    pub(super) code: String,
    item: Option<ItemJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedPut {
    put_request: UnprocessedItem,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedItem {
    item: ItemJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StatementReply {
    error: Option<IgnoredAny>,
}

/// The units that a request consumed. They are given as a total, or for each table.
#[derive(Deserialize)]
#[serde(untagged)]
enum ConsumedCapacity {
    Whole(Capacity),
    ByTable(Vec<Capacity>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Capacity {
    capacity_units: Option<f64>,
}

impl Reply {
    pub(super) fn read(body: &[u8]) -> StoreResult<Self> {
        text(body).and_then(|text| serde_json::from_str(text).map_err(unreadable))
    }

    pub(super) fn units(&self) -> f64 {
        units(self.consumed_capacity.as_ref())
    }

    pub(super) fn into_item(self) -> Option<Item> {
        self.item.map(|ItemJson(item)| item)
    }

    /// The keys of the puts that were not processed.
    pub(super) fn unprocessed(self) -> impl Iterator<Item = ItemKey> {
        let puts = self.unprocessed_items.into_values().flatten();
        puts.map(|put| ItemKey::of_item(&put.put_request.item.0))
    }

    /// Whether each statement succeeded.
    pub(super) fn successes(&self) -> impl Iterator<Item = bool> {
        self.responses.iter().map(|response| response.error.is_none())
    }
}

impl Reason {
    /// Whether a condition of this write failed.
    pub(super) fn is_refusal(&self) -> bool {
        self.code == "ConditionalCheckFailed"
    }
}

/// The writes whose conditions failed.
pub(super) fn refused(reasons: Vec<Reason>) -> RefusedWrites {
    let refused = reasons.into_iter().enumerate().filter(|(_, reason)| reason.is_refusal());
    refused.map(|(position, reason)| (position, reason.item.map(|ItemJson(item)| item))).collect()
}

/// The members of an answer with many items, except the items.
#[derive(Default)]
pub(super) struct PageEnd {
    pub(super) last_key: Option<Item>,
    /// The keys that were not read.
    pub(super) unprocessed: Vec<ItemKey>,
    pub(super) units: f64,
}

/// Reads an answer with many items. While it reads, it hands out the attributes of each item.
pub(super) fn read_page(body: &[u8], each: Each<'_>) -> StoreResult<PageEnd> {
    let mut json = serde_json::Deserializer::from_str(text(body)?);
    let page = json.deserialize_map(Page(each)).map_err(unreadable)?;
    json.end().map_err(unreadable)?;
    Ok(page)
}

/// The UTF-8 is checked once for the whole body, which is faster than for each text.
fn text(body: &[u8]) -> StoreResult<&str> {
    std::str::from_utf8(body).map_err(|error| StoreError::Unavailable(Box::new(error)))
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn units(consumed: Option<&ConsumedCapacity>) -> f64 {
    let units = |part: &Capacity| part.capacity_units.unwrap_or_default();
    match consumed {
        None => 0.0,
        Some(ConsumedCapacity::Whole(whole)) => units(whole),
        Some(ConsumedCapacity::ByTable(parts)) => parts.iter().map(units).sum(),
    }
}

/// Reads the answers of `Query` and `BatchGetItem`:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html#API_Query_ResponseSyntax>,
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html#API_BatchGetItem_ResponseSyntax>
struct Page<'e>(Each<'e>);

impl<'de> Visitor<'de> for Page<'_> {
    type Value = PageEnd;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PageEnd, A::Error> {
        let mut page = PageEnd::default();
        while let Some(member) = map.next_key::<String>()? {
            match member.as_str() {
                "Items" | "Responses" => map.next_value_seed(Visited(ManyItems(&mut *self.0)))?,
                "LastEvaluatedKey" => {
                    page.last_key = map.next_value::<Option<ItemJson>>()?.map(|ItemJson(key)| key);
                }
                "UnprocessedKeys" => page.unprocessed = unprocessed(map.next_value()?),
                "ConsumedCapacity" => page.units = units(map.next_value::<Option<_>>()?.as_ref()),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }

        Ok(page)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedKeys {
    keys: Vec<ItemJson>,
}

fn unprocessed(tables: Option<HashMap<String, UnprocessedKeys>>) -> Vec<ItemKey> {
    let keys = tables.into_iter().flatten().flat_map(|(_, table)| table.keys);
    keys.map(|ItemJson(key)| ItemKey::of_item(&key)).collect()
}

/// Hands out each item of an answer. The answer has one list of items, or one for each table.
struct ManyItems<'e>(Each<'e>);

impl<'de> Visitor<'de> for ManyItems<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Visited(OneItem(&mut *self.0)))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut tables: A) -> Result<(), A::Error> {
        while tables.next_key::<IgnoredAny>()?.is_some() {
            tables.next_value_seed(Visited(ManyItems(&mut *self.0)))?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_dynamodb::operation::query::QueryOutput;
    use aws_sdk_dynamodb::types::ConsumedCapacity;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::tests::attribute::from_sdk;
    use crate::tests::canned::Canned;
    use table::db::{Db as _, ItemQuery};
    use table::item::Attribute;
    use table::{Deadline, Invocation};

    /// The end and the items of a page, as they are handed out.
    fn page(body: &str) -> (StoreResult<PageEnd>, Vec<Item>) {
        let mut found = Vec::new();
        let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            found.push(attributes.collect::<Item>());
        };
        let end = read_page(body.as_bytes(), &mut each);
        (end, found)
    }

    async fn read_by_the_sdk(body: &str) -> QueryOutput {
        let query = Canned::new(200, body).client().query().table_name("t");
        query.send().await.expect("an answer")
    }

    #[tokio::test]
    async fn a_page_is_read_as_the_sdk_reads_it() {
        let item = json!({
            "pk": {"S": "雪 \u{1f525} \"quoted\" \\ \n"}, "sk": {"S": ""}, "": {"N": "-1.5E-130"},
            "list": {"L": [{"N": "1"}, {"L": []}, {"M": {}}, {"S": "a"}]},
            "map": {"M": {"a": {"M": {"b": {"BOOL": true}}}, "c": {"BOOL": false}}},
            "bytes": {"B": "AAH/gA=="}, "set": {"SS": ["a", "b"]},
            "others": {"L": [{"NULL": true}, {"NS": ["1", "2"]}, {"BS": ["AA=="]}]},
        });
        for answer in [
            json!({"Items": [item, {}, item], "Count": 3, "ScannedCount": 4}),
            json!({
                "ConsumedCapacity": {"TableName": "t", "CapacityUnits": 1.5},
                "Items": [], "LastEvaluatedKey": {"pk": {"S": "a"}, "sk": {"B": "AA=="}}, "New": [{"a": 1}],
            }),
            json!({"ConsumedCapacity": {"TableName": "t"}, "Items": [{"a": {"N": "1"}}]}),
            json!({}),
            json!({"Items": null, "LastEvaluatedKey": null, "ConsumedCapacity": null}),
        ] {
            let (end, items) = page(&answer.to_string());
            let end = end.expect("an answer");
            let expected = read_by_the_sdk(&answer.to_string()).await;

            let units = expected.consumed_capacity().and_then(ConsumedCapacity::capacity_units);
            assert!((end.units - units.unwrap_or_default()).abs() < 0.1, "{answer}");
            let last_key = expected.last_evaluated_key().cloned();
            assert_eq!(end.last_key, last_key.map(|key| from_sdk(key).collect()), "{answer}");
            let expected = expected.items().iter().cloned();
            let expected: Vec<Item> = expected.map(|item| from_sdk(item).collect()).collect();
            assert_eq!(items, expected, "{answer}");
        }
    }

    #[tokio::test]
    async fn an_item_that_is_left_half_read_leaves_the_others() {
        let items = json!([{"a": {"N": "1"}, "b": {"L": [{"N": "3"}]}}, {}, {"c": {"N": "2"}}]);
        let key = json!({"pk": {"S": "a"}});
        let answer = json!({"Items": items, "LastEvaluatedKey": key}).to_string();
        let store = Canned::new(200, &answer).store();
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(60)));

        let mut first = Vec::new();
        let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            first.push(attributes.next().map(|(name, _)| name));
        };
        let end = store.query(&ItemQuery::of("a"), &invocation, &mut each).await;

        assert_eq!(first, [Some("a".to_owned()), None, Some("c".to_owned())]);
        let expected = [("pk".to_owned(), Attribute::S("a".to_owned()))].into();
        assert_eq!(end.expect("an answer"), Some(expected));
    }

    #[test]
    fn a_page_that_is_broken_is_an_error_and_no_shorter_page() {
        let whole = json!({"Items": [{"a": {"L": [{"N": "1"}]}}]}).to_string();
        let broken = [
            json!({"Items": [{"a": {}}]}),
            json!({"Items": [{"a": {"N": "1", "S": "1"}}]}),
            json!({"Items": [{"a": {"N": 1}}]}),
            json!({"Items": [{"a": {"B": "?"}}]}),
            json!({"Items": [{"a": "1"}]}),
            json!({"Items": {"a": {"N": "1"}}}),
        ];
        let cut = (0..whole.len()).map(|end| whole[..end].to_owned());
        let longer = format!("{whole}}}");
        for body in broken.iter().map(Json::to_string).chain(cut).chain([longer]) {
            let (end, _) = page(&body);
            assert!(matches!(end, Err(StoreError::Unavailable(_))), "{body}");
            // Also where the items are left unread.
            let end = read_page(body.as_bytes(), &mut |_| ());
            assert!(matches!(end, Err(StoreError::Unavailable(_))), "{body}");
        }
        assert!(page(&whole).0.is_ok());
        assert!(read_page(b"{\"\xff\": 1}", &mut |_| ()).is_err());
    }
}
