//! Bills as the API shows them. Makes none.

use api::{Problem, Response};
use domain::{Amount, Device, DeviceId, Exact, Label, TariffId, TimeRange, Timestamp};
use runtime::http::Call;
use serde::Serialize;
use tariffs::{Bill, BillLine, BillRow, Missing};

use super::CostRequest;
use crate::ports::Store;
use crate::series::answer::write::respond;
use crate::series::question::plan::{RowPlan, RowSpan};
use crate::tariffs::KnownTariff;

/// The largest number of shown entries of `incomplete`, unless more lines lack something.
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
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct CostRow<'a> {
    timestamp: Timestamp,
    tariff: &'a TariffId,
    /// Whether the row is not over
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(flatten)]
    line: Option<&'a BillLine>,
    #[serde(flatten)]
    sums: Option<&'a BillRow>,
    /// The money for one unit that was used, if nothing is missing
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Exact>,
    /// Whether an entry of incomplete concerns the row
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
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
    #[serde(flatten)]
    total: &'a BillRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Exact>,
    /// The money that is due, rounded once a month; only of whole calendar months that are over
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<&'a str>,
    /// Whether this is what a device's energy would have cost if all of it had been bought
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    as_if_bought: bool,
    lines: &'a [BillLine],
    /// With devices=1: what the energy of each device would have cost if all of it had been bought
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    devices: &'a [DeviceShare],
}

/// A device's share of a bill.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct DeviceShare {
    device_id: DeviceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Exact>,
    amount: Exact,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl DeviceShare {
    pub(super) fn of(device: &Device, bill: &Bill) -> Self {
        Self {
            device_id: device.id().clone(),
            used: bill.total.used.as_ref().map(Amount::shown),
            amount: bill.total.amount.shown(),
            incomplete: bill.total.is_incomplete,
        }
    }
}

/// Something that a bill lacks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IncompleteBill"))]
struct MissingShown<'a> {
    tariff: &'a TariffId,
    #[serde(flatten)]
    missing: &'a Missing,
}

/// The members beside the rows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CostSummary<'a> {
    #[serde(flatten)]
    span: RowSpan,
    bills: Vec<BillShown<'a>>,
    /// What the bills lack: at most 50 entries, and at least one of each kind of each line
    incomplete: Vec<MissingShown<'a>>,
    /// The number of all that the bills lack
    incomplete_count: usize,
}

impl CostAnswer<'_> {
    /// Makes the response. It is revalidated each time, because an edit of a tariff changes the past.
    pub(super) fn respond(
        &self,
        reach: TimeRange,
        call: &Call<'_, impl Store>,
    ) -> Result<Response, Problem> {
        let about = CostSummary {
            span: self.plan.row_span(reach, None),
            bills: self.bills.iter().map(ShownBill::shown).collect(),
            incomplete: self.incomplete(),
            incomplete_count: self.bills.iter().map(|shown| shown.bill.missing.len()).sum(),
        };

        let columns = || self.columns().iter().map(|name| (*name).to_owned()).collect();
        let response =
            respond(self.request.series.format, columns, self.rows().into_iter(), &about)?;
        Ok(self.plan.cached(call, true, response))
    }

    const fn columns(&self) -> &'static [&'static str] {
        if self.request.has_lines {
            &["timestamp", "tariff", "name", "zone", "per", "quantity", "amount", "incomplete"]
        } else {
            &["timestamp", "tariff", "partial", "used", "sold", "amount", "mean", "incomplete"]
        }
    }

    /// The rows in the order of time, and of the tariffs.
    fn rows(&self) -> Vec<CostRow<'_>> {
        let mut data = Vec::new();
        for (place, range) in self.plan.grid.rows().iter().enumerate() {
            for ShownBill { known, bill, by_row, .. } in &self.bills {
                let sums = &bill.rows[place];
                let row = CostRow {
                    timestamp: range.from(),
                    tariff: &known.stored.id,
                    partial: range.to() > self.plan.now,
                    line: None,
                    sums: None,
                    mean: None,
                    incomplete: sums.is_incomplete,
                };
                if let Some(bill) = by_row.get(place) {
                    let of_line = |line| CostRow { line: Some(line), ..row.clone() };
                    data.extend(bill.lines.iter().map(of_line));
                    continue;
                }

                data.push(CostRow { sums: Some(sums), mean: mean(sums), ..row });
            }
        }
        data
    }

    /// The first entries of each kind of each line, and then further ones up to the largest number.
    fn incomplete(&self) -> Vec<MissingShown<'_>> {
        let mut entries: Vec<_> = self.bills.iter().flat_map(ShownBill::missing).collect();
        entries.sort_by_key(|shown| !shown.missing.is_first);
        let firsts = entries.partition_point(|shown| shown.missing.is_first);
        entries.truncate(firsts.max(MAX_INCOMPLETE));
        entries
    }
}

/// The money for one unit that was used, if nothing is missing.
fn mean(row: &BillRow) -> Option<Exact> {
    let used = row.used.as_ref()?.shown();
    let is_meant = used.is_positive() && !row.is_incomplete;
    row.amount.shown().rounded_quotient(&used).filter(|_| is_meant)
}

impl ShownBill<'_> {
    fn missing(&self) -> impl Iterator<Item = MissingShown<'_>> {
        let tariff = &self.known.stored.id;
        self.bill.missing.iter().map(move |missing| MissingShown { tariff, missing })
    }

    fn shown(&self) -> BillShown<'_> {
        let Bill { total, lines, due, .. } = &self.bill;
        BillShown {
            tariff: &self.known.stored.id,
            name: &self.known.written.name,
            currency: &self.known.written.currency,
            unit: &self.unit,
            version: self.known.stored.version,
            edited: self.known.stored.edited,
            total,
            mean: mean(total),
            due: due.as_deref(),
            as_if_bought: self.is_share,
            lines,
            devices: &self.shares,
        }
    }
}
