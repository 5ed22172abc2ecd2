//! A function that says hello: what the Lambda runtime alone costs. Asks nobody, reads no request.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::de::IgnoredAny;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let handle = async |_: LambdaEvent<IgnoredAny>| Ok::<_, Error>("hello");
    lambda_runtime::run(service_fn(handle)).await
}
