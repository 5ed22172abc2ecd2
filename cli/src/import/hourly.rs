//! Notes in the registry until when metrics have only hourly means, as in Home Assistant's long-term statistics. Sends
//! no reading.

use std::collections::BTreeMap;

use anyhow::bail;
use domain::{DeviceId, MetricName, Timestamp};
use serde_json::json;

use crate::client::{Ask, Client};
use crate::output::counted;

/// Notes the time of each entity's newest hourly mean, in nanoseconds, if `metric_of` finds the entity's metric.
/// Returns a sentence for the person. A failure is only reported in the sentence, because the import is complete
/// without the notes. Returns `None` if nothing is noted.
pub(super) fn note(
    hourly: &BTreeMap<String, i64>,
    metric_of: impl Fn(&DeviceId, Timestamp) -> Option<MetricName>,
    client: &Client,
) -> Option<String> {
    match noted(hourly, metric_of, client) {
        Ok(0) => None,
        Ok(noted) => {
            let have = if noted == 1 { "has" } else { "have" };
            let metrics = counted(noted, "metric");
            Some(format!("noted until when {metrics} {have} hourly means only"))
        }
        Err(why) => {
            Some(format!("the page does not show until when there are hourly means only: {why:#}"))
        }
    }
}

/// Sets the notes through the API. Returns the number of noted metrics.
fn noted(
    hourly: &BTreeMap<String, i64>,
    metric_of: impl Fn(&DeviceId, Timestamp) -> Option<MetricName>,
    client: &Client,
) -> anyhow::Result<u64> {
    let mut noted = 0;
    for (entity, nanos) in hourly {
        let at = Timestamp::from_millis(nanos.div_euclid(1_000_000));
        let (Ok(device), Ok(at)) = (entity.parse::<DeviceId>(), at) else { continue };
        let Some(metric) = metric_of(&device, at) else { continue };

        let path = format!("/devices/{device}");
        let body =
            json!({"metrics": {metric.as_str(): {"hourly_until": at.to_string()}}}).to_string();
        let answer = client.send(Ask::json("PATCH", &path, &body))?;
        match answer.status {
            200 => noted += 1,
            401 | 403 => bail!("that needs an admin's token"),
            // The token's settings give the device or metric another name.
            404 | 422 => {}
            _ => return Err(client.error(&path, &answer)),
        }
    }

    Ok(noted)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::tests::fake_server::{self, Reply};

    #[test]
    fn the_newest_hour_is_noted_and_a_missing_permission_is_said() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        for (status, expected) in [
            (200, "noted until when 2 metrics have hourly means only"),
            (
                403,
                "the page does not show until when there are hourly means only: that needs an admin's token",
            ),
        ] {
            let bodies = Arc::clone(&seen);
            let server = fake_server::serve(move |_, request| {
                assert_eq!(request.method, "PATCH");
                bodies.lock().unwrap().push(format!("{} {}", request.path, request.body));
                Reply::of(status, "{}")
            });
            let client = server.client();
            let hour = 1_768_149_000_000_000_000;
            let hourly = ["sensor.a", "sensor.b", "sensor.past"].map(|id| (id.to_owned(), hour));
            let metric = |device: &DeviceId, _| {
                (device.as_str() != "sensor.past").then(|| "temperature".parse().unwrap())
            };
            let said = note(&hourly.into(), metric, &client);
            assert_eq!(said.as_deref(), Some(expected));
        }
        let seen = seen.lock().unwrap();
        let first = r#"/devices/sensor.a {"metrics":{"temperature":{"hourly_until":"2026-01-11T16:30:00.000Z"}}}"#;
        assert_eq!((seen[0].as_str(), seen.len()), (first, 3));
    }
}
