//! Bills of published sheets, and what holds of every bill.

mod rules;
mod sheets;
