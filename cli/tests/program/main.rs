//! The command as a person runs it, with a server. As a process where its end, its input or its environment counts, else
//! by the same code in this process. Tests that need neither are beside the code.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that panics says where and why")]

mod backup;
mod crash;
mod direct;
mod disk;
mod export;
mod first_start;
mod import_report;
mod interrupt;
mod private;
mod readings_report;
mod rollups;
mod server;
mod stories;
