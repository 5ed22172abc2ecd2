//! The requests that clients of InfluxDB send before they write: a ping, the health, their bucket, their database.
//! Reads no table.
//!
//! The functions `ingest` and `query` both answer these requests, because each may have an address of its own, and
//! clients ask the address to which they write.

mod probes;
mod request;
mod statements;

pub use probes::{buckets, flux, health, health_members, orgs, ping, ready};
pub use request::QueryRequest;
pub use statements::{is_open, open_query, parsed, refused, respond, run_open};
