//! `GET` and `PUT /conditions/schema`: the metrics of the conditions index. Rebuilds no index.

use api::{Problem, ProblemKind, Response, body};
use domain::{
    ConditionsSchema, Decimal, Encoding, MAX_SCHEMA_VERSION, MetricName, SchemaMetric, Timestamp,
    excerpt,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use table::{Expected, Session, StoredSchema};

use crate::ports::Store;
use crate::shared_state::Call;

/// The maximum size of a body. A schema of eight metrics with 65 knots each is smaller.
const MAX_BODY: usize = 64 << 10;
/// The number of bits in which a metric's mean is encoded, if the request does not say.
const DEFAULT_BITS: u8 = 12;

/// The body: a schema of the conditions index, as a person writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaBody {
    metrics: Vec<NewMetric>,
}

#[derive(Deserialize)]
#[serde(try_from = "MetricBody")]
struct NewMetric(SchemaMetric);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricBody {
    metric: MetricName,
    encoding: Option<String>,
    domain: Option<Vec<DomainBound>>,
    bits: Option<Decimal>,
}

/// A bound of a metric's domain.
enum DomainBound {
    Number(Decimal),
    Time(Timestamp),
}

impl<'de> Deserialize<'de> for DomainBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        let bound = if value.get().starts_with('"') {
            Timestamp::deserialize(&*value).map(Self::Time)
        } else {
            Decimal::deserialize(&*value).map(Self::Number)
        };
        bound.map_err(serde::de::Error::custom)
    }
}

impl TryFrom<MetricBody> for NewMetric {
    type Error = String;

    fn try_from(body: MetricBody) -> Result<Self, String> {
        let MetricBody { metric: name, encoding, domain, bits } = body;
        let whole = |bits: &Decimal| {
            let why = || format!("bits: is {bits}; expected a whole number from 1 to 32");
            bits.as_str().parse().map_err(|_| why())
        };
        let bits = bits.as_ref().map_or(Ok(DEFAULT_BITS), whole)?;
        let encoding = encoding_of(encoding.as_deref().unwrap_or("decimal"), domain)?;
        Ok(Self(SchemaMetric { name, encoding, bits }))
    }
}

fn encoding_of(name: &str, domain: Option<Vec<DomainBound>>) -> Result<Encoding, String> {
    let number = |bound| match bound {
        DomainBound::Number(number) => Some(number),
        DomainBound::Time(_) => None,
    };

    match (name, domain) {
        ("decimal" | "time", None) => Err("domain: is missing".to_owned()),
        ("decimal", Some(knots)) => {
            let knots = knots.into_iter().map(number).collect::<Option<_>>();
            Ok(Encoding::Decimal(knots.ok_or("domain: decimal takes numbers")?))
        }
        ("time", Some(ends)) => match ends[..] {
            [DomainBound::Time(from), DomainBound::Time(to)] => Ok(Encoding::Time(from, to)),
            _ => Err("domain: time takes two timestamps".to_owned()),
        },
        ("unsigned", None) => Ok(Encoding::Unsigned),
        ("signed", None) => Ok(Encoding::Signed),
        ("float", None) => Ok(Encoding::Float),
        ("unsigned" | "signed" | "float", Some(_)) => Err(format!("domain: {name} takes none")),
        _ => {
            let expected = "expected decimal, time, unsigned, signed or float";
            Err(format!("encoding: is {:?}; {expected}", excerpt(name)))
        }
    }
}

/// The schema of the conditions index, as the API shows it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ConditionsSchema"))]
pub(crate) struct Shown<'a> {
    version: u8,
    /// Whether the index is complete: false until `roomtide rollups rebuild` has run.
    ready: bool,
    metrics: Vec<ShownMetric<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, deny_unknown_fields))]
struct ShownMetric<'a> {
    metric: &'a MetricName,
    /// How a mean is encoded in `bits` bits. Codes sort like the means.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["decimal", "time", "unsigned", "signed", "float"])))]
    encoding: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<Domain<'a>>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 32)))]
    bits: u8,
}

#[derive(Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
enum Domain<'a> {
    Knots(&'a [Decimal]),
    Span([Timestamp; 2]),
}

impl<'a> From<&'a StoredSchema> for Shown<'a> {
    fn from(StoredSchema { schema, is_ready }: &'a StoredSchema) -> Self {
        let metric = |metric: &'a SchemaMetric| ShownMetric {
            metric: &metric.name,
            encoding: metric.encoding.name(),
            domain: match &metric.encoding {
                Encoding::Decimal(knots) => Some(Domain::Knots(knots)),
                Encoding::Time(from, to) => Some(Domain::Span([*from, *to])),
                Encoding::Unsigned | Encoding::Signed | Encoding::Float => None,
            },
            bits: metric.bits,
        };

        let metrics = schema.metrics().iter().map(metric).collect();
        Self { version: schema.version(), ready: *is_ready, metrics }
    }
}

/// `GET /conditions/schema`
pub(crate) async fn show(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    ensure_index(call.session)?;
    let stored = call.session.conditions_schema().await;
    match stored? {
        Some(stored) => Ok(Response::json(200, &Shown::from(&stored))),
        None => {
            let detail = "There is no schema yet; PUT /conditions/schema sets one.";
            Err(Problem::new(ProblemKind::NotFound, detail))
        }
    }
}

/// `PUT /conditions/schema`: saves the metrics of the conditions index. Equal metrics change nothing. Other metrics
/// make a new version, which is used after `roomtide rollups rebuild` has run.
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let SchemaBody { metrics } = body::read(call.request, MAX_BODY)?;
    // The version is set below, when the stored schema is known.
    let new =
        ConditionsSchema::new(1, metrics.into_iter().map(|NewMetric(metric)| metric).collect())
            .map_err(|why| Problem::field("metrics", why))?;
    ensure_index(call.session)?;

    let known = call.session.conditions_schema().await?;
    let (version, expected) = match &known {
        Some(known) if known.schema.metrics() == new.metrics() => {
            return Ok(Response::json(200, &Shown::from(known)));
        }
        Some(known) => {
            let version = known.schema.version();
            let next = version.checked_add(1).ok_or_else(|| {
                let detail = format!(
                    "{MAX_SCHEMA_VERSION} schemas have been stored, and there are no further versions."
                );
                Problem::new(ProblemKind::Unanswerable, detail)
            })?;
            (next, Expected::Version(version.into()))
        }
        None => (1, Expected::Absent),
    };

    let schema = new.with_version(version);
    if !call.session.put_conditions_schema(&schema, expected).await? {
        let detail =
            "Another schema was stored at the same moment; read it, and send this one again.";
        return Err(Problem::new(ProblemKind::Contended, detail));
    }

    Ok(Response::json(200, &Shown::from(&StoredSchema { schema, is_ready: false })))
}

fn ensure_index(session: Session<'_, impl Store>) -> Result<(), Problem> {
    if session.has_conditions_index() {
        return Ok(());
    }
    let detail = "The table has no index by conditions: deploy with ConditionsIndex=on, or start with \
                  --conditions-index on. Conditions are answered without it too.";
    Err(Problem::new(ProblemKind::Unanswerable, detail))
}
