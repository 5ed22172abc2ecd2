//! Refuses verdicts that would change nothing. By a verdict, a person says how a step of a counter is counted. Reads no
//! reading itself.
//!
//! A stored verdict is not checked again. If readings change later, a verdict that does not fit its step has no effect.

use api::Problem;
use domain::{Device, DevicePatch, Edit, MetricRule, Timestamp, Verdict};
use series::VerdictStep;

use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::Call;

/// Refuses an edit if a new verdict in it would change nothing. The device and its readings at present decide.
pub(crate) async fn check_verdicts(
    device: &Device,
    patch: &DevicePatch,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    let now = call.session.now;
    let mut edited = device.clone();
    patch.apply(&mut edited, now);

    let new = patch.settings().flat_map(|(name, settings)| {
        let stored = device.metrics().get(name).map(|info| &info.verdicts);
        let given = match &settings.verdicts {
            Edit::Set(given) => Some(given),
            Edit::Keep | Edit::Clear => None,
        };
        let is_new = move |(at, verdict): &(&Timestamp, &Verdict)| {
            stored.and_then(|stored| stored.get(at)) != Some(*verdict)
        };
        given.into_iter().flatten().filter(is_new).map(move |(at, verdict)| (name, *at, *verdict))
    });

    let new: Vec<_> = new.collect();
    if new.is_empty() {
        return Ok(());
    }

    let horizon = call.shared.rollup_state.horizon(call.session).await?;
    for (name, at, verdict) in new {
        let Some(MetricRule::Counter(rule)) = edited.metrics().get(name).map(MetricRule::of) else {
            continue;
        };
        let step = VerdictStep { device: &edited, name, at, now, horizon: &horizon };
        let why = step.why_useless(call.session, &rule, verdict).await;
        if let Some(why) = why.map_err(problem)? {
            let message = format!("{at}: {why}");
            return Err(Problem::field(&format!("metrics.{name}.verdicts"), message));
        }
    }

    Ok(())
}
