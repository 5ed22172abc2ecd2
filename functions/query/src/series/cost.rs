//! `cost`: what energy cost, or would have cost, by tariffs. Reads energy and prices, and has `tariffs` fold them.

pub(crate) mod answer;
mod energy;
pub(crate) mod meter;
mod prices;
mod share;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use api::{Format, Problem, ProblemKind, Response};
use domain::{
    CalendarUnit, Device, DeviceId, MetricName, MetricRule, TariffId, TimeRange, Timestamp, Zone,
};
use series::{DeviceQuestion, DeviceRows, Grid, Level, PlannedRead, ReadAllowance, device_rows};
use table::Session;
use tariffs::{
    Bill, BillInput, BillLine, EnergyStep, Missing, MissingKind, Per, Prices, Tariff, TariffMeter,
};

use super::question::plan::{RowPlan, hull};
use super::question::request::{QueryScope, SeriesRequest};
use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::shared_state::Call;
use crate::tariffs::KnownTariff;
use answer::{CostAnswer, DeviceShare, ShownBill};
use meter::BilledMeter;

/// The largest number of tariffs of a request that names them.
const MAX_COMPARED: usize = 5;
/// The largest number of days that one request reads by quarters of an hour.
const MAX_DAYS_BY_QUARTERS: i64 = 400;
/// The largest number of days of one request, because a bill has a step for each day.
const MAX_DAYS: i64 = 36_600;
/// The largest number of steps of all bills of a request, as `Tariff::work` counts them.
const MAX_WORK: usize = 2_000_000;
/// The largest number of rows of a request for the lines of each row.
const MAX_ROWS_OF_LINES: usize = 400;

/// A request for a cost.
struct CostRequest {
    series: SeriesRequest,
    /// The tariffs that the request names.
    tariffs: Vec<TariffId>,
    /// Whether the answer has the lines of each row (`lines=1`).
    has_lines: bool,
    has_shares: bool,
}

impl CostRequest {
    fn parse(call: &Call<'_, impl Store>) -> Result<Self, Problem> {
        let params = &call.params;
        let series = SeriesRequest::parse(call)?.of_month();

        let wrong = |why: String| Problem::field("tariff", why);
        let mut tariffs: Vec<TariffId> = Vec::new();
        for text in params.get("tariff").into_iter().flat_map(|list| list.split(',')) {
            let id = text.parse().map_err(|why| wrong(format!("{why}")))?;
            if tariffs.contains(&id) {
                return Err(wrong(format!("names {id} twice")));
            }
            tariffs.push(id);
        }

        if tariffs.len() > MAX_COMPARED {
            return Err(wrong(format!("names more than {MAX_COMPARED} tariffs")));
        }

        let (has_lines, has_shares) = (params.flag("lines"), params.flag("devices"));
        if has_shares && series.format != Format::Json {
            let why = "is for answers in JSON; CSV and NDJSON have no shares of devices";
            return Err(Problem::field("devices", why));
        }
        Ok(Self { series, tariffs, has_lines, has_shares })
    }

    /// The tariffs that the request names. Refuses tariffs in different currencies.
    async fn named(
        &self,
        home: Zone,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Vec<KnownTariff>, Problem> {
        let mut known: Vec<KnownTariff> = Vec::new();
        for id in &self.tariffs {
            let tariff = KnownTariff::find(id, home, call).await?;
            let first = known.first().map_or(&tariff, |first| first);
            if first.written.currency != tariff.written.currency {
                return Err(Problem::field("tariff", "names tariffs in different currencies"));
            }
            known.push(tariff);
        }
        Ok(known)
    }
}

/// `GET /cost`
pub(crate) async fn cost(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    bills(None, call).await
}

/// `GET /devices/{id}/cost`: what the energy of the device cost, as if all of it had been bought.
pub(crate) async fn device_cost(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let device = lookup::device(call).await?;
    bills(Some(&device), call).await
}

/// The bills of tariffs, or one device's shares of the bills.
async fn bills(
    of_share: Option<&Device>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let mut request = CostRequest::parse(call)?;
    let home = call.shared.rollup_state.horizon(call.session).await?.zone();
    let mut tariffs = request.named(home, call).await?;
    let is_compared = !tariffs.is_empty();
    if !is_compared {
        tariffs = KnownTariff::all(home, call).await?;
        tariffs.retain(|known| !known.tariff.meters.is_empty());
        if let Some(device) = of_share {
            share::retain_tariffs_of(device, &mut tariffs, call).await?;
        }
    }

    request.series.prefer_zone(zone_of(&tariffs));
    let plan = RowPlan::of(&request.series, QueryScope::All, call).await?;
    let groups = BillGroup::of(&tariffs, is_compared);
    let devices = devices_of(&groups, call).await?;
    let mut beside = vec![Vec::new(); groups.len()];
    if request.has_shares && of_share.is_none() {
        for (beside, group) in beside.iter_mut().zip(&groups) {
            *beside = share::devices(group.meters, &tariffs, call).await?;
        }
    }

    let allowance = ReadAllowance::of_rows(&call.shared.densities);
    let (session, reach) = (call.session, plan.grid.range());

    let mut biller = Biller {
        request: &request,
        plan: &plan,
        devices: &devices,
        allowance,
        session,
        work: 0,
        reach,
    };

    let mut bills = Vec::new();
    for (group, beside) in groups.iter().zip(&beside) {
        bills.append(&mut biller.bills(group, of_share, beside).await?);
    }
    CostAnswer { request: &request, plan: &plan, bills }.respond(biller.reach, call)
}

/// Refuses a range with too many days for one bill.
fn check_days(range: TimeRange, level: Level) -> Result<(), Problem> {
    let (what, max_days) = match level {
        Level::Days => ("Bills", MAX_DAYS),
        _ => ("Bills with prices by hours, or with rows of less than a day,", MAX_DAYS_BY_QUARTERS),
    };
    if range.length().num_days() <= max_days {
        return Ok(());
    }
    let detail = format!(
        "{what} are made for at most {max_days} days at once, in whole units of every. Narrow from and to."
    );
    Err(Problem::new(ProblemKind::Unanswerable, detail))
}

/// The time zone of tariffs; `None` if they have several.
fn zone_of(tariffs: &[KnownTariff]) -> Option<Zone> {
    let zone = tariffs.first()?.tariff.zone;
    tariffs.iter().all(|known| known.tariff.zone == zone).then_some(zone)
}

/// Tariffs that are billed by the same meters.
struct BillGroup<'a> {
    meters: &'a [TariffMeter],
    tariffs: Vec<&'a KnownTariff>,
}

impl<'a> BillGroup<'a> {
    /// Groups tariffs. If `is_compared`, all are billed by the meters of the first tariff, else each tariff by its own.
    fn of(tariffs: &'a [KnownTariff], is_compared: bool) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for known in tariffs {
            let meters = if is_compared { &tariffs[0] } else { known }.tariff.meters.as_slice();
            match groups.iter_mut().find(|group| group.meters == meters) {
                Some(group) => group.tariffs.push(known),
                None => groups.push(Self { meters, tariffs: vec![known] }),
            }
        }
        groups
    }

    fn tariffs(&self) -> impl Iterator<Item = &'a Tariff> {
        self.tariffs.iter().map(|known| &known.tariff)
    }
}

/// The devices that tariffs name: meters, and series of prices.
async fn devices_of(
    groups: &[BillGroup<'_>],
    call: &mut Call<'_, impl Store>,
) -> Result<BTreeMap<DeviceId, Device>, Problem> {
    let meters = groups.iter().flat_map(|group| group.meters).map(|meter| &meter.device);
    let tariffs = groups.iter().flat_map(BillGroup::tariffs);
    let sources = tariffs.flat_map(|tariff| tariff.sources(TimeRange::ALL));
    let named = meters.chain(sources.map(|source| &source.device)).collect();
    lookup::devices_by_id(named, call).await
}

/// The steps of a bill: their times, and the coarsest items from which they are read.
struct StepPlan {
    grid: Grid,
    level: Level,
}

/// The data from which the bills of a group are made.
struct GroupReads {
    steps: StepPlan,
    /// The energy that the meters measured as used and as sold.
    metered: Vec<EnergyStep>,
    prices: Prices,
    /// The meters that are not billed.
    missing: Vec<Missing>,
    unit: String,
}

/// Reads energy and prices, and makes bills, within the limits of one answer.
struct Biller<'r, S> {
    request: &'r CostRequest,
    plan: &'r RowPlan,
    devices: &'r BTreeMap<DeviceId, Device>,
    allowance: ReadAllowance<'r>,
    session: Session<'r, S>,
    /// The work of all bills so far.
    work: usize,
    /// The range, widened to all time in which rollups were searched.
    reach: TimeRange,
}

impl<'r, S: Store> Biller<'r, S> {
    /// The bills of a group, or with `of_share` one device's shares of the bills. Each bill also gets the shares of the
    /// devices in `beside`.
    async fn bills<'a>(
        &mut self,
        group: &BillGroup<'a>,
        of_share: Option<&Device>,
        beside: &[Device],
    ) -> Result<Vec<ShownBill<'a>>, Problem> {
        let reads = self.read(group, of_share.is_none(), 1 + beside.len()).await?;
        let is_energy = reads.unit == "kWh";
        if of_share.is_some() && !is_energy {
            let why = format!("bills {}, and the share of a device is energy", reads.unit);
            return Err(Problem::field("tariff", why));
        }

        let steps = match of_share {
            Some(device) => {
                let own = self.steps_of_share(device, &reads).await?;
                Cow::Owned(own.ok_or_else(|| share::measures_no_energy(device))?)
            }
            None => Cow::Borrowed(&reads.metered),
        };
        let shown = |known: &&'a KnownTariff| self.shown(known, &reads, &steps, of_share.is_some());
        let mut bills: Vec<ShownBill<'a>> = group.tariffs.iter().map(shown).collect();

        // Device by device: the steps of all devices at once would take too much memory.
        for device in beside.iter().filter(|_| is_energy) {
            let Some(steps) = self.steps_of_share(device, &reads).await? else { continue };
            for (shown, tariff) in bills.iter_mut().zip(group.tariffs()) {
                let share = Bill::of(self.input(tariff, &reads, &steps, true));
                shown.devices.push(DeviceShare::of(device, share));
            }
        }

        Ok(bills)
    }

    /// Reads the data of a group in which each tariff gets `bills` bills. Without `needs_meters`, as for one device's
    /// shares, the meters are read only for tiers.
    async fn read(
        &mut self,
        group: &BillGroup<'_>,
        needs_meters: bool,
        bills: usize,
    ) -> Result<GroupReads, Problem> {
        let range = self.plan.grid.range();
        if self.request.has_lines && self.plan.grid.rows().len() > MAX_ROWS_OF_LINES {
            let why =
                format!("makes rows of lines of more than {MAX_ROWS_OF_LINES} units of every");
            return Err(Problem::field("lines", why));
        }

        let steps = self.steps(group, !needs_meters || bills > 1)?;
        let count = steps.grid.rows().len();
        self.add_work(group.tariffs().map(|tariff| bills * tariff.work(count)).sum())?;

        let (mut meters, mut missing) = (Vec::new(), Vec::new());
        let found = BilledMeter::all(group.meters, self.devices);
        for (meter, found) in group.meters.iter().zip(found) {
            match found {
                Ok(found) => meters.push(found),
                Err(_) => missing.push(Missing {
                    name: Some(meter.device.to_string()),
                    ..Missing::of(MissingKind::Meter, range)
                }),
            }
        }

        let unit = meters.first().map_or("kWh", BilledMeter::unit).to_owned();
        if !needs_meters && !group.tariffs().any(|tariff| tariff.has_tiers(range)) {
            meters.clear();
        }

        let metered = self.metered(&meters, &steps).await?;
        let prices = self.prices(&group.tariffs().collect::<Vec<_>>()).await?;
        Ok(GroupReads { steps, metered, prices, missing, unit })
    }

    /// Reads metrics of a device in rows, within the allowance of the answer.
    async fn read_rows<'a>(
        &mut self,
        device: &'a Device,
        names: &[MetricName],
        steps: &'a StepPlan,
    ) -> Result<DeviceRows<'a>, Problem>
    where
        'r: 'a,
    {
        let RowPlan { horizon, now, .. } = self.plan;
        let question = DeviceQuestion::of(device, &steps.grid, horizon, steps.level, *now);
        let planned = [PlannedRead::of(question, names)];
        Box::pin(self.allowance.charge(self.session, &planned)).await.map_err(problem)?;

        let needs_neighbours = |rule: &MetricRule| *rule != MetricRule::Gauge;
        let read = Box::pin(device_rows(self.session, &question, names, needs_neighbours)).await;
        let read = read.map_err(problem)?;
        self.reach = hull(self.reach, read.reach);
        Ok(read)
    }

    /// The steps of a group: local days of the home, or quarters of an hour, cut at the rows. Tiers count from the
    /// first of the month, so the steps begin there. A share is billed in the tier of the meter at that time, so shares
    /// with tiers need quarters.
    fn steps(&self, group: &BillGroup<'_>, has_shares: bool) -> Result<StepPlan, Problem> {
        let rows = self.plan.grid.rows();
        let (range, home) = (self.plan.grid.range(), self.plan.horizon.zone());
        let mut from = range.from();
        for tariff in group.tariffs().filter(|tariff| tariff.has_tiers(range)) {
            from = from.min(CalendarUnit::Month.bucket_of(range.from(), tariff.zone).from());
        }
        let range = TimeRange::new(from, range.to()).expect("it only grows");

        let by_quarters = group.tariffs().any(|tariff| {
            tariff.needs_quarters(range, home) || (has_shares && tariff.has_tiers(range))
        });
        let finest = if by_quarters { Level::QuarterHours } else { Level::Days };
        let level = Level::of(self.request.series.unit).min(finest);

        check_days(range, level)?;
        let mut cuts: BTreeSet<Timestamp> = rows.iter().map(|row| row.from()).collect();
        if by_quarters {
            cuts.extend(Grid::quarters(range).rows().iter().map(|quarter| quarter.from()));
        } else {
            cuts.extend(CalendarUnit::Day.buckets(range, home).map(TimeRange::from));
        }
        cuts.retain(|cut| range.from() < *cut && *cut < range.to());
        Ok(StepPlan { grid: Grid::between(range, cuts), level })
    }

    /// The steps of a device's share; `None` if the device uses nothing.
    async fn steps_of_share(
        &mut self,
        device: &Device,
        reads: &GroupReads,
    ) -> Result<Option<Vec<EnergyStep>>, Problem> {
        let Some(own) = BilledMeter::of_device(device) else { return Ok(None) };
        let mut steps = self.metered(&[own], &reads.steps).await?;
        for (step, of_meters) in steps.iter_mut().zip(&reads.metered) {
            step.sold = None;
            step.estimated.retain(|part| part.per == Per::Used);
            step.metered.clone_from(&of_meters.used);
        }
        Ok(Some(steps))
    }

    /// Refuses more work than one answer may take.
    fn add_work(&mut self, more: usize) -> Result<(), Problem> {
        self.work += more;
        if self.work <= MAX_WORK {
            return Ok(());
        }
        let detail = "The bill takes too many steps: quarters of an hour times the lines of the tariffs. Narrow from and \
                      to, or ask for fewer tariffs.";
        Err(Problem::new(ProblemKind::Unanswerable, detail))
    }

    /// Makes a bill, and with `lines=1` also the lines of each row.
    fn shown<'a>(
        &self,
        known: &'a KnownTariff,
        reads: &GroupReads,
        steps: &[EnergyStep],
        is_share: bool,
    ) -> ShownBill<'a> {
        let tariff = &known.tariff;
        let input = self.input(tariff, reads, steps, is_share);
        let of_row = |row: &TimeRange| {
            let month = CalendarUnit::Month.bucket_of(row.from(), tariff.zone);
            let first = steps.partition_point(|step| step.range.from() < month.from());
            let end = steps.partition_point(|step| step.range.from() < row.to());
            let rows = std::slice::from_ref(row);
            BillLine::all(BillInput { rows, steps: &steps[first..end], ..input })
        };

        let rows = input.rows.iter().filter(|_| self.request.has_lines);
        let by_row = rows.map(of_row).collect();
        ShownBill::of(known, &reads.unit, Bill::of(input), by_row, is_share)
    }

    fn input<'i>(
        &'i self,
        tariff: &'i Tariff,
        reads: &'i GroupReads,
        steps: &'i [EnergyStep],
        is_share: bool,
    ) -> BillInput<'i> {
        let (rows, until) = (self.plan.grid.rows(), self.plan.now);
        let GroupReads { prices, missing, .. } = reads;
        BillInput { tariff, rows, steps, prices, missing, until, is_share }
    }
}
