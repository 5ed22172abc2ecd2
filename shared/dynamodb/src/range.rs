//! `Query` between two sort keys, through 1 MB pages, for items of any kind. Builds no key.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};

use crate::answer::TakeItems;
use crate::attribute::SdkItem;
use crate::pause::asked;
use crate::{DynamoStore, note_read};
use domain::Order;
use table::item::Decode;
use table::keys::{PK, SK};
use table::layout::Index;
use table::{Invocation, StoreResult};

/// How large the items of a page grow, about; an answer of Lambda holds no more.
const MAX_PAGE_BYTES: usize = 6 << 20;

/// The condition of a `Query` between two sort keys, and what stands in it for the names of the key's parts.
pub const BETWEEN: &str = "#p = :p AND #s BETWEEN :a AND :b";
/// See [`BETWEEN`].
pub const BETWEEN_NAMES: [&str; 2] = ["#p", "#s"];

/// Some items of a partition of the table or of an index.
pub(super) struct Range {
    pub(super) index: Option<&'static Index>,
    pub(super) partition: String,
    /// The sort keys between which they lie, both inclusive.
    pub(super) between: (String, String),
    pub(super) order: Order,
    /// The key behind which they begin.
    pub(super) start: Option<SdkItem>,
    pub(super) limit: usize,
    pub(super) consistent: bool,
    /// What `DynamoDB` leaves out. It is read and paid for, but not sent.
    pub(super) filter: Option<Filter>,
}

/// A condition on attributes that are not keys.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) expression: &'static str,
    pub(super) names: &'static [(&'static str, &'static str)],
    pub(super) values: SdkItem,
}

/// Items of a range, in its order, and whether there are more.
pub(super) struct RangePage<T> {
    pub(super) items: Vec<T>,
    pub(super) has_more: bool,
}

impl DynamoStore {
    /// Follows `DynamoDB`'s pages until as many items that `keep` wants are found as the limit says, or
    /// as many bytes of them as an answer can hold, and asks for one item more, which tells whether there
    /// is another page. Skips what cannot be read: other writers may leave it there.
    pub(super) async fn range<T: Decode + Send + 'static>(
        &self,
        range: Range,
        keep: impl Fn(&T) -> bool,
        size: impl Fn(&T) -> usize,
        invocation: &Invocation,
    ) -> StoreResult<RangePage<T>> {
        let (limit, has_filter) = (range.limit, range.filter.is_some());
        let mut request = self.request_of(range);
        let found = TakeItems::<T>::new();
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut skipped = 0;
        loop {
            // Where most is skipped, each request asks for as much again as all before it.
            let wanted = (limit + 1 - items.len()).max(skipped);
            // A limit counts what a filter leaves out.
            if !has_filter {
                request = request.limit(i32::try_from(wanted).unwrap_or(i32::MAX));
            }
            let send = || request.clone().customize().interceptor(found.clone()).send();
            let answer = asked(invocation, send).await?;
            note_read(invocation, answer.consumed_capacity());
            for item in found.taken() {
                match item {
                    Ok(item) if keep(&item) => {
                        bytes += size(&item);
                        items.push(item);
                    }
                    _ => skipped += 1,
                }
            }
            let start = answer.last_evaluated_key;
            let is_whole = start.is_none();
            request = request.set_exclusive_start_key(start);
            if is_whole || items.len() > limit || bytes > MAX_PAGE_BYTES {
                break;
            }
        }
        let has_more = items.len() > limit || request.get_exclusive_start_key().is_some();
        items.truncate(limit);
        Ok(RangePage { items, has_more })
    }

    /// The request of a range, without its limit.
    fn request_of(&self, range: Range) -> QueryFluentBuilder {
        let Range { index, partition, between: (first, last), order, start, consistent, .. } =
            range;
        let (partition_key, sort_key) =
            index.map_or((PK, SK), |index| (index.partition_key, index.sort_key));
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .set_index_name(index.map(|index| index.name.to_owned()))
            .key_condition_expression(BETWEEN)
            .expression_attribute_names(BETWEEN_NAMES[0], partition_key)
            .expression_attribute_names(BETWEEN_NAMES[1], sort_key)
            .expression_attribute_values(":p", AttributeValue::S(partition))
            .expression_attribute_values(":a", AttributeValue::S(first))
            .expression_attribute_values(":b", AttributeValue::S(last))
            .scan_index_forward(order == Order::Ascending)
            // An index is never consistent.
            .consistent_read(consistent && index.is_none())
            .set_exclusive_start_key(start)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);

        let Some(Filter { expression, names, values }) = range.filter else { return request };
        let request = names.iter().fold(request, |request, (placeholder, name)| {
            request.expression_attribute_names(*placeholder, *name)
        });
        let request = request.filter_expression(expression);
        values.into_iter().fold(request, |request, (placeholder, value)| {
            request.expression_attribute_values(placeholder, value)
        })
    }
}
