//! What is odd about a rule that was saved: it is stored all the same, because devices may come later.

use ::alerts::{Group, Rule, Scope, Watch};
use api::Problem;
use domain::{Device, MetricName};
use judging::{MAX_PROMPT, subjects_of};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;

use crate::ports::Store;
use crate::registry::lookup;

/// Each as `member: what is odd`.
pub(crate) async fn of(
    rule: &Rule,
    registry: &CachedRegistry<impl Clock>,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<Vec<String>, Problem> {
    let mut warnings = Vec::new();
    match &rule.scope {
        Scope::Device(id) => {
            let device = registry.device(id, store, call.invocation, call.log).await;
            match device.map_err(|error| call.failed(&error))? {
                Some(device) => warnings.extend(of_metric(rule, &device)),
                None => warnings.push(format!("device: nothing of {id} has arrived yet")),
            }
        }
        Scope::Each(Group::Room(id)) => {
            let room = registry.room(id, store, call.invocation, call.log).await;
            if room.map_err(|error| call.failed(&error))?.is_none() {
                warnings.push(format!("room: there is no room {id} yet"));
            }
        }
        Scope::RoomMean(id) => {
            let room = registry.room(id, store, call.invocation, call.log).await;
            if room.map_err(|error| call.failed(&error))?.is_none() {
                warnings.push(format!("mean_of_room: there is no room {id} yet"));
            }
        }
        Scope::Each(Group::Kind(_)) => {
            if count(rule, registry, store, call).await? == Some(0) {
                warnings.push("kind: no device is of it yet".to_owned());
            }
        }
        Scope::Each(Group::Tag(_)) => {
            if count(rule, registry, store, call).await? == Some(0) {
                warnings.push("tag: no device has it yet".to_owned());
            }
        }
    }
    let is_each = matches!(rule.scope, Scope::Each(_));
    if is_each
        && matches!(rule.watch, Watch::Demand { .. })
        && count(rule, registry, store, call).await?.is_none_or(|it| it > MAX_PROMPT)
    {
        warnings.push(format!(
            "demand_kw: it is about more than {MAX_PROMPT} devices, so no period is judged while it runs"
        ));
    }
    let channels = store.channels(call.invocation).await.map_err(|error| call.failed(&error))?;
    if channels.found.is_empty() {
        warnings.push("there is no channel, so nobody is told".to_owned());
    }
    Ok(warnings)
}

fn of_metric(rule: &Rule, device: &Device) -> Option<String> {
    let (Watch::Metric { metric, .. } | Watch::Counter { metric, .. }) = &rule.watch else {
        return None;
    };
    if device.metrics().contains_key(metric) {
        return None;
    }
    let known: Vec<&str> = device.metrics().keys().map(MetricName::as_str).collect();
    Some(format!("metric: {} has sent no {metric} yet; it has {}", device.id(), known.join(", ")))
}

/// The number of devices that a rule is about. Returns `None` if there are more devices than memory holds.
async fn count(
    rule: &Rule,
    registry: &CachedRegistry<impl Clock>,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<Option<usize>, Problem> {
    let snapshot = lookup::snapshot_for_list(registry, store, call).await?;
    let count = || subjects_of(rule, snapshot.devices.values()).len();
    Ok(snapshot.has_all_devices.then(count))
}
