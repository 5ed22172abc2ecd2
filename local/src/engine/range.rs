//! Answers a `Query` between two sort keys from the rows of the engine's file. Leaves every other query to the engine.
//!
//! The file holds each item as the JSON that an answer needs. The engine parses the JSON into a map, copies the map and
//! writes JSON again, which took more than half of the time of a chart on one machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dynamodb::{BETWEEN, BETWEEN_NAMES};
use dynoxide::types::read_capacity_units_with_consistency;
use rusqlite::{Connection, OpenFlags, named_params};
use serde::Deserialize;
use serde_json::json;
use table::keys::{PK, SK};

/// The size limit of a page of a `Query`. Source:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html>
const MAX_PAGE_BYTES: usize = 1 << 20;

/// A read-only connection to the engine's file.
pub(super) struct Ranges {
    connection: Mutex<Connection>,
    table: &'static str,
}

/// The body of a `Query` that is answered here. A body with any further member goes to the engine.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Asked {
    table_name: String,
    key_condition_expression: String,
    expression_attribute_names: HashMap<String, String>,
    expression_attribute_values: HashMap<String, TextValue>,
    scan_index_forward: Option<bool>,
    consistent_read: Option<bool>,
    limit: Option<usize>,
    exclusive_start_key: Option<HashMap<String, TextValue>>,
    return_consumed_capacity: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextValue {
    #[serde(rename = "S")]
    text: String,
}

/// The range of rows to read. Keys are text, with the prefix that the engine gives text keys.
struct RowRange {
    pk: String,
    first: String,
    last: String,
    /// The sort key after which the page begins.
    after: Option<String>,
    is_ascending: bool,
    is_consistent: bool,
    limit: usize,
}

impl Ranges {
    /// Opens a file that the engine has created, to read the rows of `table`.
    pub(super) fn open(file: &Path, table: &'static str) -> anyhow::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        Ok(Self { connection: Mutex::new(connection), table })
    }

    /// The answer to a `Query`; `None` if the engine has to answer, because the request has another form or fails.
    pub(super) fn answer(&self, body: &[u8]) -> Option<String> {
        let wanted = self.wanted(serde_json::from_slice(body).ok()?)?;
        self.read(&wanted).ok()
    }

    fn wanted(&self, mut asked: Asked) -> Option<RowRange> {
        let values = &mut asked.expression_attribute_values;
        let names = BETWEEN_NAMES.map(str::to_owned).into_iter().zip([PK, SK].map(str::to_owned));
        let is_range = asked.table_name == self.table
            && asked.key_condition_expression == BETWEEN
            && asked.expression_attribute_names == names.collect()
            && values.len() == 3
            && asked.return_consumed_capacity.as_deref() == Some("TOTAL");

        let key = |values: &mut HashMap<String, TextValue>, name: &str| {
            values
                .remove(name)
                .filter(|value| !value.text.is_empty())
                .map(|value| format!("S:{}", value.text))
        };
        let (pk, first, last) = (key(values, ":p")?, key(values, ":a")?, key(values, ":b")?);

        let after = match asked.exclusive_start_key {
            None => None,
            Some(mut start) => {
                let (of, after) = (key(&mut start, PK)?, key(&mut start, SK)?);
                // A start key outside the range is an error, which the engine reports in `DynamoDB`'s form.
                let is_within = of == pk && first <= after && after <= last && start.is_empty();
                Some(is_within.then_some(after)?)
            }
        };

        let limit = asked.limit.unwrap_or(i32::MAX as usize);
        (is_range && first <= last && limit > 0).then_some(RowRange {
            pk,
            first,
            last,
            after,
            is_ascending: asked.scan_index_forward.unwrap_or(true),
            is_consistent: asked.consistent_read.unwrap_or(false),
            limit,
        })
    }

    fn read(&self, wanted: &RowRange) -> rusqlite::Result<String> {
        let (order, beyond) = if wanted.is_ascending { ("ASC", ">") } else { ("DESC", "<") };
        let statement = format!(
            "SELECT sk, item_json, item_size FROM \"{}\" WHERE pk = :pk AND sk BETWEEN :first AND :last
             AND (:after IS NULL OR sk {beyond} :after) ORDER BY sk {order} LIMIT :limit",
            self.table,
        );
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare_cached(&statement)?;

        // The bounds begin at the start key, so that SQLite reads no row before it.
        let (first, last) = match &wanted.after {
            Some(after) if wanted.is_ascending => (after, &wanted.last),
            Some(after) => (&wanted.first, after),
            None => (&wanted.first, &wanted.last),
        };
        let mut rows = statement.query(named_params! {
            ":pk": wanted.pk, ":first": first, ":last": last, ":after": wanted.after,
            ":limit": wanted.limit,
        })?;

        let mut answer = String::from("{\"Items\":[");
        let (mut count, mut bytes, mut last_read) = (0, 0, None);
        let mut has_more = false;
        while let Some(row) = rows.next()? {
            let size = row.get::<_, usize>(2)?;
            if count > 0 && bytes + size > MAX_PAGE_BYTES {
                has_more = true;
                break;
            }

            if count > 0 {
                answer.push(',');
            }
            answer.push_str(row.get_ref(1)?.as_str()?);
            last_read = Some(row.get::<_, String>(0)?);
            bytes += size;
            count += 1;
        }
        // As in DynamoDB, a page that reaches the limit has a start key for the next page, even if that page is empty.
        has_more |= count == wanted.limit;

        let units = read_capacity_units_with_consistency(bytes, wanted.is_consistent);
        let consumed = json!({"TableName": self.table, "CapacityUnits": units});
        write!(
            answer,
            "],\"Count\":{count},\"ScannedCount\":{count},\"ConsumedCapacity\":{consumed}"
        )
        .expect("a text can be written to");

        if let Some(sk) = last_read.filter(|_| has_more) {
            let text = |key: &str| json!({"S": key.strip_prefix("S:").unwrap_or(key)});
            let key = json!({PK: text(&wanted.pk), SK: text(&sk)});
            write!(answer, ",\"LastEvaluatedKey\":{key}").expect("a text can be written to");
        }
        answer.push('}');
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use dynoxide::{Database, ImportOptions};
    use serde_json::Value;

    use super::*;
    use crate::table_definition::create_request;
    use table::layout::Layout;

    const TABLE: &str = "table";

    fn opened() -> (tempfile::TempDir, Database, Ranges) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("db");
        let database = Database::new(file.to_str().unwrap()).unwrap();
        let request = create_request(TABLE, Layout::default());
        database.create_table(serde_json::from_value(request).unwrap()).unwrap();
        let ranges = Ranges::open(&file, TABLE).unwrap();
        (directory, database, ranges)
    }

    fn asked(pk: &str, first: &str, last: &str) -> Value {
        json!({
            "TableName": TABLE,
            "KeyConditionExpression": BETWEEN,
            "ExpressionAttributeNames": {BETWEEN_NAMES[0]: "pk", BETWEEN_NAMES[1]: "sk"},
            "ExpressionAttributeValues": {":p": {"S": pk}, ":a": {"S": first}, ":b": {"S": last}},
            "ReturnConsumedCapacity": "TOTAL",
        })
    }

    fn of_engine(database: &Database, asked: &Value) -> Value {
        let answer = database.query(serde_json::from_value(asked.clone()).unwrap());
        serde_json::to_value(answer.unwrap()).unwrap()
    }

    #[test]
    fn it_answers_what_the_engine_answers() {
        let (_directory, database, ranges) = opened();
        let mut random = fastrand::Rng::with_seed(7);

        // Of one partition all fits into a page; those of the other are large enough for several.
        let keys: Vec<String> = (0..120).map(|n| format!("TS#{n:03} \"é\\\u{1f525}")).collect();
        for (pk, most) in [("a\"b", 300), ("large", 12_000)] {
            for (n, sk) in keys.iter().enumerate() {
                let item = json!({
                    "pk": {"S": pk}, "sk": {"S": sk}, "m": {"N": format!("{n}.50")}, "none": {"NULL": true},
                    "text": {"S": "ü\n".repeat(random.usize(0..most))}, "yes": {"BOOL": true},
                    "list": {"L": [{"N": "1e3"}, {"M": {"b": {"B": "AAE="}}}]}, "set": {"SS": ["b", "a"]},
                });

                if random.bool() {
                    let put = json!({"TableName": TABLE, "Item": item});
                    database.put_item(serde_json::from_value(put).unwrap()).unwrap();
                } else {
                    let item = serde_json::from_value(item).unwrap();
                    database.import_items(TABLE, vec![item], ImportOptions::default()).unwrap();
                }
            }
        }

        let mut pages = 0;
        for _ in 0..150 {
            let pk = *random.choice(["a\"b", "large", "none"].iter()).unwrap();
            let mut place = || match random.u8(0..4) {
                0 => "TS#".to_owned(),
                1 => format!("TS#{:03}", random.u8(0..130)),
                _ => random.choice(&keys).unwrap().clone(),
            };
            let (one, two) = (place(), place());

            let mut asked = asked(pk, (&one).min(&two), (&one).max(&two));
            asked["ScanIndexForward"] = random.bool().into();
            asked["ConsistentRead"] = random.bool().into();
            if random.bool() {
                asked["Limit"] = random.u8(1..50).into();
            }

            loop {
                let answer = ranges.answer(asked.to_string().as_bytes()).expect("a range");
                let answer: Value = serde_json::from_str(&answer).unwrap();
                let mut expected = of_engine(&database, &asked);
                // The engine also counts the item that no longer fitted.
                expected["ScannedCount"] = expected["Count"].clone();
                assert!(answer == expected, "{asked}");

                let Some(key) = answer.get("LastEvaluatedKey") else { break };
                asked["ExclusiveStartKey"] = key.clone();
                pages += 1;
            }
        }
        assert!(pages > 80, "{pages}");
    }

    #[test]
    fn what_was_written_over_another_connection_is_there() {
        let (_directory, database, ranges) = opened();
        let question = asked("p", "a", "z").to_string();
        for n in 1..=3 {
            let item = json!({"pk": {"S": "p"}, "sk": {"S": format!("k{n}")}});
            let put = json!({"TableName": TABLE, "Item": item});
            database.put_item(serde_json::from_value(put).unwrap()).unwrap();
            let answer: Value =
                serde_json::from_str(&ranges.answer(question.as_bytes()).unwrap()).unwrap();
            assert_eq!(answer["Count"], n);
        }
    }

    #[test]
    fn other_questions_are_left_to_the_engine() {
        let (_directory, database, ranges) = opened();
        let whole = asked("p", "a", "z");
        assert!(ranges.answer(whole.to_string().as_bytes()).is_some());

        let with = |path: &str, value: Value| {
            let mut other = whole.clone();
            match other.pointer_mut(path) {
                Some(member) => *member = value,
                None => other[&path[1..]] = value,
            }
            other.to_string()
        };
        let names = |part: usize| format!("/ExpressionAttributeNames/{}", BETWEEN_NAMES[part]);

        for other in [
            with("/TableName", "other".into()),
            with("/KeyConditionExpression", BETWEEN.replace("BETWEEN", "NOT BETWEEN").into()),
            with(&names(1), "room".into()),
            with(&names(0), "sk".into()),
            with("/ExpressionAttributeValues/:a", json!({"N": "1"})),
            with("/ExpressionAttributeValues/:a", json!({"S": ""})),
            with("/ExpressionAttributeValues/:a", json!({"S": "zz"})),
            with("/ExpressionAttributeValues/:a", json!({"S": "a", "N": "1"})),
            with("/IndexName", "by-room".into()),
            with("/FilterExpression", "attribute_exists(m)".into()),
            with("/ProjectionExpression", "m".into()),
            with("/Select", "COUNT".into()),
            with("/Limit", 0.into()),
            with("/Limit", (-1).into()),
            with("/ReturnConsumedCapacity", "INDEXES".into()),
            with("/ExclusiveStartKey", json!({"pk": {"S": "q"}, "sk": {"S": "b"}})),
            with("/ExclusiveStartKey", json!({"pk": {"S": "p"}, "sk": {"S": "zz"}})),
            with("/ExclusiveStartKey", json!({"pk": {"S": "p"}})),
            with(
                "/ExclusiveStartKey",
                json!({"pk": {"S": "p"}, "sk": {"S": "b"}, "c": {"S": "d"}}),
            ),
            String::new(),
            "{}".to_owned(),
        ] {
            assert_eq!(ranges.answer(other.as_bytes()), None, "{other}");
        }

        // A table that is gone is the engine's to tell.
        let table = json!({"TableName": TABLE});
        database.delete_table(serde_json::from_value(table).unwrap()).unwrap();
        assert_eq!(ranges.answer(whole.to_string().as_bytes()), None);
    }
}
