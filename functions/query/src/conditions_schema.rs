//! `GET` and `PUT /conditions/schema`: the metrics by which an index finds conditions. Rebuilds no index.

use api::json::{Kind, Members, MembersError, WrongKind, number, string};
use api::{Problem, ProblemKind, Response};
use domain::{
    ConditionsSchema, Decimal, Encoding, MAX_SCHEMA_VERSION, MetricName, SchemaMetric, Timestamp,
    excerpt,
};
use runtime::clock::Clock;
use runtime::http::Call;
use serde::Serialize;
use serde_json::value::RawValue;
use table::{Expected, Session, StoredSchema};

use crate::handlers::Handlers;
use crate::ports::Store;

/// The largest body: more than eight metrics with 65 knots each take.
const MAX_BODY: usize = 64 << 10;
/// More members than a metric has, so that the wrong one is named.
const MAX_MEMBERS: usize = 8;
/// More metrics than a schema has, so that their number is told.
const MAX_METRICS: usize = 64;
/// The bits of a metric that names none.
const DEFAULT_BITS: u8 = 12;

/// A metric that cannot be taken.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    WrongKind(#[from] WrongKind),
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("has no {0}")]
    Missing(&'static str),
    #[error("has the unknown member {0:?}; expected metric, encoding, domain or bits")]
    Unknown(String),
    #[error("metric: {0}")]
    Name(#[from] domain::MetricNameError),
    #[error("bits: is {0}; expected a whole number from 1 to 32")]
    Bits(String),
    #[error("encoding: is {0:?}; expected decimal, time, unsigned, signed or float")]
    Encoding(String),
    #[error("encoding: text is for texts, and a metric's values are numbers")]
    Text,
    #[error("domain: {0} takes none")]
    NoDomain(&'static str),
    #[error("domain: {0}")]
    Number(#[from] domain::DecimalError),
    #[error("domain: {0}")]
    Timestamp(#[from] domain::TimestampError),
    #[error("domain: time takes two timestamps")]
    NotTwo,
}

/// The schema as the API shows it.
#[derive(Serialize)]
struct Shown<'a> {
    version: u8,
    ready: bool,
    metrics: Vec<ShownMetric<'a>>,
}

#[derive(Serialize)]
struct ShownMetric<'a> {
    metric: &'a MetricName,
    encoding: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<Domain<'a>>,
    bits: u8,
}

#[derive(Serialize)]
#[serde(untagged)]
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
pub(crate) async fn show(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
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

/// `PUT /conditions/schema`: the same metrics again change nothing; others are a new version, which no
/// question uses until `roomtide rollups rebuild` has run.
pub(crate) async fn put(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let body = call.request.json_body()?;
    let new = parse(&body)?;
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

fn parse(body: &[u8]) -> Result<ConditionsSchema, Problem> {
    let bad = |detail: String| Problem::new(ProblemKind::BadRequest, detail);
    if body.len() > MAX_BODY {
        let detail =
            format!("The body is {} bytes long; at most {MAX_BODY} are taken.", body.len());
        return Err(Problem::new(ProblemKind::TooLarge, detail));
    }
    let text = std::str::from_utf8(body).map_err(|_| bad("The body is not UTF-8.".to_owned()))?;
    let members = Members::parse(text, MAX_MEMBERS)
        .map_err(|why| bad(format!("The body is no JSON object with metrics: {why}.")))?;
    let mut metrics = None;
    for (name, value) in members {
        if name != "metrics" {
            return Err(Problem::field(&excerpt(&name), "unknown member; expected metrics"));
        }
        metrics = Some(value);
    }
    let Some(metrics) = metrics else {
        return Err(Problem::field("metrics", "are needed: an array of metrics"));
    };
    let entries: Vec<&RawValue> = serde_json::from_str(metrics.get()).map_err(|_| {
        Problem::field("metrics", WrongKind::of(metrics, "an array of objects").to_string())
    })?;
    if entries.len() > MAX_METRICS {
        return Err(Problem::field("metrics", format!("are {}, too many", entries.len())));
    }
    let parsed = entries.into_iter().enumerate().map(|(n, entry)| {
        metric(entry).map_err(|fault| Problem::field(&format!("metrics[{n}]"), fault.to_string()))
    });
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    // The version is that of the one before and 1; it is not known yet.
    ConditionsSchema::new(1, parsed).map_err(|why| Problem::field("metrics", why.to_string()))
}

fn metric(entry: &RawValue) -> Result<SchemaMetric, Fault> {
    if Kind::of(entry) != Kind::Object {
        return Err(WrongKind::of(entry, "an object").into());
    }
    let (mut name, mut encoding, mut domain, mut bits) = (None, None, None, DEFAULT_BITS);
    for (member, value) in Members::parse(entry.get(), MAX_MEMBERS)? {
        match &*member {
            "metric" => name = Some(MetricName::try_from(string(value)?.into_owned())?),
            "encoding" => encoding = Some(string(value)?),
            "domain" => domain = Some(value),
            "bits" => {
                let text = number(value)?;
                bits = text.parse().map_err(|_| Fault::Bits(excerpt(text)))?;
            }
            other => return Err(Fault::Unknown(excerpt(other))),
        }
    }
    let name = name.ok_or(Fault::Missing("metric"))?;
    let entries = || -> Result<Vec<&RawValue>, Fault> {
        let domain = domain.ok_or(Fault::Missing("domain"))?;
        let entries = serde_json::from_str(domain.get());
        entries.map_err(|_| WrongKind::of(domain, "an array").into())
    };
    let encoding = match encoding.as_deref() {
        None | Some("decimal") => {
            let knot = |value: &RawValue| Ok(Decimal::parse(number(value)?)?);
            Encoding::Decimal(entries()?.into_iter().map(knot).collect::<Result<_, Fault>>()?)
        }
        Some("time") => {
            let [from, to] = entries()?[..] else { return Err(Fault::NotTwo) };
            let end = |value| Ok::<_, Fault>(Timestamp::parse_absolute(&string(value)?)?);
            Encoding::Time(end(from)?, end(to)?)
        }
        Some("unsigned") => Encoding::Unsigned,
        Some("signed") => Encoding::Signed,
        Some("float") => Encoding::Float,
        Some("text") => return Err(Fault::Text),
        Some(other) => return Err(Fault::Encoding(excerpt(other))),
    };
    let takes_domain = matches!(encoding, Encoding::Decimal(_) | Encoding::Time(..));
    if domain.is_some() && !takes_domain {
        return Err(Fault::NoDomain(encoding.name()));
    }
    Ok(SchemaMetric { name, encoding, bits })
}
