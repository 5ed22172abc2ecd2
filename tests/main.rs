//! What holds across packages, one module a subject. Unit tests are beside the code, not here.

mod access;
mod architecture;
mod client;
mod conditions_costs;
mod contract;
mod deletion_model;
mod engine;
mod events;
mod faults;
mod fleet;
mod fleet_model;
mod flow;
mod gate;
mod given;
mod lines;
mod model;
mod openapi;
mod patterns;
mod permissions;
mod rollup_costs;
mod rollup_model;
mod schedules;
mod source;
mod template;
mod wire;
