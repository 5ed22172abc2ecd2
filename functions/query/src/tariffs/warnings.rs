//! The warnings about a saved tariff: what it names is unknown, or looks wrong. The tariff is saved all the same.

use api::Problem;
use domain::{Device, DeviceId, Exact, MetricName, meters_above};
use runtime::clock::Clock;
use runtime::http::Call;
use tariffs::{Per, WrittenTariff};

use crate::handlers::Handlers;
use crate::ports::Store;

/// The price of a kWh from which it looks like a number in hundredths, by currency.
const LIKE_CENTS: [(&str, i64); 7] =
    [("EUR", 3), ("GBP", 3), ("USD", 3), ("CHF", 3), ("NOK", 10), ("SEK", 10), ("DKK", 10)];

/// The warnings about a tariff.
pub(super) async fn of(
    tariff: &WrittenTariff,
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    let mut warnings: Vec<String> = cents(tariff).chain(shares(tariff)).collect();
    let meters = tariff.meters.iter().map(|meter| (&meter.device, meter.metric.as_ref()));
    let series = tariff.lines.iter().filter_map(|line| line.series.as_ref());
    let named = meters.chain(series.map(|series| (&series.device, Some(&series.metric))));
    if tariff.meters.is_empty() && tariff.lines.iter().all(|line| line.series.is_none()) {
        return Ok(warnings);
    }

    let snapshot = handlers.registry.snapshot_for_list(call.session, call.log).await?;
    for (id, metric) in named {
        let device = handlers.registry.device(id, call.session, call.log).await?;
        let known = device.as_ref().map(Device::metrics);
        let has = |metric: &&MetricName| known.is_some_and(|known| known.contains_key(*metric));
        match (known, metric) {
            (None, _) => warnings.push(format!("there is no device {id}; it has sent no reading")),
            (Some(_), Some(metric)) if !has(&metric) => {
                warnings.push(format!("{id} has sent no {metric}"));
            }
            _ => {}
        }
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

/// Warnings of prices that look like cents.
fn cents(tariff: &WrittenTariff) -> impl Iterator<Item = String> {
    let limit = LIKE_CENTS.iter().find(|(currency, _)| *currency == tariff.currency);
    let limit = limit.map(|(_, price)| Exact::from(*price));
    tariff.lines.iter().filter(|line| line.per == Per::Used).filter_map(move |line| {
        let limit = limit.clone()?;
        let zones = line.zones.iter().map(|zone| &zone.price);
        let tiers = line.tiers.iter().map(|tier| &tier.price);
        let mut prices = line.price.iter().chain(zones).chain(tiers).map(Exact::from);
        let price = prices.find(|price| *price >= limit)?;
        let (name, currency) = (&line.name, &tariff.currency);
        Some(format!("{price} {currency} of {name} looks like a price in hundredths"))
    })
}
