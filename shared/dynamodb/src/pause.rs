//! A request of the SDK that is sent again while the table throttles it. Knows no request.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::error::store_error;
use table::{Invocation, StoreResult, while_throttled};

/// The answer to a request, which is sent again while the table throttles it.
pub(super) async fn asked<T, E, F>(
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
