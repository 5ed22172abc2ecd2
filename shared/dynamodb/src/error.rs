//! Converts the SDK's errors. Retries nothing, because the SDK has retried already.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use table::StoreError;

/// The error codes of `DynamoDB` after which the same request may succeed later: for throttling, and for an item that a
/// transaction is writing.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
const THROTTLES: [&str; 5] = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "TransactionConflictException",
];

pub(super) fn store_error<E>(error: SdkError<E, HttpResponse>) -> StoreError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match &error {
        SdkError::ServiceError(service) => {
            let code = service.err().code().unwrap_or_default();
            if THROTTLES.contains(&code) {
                StoreError::Throttled(Box::new(error))
            } else if code == "ValidationException" {
                StoreError::Inapplicable(Box::new(error))
            } else if service.raw().status().is_server_error() {
                StoreError::Unavailable(Box::new(error))
            } else {
                StoreError::Refused(Box::new(error))
            }
        }
        SdkError::ConstructionFailure(_) => StoreError::Refused(Box::new(error)),
        _ => StoreError::Unavailable(Box::new(error)),
    }
}
