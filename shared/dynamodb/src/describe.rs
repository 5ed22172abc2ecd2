//! `DescribeTable`: the indexes and the capacity of a table. For the command line and the laptop; no function uses it.

use aws_sdk_dynamodb::types::{
    BillingMode, OnDemandThroughput, ProvisionedThroughputDescription as Provisioned,
    TableDescription,
};

use crate::DynamoStore;
use crate::pause::send_while_throttled;
use table::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX, Index, Layout, ROOM_INDEX};
use table::{Invocation, StoreResult};

impl DynamoStore {
    /// The same store. Its layout has the indexes that the table really has.
    pub async fn as_laid_out(mut self, invocation: &Invocation) -> StoreResult<Self> {
        let request = self.client.describe_table().table_name(&self.table);
        let answer = send_while_throttled(invocation, || request.clone().send()).await?;
        let indexes =
            answer.table().map(TableDescription::global_secondary_indexes).unwrap_or_default();
        let has =
            |index: &Index| indexes.iter().any(|known| known.index_name() == Some(index.name));
        self.layout.room_index = has(&ROOM_INDEX);
        self.layout.attribute_index = has(&ATTRIBUTE_INDEX);
        self.layout.conditions_index = has(&CONDITIONS_INDEX);
        Ok(self)
    }

    /// The read units and write units that the table may consume in a second, provisioned or on demand. `None` if the
    /// table has no limit.
    pub async fn max_units(
        &self,
        invocation: &Invocation,
    ) -> StoreResult<(Option<u32>, Option<u32>)> {
        let request = self.client.describe_table().table_name(&self.table);
        let answer = send_while_throttled(invocation, || request.clone().send()).await?;

        let table = answer.table();
        let billing = table.and_then(|table| table.billing_mode_summary()?.billing_mode());
        let is_on_demand = billing == Some(&BillingMode::PayPerRequest);
        let provisioned = table.filter(|_| !is_on_demand);
        let provisioned = provisioned.and_then(|known| known.provisioned_throughput());
        let on_demand = table.and_then(|table| table.on_demand_throughput());

        // An on-demand table has 0 provisioned units; in an emulator it may have others. -1 means no limit.
        let bound = |provisioned: Option<i64>, on_demand: Option<i64>| {
            let units =
                provisioned.filter(|units| *units > 0).or(on_demand.filter(|units| *units > 0));
            units.and_then(|units| u32::try_from(units).ok())
        };

        let read = bound(
            provisioned.and_then(Provisioned::read_capacity_units),
            on_demand.and_then(OnDemandThroughput::max_read_request_units),
        );
        let write = bound(
            provisioned.and_then(Provisioned::write_capacity_units),
            on_demand.and_then(OnDemandThroughput::max_write_request_units),
        );
        Ok((read, write))
    }

    /// The layout that the store has for the table.
    pub const fn layout(&self) -> Layout {
        self.layout
    }
}
