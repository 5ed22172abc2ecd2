//! The answer to a `Query`, read from its JSON straight into what its items hold. Knows no attribute by name.
//!
//! The SDK makes a map of each item, and a type of its own of each value in it, before anything of ours sees
//! them: for a chart that was most of what a function did. Everything else of the request stays the SDK's:
//! signing, retries and time limits.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept};
use aws_sdk_dynamodb::error::{BoxError, ErrorMetadata};
use aws_sdk_dynamodb::operation::query::{QueryError, QueryOutput};
use aws_sdk_dynamodb::types::ConsumedCapacity;
use aws_smithy_runtime_api::client::interceptors::context::{Error, Output};
use aws_smithy_runtime_api::client::orchestrator::{HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::ser_de::{DeserializeResponse, SharedResponseDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::attribute::to_sdk;
use crate::json::{Map, Value};
use table::item::{Attribute, Decode, ItemError};

/// The items of one answer, in its order: what each holds, or why it cannot be read.
type Decoded<T> = Vec<Result<T, ItemError>>;

/// Takes the items of an answer out of it, so that the SDK sees none.
pub(super) struct TakeItems<T>(Arc<Mutex<Decoded<T>>>);

impl<T> TakeItems<T> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// What the last answer had.
    pub(super) fn taken(&self) -> Decoded<T> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Both take the same items.
impl<T> Clone for TakeItems<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for TakeItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakeItems")
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl<T: Decode + Send + 'static> Intercept for TakeItems<T> {
    fn name(&self) -> &'static str {
        "TakeItems"
    }

    /// Reads the answer in the place of the reader that the operation brings.
    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(SharedResponseDeserializer::new(self.clone()));
        Ok(())
    }
}

impl<T: Decode + Send> DeserializeResponse for TakeItems<T> {
    fn deserialize_nonstreaming_with_config(
        &self,
        response: &HttpResponse,
        _: &ConfigBag,
    ) -> Result<Output, OrchestratorError<Error>> {
        let body = response.body().bytes().unwrap_or_default();
        if !response.status().is_success() {
            return Err(OrchestratorError::operation(Error::erase(refusal(body))));
        }
        // Checked once, and not text by text.
        let body = std::str::from_utf8(body).map_err(OrchestratorError::other)?;
        let answer: Answer<T> = serde_json::from_str(body).map_err(OrchestratorError::other)?;
        let items = answer.items.unwrap_or_default().into_iter().map(|Read(item)| item).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = items;
        let consumed = answer
            .consumed
            .map(|it| ConsumedCapacity::builder().set_capacity_units(it.capacity_units).build());
        let output = QueryOutput::builder()
            .set_last_evaluated_key(answer.last_key.map(|Map(key)| to_sdk(key)))
            .set_consumed_capacity(consumed);
        Ok(Output::erase(output.build()))
    }
}

/// The error of an answer that has another status: its code, by which the SDK repeats the request.
///
/// Its form: <https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html#operation-error-serialization>
fn refusal(body: &[u8]) -> QueryError {
    let Refusal { kind, message } = serde_json::from_slice(body).unwrap_or_default();
    // It ends with the name of the error, behind that of the service.
    let is_between = |it: char| !it.is_ascii_alphanumeric();
    let code = kind.as_deref().and_then(|kind| kind.rsplit(is_between).next()).unwrap_or_default();
    let metadata = ErrorMetadata::builder().code(code).message(message.unwrap_or_default());
    QueryError::generic(metadata.build())
}

#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(rename = "__type")]
    kind: Option<String>,
    #[serde(alias = "Message")]
    message: Option<String>,
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html#API_Query_ResponseSyntax>
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Decode"))]
struct Answer<T> {
    #[serde(rename = "Items")]
    items: Option<Vec<Read<T>>>,
    #[serde(rename = "LastEvaluatedKey")]
    last_key: Option<Map>,
    #[serde(rename = "ConsumedCapacity")]
    consumed: Option<Consumed>,
}

#[derive(Deserialize)]
struct Consumed {
    #[serde(rename = "CapacityUnits")]
    capacity_units: Option<f64>,
}

/// What an item holds.
struct Read<T>(Result<T, ItemError>);

impl<'de, T: Decode> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reading(PhantomData))
    }
}

struct Reading<T>(PhantomData<T>);

impl<'de, T: Decode> Visitor<'de> for Reading<T> {
    type Value = Read<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut attributes = Attributes { map, broken: None };
        let read = T::decode(&mut attributes);
        // Who meets an error reads no further.
        attributes.by_ref().for_each(drop);
        attributes.broken.map_or(Ok(Read(read)), Err)
    }
}

/// The attributes of an item, one by one. Ends at what is no JSON.
struct Attributes<'de, A: MapAccess<'de>> {
    map: A,
    broken: Option<A::Error>,
}

impl<'de, A: MapAccess<'de>> Iterator for Attributes<'de, A> {
    type Item = (String, Attribute);

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken.is_some() {
            return None;
        }
        match self.map.next_entry::<String, Value>() {
            Ok(entry) => entry.map(|(name, Value(value))| (name, value)),
            Err(error) => {
                self.broken = Some(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
    use aws_smithy_runtime_api::client::result::SdkError;
    use serde_json::{Value as Json, json};
    use table::item::Item;

    use super::*;
    use crate::attribute::from_sdk;
    use crate::canned::Canned;

    /// An item as it is.
    #[derive(Debug, PartialEq)]
    struct Whole(Item);

    impl Decode for Whole {
        fn decode(
            attributes: impl IntoIterator<Item = (String, Attribute)>,
        ) -> Result<Self, ItemError> {
            Ok(Self(attributes.into_iter().collect()))
        }
    }

    /// What reads two attributes and then finds that the item is of another kind.
    #[derive(Debug)]
    struct Refused;

    impl Decode for Refused {
        fn decode(
            attributes: impl IntoIterator<Item = (String, Attribute)>,
        ) -> Result<Self, ItemError> {
            attributes.into_iter().take(2).for_each(drop);
            Err(ItemError::Missing("kind"))
        }
    }

    type Asked = Result<QueryOutput, SdkError<QueryError, HttpResponse>>;

    /// What the SDK makes of an answer by itself, and what it makes of it and what is taken where items are.
    async fn both<T: Decode + Send + 'static>(
        status: u16,
        body: &str,
    ) -> (Asked, Asked, Decoded<T>) {
        let query = Canned::new(status, body).client().query().table_name("t");
        let alone = query.clone().send().await;
        let found = TakeItems::<T>::new();
        let taking = query.customize().interceptor(found.clone()).send().await;
        (alone, taking, found.taken())
    }

    #[tokio::test]
    async fn it_reads_what_the_sdk_reads() {
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
            let (alone, taking, items) = both::<Whole>(200, &answer.to_string()).await;
            let (alone, taking) = (alone.expect("an answer"), taking.expect("an answer"));
            let expected: Vec<_> = alone.items().iter().cloned().map(from_sdk).collect();
            let expected: Vec<_> = expected.into_iter().map(|it| Whole(it.collect())).collect();
            let items: Vec<_> = items.into_iter().map(|it| it.expect("an item")).collect();
            assert_eq!(items, expected, "{answer}");
            assert_eq!(taking.last_evaluated_key(), alone.last_evaluated_key());
            let units = |it: &QueryOutput| {
                it.consumed_capacity().and_then(ConsumedCapacity::capacity_units)
            };
            assert_eq!(units(&taking), units(&alone));
        }
    }

    #[tokio::test]
    async fn an_item_that_is_refused_leaves_the_others() {
        let items = json!([{"a": {"N": "1"}, "b": {"N": "2"}, "c": {"L": [{"N": "3"}]}}, {}]);
        let (_, taking, items) = both::<Refused>(200, &json!({"Items": items}).to_string()).await;
        taking.expect("an answer");
        assert!(items.iter().all(|it| matches!(it, Err(ItemError::Missing("kind")))));
        assert_eq!(items.len(), 2);
    }

    #[tokio::test]
    async fn what_is_no_answer_of_a_query_is_an_error_and_no_answer_without_items() {
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
        for body in broken.iter().map(Json::to_string).chain(cut) {
            let (_, taking, items) = both::<Whole>(200, &body).await;
            assert!(matches!(taking, Err(SdkError::ResponseError(_))), "{body}");
            assert!(items.is_empty(), "{body}");
            let (_, taking, _) = both::<Refused>(200, &body).await;
            assert!(matches!(taking, Err(SdkError::ResponseError(_))), "{body}");
        }
    }

    #[tokio::test]
    async fn an_error_is_repeated_and_told_as_the_sdks() {
        let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "m"});
        for (status, body) in
            [(400, body.to_string()), (500, String::new()), (503, "<html>".into())]
        {
            let (alone, taking, items) = both::<Whole>(status, &body).await;
            let told = |it: Asked| {
                let SdkError::ServiceError(error) = it.expect_err("an error") else {
                    panic!("{body}")
                };
                let (error, answer) = (error.err(), error.raw().status().as_u16());
                let text = |it: Option<&str>| it.unwrap_or_default().to_owned();
                (text(error.code()), text(error.message()), answer)
            };
            assert_eq!(told(taking), told(alone));
            assert!(items.is_empty());
        }
    }
}
