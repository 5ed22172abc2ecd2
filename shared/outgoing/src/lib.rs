//! Requests that leave the system: their permitted addresses, their secrets and their answers. Sends no request.

mod address;
mod answer;
mod request;
mod url;

pub use address::{ForbiddenAddress, Reach};
pub use answer::{Answer, Fetched, HEADERS_OF_LIMITS, Verdict};
pub use request::Request;
pub use url::{Url, UrlError};
