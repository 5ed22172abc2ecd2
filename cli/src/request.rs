//! Sends requests to the API of a system in this process. Opens no connection.

use anyhow::bail;
use http::header::CONTENT_TYPE;
use http::{Request, Response};

/// Sends a request with `send`, and returns the body. Fails unless the request succeeds.
pub(crate) async fn request(
    send: impl AsyncFnOnce(Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>>,
    method: &str,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, content_type).body(body)?;
    let (parts, answer) = send(request).await?.into_parts();
    let status = parts.status;
    // 207 is a failure here: some readings are refused.
    if !matches!(status.as_u16(), 200 | 201 | 204) {
        bail!("{method} {path} answers {status}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(answer)
}
