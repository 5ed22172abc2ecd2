//! What every function is started with and runs on: configuration, clock, log, authentication, registry.
//! No rule of the domain and no handler lives here.
//!
//! [`clock`] and [`config`] are the only doors to the time of day and to the environment.

pub mod authentication;
pub mod clock;
pub mod config;
pub mod panic;
pub mod registration;
pub mod registry_cache;
pub mod telemetry;
