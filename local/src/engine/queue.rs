//! A queue in the engine's own file, instead of one of Amazon SQS. Delivers no message.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::Timestamp;
use tokio::sync::Notify;

use super::writer::Turns;

/// Longer than any pause of a message, which is at most the visibility time-out. A later due time comes from a clock
/// that was ahead.
const MAX_PAUSE: TimeDelta = TimeDelta::hours(1);

/// A queue of messages, in a table beside the engine's own.
///
/// A sent message is as durable as an item of the table, and stays in the file until it is removed. So a killed process
/// finds every message again at its next start, with the count of its deliveries.
pub(crate) struct Queue {
    name: String,
    turns: Turns,
    sent: Notify,
}

/// A message that is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedMessage {
    /// The message's number in the queue; numbers grow with time.
    pub(crate) number: i64,
    /// The text that was sent.
    pub(crate) body: String,
    /// The number of times that the message was received, this time included.
    pub(crate) receives: u32,
}

impl Queue {
    /// Opens the queue called `name`. All its messages are due at once, because no other process can still be working
    /// on one.
    pub(super) fn open(turns: Turns, name: &str) -> anyhow::Result<Arc<Self>> {
        let turn = turns.blocking_lock();
        turn.sqlite().execute_batch(
            "CREATE TABLE IF NOT EXISTS roomtide_messages
             (number INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body TEXT NOT NULL,
              receives INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL DEFAULT 0);
             CREATE INDEX IF NOT EXISTS roomtide_messages_due ON roomtide_messages (queue, due)",
        )?;
        turn.sqlite().execute("UPDATE roomtide_messages SET due = 0 WHERE queue = ?1", [name])?;
        drop(turn);
        Ok(Arc::new(Self { name: name.to_owned(), turns, sent: Notify::new() }))
    }

    /// The queue's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds messages, all or none.
    pub(crate) fn send(&self, bodies: &[String]) -> anyhow::Result<()> {
        let turn = self.turns.blocking_lock();
        let transaction = turn.sqlite().unchecked_transaction()?;
        for body in bodies {
            transaction
                .prepare_cached("INSERT INTO roomtide_messages (queue, body) VALUES (?1, ?2)")?
                .execute((&self.name, body))?;
        }
        transaction.commit()?;
        self.sent.notify_one();
        Ok(())
    }

    /// Waits until a message is sent; returns at once if one was sent since the last wait.
    pub(crate) async fn sent(&self) {
        self.sent.notified().await;
    }

    /// Receives at most `limit` messages that are due at `now`, oldest first. A message that is neither
    /// removed nor postponed is received again. A message is also due if a clock that was ahead has postponed it.
    pub(crate) fn receive(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> anyhow::Result<Vec<QueuedMessage>> {
        let turn = self.turns.blocking_lock();
        let mut statement = turn.sqlite().prepare_cached(
            "UPDATE roomtide_messages SET receives = receives + 1
             WHERE number IN (SELECT number FROM roomtide_messages
                              WHERE queue = ?1 AND due NOT BETWEEN ?2 + 1 AND ?3
                              ORDER BY number LIMIT ?4)
             RETURNING number, body, receives",
        )?;
        let message = |row: &rusqlite::Row<'_>| {
            Ok(QueuedMessage { number: row.get(0)?, body: row.get(1)?, receives: row.get(2)? })
        };

        let limit = i64::try_from(limit)?;
        let latest = now.saturating_add(MAX_PAUSE).as_millis();
        let messages =
            statement.query_map((&self.name, now.as_millis(), latest, limit), message)?;
        let mut messages: Vec<QueuedMessage> = messages.collect::<Result<_, _>>()?;
        messages.sort_by_key(|message| message.number);
        Ok(messages)
    }

    /// Removes a message.
    pub(crate) fn remove(&self, number: i64) -> anyhow::Result<()> {
        let turn = self.turns.blocking_lock();
        let sql = "DELETE FROM roomtide_messages WHERE number = ?1";
        turn.sqlite().prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    /// Makes a message due at `due`.
    pub(crate) fn postpone(&self, number: i64, due: Timestamp) -> anyhow::Result<()> {
        let turn = self.turns.blocking_lock();
        let sql = "UPDATE roomtide_messages SET due = ?2 WHERE number = ?1";
        turn.sqlite().prepare_cached(sql)?.execute((number, due.as_millis()))?;
        Ok(())
    }

    /// Counts the messages that are not removed.
    pub(crate) fn depth(&self) -> anyhow::Result<u64> {
        let turn = self.turns.blocking_lock();
        let sql = "SELECT COUNT(*) FROM roomtide_messages WHERE queue = ?1";
        let mut statement = turn.sqlite().prepare_cached(sql)?;
        let count: i64 = statement.query_row([&self.name], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }

    /// Returns whether a message is due at `now` or in process.
    pub(crate) fn has_due(&self, now: Timestamp) -> anyhow::Result<bool> {
        let turn = self.turns.blocking_lock();
        let mut statement = turn.sqlite().prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM roomtide_messages
                            WHERE queue = ?1 AND due NOT BETWEEN ?2 + 1 AND ?3)",
        )?;
        let latest = now.saturating_add(MAX_PAUSE).as_millis();
        Ok(statement.query_row((&self.name, now.as_millis(), latest), |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::given::at_second;

    use super::*;
    use crate::Data;
    use crate::engine::Engine;

    fn engine(directory: &Path) -> Engine {
        let data = Data::Dir(directory.to_owned());
        Engine::start(&data, None).unwrap()
    }

    /// What is received, as bodies with how often each was received.
    fn receive(queue: &Queue, seconds: i64, limit: usize) -> Vec<(String, u32)> {
        let messages = queue.receive(at_second(seconds), limit).unwrap().into_iter();
        messages.map(|message| (message.body, message.receives)).collect()
    }

    fn text(messages: &[(&str, u32)]) -> Vec<(String, u32)> {
        messages.iter().map(|(body, receives)| ((*body).to_owned(), *receives)).collect()
    }

    #[test]
    fn a_message_is_received_until_it_is_removed_also_after_a_kill() {
        let directory = tempfile::tempdir().unwrap();
        let first = engine(directory.path());
        let queue = first.queue("a").unwrap();
        queue.send(&["1".to_owned(), "2".to_owned(), "3".to_owned()]).unwrap();

        assert_eq!(receive(&queue, 0, 2), text(&[("1", 1), ("2", 1)]));
        let received = queue.receive(at_second(0), 1).unwrap().remove(0);
        queue.remove(received.number).unwrap();
        queue.postpone(received.number + 1, at_second(60)).unwrap();
        assert_eq!(receive(&queue, 59, 9), text(&[("3", 1)]));
        assert!(
            queue.has_due(at_second(59)).unwrap(),
            "a message that is being processed is not done"
        );

        // The files as a process that is killed now would leave them.
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }

        let second = engine(copy.path());
        let queue = second.queue("a").unwrap();
        assert_eq!(receive(&queue, 0, 9), text(&[("2", 2), ("3", 2)]));
        assert_eq!(receive(&second.queue("b").unwrap(), 0, 9), []);

        second.stop().unwrap();
        first.stop().unwrap();
    }

    #[test]
    fn a_postponed_message_is_not_due() {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(directory.path());
        let queue = engine.queue("a").unwrap();
        assert!(!queue.has_due(at_second(0)).unwrap());

        queue.send(&["1".to_owned()]).unwrap();
        let message = queue.receive(at_second(0), 1).unwrap().remove(0);
        queue.postpone(message.number, at_second(60)).unwrap();
        assert!(!queue.has_due(at_second(59)).unwrap() && queue.has_due(at_second(60)).unwrap());
        assert_eq!(receive(&queue, 60, 9), text(&[("1", 2)]));

        queue.postpone(message.number, at_second(3 * 60 * 60)).unwrap();
        assert!(queue.has_due(at_second(60)).unwrap(), "a clock was ahead");
        assert_eq!(receive(&queue, 60, 9), text(&[("1", 3)]));

        drop(queue);
        engine.stop().unwrap();
    }
}
