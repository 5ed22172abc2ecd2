//! The base of every function: configuration, clock, log, invocations by HTTP, stream and queue, authentication, the
//! registry, and the queues to which functions send. Contains no rule of the domain and no handler.
//!
//! Only [`clock`] reads the time of day, and only [`config`] reads the environment.

pub mod auth;
pub mod authentication;
pub mod clock;
pub mod config;
pub mod dead_letters;
pub mod hint;
pub mod http;
pub mod invoke;
pub mod new_token;
pub mod queue;
pub mod registry;
pub mod stream;
pub mod telemetry;
pub mod work_queue;

#[cfg(any(test, feature = "fake"))]
mod memory_queue;
mod not_sent;
#[cfg(feature = "sqs")]
mod sqs;
