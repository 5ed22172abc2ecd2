//! The built program `roomtide`, run as a person runs it. What needs no process of its own is tested in the library.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that panics says where and why")]

mod crash;
mod disk;
mod interrupt;
mod private;
mod refusals;
mod server;
