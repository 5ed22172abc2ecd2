//! Reads the states of Home Assistant's database. Reads no statistics.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, RowIndex, Statement};

use super::attributes::Attributes;
use super::entity::{self, EntityId};
use super::moment::nanos;
use super::schema::Schema;
use super::storage::Storage;
use crate::sqlite::PointOutput;

/// An hour in nanoseconds.
pub(super) const HOUR: i64 = 3_600_000_000_000;
/// A week in hours.
const WEEK: i64 = 7 * 24;
/// The maximum number of attribute sets that are kept in memory.
const MAX_KEPT: usize = 20_000;

/// The facts about an entity that its states show, for its statistics.
#[derive(Debug, Default)]
pub(super) struct Entity {
    /// The hours since 1970 in which a state became a point.
    pub(super) hours: BTreeSet<i64>,
    /// The attributes of the entity's newest state, and the time of that state.
    pub(super) newest: Option<(i64, Arc<Attributes>)>,
    /// The number that the states have for each `last_reset`, by its instant in seconds.
    pub(super) last_resets: HashMap<i64, f64>,
}

/// The entities of a database by id.
pub(super) type Entities = HashMap<String, Entity>;

/// The query of all states, with the columns that the database has.
fn query_of_states(schema: &Schema) -> String {
    let column = |name| schema.column("states", "s", name);
    format!(
        "SELECT coalesce({}, {}) AS entity_id, s.state AS state, {} AS last_updated_ts, {} AS last_updated, {} AS attributes_id, \
         {} AS attributes, {} AS state_id FROM states s {}",
        schema.column("states_meta", "m", "entity_id"),
        column("entity_id"),
        column("last_updated_ts"),
        column("last_updated"),
        column("attributes_id"),
        column("attributes"),
        column("state_id"),
        schema.join_of_entity_ids(),
    )
}

/// Reads the states and sends their points.
pub(super) fn read(
    connection: &Connection,
    schema: &Schema,
    storage: &Storage,
    output: &PointOutput,
) -> anyhow::Result<Entities> {
    let mut entities = Entities::new();
    if !schema.has_table("states") {
        return Ok(entities);
    }

    let mut statement = connection.prepare(&query_of_states(schema))?;
    let mut shared = SharedAttributes::new(connection, schema)?;
    let mut rows = statement.query([])?;

    while let Some(row) = rows.next()? {
        let state = match EntityState::of(row, &mut shared) {
            Ok(state) => state,
            Err(UnreadState::LeftOut(why)) => {
                output.notes.leave_out(why);
                continue;
            }
            Err(UnreadState::Refused { what, why }) => {
                output.refuse_row(&what, why)?;
                continue;
            }
            Err(UnreadState::Failed(error)) => return Err(error.into()),
        };

        let EntityState { id, text, at, attributes } = state;
        let point = entity::point(&id, &text, &attributes, at, storage.entity(&id));
        let entity = entities.entry(id).or_default();
        match point {
            Ok(point) => {
                entity.note(at, &attributes);
                output.send(point)?;
            }
            Err(why) => output.notes.leave_out(why),
        }
    }

    Ok(entities)
}

/// A state of an entity.
struct EntityState {
    /// The id of the entity.
    id: String,
    text: String,
    /// The time in nanoseconds.
    at: i64,
    attributes: Arc<Attributes>,
}

/// Why a row is not read as a state of an entity.
enum UnreadState {
    /// It is counted with this reason.
    LeftOut(&'static str),
    /// A column has a value of another type.
    Refused { what: String, why: rusqlite::Error },
    /// The database cannot be read.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for UnreadState {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl EntityState {
    /// Reads a row of the query.
    fn of(row: &Row<'_>, shared: &mut SharedAttributes<'_>) -> Result<Self, UnreadState> {
        let Some(id) = text(row, "entity_id")?.filter(|id| EntityId::of(id).is_some()) else {
            return Err(UnreadState::LeftOut("states without an entity"));
        };
        let Some(state) = text(row, "state")? else {
            return Err(UnreadState::LeftOut("states of entities that were removed"));
        };

        let (seconds, attributes_id) = match (row.get("last_updated_ts"), row.get("attributes_id"))
        {
            (Ok(seconds), Ok(attributes_id)) => (seconds, attributes_id),
            (Err(why), _) | (_, Err(why)) => {
                let state_id = text(row, "state_id")?.unwrap_or_default();
                let what = format!("state {state_id} of {id}");
                return Err(UnreadState::Refused { what, why });
            }
        };
        let Some(at) = nanos(seconds, text(row, "last_updated")?.as_deref()) else {
            return Err(UnreadState::LeftOut("states without a time"));
        };

        let attributes = match attributes_id {
            Some(id) => shared.attributes(id)?,
            None => text(row, "attributes")?.map(|json| Arc::new(Attributes::of(&json))),
        };
        Ok(Self { id, text: state, at, attributes: attributes.unwrap_or_default() })
    }
}

impl Entity {
    /// Whether the entity had only means at that hour: it has no state in the week before. A single hour without a
    /// state does not show that, because a state is written only when it changes.
    pub(super) fn is_long_before_states(&self, hour: i64) -> bool {
        self.hours.range(hour - WEEK..hour).next().is_none()
    }

    fn note(&mut self, at: i64, attributes: &Arc<Attributes>) {
        self.hours.insert(at.div_euclid(HOUR));
        if self.newest.as_ref().is_none_or(|(newest, _)| *newest <= at) {
            self.newest = Some((at, Arc::clone(attributes)));
        }
        self.last_resets.extend(attributes.last_reset);
    }
}

/// Returns a text, even if its bytes are not UTF-8.
pub(super) fn text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// Attribute sets, which several states share.
struct SharedAttributes<'a> {
    statement: Option<Statement<'a>>,
    kept: HashMap<i64, Option<Arc<Attributes>>>,
}

impl<'a> SharedAttributes<'a> {
    fn new(connection: &'a Connection, schema: &Schema) -> rusqlite::Result<Self> {
        let query = "SELECT shared_attrs FROM state_attributes WHERE attributes_id = ?1";
        let has_table = schema.has_table("state_attributes");
        let statement = has_table.then(|| connection.prepare(query)).transpose()?;
        Ok(Self { statement, kept: HashMap::new() })
    }

    fn attributes(&mut self, id: i64) -> rusqlite::Result<Option<Arc<Attributes>>> {
        let Some(statement) = &mut self.statement else { return Ok(None) };
        if let Some(known) = self.kept.get(&id) {
            return Ok(known.clone());
        }

        let mut rows = statement.query([id])?;
        let json = rows.next()?.map(|row| text(row, 0)).transpose()?.flatten();
        let attributes = json.map(|json| Arc::new(Attributes::of(&json)));

        if self.kept.len() == MAX_KEPT {
            self.kept.clear();
        }
        self.kept.insert(id, attributes.clone());
        Ok(attributes)
    }
}
