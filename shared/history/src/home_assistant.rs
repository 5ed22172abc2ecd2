//! Home Assistant's database: its states, and long-term statistics of the time before them. Sends nothing.
//!
//! A state becomes the line that Home Assistant's InfluxDB integration writes for it. The tables are inspected first,
//! because a migration to a newer schema may be incomplete. If two columns have the same meaning, the filled one
//! counts.
//!
//! Sources: <https://github.com/home-assistant/core/blob/2024.3.3/homeassistant/components/recorder/db_schema.py>,
//! <https://github.com/home-assistant/core/blob/2024.3.3/homeassistant/components/influxdb/__init__.py>

mod attributes;
mod backup;
mod entity;
mod moment;
mod schema;
mod states;
mod statistics;
mod storage;
mod units;

use std::path::Path;

use rusqlite::Connection;

use crate::notes::Notes;
use crate::source::HistorySource;
use crate::sqlite::{self, Database, PointOutput};
use schema::Schema;
use storage::Storage;

pub use backup::{is_archive, open as open_backup};
pub use statistics::POWERS;

/// Reads a database, with the names and areas of Home Assistant's `.storage`.
pub fn source(database: Database, storage: Storage) -> anyhow::Result<HistorySource> {
    let notes = Notes::default();
    let schema = Schema::of(&database.connection)?;
    notes.say(format!("database     Home Assistant, schema {}", schema.version));
    Ok(sqlite::source(database, notes, move |connection, output| {
        read(connection, &schema, &storage, output)
    }))
}

fn read(
    connection: &Connection,
    schema: &Schema,
    storage: &Storage,
    output: &PointOutput,
) -> anyhow::Result<()> {
    let entities = states::read(connection, schema, storage, output)?;
    statistics::read(connection, schema, storage, &entities, output)
}

/// Reads Home Assistant's `.storage`; empty without a directory.
pub fn read_storage(directory: Option<&Path>) -> anyhow::Result<Storage> {
    directory.map_or_else(|| Ok(Storage::default()), Storage::read)
}

#[cfg(test)]
mod tests;
