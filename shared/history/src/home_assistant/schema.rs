//! The tables and columns that a database actually has. Reads no row.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use rusqlite::Connection;

/// The existing tables and columns.
pub(super) struct Schema {
    /// The schema version in the database, or `unknown`.
    pub(super) version: String,
    columns: BTreeMap<&'static str, BTreeSet<String>>,
}

/// The tables that are inspected.
const TABLES: [&str; 7] = [
    "states",
    "states_meta",
    "state_attributes",
    "statistics",
    "statistics_meta",
    "statistics_short_term",
    "schema_changes",
];

/// Lists the columns of a table. A view counts as having none, because its rows may never end.
const COLUMNS: &str = "SELECT name FROM pragma_table_info(?1) \
    WHERE EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";

impl Schema {
    /// Inspects a database.
    pub(super) fn of(connection: &Connection) -> anyhow::Result<Self> {
        let mut columns = BTreeMap::new();
        for table in TABLES {
            let mut statement = connection.prepare(COLUMNS)?;
            let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
            columns.insert(table, names.collect::<rusqlite::Result<BTreeSet<_>>>()?);
        }

        let mut schema = Self { version: "unknown".to_owned(), columns };
        ensure!(
            schema.has_table("states") || schema.has_table("statistics_meta"),
            "this is a database of SQLite, but not Home Assistant's: it has no table states"
        );

        if schema.has_table("schema_changes") {
            let newest = "SELECT CAST(max(schema_version) AS TEXT) FROM schema_changes";
            let version = connection.query_row(newest, [], |row| row.get(0));
            let version: Option<String> = version.context("the schema's version")?;
            schema.version = version.unwrap_or(schema.version);
        }
        Ok(schema)
    }

    /// Returns whether the database has this table.
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.columns.get(table).is_some_and(|columns| !columns.is_empty())
    }

    /// Returns SQL for a column of the table with this alias, or `NULL` if the column is missing.
    pub(super) fn column(&self, table: &str, alias: &str, column: &str) -> String {
        let has = self.columns.get(table).is_some_and(|columns| columns.contains(column));
        if has { format!("{alias}.\"{column}\"") } else { "NULL".to_owned() }
    }

    /// Returns SQL that joins states with the ids of their entities, or with `NULL` if the database lacks the table or
    /// the column.
    pub(super) fn join_of_entity_ids(&self) -> String {
        let key = self.column("states", "s", "metadata_id");
        if !self.has_table("states_meta") || key == "NULL" {
            return "LEFT JOIN (SELECT NULL AS \"metadata_id\") m ON 0".to_owned();
        }
        format!("LEFT JOIN states_meta m ON m.\"metadata_id\" = {key}")
    }
}
