//! What is odd about a rule that was saved: it is stored all the same, because devices may come later.

use ::alerts::{Group, Rule, Scope, Watch};
use api::Problem;
use domain::{Device, MetricName};
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
        Scope::Each(Group::Kind(kind)) => {
            let is_of = |device: &Device| device.kind() == Some(kind);
            if !has(is_of, registry, store, call).await? {
                warnings.push("kind: no device is of it yet".to_owned());
            }
        }
        Scope::Each(Group::Tag(tag)) => {
            let is_of = |device: &Device| device.tags().iter().any(|it| it == tag);
            if !has(is_of, registry, store, call).await? {
                warnings.push("tag: no device has it yet".to_owned());
            }
        }
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

/// Whether a device is of a group, as far as memory knows.
async fn has(
    is_of: impl Fn(&Device) -> bool,
    registry: &CachedRegistry<impl Clock>,
    store: &impl Store,
    call: &mut Call<'_>,
) -> Result<bool, Problem> {
    let snapshot = lookup::snapshot_for_list(registry, store, call).await?;
    Ok(!snapshot.has_all_devices || snapshot.devices.values().any(is_of))
}
