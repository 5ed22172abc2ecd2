//! Repeats a request of the SDK while the table throttles. Knows no request.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::error::store_error;
use table::{Invocation, StoreResult, while_throttled};

/// Sends a request, and sends it again while the table throttles. Returns the answer.
pub(super) async fn send_while_throttled<T, E, F>(
    invocation: &Invocation,
    send: impl Fn() -> F + Send + Sync,
) -> StoreResult<T>
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
{
    let send = || async { invocation.within(send()).await?.map_err(store_error) };
    while_throttled(invocation, send).await
}
