//! The HTTP contract: requests, answers, problems and the table of endpoints. Reads no table and no clock.

pub mod about;
pub mod body;
pub mod caching;
pub mod credentials;
pub mod dialect;
pub mod endpoints;
mod finish;
pub mod format;
pub mod frame_ancestors;
pub mod gateway;
pub mod json;
pub mod media;
pub mod page;
pub mod params;
pub mod preferences;
pub mod problem;
pub mod request;
pub mod response;
pub mod restore;

pub use about::{ABOUT, AboutBody, MAX_ABOUT};
pub use credentials::TokenSecret;
pub use dialect::Dialect;
pub use format::Format;
pub use frame_ancestors::{FrameAncestors, FrameAncestorsError};
pub use media::is_ndjson;
pub use params::Params;
pub use preferences::Coding;
pub use problem::{FieldError, Problem, ProblemKind};
pub use request::{MAX_BODY, MAX_INFLATED, MAX_READINGS, Request, inflate};
pub use response::Response;
pub use restore::restored_device;
