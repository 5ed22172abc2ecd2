//! What Roomtide's functions share: the domain, the table and the HTTP contract. No handler lives here.
//!
//! Read [`domain`] first: it is what the system talks about, without I/O. [`store`] puts it into one
//! `DynamoDB` table, [`http`] says it to a client. [`clock`] and [`config`] are the only doors to the
//! time and to the environment.

pub mod access;
pub mod aws;
pub mod clock;
pub mod config;
pub mod domain;
pub mod http;
pub mod panic;
pub mod registry_cache;
pub mod store;
pub mod telemetry;
