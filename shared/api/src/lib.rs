//! HTTP as Roomtide speaks it: requests, answers, problems, routes. Knows nothing of what they are about.

pub mod credentials;
pub mod gateway;
pub mod json;
pub mod media;
pub mod params;
pub mod preferences;
pub mod problem;
pub mod request;
pub mod response;
pub mod routes;

pub use media::is_ndjson;
pub use params::Params;
pub use preferences::Coding;
pub use problem::{FieldError, Problem, ProblemKind};
pub use request::{MAX_BODY, MAX_INFLATED, MAX_READINGS, Request, inflate};
pub use response::Response;
