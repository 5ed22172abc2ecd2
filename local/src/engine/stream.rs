//! The table's stream as a queue on disk: read by each consumer, then trimmed. Calls no function.

use anyhow::Context as _;
use dynoxide::Database;
use dynoxide::actions::describe_stream::DescribeStreamRequest;
use dynoxide::actions::get_records::GetRecordsRequest;
use dynoxide::actions::get_shard_iterator::GetShardIteratorRequest;
use dynoxide::actions::list_streams::ListStreamsRequest;
use serde_json::Value;

use super::stream_positions;
use super::writer::Turns;

/// The offset that the engine adds to a record's number in its API, so that the number has 21 digits.
const SHOWN_OFFSET: u128 = 100_000_000_000_000_000_000;

/// The stream of one table, with its single shard.
///
/// Records are read through the engine and removed over the writer's connection, because the engine never removes any.
/// The file holds the stream records that some consumer has still to receive, so a killed process finds them at its
/// next start.
///
/// The newest record always stays, even when every consumer has passed it. The engine numbers a record one past the
/// newest that the file has, and at least by its clock in microseconds. With the newest record in place numbers only
/// grow, whatever the clock does. Without that record, a clock that is set back would give numbers a second time, and a
/// consumer's position could lie beyond new records.
pub(crate) struct Stream {
    database: Database,
    turns: Turns,
    table: String,
    arn: String,
    shard: String,
}

/// One record, as an event source mapping hands it to a function.
#[derive(Debug)]
pub(crate) struct StreamRecord {
    /// The number under which the record is stored; numbers grow with time.
    pub(crate) number: i64,
    /// The event record.
    pub(crate) event: Value,
}

impl Stream {
    /// Opens the stream of `table`. The connection in `turns` must be to the file of `database`.
    pub(super) fn open(database: &Database, turns: Turns, table: &str) -> anyhow::Result<Self> {
        let request =
            ListStreamsRequest { table_name: Some(table.to_owned()), ..Default::default() };
        let streams = database.list_streams(request)?.streams;
        let arn = streams.into_iter().next().context("the table has no stream")?.stream_arn;
        let request = DescribeStreamRequest { stream_arn: arn.clone(), ..Default::default() };
        let shards = database.describe_stream(request)?.stream_description.shards;
        let shard = shards.into_iter().next().context("the stream has no shard")?.shard_id;
        Ok(Self { database: database.clone(), turns, table: table.to_owned(), arn, shard })
    }

    /// The number of the newest record; 0 without one.
    pub(crate) fn newest(&self) -> anyhow::Result<i64> {
        let turn = self.turns.blocking_lock();
        let mut statement = turn.sqlite().prepare_cached(
            "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) FROM _stream_records WHERE table_name = ?1",
        )?;
        Ok(statement.query_row([&self.table], |row| row.get(0))?)
    }

    /// Reads at most `limit` records after the number `after`, oldest first. 0 means from the beginning.
    pub(crate) fn read(&self, after: i64, limit: usize) -> anyhow::Result<Vec<StreamRecord>> {
        let from = if after == 0 {
            ("TRIM_HORIZON", None)
        } else {
            ("AFTER_SEQUENCE_NUMBER", Some(shown(after)))
        };

        let iterator = self.database.get_shard_iterator(GetShardIteratorRequest {
            stream_arn: self.arn.clone(),
            shard_id: self.shard.clone(),
            shard_iterator_type: from.0.to_owned(),
            sequence_number: from.1,
        })?;
        let shard_iterator = iterator.shard_iterator.context("the engine gave no iterator")?;
        let page =
            self.database.get_records(GetRecordsRequest { shard_iterator, limit: Some(limit) })?;

        let records = page.records.into_iter().map(|record| {
            let number =
                stored(&record.dynamodb.sequence_number).context("a record without a number")?;
            let mut event = serde_json::to_value(record)?;
            event["eventSourceARN"] = self.arn.as_str().into();
            Ok(StreamRecord { number, event })
        });
        records.collect()
    }

    /// Sets the consumers of the stream, and returns the position of each: the number of the last record that the
    /// consumer has passed, 0 for a new consumer.
    pub(crate) fn set_consumers(&self, consumers: &[&str]) -> anyhow::Result<Vec<i64>> {
        let turn = self.turns.blocking_lock();
        stream_positions::set_consumers(turn.sqlite(), consumers)
    }

    /// Moves a consumer to `position`, and removes the records that all consumers have passed, except the
    /// newest of the stream.
    pub(crate) fn advance(&self, consumer: &str, position: i64) -> anyhow::Result<()> {
        let turn = self.turns.blocking_lock();
        stream_positions::advance(turn.sqlite(), &self.table, consumer, position)
    }
}

fn shown(number: i64) -> String {
    (SHOWN_OFFSET + u128::try_from(number).unwrap_or(0)).to_string()
}

fn stored(shown: &str) -> Option<i64> {
    i64::try_from(shown.parse::<u128>().ok()?.checked_sub(SHOWN_OFFSET)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;
    use crate::engine::Engine;

    fn put(engine: &Engine, sk: &str) {
        let item = serde_json::json!({
            "TableName": "roomtide", "Item": {"pk": {"S": "d"}, "sk": {"S": sk}, "w": {"N": "1"}},
        });
        engine.database.put_item(serde_json::from_value(item).unwrap()).unwrap();
    }

    #[test]
    fn what_is_trimmed_is_gone_and_numbers_go_on() {
        let engine = Engine::start(&Data::Memory, None).unwrap();
        let stream = engine.stream();
        assert_eq!(stream.newest().unwrap(), 0);
        for n in 0..5 {
            put(&engine, &format!("TS#{n}"));
        }

        let records = stream.read(0, 3).unwrap();
        assert_eq!(records.len(), 3);
        let rest = stream.read(records[2].number, 10).unwrap();
        assert_eq!(rest.len(), 2);

        let newest = rest[1].number;
        assert_eq!(stream.newest().unwrap(), newest);
        assert_eq!(stored(&shown(newest)), Some(newest));

        assert_eq!(stream.set_consumers(&["a"]).unwrap(), [0]);
        stream.advance("a", records[2].number).unwrap();
        assert_eq!(stream.read(0, 10).unwrap().len(), 2);
        stream.advance("a", newest).unwrap();
        assert_eq!(
            stream.newest().unwrap(),
            newest,
            "the newest stays, so that no number comes twice"
        );

        put(&engine, "TS#5");
        let after = stream.read(newest, 10).unwrap();
        assert!(after.len() == 1 && after[0].number > newest);

        drop(stream);
        engine.stop().unwrap();
    }

    #[test]
    fn a_record_stays_until_every_consumer_has_passed_it() {
        let engine = Engine::start(&Data::Memory, None).unwrap();
        let stream = engine.stream();
        assert_eq!(stream.set_consumers(&["a", "b"]).unwrap(), [0, 0]);
        (0..3).for_each(|n| put(&engine, &format!("TS#{n}")));
        let numbers: Vec<i64> =
            stream.read(0, 10).unwrap().iter().map(|record| record.number).collect();

        stream.advance("a", numbers[2]).unwrap();
        assert_eq!(stream.read(0, 10).unwrap().len(), 3);
        stream.advance("b", numbers[0]).unwrap();
        assert_eq!(stream.read(0, 10).unwrap().len(), 2);
        assert_eq!(stream.set_consumers(&["b", "c", "a"]).unwrap(), [numbers[0], 0, numbers[2]]);

        // One that is gone holds nothing back, and begins anew if it comes back.
        assert_eq!(stream.set_consumers(&["a"]).unwrap(), [numbers[2]]);
        stream.advance("a", numbers[2]).unwrap();
        assert_eq!(stream.read(0, 10).unwrap().len(), 1);
        assert_eq!(stream.set_consumers(&["b"]).unwrap(), [0]);

        drop(stream);
        engine.stop().unwrap();
    }

    #[test]
    fn a_record_is_the_event_that_a_function_gets() {
        let engine = Engine::start(&Data::Memory, None).unwrap();
        put(&engine, "TS#2026-01-11T16:00:00.000Z");
        let record = engine.stream().read(0, 1).unwrap().remove(0);
        assert_eq!(record.event["eventName"], "INSERT");
        assert_eq!(record.event["eventSource"], "aws:dynamodb");
        assert_eq!(record.event["dynamodb"]["NewImage"]["w"]["N"], "1");
        let event: aws_lambda_events::event::dynamodb::EventRecord =
            serde_json::from_value(record.event).unwrap();
        assert!(event.event_source_arn.is_some_and(|arn| arn.contains("roomtide")));
        assert_eq!(event.change.sequence_number, Some(shown(record.number)));
        engine.stop().unwrap();
    }
}
