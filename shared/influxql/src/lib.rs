//! InfluxQL over devices and their readings: from the text of a query to what it reads, and from what was read to the
//! text of the answer. Has no store, no HTTP and no clock.
//!
//! `parser` makes statements of the text (`lexer`, `ast`, `parameters`), `compile` checks a `SELECT` against the fields
//! and tags that there are (`series`, `room_tag`), `plan` joins it with those around it, and `selection` says what is read
//! for it. Of what was read, `group` groups points by tags, `aggregate`, `fill`, `transform` and `math` make values
//! of them, and `table` makes `rows`: these are points for a statement around, or `answer` writes them. `show` lists
//! names, values and series.

mod aggregate;
mod answer;
mod ast;
mod compile;
mod condition;
mod duration;
mod error;
mod extreme;
mod fill;
mod function;
mod group;
mod lexer;
mod math;
mod parameters;
mod parser;
mod pattern;
mod plan;
mod room_tag;
mod rows;
mod selection;
mod series;
mod show;
mod table;
mod transform;
mod value;
mod windows;

pub use answer::{Epoch, Form, OutSeries, Outcome};
pub use ast::{Select, Show, Statement};
pub use error::QueryError;
pub use extreme::Extreme;
pub use group::Found;
pub use parameters::Parameters;
pub use parser::parse;
pub use plan::{Plan, Statements};
pub use room_tag::RoomTexts;
pub use rows::Rows;
pub use selection::{Answer, OutGroup, Selection, Wanted, Way};
pub use show::{show, show_databases, show_retention_policies};
