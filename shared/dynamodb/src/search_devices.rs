//! `Query` on the index of attributes, in every partition of a subject at once. Reads no device.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures_util::future::try_join_all;

use crate::attribute::to_sdk;
use crate::pause::asked;
use crate::{DynamoStore, note_read};
use table::item::{self, attribute::DONE};
use table::keys::{ATTRIBUTE, Key, VALUE, search_range};
use table::layout::ATTRIBUTE_INDEX;
use table::{Invocation, SearchDevices, SearchHit, SearchPage, SearchQuery, StoreResult};

impl SearchDevices for DynamoStore {
    async fn is_indexed(&self, invocation: &Invocation) -> StoreResult<bool> {
        if !self.layout.attribute_index {
            return Ok(false);
        }
        let request = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(&Key::Indexed))))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_read(invocation, answer.consumed_capacity());
        Ok(answer.item.is_some_and(|mark| mark.contains_key(DONE)))
    }

    async fn search(
        &self,
        query: &SearchQuery<'_>,
        invocation: &Invocation,
    ) -> StoreResult<SearchPage> {
        let after = query.after.map(SearchHit::place);
        let bounds = search_range(query.range, after.as_deref());
        if bounds.0 > bounds.1 {
            return Ok(SearchPage::default());
        }
        let names = self.layout.shards.all().map(|shard| shard.of_name(query.subject.as_str()));
        let pages = names.map(|name| self.search_one(name, &bounds, query.limit, invocation));
        let pages = try_join_all(pages).await?;
        let mut has_more = pages.iter().any(|page| page.has_more);
        let mut hits: Vec<(String, SearchHit)> =
            pages.into_iter().flat_map(|page| page.hits).map(|hit| (hit.place(), hit)).collect();
        hits.sort_by(|(a, _), (b, _)| a.cmp(b));
        has_more |= hits.len() > query.limit;
        // A partition that has more holds at least as many as are asked for, so nothing is passed over.
        hits.truncate(query.limit);
        Ok(SearchPage { hits: hits.into_iter().map(|(_, hit)| hit).collect(), has_more })
    }
}

impl DynamoStore {
    /// At most `limit` entries of one partition.
    async fn search_one(
        &self,
        name: String,
        (first, last): &(String, String),
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<SearchPage> {
        let mut hits = Vec::new();
        let mut start = None;
        loop {
            let left = i32::try_from(limit - hits.len()).unwrap_or(i32::MAX);
            let request = self
                .client
                .query()
                .table_name(&self.table)
                .index_name(ATTRIBUTE_INDEX.name)
                .key_condition_expression("#a = :a AND #v BETWEEN :f AND :l")
                .expression_attribute_names("#a", ATTRIBUTE)
                .expression_attribute_names("#v", VALUE)
                .expression_attribute_values(":a", AttributeValue::S(name.clone()))
                .expression_attribute_values(":f", AttributeValue::S(first.clone()))
                .expression_attribute_values(":l", AttributeValue::S(last.clone()))
                .limit(left)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = asked(invocation, || request.clone().send()).await?;
            note_read(invocation, answer.consumed_capacity());
            for item in answer.items.into_iter().flatten() {
                let place = item.get(VALUE).and_then(|value| value.as_s().ok());
                hits.extend(place.and_then(|place| SearchHit::parse(place)));
            }
            start = answer.last_evaluated_key;
            if start.is_none() || hits.len() >= limit {
                return Ok(SearchPage { hits, has_more: start.is_some() });
            }
        }
    }
}
