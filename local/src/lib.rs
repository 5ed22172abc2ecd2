//! The whole system on one machine, around an embedded engine. No rule of the system lives here.
//!
//! [`System`] plays the parts that AWS plays in the deployed system, and calls the functions' own
//! handlers with the events that AWS would send:
//!
//! | AWS | here |
//! | --- | --- |
//! | API Gateway | `gateway`: HTTP requests to payload format 2.0 and back |
//! | `DynamoDB` | `engine`: an embedded engine |
//! | event source mappings | `stream_poller`, `queue_poller`: the stream and the queue to the functions |
//! | SQS | `engine`: queues in the engine's file |
//! | `EventBridge` | `scheduler`: the functions' schedules |
//!
//! What AWS reads in `template.yaml`, [`deployment`] says here, and a test compares both.
//!
//! It does not show the built binaries, the permissions and the real event source mappings.

mod addresses;
mod bulk;
pub mod deployment;
mod options;
pub mod private;
pub mod table_definition;

mod data_directory;
mod dead_letters;
mod direct;
mod engine;
mod functions;
mod gateway;
mod hint;
mod hosted_function;
mod loader;
mod new_directory;
mod queue_poller;
mod scheduler;
mod stop;
mod stream_poller;
mod system;
mod table_api;
mod warning;
mod work_queue;

pub use alerting::Event as AlertingEvent;
pub use bulk::Bulk;
pub use data_directory::DataDirectory;
pub use engine::Engine;
pub use fetching::Event as FetchingEvent;
pub use ingest::Event as IngestEvent;
pub use loader::Loader;
pub use new_directory::NewDirectory;
pub use options::{Burst, Data, Options};
pub use rollup::Event as RollupEvent;
pub use runtime::dead_letters::DeadLetter;
pub use system::System;
pub use table_api::TableApi;
