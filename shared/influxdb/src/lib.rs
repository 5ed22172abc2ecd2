//! What clients of InfluxDB ask before they write: a ping, the health, their bucket, their database. Reads no table.
//!
//! Both functions answer these, in a stack whose functions have an address each: writers ask where they write.

mod probes;
mod request;
mod statements;

pub use probes::{buckets, flux, health, health_members, orgs, ping, ready};
pub use request::QueryRequest;
pub use statements::{is_open, open_query, parsed, refused, respond, run_open};
