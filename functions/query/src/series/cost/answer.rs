//! Bills as the API shows them. Makes none.

use api::{Problem, Response};
use domain::{Amount, DeviceId, Exact, Label, TariffId, TimeRange, Timestamp};
use runtime::http::Call;
use serde::Serialize;
use tariffs::{Bill, BillLine, BillRow, Missing, MissingKind, Per};

use super::CostRequest;
use crate::ports::Store;
use crate::series::plan::{RowPlan, Span};
use crate::series::write::respond;
use crate::tariffs::KnownTariff;

/// The largest number of shown entries of `incomplete`.
const MAX_INCOMPLETE: usize = 50;

/// A bill, and whose it is.
pub(super) struct ShownBill<'a> {
    pub(super) known: &'a KnownTariff,
    /// The unit of what is used.
    pub(super) unit: String,
    pub(super) bill: Bill,
    /// With `lines=1`, the bill of each row.
    pub(super) by_row: Vec<Bill>,
    pub(super) is_share: bool,
    /// With `devices=1`, the shares of devices.
    pub(super) shares: Vec<DeviceShare>,
}

/// The answer to a request for a cost.
pub(super) struct CostAnswer<'a> {
    pub(super) request: &'a CostRequest,
    pub(super) plan: &'a RowPlan,
    pub(super) bills: Vec<ShownBill<'a>>,
}

/// The cost of one row by one tariff, or with `lines=1` a line of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct CostRow<'a> {
    timestamp: Timestamp,
    tariff: &'a TariffId,
    /// Whether the row is not over
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    /// With lines=1: the name, zone and quantity of a line
    #[serde(flatten)]
    line: Option<LineOfRow<'a>>,
    /// What was used, if anything is known
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Exact>,
    /// What was sold
    #[serde(skip_serializing_if = "Option::is_none")]
    sold: Option<Exact>,
    /// The money, in the currency of the bill
    amount: Exact,
    /// The money for one unit that was used
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Exact>,
    /// Whether an entry of incomplete concerns the row
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// A line of the bill of one row.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LineOfRow<'a> {
    line: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    per: Per,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Exact>,
}

/// The bill of a tariff.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Bill"))]
struct BillShown<'a> {
    tariff: &'a TariffId,
    name: &'a Label,
    currency: &'a str,
    /// The unit of what is used
    unit: &'a str,
    version: u64,
    edited: Timestamp,
    used: Option<Exact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sold: Option<Exact>,
    /// The money, not rounded
    amount: Exact,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Exact>,
    /// The money that is due, rounded once a month; only of whole calendar months that are over
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<&'a str>,
    /// Whether this is what a device's energy would have cost if all of it had been bought
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    as_if_bought: bool,
    lines: Vec<LineShown<'a>>,
    /// With devices=1: what the energy of each device would have cost if all of it had been bought
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    devices: &'a [DeviceShare],
}

/// A line of a bill, or one of its zones or tiers.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BillLine"))]
struct LineShown<'a> {
    name: &'a str,
    /// The zone, or the limits of the tier such as 0-120
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    per: Per,
    /// The units that were used or sold, or the days, months or years
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Exact>,
    amount: Exact,
}

/// A device's share of a bill.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct DeviceShare {
    device_id: DeviceId,
    used: Option<Exact>,
    amount: Exact,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// Something that a bill lacks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IncompleteBill"))]
struct MissingShown<'a> {
    what: MissingKind,
    tariff: &'a TariffId,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    /// The list of days, or the device
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    from: Timestamp,
    to: Timestamp,
    /// The energy that is concerned
    #[serde(skip_serializing_if = "Option::is_none")]
    kwh: Option<Exact>,
}

/// The members beside the rows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct About<'a> {
    #[serde(flatten)]
    span: Span,
    bills: Vec<BillShown<'a>>,
    /// What the bills lack, at most 50
    incomplete: Vec<MissingShown<'a>>,
    /// The number of all that the bills lack
    incomplete_count: usize,
}

impl DeviceShare {
    pub(super) fn of(device_id: DeviceId, share: &ShownBill<'_>) -> Self {
        let total = &share.bill.total;
        let used = total.used.as_ref().map(Amount::shown);
        let incomplete = !share.bill.missing.is_empty();
        Self { device_id, used, amount: total.amount.shown(), incomplete }
    }
}

impl CostAnswer<'_> {
    /// Makes the response. It is revalidated each time, because an edit of a tariff changes the past.
    pub(super) fn respond(
        &self,
        reach: TimeRange,
        call: &Call<'_, impl Store>,
    ) -> Result<Response, Problem> {
        let missing = self.bills.iter().flat_map(|shown| {
            shown
                .bill
                .missing
                .iter()
                .map(|missing| MissingShown::of(&shown.known.stored.id, missing))
        });
        let about = About {
            span: self.plan.span(reach, None, None),
            bills: self.bills.iter().map(ShownBill::shown).collect(),
            incomplete: missing.clone().take(MAX_INCOMPLETE).collect(),
            incomplete_count: missing.count(),
        };

        let columns = || self.columns().iter().map(|name| (*name).to_owned()).collect();
        let response =
            respond(self.request.series.format, columns, self.rows().into_iter(), &about)?;
        Ok(self.plan.cached(call, true, response))
    }

    const fn columns(&self) -> &'static [&'static str] {
        if self.request.has_lines {
            &["timestamp", "tariff", "line", "zone", "per", "quantity", "amount"]
        } else {
            &["timestamp", "tariff", "partial", "used", "sold", "amount", "mean", "incomplete"]
        }
    }

    /// The rows in the order of time, and of the tariffs.
    fn rows(&self) -> Vec<CostRow<'_>> {
        let incomplete: Vec<Vec<bool>> =
            self.bills.iter().map(|shown| self.incomplete(&shown.bill.missing)).collect();
        let mut data = Vec::new();
        for (place, range) in self.plan.grid.rows().iter().enumerate() {
            for (shown, incomplete) in self.bills.iter().zip(&incomplete) {
                if self.request.has_lines {
                    let lines = &shown.by_row[place].lines;
                    data.extend(lines.iter().map(|line| self.line(shown, *range, line)));
                } else {
                    let row = &shown.bill.rows[place];
                    data.push(self.row(shown, *range, row, incomplete[place]));
                }
            }
        }
        data
    }

    fn row<'s>(
        &self,
        shown: &'s ShownBill<'_>,
        range: TimeRange,
        row: &BillRow,
        incomplete: bool,
    ) -> CostRow<'s> {
        CostRow {
            timestamp: range.from(),
            tariff: &shown.known.stored.id,
            partial: range.to() > self.plan.now,
            line: None,
            used: row.used.as_ref().map(Amount::shown),
            sold: row.sold.as_ref().map(Amount::shown),
            amount: row.amount.shown(),
            mean: mean(row, incomplete),
            incomplete,
        }
    }

    fn line<'s>(
        &self,
        shown: &'s ShownBill<'_>,
        range: TimeRange,
        line: &'s BillLine,
    ) -> CostRow<'s> {
        let LineShown { name, zone, per, quantity, amount } = LineShown::of(line);
        CostRow {
            timestamp: range.from(),
            tariff: &shown.known.stored.id,
            partial: range.to() > self.plan.now,
            line: Some(LineOfRow { line: name, zone, per, quantity }),
            used: None,
            sold: None,
            amount,
            mean: None,
            incomplete: false,
        }
    }

    /// Which rows lack something.
    fn incomplete(&self, missing: &[Missing]) -> Vec<bool> {
        let rows = self.plan.grid.rows();
        let mut incomplete = vec![false; rows.len()];
        for missing in missing {
            let first = rows.partition_point(|row| row.to() <= missing.range.from());
            let end = rows.partition_point(|row| row.from() < missing.range.to());
            incomplete[first..end].fill(true);
        }
        incomplete
    }
}

/// The money for one unit that was used, if nothing is missing.
fn mean(row: &BillRow, is_incomplete: bool) -> Option<Exact> {
    let used = row.used.as_ref()?.shown();
    let is_meant = used.is_positive() && !is_incomplete;
    row.amount.shown().rounded_quotient(&used).filter(|_| is_meant)
}

impl ShownBill<'_> {
    fn shown(&self) -> BillShown<'_> {
        let Bill { total, lines, due, missing, .. } = &self.bill;
        BillShown {
            tariff: &self.known.stored.id,
            name: &self.known.written.name,
            currency: &self.known.written.currency,
            unit: &self.unit,
            version: self.known.stored.version,
            edited: self.known.stored.edited,
            used: total.used.as_ref().map(Amount::shown),
            sold: total.sold.as_ref().map(Amount::shown),
            amount: total.amount.shown(),
            mean: mean(total, !missing.is_empty()),
            due: due.as_deref(),
            as_if_bought: self.is_share,
            lines: lines.iter().map(LineShown::of).collect(),
            devices: &self.shares,
        }
    }
}

impl<'a> LineShown<'a> {
    fn of(line: &'a BillLine) -> Self {
        Self {
            name: &line.name,
            zone: line.zone.as_deref(),
            per: line.per,
            quantity: line.quantity.as_ref().map(Amount::shown),
            amount: line.amount.shown(),
        }
    }
}

impl<'a> MissingShown<'a> {
    fn of(tariff: &'a TariffId, missing: &'a Missing) -> Self {
        Self {
            what: missing.what,
            tariff,
            line: missing.line.as_deref(),
            name: missing.name.as_deref(),
            from: missing.range.from(),
            to: missing.range.to(),
            kwh: missing.energy.as_ref().map(Amount::shown),
        }
    }
}
