//! Where the counters of a meter are in the table: since when it sends itself, and what it showed. Reads no file.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use domain::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::sources::shelly::{Anchors, Log};
use crate::client::{Ask, Client};

/// The end of the span that is asked for.
const END: &str = "2200-01-01T00:00:00Z";

/// A page of readings with one metric.
#[derive(Deserialize)]
struct Page {
    data: Vec<BTreeMap<String, Box<RawValue>>>,
}

/// Asks for what is known of the counters of a log.
///
/// A reading at the end of a row may be of an earlier import of it; any other is the meter's own. The former end where
/// the latter begin, so the place is found by halves.
pub(super) fn of(client: &Client, log: &Log) -> anyhow::Result<Anchors> {
    let (ends, counters) = (log.ends(), log.counters());
    let mut anchors = Anchors::default();
    let Some(((device, metric), first)) = counters.first().zip(ends.first()) else {
        return Ok(anchors);
    };
    let is_of_log = |at: i64| ends.binary_search(&at).is_ok();
    let mut failed = None;
    let behind = ends.partition_point(|end| match read(client, device, metric, *end) {
        Ok(found) => found.is_some_and(|(at, _)| is_of_log(at)),
        Err(error) => {
            failed.get_or_insert(error);
            false
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let from = ends.get(behind).copied().unwrap_or_else(|| ends[ends.len() - 1] + 1);
    anchors.live = read(client, device, metric, from)?.map(|(at, _)| at);
    for (device, metric) in counters {
        let found = match anchors.live {
            Some(live) => read(client, &device, &metric, live)?,
            None => read(client, &device, &metric, *first)?,
        };
        let found = match found {
            Some(found) => Some(found),
            None => ask(client, &device, &metric, &format!("to={}&order=desc", shown(*first)?))?,
        };
        if let Some(found) = found {
            anchors.counters.insert((device, metric), found);
        }
    }
    Ok(anchors)
}

/// Returns the first reading with a metric from a time on, and its value.
fn read(
    client: &Client,
    device: &str,
    metric: &str,
    from: i64,
) -> anyhow::Result<Option<(i64, Decimal)>> {
    ask(client, device, metric, &format!("from={}&to={END}", shown(from)?))
}

fn ask(
    client: &Client,
    device: &str,
    metric: &str,
    span: &str,
) -> anyhow::Result<Option<(i64, Decimal)>> {
    let path = format!("/devices/{device}/readings?metrics={metric}&{span}&limit=1");
    let answer = client.send(Ask::get(&path), &AtomicBool::new(false))?;
    match answer.status {
        200 => {}
        404 => return Ok(None),
        403 => bail!("what the meter itself has sent cannot be read: the token has to read, too"),
        _ => return Err(client.error(&path, &answer)),
    }
    let page: Page = serde_json::from_str(&answer.text)
        .with_context(|| format!("{} answers, but not as Roomtide does", client.url()))?;
    let Some(reading) = page.data.into_iter().next() else { return Ok(None) };
    let member = |name: &str| {
        reading.get(name).map(|it| it.get()).with_context(|| format!("a reading has no {name}"))
    };
    let at: String = serde_json::from_str(member("timestamp")?)?;
    let at = Timestamp::parse_absolute(&at).context("a reading's timestamp")?;
    let value = member(metric)?;
    let value = Decimal::from_str_exact(value)
        .or_else(|_| Decimal::from_scientific(value))
        .with_context(|| format!("{metric} of {device} is {value}"))?;
    Ok(Some((at.as_millis(), value)))
}

fn shown(millis: i64) -> anyhow::Result<String> {
    Ok(Timestamp::from_millis(millis).context("a time of the log")?.to_string())
}
