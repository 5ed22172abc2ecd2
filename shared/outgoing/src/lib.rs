//! Requests that leave the system: their permitted addresses, their secrets and their answers. Sends no request.

mod address;
mod answer;
mod request;
mod url;

pub use address::{ForbiddenAddress, Reach};
pub use answer::{Answer, AnswerVerdict, Fetched, HEADERS_OF_LIMITS};
pub use request::Request;
pub use url::{Url, UrlError};
