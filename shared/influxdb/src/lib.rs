//! The requests that clients of InfluxDB send before they write: for a ping, the health, their bucket, their database.
//! Reads no table.
//!
//! Both `ingest` and `query` answer these requests. If each function has its own address, a client asks the address to
//! which it writes.

mod probes;
mod request;
mod statements;

pub use probes::{buckets, flux, health, health_members, orgs, ping, ready};
pub use request::QueryRequest;
pub use statements::{is_open, open_query, parsed, refused, respond, run_without_table};
