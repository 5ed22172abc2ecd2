//! Adds to registered devices what senders say about them. Registers none.

use std::borrow::Cow;

use domain::{Device, Hints};
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use table::{Invocation, StoreError, StoreResult, TeachRegistry, UpdateOutcome};

use crate::readings::{StoredReadings, Untaught};
use crate::registry::found::FoundDevices;
use crate::registry::registration::{CONCURRENCY, Registration};
use crate::registry::remembered::Registry;

/// The maximum number of registered devices that one request teaches. Readings of the others are to be sent again.
const MAX_TAUGHT: usize = 500;
/// The attempts to teach a device that others change meanwhile: the registry function does, from the stream.
const MAX_ATTEMPTS: usize = 10;

impl<C: Clock> Registry<C> {
    /// Adds to registered devices what stored readings say about them. Returns the devices that could not be taught: if
    /// the sender repeats their readings, they are taught then.
    pub(crate) async fn teach(
        &self,
        store: &impl TeachRegistry,
        stored: &StoredReadings,
        found: &FoundDevices,
        Registration { registered, mut left }: Registration,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Option<Untaught> {
        let current = self.cache.current()?;
        left.retain(|id| stored.hints.contains_key(id));
        let mut cause =
            (!left.is_empty()).then(|| StoreError::Throttled("devices to register".into()));

        let mut lacking = Vec::new();
        for (id, hints) in &stored.hints {
            let remembered = current.devices.get(id).or_else(|| registered.get(id));
            if let Some(device) = remembered.or_else(|| found.device_now(id, &current))
                && device.taught(hints).is_some()
            {
                lacking.push((device, hints));
            }
        }
        let beyond = lacking.split_off(lacking.len().min(MAX_TAUGHT));
        if !beyond.is_empty() {
            left.extend(beyond.iter().map(|(device, _)| device.id().clone()));
            cause = cause.or_else(|| Some(StoreError::Throttled("devices to teach".into())));
        }

        let teaching = lacking.into_iter().map(async |(device, hints)| {
            (device.id(), teach_one(store, device, hints, invocation).await)
        });
        let teaching: Vec<_> = teaching.collect();
        let mut results = stream::iter(teaching).buffer_unordered(CONCURRENCY);
        while let Some((id, result)) = results.next().await {
            match result {
                Ok(Some(device)) if current.has_all_devices => self.cache.keep_device(device),
                Ok(_) => {}
                Err(error) => {
                    log.warn("registry.error", &error);
                    if error.is_retryable() {
                        left.insert(id.clone());
                        cause = cause.or(Some(error));
                    }
                }
            }
        }
        cause.map(|cause| Untaught { devices: left, cause })
    }
}

/// Adds hints to a registered device, and tries again if another writer changed the device meanwhile. Returns the device as
/// stored; `None` if the device is being deleted.
async fn teach_one(
    store: &impl TeachRegistry,
    device: &Device,
    hints: &Hints,
    invocation: &Invocation,
) -> StoreResult<Option<Device>> {
    let mut known = Cow::Borrowed(device);
    for _ in 0..MAX_ATTEMPTS {
        match store.teach_device(&known, hints, invocation).await? {
            UpdateOutcome::Updated(device) => return Ok(Some(device)),
            UpdateOutcome::ConditionFailed(Some(now)) => known = Cow::Owned(now),
            UpdateOutcome::ConditionFailed(None) => return Ok(None),
        }
    }
    Err(StoreError::Contended(format!("the device {}", device.id())))
}
