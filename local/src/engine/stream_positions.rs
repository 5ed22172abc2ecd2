//! The position of each consumer of the stream, in a table beside the engine's own. Reads no record.
//!
//! A position and the removal of the records before it are one transaction. After a crash, a position may lie before
//! records that were delivered, which are then delivered again. No position lies after an undelivered record.

use anyhow::Context as _;
use rusqlite::Connection;

/// Keeps the positions of `consumers`, drops those of other consumers, and returns the positions in the given order.
pub(super) fn set_consumers(
    connection: &Connection,
    consumers: &[&str],
) -> anyhow::Result<Vec<i64>> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS roomtide_stream_positions
         (consumer TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID",
    )?;

    let names = serde_json::to_string(consumers)?;
    transaction.execute(
        "DELETE FROM roomtide_stream_positions
         WHERE consumer NOT IN (SELECT value FROM json_each(?1))",
        [&names],
    )?;
    transaction.execute(
        "INSERT OR IGNORE INTO roomtide_stream_positions
         SELECT value, 0 FROM json_each(?1)",
        [&names],
    )?;

    let position = |consumer: &&str| {
        transaction
            .query_row(
                "SELECT position FROM roomtide_stream_positions WHERE consumer = ?1",
                [consumer],
                |row| row.get(0),
            )
            .with_context(|| format!("the stream position of {consumer}"))
    };
    let positions = consumers.iter().map(position).collect::<anyhow::Result<_>>()?;

    transaction.commit()?;
    Ok(positions)
}

/// Moves a consumer, and removes the records of `table`'s stream that all consumers have passed, except the newest.
pub(super) fn advance(
    connection: &Connection,
    table: &str,
    consumer: &str,
    position: i64,
) -> anyhow::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction
        .prepare_cached("UPDATE roomtide_stream_positions SET position = ?2 WHERE consumer = ?1")?
        .execute((consumer, position))?;

    transaction
        .prepare_cached(
            "DELETE FROM _stream_records WHERE table_name = ?1
             AND CAST(sequence_number AS INTEGER) <=
                 (SELECT MIN(position) FROM roomtide_stream_positions)
             AND CAST(sequence_number AS INTEGER) <
                 (SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records
                  WHERE table_name = ?1)",
        )?
        .execute([table])?;

    transaction.commit()?;
    Ok(())
}
