//! Bills as the API shows them. Makes no bill.

use api::{Problem, Response};
use domain::{Device, DeviceId, Label, TariffId, TimeRange, Timestamp};
use serde::Serialize;
use tariffs::{Bill, BillLine, BillRow, Missing};

use super::CostRequest;
use crate::ports::Store;
use crate::series::answer::write::respond;
use crate::series::question::plan::{RowPlan, RowSpan};
use crate::shared_state::Call;
use crate::tariffs::KnownTariff;

/// The number of entries of `incomplete` that an answer shows. The first entry of each kind of each line is shown even
/// beyond this number.
const MAX_INCOMPLETE: usize = 50;

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
    /// Whether an entry of incomplete concerns the row
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// The bill of a tariff.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Bill"))]
pub(super) struct ShownBill<'a> {
    tariff: &'a TariffId,
    name: &'a Label,
    currency: &'a str,
    /// The unit of what is used
    unit: String,
    version: u64,
    edited: Timestamp,
    #[serde(flatten)]
    bill: Bill,
    /// With `lines=1`, the lines of each row.
    #[serde(skip)]
    by_row: Vec<Vec<BillLine>>,
    /// Whether this is what a device's energy would have cost if all of it had been bought
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    as_if_bought: bool,
    /// With devices=1: what the energy of each device would have cost if all of it had been bought
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) devices: Vec<DeviceShare>,
}

/// A device's share of a bill.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct DeviceShare {
    device_id: DeviceId,
    #[serde(flatten)]
    total: BillRow,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl DeviceShare {
    pub(super) fn of(device: &Device, share: Bill) -> Self {
        let incomplete = share.total.is_incomplete;
        Self { device_id: device.id().clone(), total: share.total, incomplete }
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
    bills: &'a [ShownBill<'a>],
    /// Whatever the bills lack: the first entry of each kind of each line, then further entries up to 50
    incomplete: Vec<MissingShown<'a>>,
    /// The number of all entries, also of those that are not shown
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
            bills: &self.bills,
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
            for ShownBill { tariff, bill, by_row, .. } in &self.bills {
                let sums = &bill.rows[place];
                let row = CostRow {
                    timestamp: range.from(),
                    tariff,
                    partial: range.to() > self.plan.now,
                    line: None,
                    sums: None,
                    incomplete: sums.is_incomplete,
                };

                match by_row.get(place) {
                    Some(lines) => {
                        let of_line = |line| CostRow { line: Some(line), ..row.clone() };
                        data.extend(lines.iter().map(of_line));
                    }
                    None => data.push(CostRow { sums: Some(sums), ..row }),
                }
            }
        }
        data
    }

    /// The first entry of each kind of each line, then further entries up to `MAX_INCOMPLETE`.
    fn incomplete(&self) -> Vec<MissingShown<'_>> {
        let mut entries: Vec<_> = self.bills.iter().flat_map(ShownBill::missing).collect();
        entries.sort_by_key(|shown| !shown.missing.is_first);
        let firsts = entries.partition_point(|shown| shown.missing.is_first);
        entries.truncate(firsts.max(MAX_INCOMPLETE));
        entries
    }
}

impl<'a> ShownBill<'a> {
    pub(super) fn of(
        known: &'a KnownTariff,
        unit: &str,
        bill: Bill,
        by_row: Vec<Vec<BillLine>>,
        as_if_bought: bool,
    ) -> Self {
        Self {
            tariff: &known.stored.id,
            name: &known.written.name,
            currency: &known.written.currency,
            unit: unit.to_owned(),
            version: known.stored.version,
            edited: known.stored.edited,
            bill,
            by_row,
            as_if_bought,
            devices: Vec::new(),
        }
    }

    fn missing(&self) -> impl Iterator<Item = MissingShown<'_>> {
        let tariff = self.tariff;
        self.bill.missing.iter().map(move |missing| MissingShown { tariff, missing })
    }
}
