//! `PutItem` where nothing is: a reading without a timestamp, which must take nobody's place.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use chrono::TimeDelta;

use super::attribute::to_sdk;
use super::error::store_error;
use super::pause::while_throttled;
use super::{DynamoStore, note_write};
use crate::domain::Reading;
use crate::store::item::attribute::ARRIVAL;
use crate::store::keys::PK;
use crate::store::{AddArrival, Added, Budget, StoreResult, item};

impl AddArrival for DynamoStore {
    async fn add_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        budget: &Budget,
    ) -> StoreResult<Added> {
        while_throttled(budget, || self.try_arrival(reading, arrival, retention, budget)).await
    }
}

impl DynamoStore {
    async fn try_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        budget: &Budget,
    ) -> StoreResult<Added> {
        let answer = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_sdk(item::from_arrival(reading, arrival, retention))))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", PK)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        match budget.within(answer).await? {
            Ok(answer) => {
                note_write(budget, answer.consumed_capacity());
                Ok(Added::Stored)
            }
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    budget.add_write(1.0);
                    // The SDK repeats a request whose answer was lost: then the item that is there is
                    // this one, with whatever was merged into it since.
                    let came = failed.item.as_ref().and_then(|item| item.get(ARRIVAL)?.as_s().ok());
                    let is_own = came.is_some_and(|came| came == arrival);
                    Ok(if is_own { Added::Stored } else { Added::Taken })
                }
                _ => Err(store_error(error)),
            },
        }
    }
}
