//! Finds stored readings of a counter on a server: the first from a time on, the last before a time. Decides nothing.

use anyhow::Context as _;
use domain::Timestamp;
use history::made_counters::StoredCounters;
use rust_decimal::Decimal;

use super::reading_pages;
use crate::client::Client;

impl StoredCounters for Client {
    fn may_read(&self) -> anyhow::Result<bool> {
        let answer = self.get("/devices?limit=1")?;
        Ok(answer.status == 200)
    }

    fn last_before(
        &self,
        device: &str,
        metric: &str,
        to: i64,
    ) -> anyhow::Result<Option<(i64, Decimal)>> {
        ask(self, device, metric, &format!("from={}&to={}&order=desc", Timestamp::MIN, shown(to)?))
    }

    fn first_from(
        &self,
        device: &str,
        metric: &str,
        from: i64,
    ) -> anyhow::Result<Option<(i64, Decimal)>> {
        ask(self, device, metric, &format!("from={}&to={}", shown(from)?, Timestamp::MAX))
    }
}

fn ask(
    client: &Client,
    device: &str,
    metric: &str,
    span: &str,
) -> anyhow::Result<Option<(i64, Decimal)>> {
    let path = format!("/devices/{device}/readings?metrics={metric}&{span}");
    let found = reading_pages::first(client, &path, 1).with_context(|| {
        format!("what the table has of {device} is needed, so the token has to read, too")
    })?;
    let Some(reading) = found.first() else { return Ok(None) };

    let at = reading_pages::time_of(reading)?;
    let value = reading.get(metric).with_context(|| format!("a reading has no {metric}"))?.get();
    let value = Decimal::from_str_exact(value)
        .or_else(|_| Decimal::from_scientific(value))
        .with_context(|| format!("{metric} of {device} is {value}"))?;
    Ok(Some((at.as_millis(), value)))
}

fn shown(millis: i64) -> anyhow::Result<String> {
    Ok(Timestamp::from_millis(millis).context("a time of the counter")?.to_string())
}
