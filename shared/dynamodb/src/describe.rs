//! `DescribeTable`: the indexes that a table has. For the command line and the laptop; no function asks.

use aws_sdk_dynamodb::types::TableDescription;

use crate::DynamoStore;
use crate::error::store_error;
use table::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX, Index, Layout, ROOM_INDEX};
use table::{Invocation, StoreResult};

impl DynamoStore {
    /// The store of the table with the indexes that the table has.
    pub async fn as_laid_out(mut self, invocation: &Invocation) -> StoreResult<Self> {
        let answer = self.client.describe_table().table_name(&self.table).send();
        let answer = invocation.within(answer).await?.map_err(store_error)?;
        let indexes =
            answer.table().map(TableDescription::global_secondary_indexes).unwrap_or_default();
        let has = |index: &Index| indexes.iter().any(|it| it.index_name() == Some(index.name));
        self.layout.room_index = has(&ROOM_INDEX);
        self.layout.attribute_index = has(&ATTRIBUTE_INDEX);
        self.layout.conditions_index = has(&CONDITIONS_INDEX);
        Ok(self)
    }

    /// How the table is laid out, as far as the store knows.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }
}
