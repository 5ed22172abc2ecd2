//! Warnings about a saved tariff: unknown devices and metrics, and values that look wrong. The tariff is saved all the
//! same.

use std::collections::BTreeSet;

use api::Problem;
use domain::{DeviceId, Exact, meters_above};
use tariffs::{Per, WrittenTariff};

use crate::ports::Store;
use crate::registry::lookup;
use crate::series::cost::meter::{BilledMeter, known_device};
use crate::shared_state::Call;

/// By currency, the lowest price of a kWh that looks like a number of hundredths, such as cents.
const LIKE_CENTS: [(&str, i64); 7] =
    [("EUR", 3), ("GBP", 3), ("USD", 3), ("CHF", 3), ("NOK", 10), ("SEK", 10), ("DKK", 10)];

/// The warnings about a tariff.
pub(super) async fn of(
    tariff: &WrittenTariff,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    let mut warnings: Vec<String> =
        cents(tariff).chain(shares(tariff)).chain(ends(tariff)).collect();

    let series = || tariff.lines.iter().filter_map(|line| line.series.as_ref());
    let meters = tariff.meters.iter().map(|meter| &meter.device);
    let named: BTreeSet<&DeviceId> = meters.chain(series().map(|series| &series.device)).collect();
    if named.is_empty() {
        return Ok(warnings);
    }

    let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    let devices = lookup::devices_by_id(named, call).await?;
    let meters = BilledMeter::all(&tariff.meters, &devices);
    warnings.extend(meters.into_iter().filter_map(Result::err));
    for series in series() {
        warnings.extend(known_device(&series.device, Some(&series.metric), &devices).err());
    }

    let behind = |id: &DeviceId| snapshot.devices.get(id)?.behind();
    for meter in &tariff.meters {
        let above = meters_above(&meter.device, behind);
        let other = tariff.meters.iter().find(|other| above.contains(&&other.device));
        if let Some(other) = other {
            let (id, other) = (&meter.device, &other.device);
            warnings.push(format!("{id} is behind {other}, so its energy is billed twice"));
        }
    }

    warnings.dedup();
    Ok(warnings)
}

/// Warnings of percentages that look like a share of one.
fn shares(tariff: &WrittenTariff) -> impl Iterator<Item = String> {
    let one = Exact::from(1_i64);
    tariff.lines.iter().filter(|line| line.per == Per::Percent).filter_map(move |line| {
        let percentage = Exact::from(line.price.as_ref()?);
        let is_share = percentage.is_positive() && percentage < one;
        is_share.then(|| format!("{percentage} percent of {} looks like a share of one", line.name))
    })
}

/// Warnings of names whose newest line has an end, although an older line of the name is open.
fn ends(tariff: &WrittenTariff) -> impl Iterator<Item = String> {
    tariff.lines.iter().filter_map(|line| {
        let end = line.to?;
        let of_name = || tariff.lines.iter().filter(|other| other.name == line.name);
        let is_newest = of_name().all(|other| other.from <= line.from);
        let has_open = of_name().any(|other| other.to.is_none());
        let why = || format!("{} ends on {end}, and no line of its name follows", line.name);
        (is_newest && has_open).then(why)
    })
}

/// Warnings of prices that look like cents.
fn cents(tariff: &WrittenTariff) -> impl Iterator<Item = String> {
    let limit = LIKE_CENTS.iter().find(|(currency, _)| *currency == tariff.currency);
    let limit = limit.map(|(_, price)| Exact::from(*price));
    tariff.lines.iter().filter(|line| line.per.is_of_energy()).filter_map(move |line| {
        let limit = limit.clone()?;
        let zones = line.zones.iter().map(|zone| &zone.price);
        let tiers = line.tiers.iter().map(|tier| &tier.price);
        let mut prices = line.price.iter().chain(zones).chain(tiers).map(Exact::from);
        let price = prices.find(|price| *price >= limit)?;
        let (name, currency) = (&line.name, &tariff.currency);
        Some(format!("{price} {currency} of {name} looks like a price in hundredths"))
    })
}
