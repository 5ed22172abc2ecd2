//! InfluxQL over devices and their readings: parses a query, says what to read for the query, and makes the answer from
//! what was read. Has no store, no HTTP and no clock.
//!
//! `parser` makes statements of the text, with `lexer`, `ast` and `parameters`. `compile` checks a `SELECT` against the
//! existing fields and tags, given by `series` and `room_tag`. `plan` joins a `SELECT` with its subqueries, and
//! `selection` says what to read. `group` groups the points by tags. `aggregate`, `fill`, `transform` and `math`
//! compute values of the points. `table` makes `rows`, which are points for the statement around a subquery, or are
//! written by `answer`. `show` lists names, values and series.

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

pub use answer::{AnswerForm, Epoch, OutSeries, StatementResult};
pub use ast::{Select, Show, Statement};
pub use error::QueryError;
pub use extreme::Extreme;
pub use group::DeviceData;
pub use parameters::Parameters;
pub use parser::parse;
pub use plan::{SelectPlan, Statements};
pub use room_tag::RoomTexts;
pub use rows::Rows;
pub use selection::{Answer, DeviceSelection, OutGroup, ReadWay, WantedDevice};
pub use show::{show, show_databases, show_retention_policies};
