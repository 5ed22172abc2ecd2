//! A tariff as a person writes it in JSON. Checks only what a single member tells.

use std::collections::BTreeMap;

use domain::{Decimal, DeviceId, Exact, Label, LocalDate, MemberError, MetricName};
use serde::{Deserialize, Serialize};

/// The largest number of lines of a tariff.
pub const MAX_LINES: usize = 300;
/// The place of the last decimal that a number may have.
const LAST_DECIMAL: &str = "1e-12";
/// The limit of all numbers.
const LIMIT: &str = "1e12";

/// The number of a member. Digits of prices and of percentages add up in a bill, so a number may have no more digits
/// than contracts use.
pub(crate) fn number(member: &str, written: &Decimal) -> Result<Exact, MemberError> {
    let number = Exact::from(written);
    let [last, limit] = [LAST_DECIMAL, LIMIT].map(|text| Exact::parse(text).expect("a number"));
    if number.resolution() < last {
        return Err(MemberError::of(member, "has more than 12 decimals"));
    }
    if number >= limit || -&number >= limit {
        return Err(MemberError::of(member, format!("is not between -{LIMIT} and {LIMIT}")));
    }
    Ok(number)
}

/// A tariff: lines that are read from top to bottom like a bill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NewTariff"))]
#[serde(deny_unknown_fields)]
pub struct WrittenTariff {
    /// The name for people
    pub name: Label,
    /// The currency, a code of ISO 4217 such as EUR
    pub currency: String,
    /// The meters whose energy is billed, added up; at most 8. Without meters the tariff is an offer, to compare with
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<TariffMeter>,
    /// Named lists of dates, such as holidays, for the member days of zones
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<String, Vec<LocalDate>>,
    /// The time of day, such as 06:00, at which a day of zones begins: earlier hours count to the day before
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_begins: Option<String>,
    /// The time zone of dates and hours; by default that of the home
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// How the sum of a month is rounded; by default `half_up`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<Rounding>,
    /// The lines, in the order of the bill
    pub lines: Vec<WrittenLine>,
    /// The stored version; in a PUT, the version that is edited
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A meter of a tariff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TariffMeter {
    /// The device
    pub device: DeviceId,
    /// One counter or power of the device; by default what the device uses and sells
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricName>,
    /// What one unit of the metric is in the unit of the prices, such as the kWh of a cubic metre; by default 1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Decimal>,
    /// Whether the metric is energy that is sold
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sold: bool,
}

/// How money is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// To the nearest; half away from zero.
    HalfUp,
    /// Towards zero.
    Down,
}

/// One line of a tariff. Of several lines of one name, the line with the newest `from` holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NewTariffLine"))]
#[serde(deny_unknown_fields)]
pub struct WrittenLine {
    /// The name on the bill
    pub name: Label,
    /// The first local date on which the line holds
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<LocalDate>,
    /// The local date on which the line no longer holds
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<LocalDate>,
    /// What the price is for; by default used
    #[serde(default)]
    pub per: Per,
    /// The price in the currency, or the percentage
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Decimal>,
    /// Prices at some times; the last zone that matches holds
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<WrittenZone>,
    /// Prices by what was used since the begin of the calendar month
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<WrittenTier>,
    /// A series of prices
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<WrittenSeries>,
    /// The factor of a series' values, such as 0.01 for cents; by default 1
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Decimal>,
    /// With down, the line's sum of a month is rounded down before it is added to the sum that is due
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<Rounding>,
}

/// What the price of a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A kWh that is used.
    #[default]
    Used,
    /// A kWh that is sold; the amount is a credit.
    Sold,
    /// A day.
    Day,
    /// A calendar month, pro rata.
    Month,
    /// A calendar year, pro rata.
    Year,
    /// A percentage of all lines above.
    Percent,
}

impl Per {
    /// Whether the price is for energy.
    pub const fn is_of_energy(self) -> bool {
        matches!(self, Self::Used | Self::Sold)
    }
}

/// A price at some times.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PriceZone"))]
#[serde(deny_unknown_fields)]
pub struct WrittenZone {
    /// The name on the bill
    pub name: Label,
    /// The price in the currency
    pub price: Decimal,
    /// Months such as oct-mar
    #[serde(skip_serializing_if = "Option::is_none")]
    pub months: Option<String>,
    /// Weekdays such as mon-fri, and names of the tariff's days
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<String>,
    /// Local hours such as 22:00-06:00, in quarters of an hour
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
}

/// The price up to an amount.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PriceTier"))]
#[serde(deny_unknown_fields)]
pub struct WrittenTier {
    /// The amount of a month up to which the price holds; the last tier has none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Decimal>,
    /// The price in the currency
    pub price: Decimal,
}

/// A series of prices: a metric of a device.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PriceSeries"))]
#[serde(deny_unknown_fields)]
pub struct WrittenSeries {
    /// The device
    pub device: DeviceId,
    /// The metric
    pub metric: MetricName,
    /// The length of the slots by which the contract bills: the price of a slot is the mean of its quarters of an hour
    pub slot: PriceSlot,
    /// How long a value holds, from the start of its slot of this length; by default slot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<PriceSlot>,
}

/// A length of time on the local clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum PriceSlot {
    /// A quarter of an hour.
    #[serde(rename = "15m")]
    Quarter,
    /// Half an hour.
    #[serde(rename = "30m")]
    Half,
    /// An hour.
    #[serde(rename = "1h")]
    Hour,
}
