//! Limits the devices that a sender introduces: without a limit whoever may store readings could fill the registry,
//! which everybody reads. Registers none.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::FieldError;
use domain::{DeviceId, TokenHash};
use runtime::authentication::Grant;
use table::{CountIntroduced, Invocation, StoreResult};

use crate::intake::mode::Words;
use crate::intake::sender::Sender;
use crate::readings::Readings;
use crate::registry::known::Known;
use crate::settings::Settings;

/// The largest number of parts that an MQTT device introduces; a part is a device such as `plug:SI7021`.
pub(crate) const MAX_PARTS: usize = 32;
/// What stands before the device of a topic, where a token has the beginning of its hash.
const TOPIC: &str = "mqtt:";
/// The largest number of devices that are remembered as counted; beyond it, all are forgotten and counted again.
const MAX_REMEMBERED: usize = 10_000;
/// The largest number of attempts at counting while others count the same sender's devices.
const MAX_ATTEMPTS: usize = 5;

/// A sender whose new devices are counted.
#[derive(Debug)]
pub(crate) struct Introducer {
    /// The beginning of a token's hash, or the device of a topic; see [`domain::Source::introduced_by`].
    pub(crate) name: String,
    /// The device of the topic, which is the sender itself and counts as none.
    own: Option<DeviceId>,
    limit: usize,
    words: Words,
}

impl Introducer {
    /// The holder of a write token; `None` for whoever may introduce any number.
    pub(crate) fn of(grant: &Grant, settings: &Settings, words: Words) -> Option<Self> {
        let token = grant.writing().and_then(|_| grant.token())?;
        let limit = settings.max_devices_per_token as usize;
        Some(Self { name: TokenHash::short(token), own: None, limit, words })
    }

    /// The device that publishes on a topic.
    pub(crate) fn of_topic(sender: &Sender<'_>, settings: &Settings) -> Option<Self> {
        let Sender::Topic(device) = sender else { return None };
        let limit = MAX_PARTS.min(settings.max_devices_per_token as usize);
        let (name, own) = (format!("{TOPIC}{device}"), Some(device.clone()));
        Some(Self { name, own, limit, words: Words::Native })
    }

    fn why(&self) -> String {
        let limit = self.limit;
        match (self.words, &self.own) {
            (Words::InfluxDb, _) => {
                format!(
                    "is new, and max-values-per-tag limit exceeded ({limit}/{limit}); the token introduces no \
                     further device"
                )
            }
            (Words::Native, None) => {
                format!(
                    "is new, and there are {limit} that the token has introduced; the token introduces no \
                     further device"
                )
            }
            (Words::Native, Some(own)) => {
                format!(
                    "is new, and there are {limit} parts that {:?} has introduced by MQTT; it introduces no \
                     further one",
                    own.as_str()
                )
            }
        }
    }
}

/// The devices that this process has counted lately and the registry did not have then, each with its introducer: a device
/// that could not be registered is not counted with each of its readings, and one that the registry function registers,
/// which knows no sender, is counted nevertheless.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<HashMap<DeviceId, String>>);

impl Counted {
    /// Counts the new devices of a request in the table, as many as the sender may introduce; returns their number.
    ///
    /// One write for each request that introduces a device into a registry that memory does not hold. A request
    /// that is repeated, or whose devices another instance counts too, may count them twice.
    async fn count(
        &self,
        introducer: &Introducer,
        wanted: usize,
        (store, invocation): (&impl CountIntroduced, &Invocation),
    ) -> StoreResult<usize> {
        let Introducer { name, limit, .. } = introducer;
        let mut wanted = wanted.min(*limit);
        for _ in 0..MAX_ATTEMPTS {
            if wanted == 0 {
                break;
            }
            match store.count_introduced(name, wanted, *limit, invocation).await? {
                None => return Ok(wanted),
                Some(known) => wanted = wanted.min(limit.saturating_sub(known)),
            }
        }
        Ok(0)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeviceId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, devices: &BTreeSet<DeviceId>, introducer: &str) {
        let mut counted = self.lock();
        if counted.len() + devices.len() > MAX_REMEMBERED {
            counted.clear();
        }
        counted.extend(devices.iter().map(|id| (id.clone(), introducer.to_owned())));
    }

    /// How many more devices the sender has introduced than the registry tells.
    fn untold(&self, introducer: &str) -> usize {
        self.lock().values().filter(|by| *by == introducer).count()
    }

    /// Refuses the readings of devices that are new and one too many. Returns the devices that the sender introduces.
    pub(crate) async fn refuse_more(
        &self,
        introducer: &Introducer,
        batches: [&mut Readings; 2],
        known: &Known,
        rejected: &mut Vec<FieldError>,
        (store, invocation): (&impl CountIntroduced, &Invocation),
    ) -> StoreResult<BTreeSet<DeviceId>> {
        let is_new =
            |id: &DeviceId| !known.is_registered(id) && introducer.own.as_ref() != Some(id);
        let all = || batches.iter().flat_map(|it| &it.readings).map(|it| &it.device);
        let mut new: BTreeSet<DeviceId> = all().filter(|id| is_new(id)).cloned().collect();
        if new.is_empty() {
            return Ok(new);
        }
        {
            let mut counted = self.lock();
            counted.retain(|id, by| !known.is_introduced_by(id, by));
            new.retain(|id| !counted.contains_key(id));
        }
        let free = if known.has_all_devices() {
            let name = &introducer.name;
            introducer.limit.saturating_sub(known.introduced_by(name) + self.untold(name))
        } else {
            self.count(introducer, new.len(), (store, invocation)).await?
        };
        // In the order of the request: those that come first are introduced.
        let mut taken = BTreeSet::new();
        for readings in batches {
            readings.refuse(rejected, |reading| {
                let id = &reading.device;
                if !new.contains(id) || taken.contains(id) {
                    return None;
                }
                if taken.len() < free {
                    taken.insert(id.clone());
                    return None;
                }
                Some(("device_id".to_owned(), introducer.why()))
            });
        }
        self.remember(&taken, &introducer.name);
        Ok(taken)
    }
}
