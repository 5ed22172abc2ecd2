//! Warnings about a rule that is saved or tried. An odd rule is stored all the same, because devices may come later.

use ::alerts::{Group, NoData, Rule, Scope, Watch};
use api::Problem;
use domain::{Device, MetricName};
use judging::{MAX_FEW, devices_of, has_sent_watched};
use table::MAX_CACHED_ENTRIES;

use crate::ports::Store;
use crate::shared_state::Call;

/// The warnings about a saved rule: about its subjects, and that there is no channel.
pub(crate) async fn of(
    rule: &Rule,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    let mut warnings = of_subjects(rule, call).await?;
    let channels = call.session.channels().await?;
    if channels.found.is_empty() {
        warnings.push("there is no channel, so nobody is told".to_owned());
    }
    Ok(warnings)
}

/// The warnings about what a rule watches, each as `member: what is odd`.
pub(crate) async fn of_subjects(
    rule: &Rule,
    call: &mut Call<'_, impl Store>,
) -> Result<Vec<String>, Problem> {
    let mut warnings = Vec::new();
    match &rule.scope {
        Scope::Device(id) => match call.shared.registry.device(id, call.session, call.log).await? {
            Some(device) => warnings.extend(of_device(rule, &device)),
            None => warnings.push(format!("device: nothing of {id} has arrived yet")),
        },
        Scope::Each(Group::Room(id)) | Scope::RoomMean(id) => {
            if call.shared.registry.room(id, call.session, call.log).await?.is_none() {
                let is_mean = matches!(rule.scope, Scope::RoomMean(_));
                let member = if is_mean { "mean_of_room" } else { "room" };
                warnings.push(format!("{member}: there is no room {id} yet"));
            }
        }
        Scope::Each(Group::Kind(_) | Group::Tag(_)) => {}
    }

    if !matches!(rule.scope, Scope::Device(_)) {
        let snapshot = call.shared.registry.snapshot_for_list(call.session, call.log).await?;
        warnings.extend(match snapshot.all_devices() {
            Some(all) => of_devices(rule, &devices_of(rule, all.values()).collect::<Vec<_>>()),
            None => of_unknown_devices(rule),
        });
    }

    Ok(warnings)
}

/// The warning about a rule on several devices.
fn of_devices(rule: &Rule, devices: &[&Device]) -> Option<String> {
    if devices.is_empty() {
        return match &rule.scope {
            Scope::Each(Group::Kind(_)) => Some("kind: no device is of it yet".to_owned()),
            Scope::Each(Group::Tag(_)) => Some("tag: no device has it yet".to_owned()),
            _ => None,
        };
    }

    if !devices.iter().any(|device| has_sent_watched(rule, device)) {
        let (member, watched) = watched(rule)?;
        return Some(format!("{member}: no device of it has sent {watched} yet"));
    }

    match (&rule.scope, &rule.watch) {
        (Scope::Each(_), Watch::Demand { .. }) if devices.len() > MAX_FEW => Some(format!(
            "demand_kw: it is about more than {MAX_FEW} devices, so no period is judged while it runs"
        )),
        _ => None,
    }
}

/// The warning that a rule on several devices is not judged, because the registry has more devices than a process keeps
/// in memory. Rules on a limit of a metric or on steps of a counter get no warning: they are judged when the quarter of
/// an hour is rolled up.
fn of_unknown_devices(rule: &Rule) -> Option<String> {
    let (member, unjudged) = match (&rule.scope, &rule.watch) {
        (Scope::RoomMean(_), _) => ("mean_of_room", "no mean is judged"),
        (Scope::Each(_), Watch::Silence { .. }) => ("silent_for", "silence is not judged"),
        (Scope::Each(_), Watch::Budget { .. }) => ("budget_kwh", "no budget is judged"),
        (Scope::Each(_), Watch::Demand { .. }) => {
            ("demand_kw", "no period is judged while it runs")
        }
        (Scope::Each(_), Watch::Metric { .. }) if rule.no_data() == NoData::Fire => {
            ("no_data", "silence does not fire")
        }
        (Scope::Device(_), _) | (Scope::Each(_), Watch::Metric { .. } | Watch::Counter { .. }) => {
            return None;
        }
    };

    Some(format!(
        "{member}: there are more than {MAX_CACHED_ENTRIES} devices, so {unjudged}; a rule with device is judged"
    ))
}

/// The warning about a rule on one device.
fn of_device(rule: &Rule, device: &Device) -> Option<String> {
    if has_sent_watched(rule, device) {
        return None;
    }
    let (member, watched) = watched(rule)?;
    let known: Vec<&str> = device.metrics().keys().map(MetricName::as_str).collect();
    Some(format!(
        "{member}: {} has sent no {watched} yet; it has {}",
        device.id(),
        known.join(", ")
    ))
}

/// The member of a rule that says what is watched, and the watched thing in words for people. Silence watches every
/// reading, so it has no such member.
fn watched(rule: &Rule) -> Option<(&'static str, &str)> {
    match &rule.watch {
        Watch::Metric { metric, .. } | Watch::Counter { metric, .. } => {
            Some(("metric", metric.as_str()))
        }
        Watch::Budget { .. } => Some(("budget_kwh", "energy or power")),
        Watch::Demand { .. } => Some(("demand_kw", "energy or power")),
        Watch::Silence { .. } => None,
    }
}
