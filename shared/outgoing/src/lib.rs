//! Requests that leave the system: where they may go, what they show of themselves, and what is answered. Sends none.

mod address;
mod answer;
mod request;
mod url;

pub use address::{ForbiddenAddress, Reach};
pub use answer::{Answer, Fetched, HEADERS_OF_LIMITS, Verdict};
pub use request::Request;
pub use url::{Url, UrlError};
