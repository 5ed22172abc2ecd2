//! The metrics by which an index finds quarters of an hour, and the encodings of their means. Stores nothing.

use std::collections::BTreeMap;

use crate::z_order::{Curve, CurveError, Region, encode};
use crate::{Decimal, Exact, Interval, MetricName, MetricRollup, Rollup, Timestamp};

/// The largest version of a schema: an address has one byte for the version.
pub const MAX_SCHEMA_VERSION: u8 = u8::MAX;
/// The largest number of knots, the numbers that divide the codes of a metric into equal parts.
const MAX_KNOTS: usize = 65;

/// The mean and the extremes of one metric in a quarter of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricMeans {
    /// The mean of the values, to 15 significant digits.
    pub mean: Decimal,
    /// The smallest value.
    pub min: Decimal,
    /// The largest value.
    pub max: Decimal,
}

impl MetricMeans {
    /// The mean and the extremes of a metric's rollup; `None` if the mean is too close to zero for a decimal.
    pub fn of(rollup: &MetricRollup) -> Option<Self> {
        let mean = rollup.sum.rounded_quotient(&Exact::from(rollup.count))?;
        let mean = mean.to_decimal().ok()?;
        Some(Self { mean, min: rollup.min.clone(), max: rollup.max.clone() })
    }
}

/// How a metric's mean becomes a code. Codes have the order of the means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// For decimals: the position of the mean among knots, which are in rising order.
    Decimal(Vec<Decimal>),
    /// For means that are seconds since 1970: the position between two timestamps.
    Time(Timestamp, Timestamp),
    /// A whole number from 0 on; a fraction is cut off.
    Unsigned,
    /// A whole number; a fraction is rounded down.
    Signed,
    /// The highest bits of a floating-point number.
    Float,
}

/// One metric of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaMetric {
    /// The name.
    pub name: MetricName,
    /// The encoding.
    pub encoding: Encoding,
    /// The number of bits of a code.
    pub bits: u8,
}

/// The metrics by which an index finds quarters of an hour. A device has an entry for each quarter in which it has
/// values of all these metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionsSchema {
    version: u8,
    metrics: Vec<SchemaMetric>,
    curve: Curve,
}

/// The reasons for which metrics do not form a schema.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SchemaError {
    /// There are too few or too many metrics. Conditions on a single metric need no index: rollups answer them.
    #[error(
        "has {0} metrics; an index is for 2 to 8: conditions on a single metric are answered from the rollups"
    )]
    Metrics(usize),
    /// A metric is named twice.
    #[error("names {0} twice")]
    Twice(MetricName),
    /// The knots of a metric are not in rising order.
    #[error("the domain of {0} must be 2 to {MAX_KNOTS} numbers that increase")]
    Domain(MetricName),
    /// The codes have too many bits.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

/// The entry of a quarter of an hour in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The version of the schema, followed by the address on the curve.
    pub address: Vec<u8>,
    /// The mean and the extremes of each metric, in the order of the schema.
    pub values: Vec<MetricMeans>,
}

impl ConditionsSchema {
    /// Makes a schema of metrics, if they are valid.
    pub fn new(version: u8, metrics: Vec<SchemaMetric>) -> Result<Self, SchemaError> {
        if !(2..=crate::z_order::MAX_ATTRIBUTES).contains(&metrics.len()) {
            return Err(SchemaError::Metrics(metrics.len()));
        }

        for (n, metric) in metrics.iter().enumerate() {
            if metrics[..n].iter().any(|earlier| earlier.name == metric.name) {
                return Err(SchemaError::Twice(metric.name.clone()));
            }
            if !metric.encoding.has_domain() {
                return Err(SchemaError::Domain(metric.name.clone()));
            }
        }

        let curve = Curve::new(metrics.iter().map(|metric| metric.bits).collect())?;
        Ok(Self { version, metrics, curve })
    }

    /// The same metrics under another version.
    #[must_use]
    pub fn with_version(self, version: u8) -> Self {
        Self { version, ..self }
    }

    /// The number of the schema. A newer schema has a greater number.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The metrics.
    pub fn metrics(&self) -> &[SchemaMetric] {
        &self.metrics
    }

    /// The index of a metric in the schema.
    pub fn index_of(&self, name: &MetricName) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == *name)
    }

    /// The curve of the codes.
    pub const fn curve(&self) -> &Curve {
        &self.curve
    }

    /// The entry of a quarter of an hour; `None` if a metric of the schema is absent.
    pub fn entry(&self, rollup: &Rollup) -> Option<IndexEntry> {
        let means = |metric: &SchemaMetric| MetricMeans::of(rollup.metrics.get(&metric.name)?);
        let values: Vec<MetricMeans> = self.metrics.iter().map(means).collect::<Option<_>>()?;
        let codes = self.metrics.iter().zip(&values);
        let point: Vec<u64> = codes.map(|(metric, means)| metric.code(&means.mean)).collect();
        Some(IndexEntry { address: self.address(self.curve.address(&point)), values })
    }

    /// An address on the curve as the bytes that the index stores.
    pub fn address(&self, address: u64) -> Vec<u8> {
        let bytes = address.to_be_bytes();
        let bytes = &bytes[bytes.len() - self.curve.address_bytes()..];
        [&[self.version], bytes].concat()
    }

    /// The address on the curve from the bytes in the index; `None` if the bytes were written with another schema.
    pub fn parse_address(&self, bytes: &[u8]) -> Option<u64> {
        let (version, address) = bytes.split_first()?;
        if *version != self.version || address.len() != self.curve.address_bytes() {
            return None;
        }
        Some(address.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// The box that contains the codes of all matching values. A metric without a condition may have any code.
    pub fn region(&self, conditions: &BTreeMap<&MetricName, &Interval>) -> Region {
        let all = (0..self.metrics.len()).map(|n| (0, self.curve.max_of(n)));
        let bounds = all.zip(&self.metrics).map(|((min, max), metric)| {
            let interval = conditions.get(&metric.name).copied();
            let low = interval.and_then(Interval::low).map_or(min, |low| metric.code(low));
            let high = interval.and_then(Interval::high).map_or(max, |high| metric.code(high));
            (low, high)
        });
        let (low, high) = bounds.unzip();
        Region { low, high }
    }
}

impl SchemaMetric {
    /// The code of a mean.
    pub fn code(&self, value: &Decimal) -> u64 {
        let number = float(value);
        match &self.encoding {
            Encoding::Decimal(knots) => {
                let knots: Vec<f64> = knots.iter().map(float).collect();
                encode::scaled(number, &knots, self.bits)
            }
            Encoding::Time(from, to) => {
                let knots = [seconds(*from), seconds(*to)];
                encode::scaled(number, &knots, self.bits)
            }
            Encoding::Unsigned => {
                encode::unsigned(saturating(number).max(0).cast_unsigned(), self.bits)
            }
            Encoding::Signed => encode::signed(saturating(number), self.bits),
            Encoding::Float => encode::float(number, self.bits),
        }
    }
}

impl Encoding {
    /// The name of the encoding in the table and the API.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Decimal(_) => "decimal",
            Self::Time(..) => "time",
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
            Self::Float => "float",
        }
    }

    fn has_domain(&self) -> bool {
        match self {
            Self::Decimal(knots) => {
                // `code` compares floating-point numbers, and two different decimals may be equal as such numbers.
                let knots: Vec<f64> = knots.iter().map(float).collect();
                (2..=MAX_KNOTS).contains(&knots.len())
                    && knots.windows(2).all(|pair| pair[0] < pair[1])
            }
            Self::Time(from, to) => from < to,
            Self::Unsigned | Self::Signed | Self::Float => true,
        }
    }
}

fn float(value: &Decimal) -> f64 {
    value.as_str().parse().expect("a decimal's text is a number")
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large has the largest value")]
fn saturating(number: f64) -> i64 {
    number.floor() as i64
}

#[expect(clippy::cast_precision_loss, reason = "the order stays")]
fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, device};
    use crate::{FoldRules, Reading};
    use proptest::prelude::*;

    fn metric(name: &str, encoding: Encoding, bits: u8) -> SchemaMetric {
        SchemaMetric { name: given::metric(name), encoding, bits }
    }

    fn decimal(knots: &[&str]) -> Encoding {
        let knots = knots.iter().map(|it| given::number(it));
        Encoding::Decimal(knots.collect())
    }

    fn schema() -> ConditionsSchema {
        let metrics = vec![
            metric("temperature", decimal(&["15", "30"]), 10),
            metric("humidity", decimal(&["20", "80"]), 9),
        ];
        ConditionsSchema::new(3, metrics).expect("a schema")
    }

    fn rollup(values: &[&[(&str, &str)]]) -> Rollup {
        let reading = |(n, metrics): (i64, &&[(&str, &str)])| {
            let metrics =
                metrics.iter().map(|(name, value)| (given::metric(name), given::number(value)));
            let at = Timestamp::from_millis(n).expect("in range");
            Reading::new(device("d"), at, None, metrics.collect()).expect("valid")
        };
        let readings: Vec<Reading> = (0..).zip(values).map(reading).collect();
        Rollup::fold(&readings, &FoldRules::default())
    }

    #[test]
    fn an_entry_has_the_mean_and_the_extremes_of_all_metrics() {
        let rollup = rollup(&[
            &[("temperature", "21"), ("humidity", "40")],
            &[("temperature", "22"), ("humidity", "41")],
            &[("temperature", "22.1"), ("co2", "600")],
        ]);
        let entry = schema().entry(&rollup).expect("all metrics");
        assert_eq!(entry.values[0].mean.as_str(), "21.7");
        assert_eq!((entry.values[1].min.as_str(), entry.values[1].max.as_str()), ("40", "41"));
        assert_eq!((entry.address.len(), entry.address[0]), (4, 3));
        let point = schema().curve().point(schema().parse_address(&entry.address).expect("ours"));
        assert_eq!(point, [456, 174]);
        assert_eq!(schema().with_version(4).parse_address(&entry.address), None);
        assert_eq!(schema().entry(&self::rollup(&[&[("temperature", "21")]])), None);
        assert_eq!(schema().entry(&Rollup::default()), None);
    }

    #[test]
    fn what_makes_no_schema_is_named() {
        let two = |a, b| ConditionsSchema::new(1, vec![a, b]).expect_err("no schema").to_string();
        let good = || metric("b", Encoding::Float, 8);
        for knots in [
            &[][..],
            &["1"],
            &["2", "1"],
            &["1", "1"],
            &["1", "1.00000000000000000001"],
            &["0"; 66],
        ] {
            let why = two(metric("a", decimal(knots), 8), good());
            assert_eq!(why, "the domain of a must be 2 to 65 numbers that increase");
        }
        assert_eq!(two(good(), good()), "names b twice");
        let why = two(metric("a", Encoding::Signed, 33), good());
        assert_eq!(why, "has 33 bits; an attribute has 1 to 32");
        let one = ConditionsSchema::new(1, vec![good()]).expect_err("one");
        assert!(one.to_string().starts_with("has 1 metrics; an index is for 2 to 8"));
        assert_eq!(
            SchemaError::from(CurveError::AddressBits(65)).to_string(),
            "have 65 bits together; an address has at most 64"
        );
    }

    fn number() -> impl Strategy<Value = Decimal> {
        (-4_000_i64..4_000, 0..3_i32).prop_map(|(n, e)| given::number(&format!("{n}e-{e}")))
    }

    proptest! {
        #[test]
        fn a_value_that_matches_lies_in_the_box(value in number(), a in number(), b in number(), kind in 0..5) {
            let encoding = match kind {
                0 => decimal(&["15", "18.5", "30"]),
                1 => Encoding::Unsigned,
                2 => Encoding::Signed,
                3 => Encoding::Float,
                _ => Encoding::Time(
                    Timestamp::MIN,
                    Timestamp::from_millis(3_000_000).expect("in range"),
                ),
            };
            let metrics = vec![metric("a", encoding, 7), metric("b", Encoding::Signed, 5)];
            let schema = ConditionsSchema::new(1, metrics).expect("a schema");
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            let interval: Interval = given::interval(&format!("{low}..{high}"));
            let name: MetricName = given::metric("a");
            let region = schema.region(&BTreeMap::from([(&name, &interval)]));
            let point = [schema.metrics()[0].code(&value), 31];
            prop_assert!(!interval.contains(&value) || region.contains(&point));
        }
    }
}
