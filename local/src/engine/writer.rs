//! The engine's second connection: group commit for `BatchWriteItem` and `BatchExecuteStatement`. Performs no other
//! operation.
//!
//! The engine writes each item of a batch in a transaction of its own, which is most of an item's cost. Here all
//! waiting requests share one transaction: they are performed one after the other, committed together and only then
//! answered.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use dynoxide::DynoxideError;
use dynoxide::actions::batch_execute_statement::{
    self, BatchExecuteStatementRequest, BatchExecuteStatementResponse,
};
use dynoxide::actions::batch_write_item::{self, BatchWriteItemRequest, BatchWriteItemResponse};
use dynoxide::storage::Storage;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use serde::Serialize;
use tokio::sync::{Mutex, mpsc, oneshot};

/// The maximum number of requests in a transaction, so that the first does not wait long for the last.
const MAX_GROUP: usize = 32;

/// Error codes of statements that are refused before they write anything.
const WRITES_NOTHING: [&str; 4] =
    ["ConditionalCheckFailed", "DuplicateItem", "ResourceNotFound", "ValidationError"];

/// A request for one of the two batch operations.
pub(super) enum BatchRequest {
    Items(BatchWriteItemRequest),
    Statements(BatchExecuteStatementRequest),
}

/// The answer to a request for a batch operation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum BatchAnswer {
    Items(BatchWriteItemResponse),
    Statements(BatchExecuteStatementResponse),
}

/// A waiting request, and the channel for its answer.
struct Job {
    request: BatchRequest,
    answer: oneshot::Sender<dynoxide::Result<BatchAnswer>>,
}

/// The writer's connection, behind a lock: one user at a time.
///
/// Whatever writes to the file takes this lock. `SQLite` would also keep writers apart, but by polling with ever longer
/// pauses; this lock is fair.
pub(super) type Turns = Arc<Mutex<WriterConnection>>;

/// Performs the requests on a thread of its own.
pub(super) struct Writer {
    jobs: mpsc::UnboundedSender<Job>,
}

impl Writer {
    /// Starts the thread, which ends when the writer is dropped.
    pub(super) fn start(turns: Turns) -> anyhow::Result<(Self, JoinHandle<()>)> {
        let (jobs, mut waiting) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let thread =
            std::thread::Builder::new().name("engine-writer".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    let mut group = Vec::with_capacity(MAX_GROUP);
                    while waiting.recv_many(&mut group, MAX_GROUP).await > 0 {
                        let connection = turns.lock().await;
                        connection.perform(&mut group).await;
                    }
                });
            })?;
        Ok((Self { jobs }, thread))
    }

    /// Performs a request; `Ok` means that all its items are in the write-ahead log.
    pub(super) async fn write(&self, request: BatchRequest) -> dynoxide::Result<BatchAnswer> {
        let (answer, answered) = oneshot::channel();
        let gone =
            || DynoxideError::InternalServerError("the engine's writer has ended".to_owned());
        self.jobs.send(Job { request, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// The connection that writes. Whoever has the lock of [`Turns`] may use it.
pub(super) struct WriterConnection {
    file: PathBuf,
    storage: Storage,
    in_group: Arc<AtomicBool>,
}

impl WriterConnection {
    /// Opens a file that the engine has created.
    pub(super) fn open(file: PathBuf) -> anyhow::Result<Self> {
        let storage = Storage::new(file.to_str().context("its path is not Unicode")?)?;
        storage.disable_bulk_loading()?;
        // Data for rolling back a savepoint are kept in memory, not in a temporary file.
        storage.conn().pragma_update(None, "temp_store", "MEMORY")?;
        // Without this index every write scans all records of the stream to number the next one.
        storage.conn().execute_batch(
            "CREATE INDEX IF NOT EXISTS roomtide_stream_order
             ON _stream_records (table_name, CAST(sequence_number AS INTEGER))",
        )?;

        let in_group = Arc::new(AtomicBool::new(false));
        // While a group is written, the engine's own BEGIN and COMMIT compile to statements that do nothing.
        let ignored = Arc::clone(&in_group);
        storage.conn().authorizer(Some(move |context: AuthContext<'_>| match context.action {
            AuthAction::Transaction { .. } if ignored.load(Ordering::Relaxed) => {
                Authorization::Ignore
            }
            _ => Authorization::Allow,
        }));

        Ok(Self { file, storage, in_group })
    }

    pub(super) fn sqlite(&self) -> &Connection {
        self.storage.conn()
    }

    /// The stored JSON of an item, by its keys in the engine's encoding.
    pub(super) fn item(&self, table: &str, pk: &str, sk: &str) -> anyhow::Result<Option<String>> {
        Ok(self.storage.get_item(table, pk, sk)?)
    }

    /// Opens the connection again, because it caches the definitions of tables. Needed after a table was created,
    /// changed or deleted.
    pub(super) fn reopen(&mut self) -> anyhow::Result<()> {
        *self = Self::open(self.file.clone())?;
        Ok(())
    }

    /// Performs all requests of a group and answers them.
    async fn perform(&self, group: &mut Vec<Job>) {
        let (requests, waiting): (Vec<_>, Vec<_>) =
            group.drain(..).map(|job| (job.request, job.answer)).unzip();

        match self.commit(requests).await {
            Ok(answers) => {
                for (waiting, answer) in waiting.into_iter().zip(answers) {
                    // The client may have disconnected meanwhile.
                    let _ = waiting.send(answer);
                }
            }
            Err(error) => {
                // Without a transaction there is nothing to roll back.
                let _ = self.sqlite().execute_batch("ROLLBACK");
                for waiting in waiting {
                    let error = DynoxideError::InternalServerError(error.to_string());
                    let _ = waiting.send(Err(error));
                }
            }
        }
    }

    /// Performs the requests in one transaction. An error means that nothing is stored.
    async fn commit(
        &self,
        requests: Vec<BatchRequest>,
    ) -> dynoxide::Result<Vec<dynoxide::Result<BatchAnswer>>> {
        let sqlite = self.sqlite();
        sqlite.execute_batch("BEGIN IMMEDIATE")?;

        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            sqlite.execute_batch("SAVEPOINT request")?;
            self.in_group.store(true, Ordering::Relaxed);
            let answer = self.execute(request).await;
            self.in_group.store(false, Ordering::Relaxed);

            if answer.is_err() {
                // Fails if SQLite has rolled back the whole transaction, for example because the disk is full.
                sqlite.execute_batch("ROLLBACK TO request")?;
            }
            sqlite.execute_batch("RELEASE request")?;
            answers.push(answer);
        }

        sqlite.execute_batch("COMMIT")?;
        Ok(answers)
    }

    async fn execute(&self, request: BatchRequest) -> dynoxide::Result<BatchAnswer> {
        match request {
            BatchRequest::Items(request) => {
                batch_write_item::execute(&self.storage, request).await.map(BatchAnswer::Items)
            }
            BatchRequest::Statements(request) => {
                let answer = batch_execute_statement::execute(&self.storage, request).await?;

                // The engine does not undo the writes of a failed statement, so the whole request fails here.
                let errors = answer.responses.iter().filter_map(|response| response.error.as_ref());
                let mut halfway =
                    errors.filter(|error| !WRITES_NOTHING.contains(&error.code.as_str()));
                match halfway.next() {
                    Some(error) => Err(DynoxideError::InternalServerError(error.message.clone())),
                    None => Ok(BatchAnswer::Statements(answer)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dynoxide::Database;
    use dynoxide::actions::get_item::GetItemRequest;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::engine::stream::Stream;
    use crate::table_definition::create_request;
    use table::layout::Layout;

    const TABLE: &str = "readings";

    struct Fixture {
        database: Database,
        turns: Turns,
        stream: Stream,
        _directory: TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("db");
            let database = Database::new(file.to_str().unwrap()).unwrap();
            let table = create_request(TABLE, Layout::default());
            database.create_table(parsed(table)).unwrap();
            let turns = Arc::new(Mutex::new(WriterConnection::open(file).unwrap()));
            let stream = Stream::open(&database, Arc::clone(&turns), TABLE).unwrap();
            Self { database, turns, stream, _directory: directory }
        }

        /// Performs requests as one group.
        fn perform(&self, requests: Vec<Value>) -> Vec<dynoxide::Result<BatchAnswer>> {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (mut group, answers): (Vec<_>, Vec<_>) = requests
                .into_iter()
                .map(|request| {
                    let (answer, answered) = oneshot::channel();
                    let request = match request.get("Statements") {
                        Some(_) => BatchRequest::Statements(parsed(request)),
                        None => BatchRequest::Items(parsed(request)),
                    };
                    (Job { request, answer }, answered)
                })
                .unzip();

            runtime.block_on(async { self.turns.lock().await.perform(&mut group).await });
            answers.into_iter().map(|answer| answer.blocking_recv().unwrap()).collect()
        }

        fn has(&self, sk: &str) -> bool {
            let key = json!({"TableName": TABLE, "Key": {"pk": {"S": "d"}, "sk": {"S": sk}}});
            let request: GetItemRequest = parsed(key);
            self.database.get_item(request).unwrap().item.is_some()
        }

        /// The sort keys of the stream's records, oldest first.
        fn recorded(&self) -> Vec<String> {
            let records = self.stream.read(0, 1_000).unwrap();
            assert!(records.windows(2).all(|pair| pair[0].number < pair[1].number));
            let key =
                |event: &Value| event["dynamodb"]["Keys"]["sk"]["S"].as_str().map(str::to_owned);
            records.iter().map(|record| key(&record.event).unwrap()).collect()
        }

        /// Has the record of an item whose key has `bad` in it fail.
        fn refuse_bad(&self, raised: &str) {
            self.sql(&format!(
                "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main._stream_records WHEN NEW.keys_json LIKE '%bad%'
                 BEGIN SELECT RAISE({raised}); END"
            ));
        }

        fn sql(&self, sql: &str) {
            self.turns.blocking_lock().sqlite().execute_batch(sql).unwrap();
        }
    }

    fn parsed<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn puts(keys: &[&str]) -> Value {
        let put = |sk: &&str| {
            let item = json!({"pk": {"S": "d"}, "sk": {"S": sk}, "text": {"S": "x".repeat(1_000)}});
            json!({"PutRequest": {"Item": item}})
        };
        let puts: Vec<Value> = keys.iter().map(put).collect();
        json!({"RequestItems": {TABLE: puts}, "ReturnConsumedCapacity": "TOTAL"})
    }

    #[test]
    fn a_group_answers_each_request_for_itself() {
        let fixture = Fixture::new();
        let unknown = json!({"RequestItems": {"unknown": puts(&["c"])["RequestItems"][TABLE]}});
        let answers =
            fixture.perform(vec![puts(&["a"]), unknown, puts(&["d", "d"]), puts(&["b", "e"])]);

        let units = |answer: &BatchWriteItemResponse| {
            Some(answer.consumed_capacity.as_ref()?[0].capacity_units)
        };
        let of = |answer: &dynoxide::Result<BatchAnswer>| match answer {
            Ok(BatchAnswer::Items(answer)) => units(answer),
            _ => None,
        };

        let alone = fixture.database.batch_write_item(parsed(puts(&["f", "g"]))).unwrap();
        assert_eq!(of(&answers[3]), units(&alone));
        assert_eq!(of(&answers[0]).map(|units| units * 2.0), units(&alone));

        let status = |answer: &dynoxide::Result<BatchAnswer>| {
            answer.as_ref().err().map(DynoxideError::status_code)
        };
        assert_eq!(
            answers.iter().map(status).collect::<Vec<_>>(),
            [None, Some(400), Some(400), None]
        );
        assert_eq!(fixture.recorded(), ["a", "b", "e", "f", "g"]);
    }

    fn inserts(keys: &[&str]) -> Value {
        let insert = |sk: &&str| {
            let item = json!([{"S": "d"}, {"S": sk}, {"N": "1"}]);
            let statement = format!("INSERT INTO \"{TABLE}\" VALUE {{'pk': ?, 'sk': ?, 'n': ?}}");
            json!({"Statement": statement, "Parameters": item})
        };
        json!({"Statements": keys.iter().map(insert).collect::<Vec<_>>()})
    }

    /// Which statements of an answer have stored their item.
    fn inserted(answer: &dynoxide::Result<BatchAnswer>) -> Option<Vec<bool>> {
        let Ok(BatchAnswer::Statements(answer)) = answer else { return None };
        Some(answer.responses.iter().map(|it| it.error.is_none()).collect())
    }

    #[test]
    fn statements_share_the_transaction_and_each_is_answered_for_itself() {
        let fixture = Fixture::new();
        assert!(fixture.perform(vec![puts(&["b"])])[0].is_ok());

        let answers = fixture.perform(vec![
            inserts(&["a", "b", "c"]),
            inserts(&["d", "d"]),
            puts(&["c", "e"]),
            inserts(&["e", "f"]),
        ]);

        let found: Vec<_> = answers.iter().map(inserted).collect();
        let none = None;
        let first = Some(vec![true, false, true]);
        assert_eq!(found, [first, none.clone(), none, Some(vec![false, true])]);
        assert_eq!(fixture.recorded(), ["b", "a", "c", "c", "e", "f"]);
    }

    #[test]
    fn statements_of_which_one_fails_halfway_leave_nothing() {
        let fixture = Fixture::new();
        fixture.refuse_bad("ABORT, 'refused'");
        let answers = fixture.perform(vec![inserts(&["a", "bad", "b"]), inserts(&["c"])]);
        assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
        assert_eq!(fixture.recorded(), ["c"]);
        assert!(!fixture.has("a") && !fixture.has("bad") && fixture.has("c"));
    }

    #[test]
    fn a_request_that_fails_halfway_leaves_nothing_and_the_others_stay() {
        let fixture = Fixture::new();
        fixture.refuse_bad("ABORT, 'refused'");
        let answers = fixture.perform(vec![puts(&["a"]), puts(&["b", "bad"]), puts(&["c"])]);
        assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(fixture.recorded(), ["a", "c"]);
        assert!(fixture.has("a") && !fixture.has("b") && fixture.has("c"));
    }

    #[test]
    fn when_the_transaction_is_lost_no_request_is_acknowledged() {
        let fixture = Fixture::new();
        fixture.refuse_bad("ROLLBACK, 'disk full'");
        let answers = fixture.perform(vec![puts(&["a"]), puts(&["bad"]), puts(&["c"])]);
        assert!(
            answers.iter().all(|answer| answer.as_ref().is_err_and(|e| e.status_code() == 500))
        );
        assert!(fixture.recorded().is_empty() && !fixture.has("a") && !fixture.has("c"));
        assert!(fixture.perform(vec![puts(&["d"])])[0].is_ok());
        assert_eq!(fixture.recorded(), ["d"]);
    }

    #[test]
    fn a_full_disk_is_an_error_and_not_the_end() {
        let fixture = Fixture::new();
        let pages = |turns: &Turns| -> i64 {
            let turn = turns.blocking_lock();
            turn.sqlite().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap()
        };
        fixture.sql(&format!("PRAGMA max_page_count = {}", pages(&fixture.turns) + 5));

        let keys: Vec<String> = (0..25).map(|n| n.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let answers = fixture.perform(vec![puts(&["a"]), puts(&keys), puts(&["b"])]);

        assert!(answers[1].is_err());
        let stored = ["a", "b"].map(|key| fixture.has(key));
        assert_eq!(stored, [answers[0].is_ok(), answers[2].is_ok()]);
        assert!(keys.iter().all(|key| !fixture.has(key)));

        fixture.sql("PRAGMA max_page_count = 4000");
        assert!(fixture.perform(vec![puts(&keys)])[0].is_ok());
    }

    #[test]
    fn the_engines_own_writes_go_on_between_groups() {
        let fixture = Fixture::new();
        let item = |sk: &str| puts(&[sk])["RequestItems"][TABLE][0]["PutRequest"]["Item"].take();
        for (grouped, own) in [("a", "b"), ("c", "d")] {
            assert!(fixture.perform(vec![puts(&[grouped])])[0].is_ok());
            let put = json!({"TableName": TABLE, "Item": item(own)});
            fixture.database.put_item(parsed(put)).unwrap();
        }
        assert_eq!(fixture.recorded(), ["a", "b", "c", "d"]);
        fixture.stream.set_consumers(&["one"]).unwrap();
        fixture.stream.advance("one", i64::MAX).unwrap();
        assert_eq!(fixture.recorded(), ["d"]);
    }

    #[test]
    fn a_table_that_was_made_anew_is_written_as_it_is_now() {
        let fixture = Fixture::new();
        assert!(fixture.perform(vec![puts(&["a"])])[0].is_ok());

        fixture.database.delete_table(parsed(json!({"TableName": TABLE}))).unwrap();
        let key = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
        let request = json!({
            "TableName": TABLE, "KeySchema": key, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        });
        fixture.database.create_table(parsed(request)).unwrap();
        fixture.turns.blocking_lock().reopen().unwrap();

        assert!(fixture.perform(vec![puts(&["b"])])[0].is_err());
        let put = json!({"PutRequest": {"Item": {"id": {"S": "x"}}}});
        assert!(fixture.perform(vec![json!({"RequestItems": {TABLE: [put]}})])[0].is_ok());
    }
}
