//! The base of every function: configuration, clock, log, HTTP and stream invocations, authentication, the
//! registry, the dead-letter queue. Contains no rule of the domain and no handler.
//!
//! [`clock`] and [`config`] are the only doors to the time of day and to the environment.

pub mod authentication;
pub mod clock;
pub mod config;
pub mod dead_letters;
pub mod http;
pub mod panic;
pub mod registry;
pub mod stream;
pub mod telemetry;
