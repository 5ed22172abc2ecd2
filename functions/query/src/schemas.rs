//! The schemas of answers for the document of the API, which the package `tests` makes. Not in deployed functions.

use schemars::{JsonSchema, SchemaGenerator};
use tariffs::WrittenTariff;

use crate::alerts::history::ToldRow;
use crate::answer::rows::{
    AnnotationRow, DeviceRow, HomeRow, LatestRow, ReadingRow, RoomRow, StayRow,
};
use crate::conditions_schema::Shown;
use crate::registry::search::question::SearchPlan;
use crate::series::answer::energy::{EnergyRow, EnergySummary};
use crate::series::answer::rows::{SeriesRow, SeriesSummary};
use crate::series::conditions::answer::{ConditionsSummary, EpisodeRow};
use crate::series::cost::answer::{CostRow, CostSummary};
use crate::series::events;
use crate::sources::rows::{SourceRow, SourceRows};
use crate::sources::trial::TestAnswer;
use crate::tariffs::{TariffRow, TariffRows};
use crate::tokens::Issued;

/// Rows, and members that describe them.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "its schema alone is used")]
struct Rows<R, A> {
    data: Vec<R>,
    #[schemars(flatten)]
    about: A,
}

/// Adds the schema of each answer that has a type, by the name that an endpoint gives it.
pub fn add_to(generator: &mut SchemaGenerator) {
    generator.subschema_for::<AnnotationRow<'_>>();
    generator.subschema_for::<DeviceRow<'_>>();
    generator.subschema_for::<HomeRow<'_>>();
    generator.subschema_for::<Issued<'_>>();
    generator.subschema_for::<LatestRow<'_>>();
    generator.subschema_for::<SearchPlan>();
    generator.subschema_for::<ReadingRow<'_>>();
    generator.subschema_for::<RoomRow<'_>>();
    generator.subschema_for::<Shown<'_>>();
    generator.subschema_for::<SourceRow<'_>>();
    generator.subschema_for::<SourceRows<'_>>();
    generator.subschema_for::<StayRow<'_>>();
    generator.subschema_for::<TariffRow>();
    generator.subschema_for::<TariffRows>();
    generator.subschema_for::<WrittenTariff>();
    generator.subschema_for::<TestAnswer>();
    generator.subschema_for::<ToldRow<'_>>();

    add_rows::<EpisodeRow<'_>, ConditionsSummary<'_>>(generator, "Conditions");
    add_rows::<CostRow<'_>, CostSummary<'_>>(generator, "Cost");
    add_rows::<SeriesRow<'_>, SeriesSummary<'_>>(generator, "Series");
    add_rows::<EnergyRow<'_>, EnergySummary<'_>>(generator, "Energy");
    add_rows::<::series::CounterStep, events::More>(generator, "Events");
}

fn add_rows<R: JsonSchema, A: JsonSchema>(generator: &mut SchemaGenerator, name: &str) {
    let schema = Rows::<R, A>::json_schema(generator);
    generator.definitions_mut().insert(name.to_owned(), schema.into());
}
