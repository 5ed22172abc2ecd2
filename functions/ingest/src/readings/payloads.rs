//! Devices' own payloads become drafts: whose each is, and when it was measured. Reads no clock.

use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use domain::text_id::{id_of, part_id};
use domain::{Hints, Label, MetricHints, Timestamp, Zone};

use crate::formats::draft::{Content, Draft, Entry, Refusal};
use crate::formats::moment::Moment;
use crate::formats::payload::Payload;
use crate::formats::vocabulary;
use crate::intake::sender::Sender;
use crate::intake::submission::AddressHints;

/// What payloads become.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    pub(crate) entries: Vec<Entry>,
    /// How many payloads have a clock that is wrong.
    pub(crate) wrong_clocks: usize,
    /// The names of what is not stored because it is no number.
    pub(crate) ignored: BTreeSet<String>,
}

/// The drafts of payloads.
///
/// The device is the one beside the payload, else the one that the payload names, else the only one that the
/// sender may write for.
pub(crate) fn drafts(
    payloads: Vec<Payload>,
    address: &AddressHints,
    sender: &Sender<'_>,
    arrived: Timestamp,
    zone: Zone,
) -> Result<Drafts, Problem> {
    let named = payloads.iter().filter_map(|payload| payload.device.as_ref());
    let is_of_several = named.clone().zip(named.skip(1)).any(|(one, next)| one != next);
    if address.device.is_some() && is_of_several {
        let message = "is given, and the payload is of several devices; leave it out";
        return Err(Problem::field("device", message));
    }
    let mut drafts = Drafts::default();
    for payload in payloads {
        let Payload { device, name, moment, parts, refused, ignored, .. } = payload;
        let entries = &mut drafts.entries;
        drafts.ignored.extend(ignored);
        entries.extend(refused.into_iter().map(Err));
        if parts.is_empty() {
            continue;
        }
        let told = name.and_then(|name| name.parse().ok());
        let device = match (&address.device, device) {
            (Some(device), _) => Ok((device.clone(), address.name.clone())),
            (None, Some(name)) => id_of(&name),
            (None, None) => Ok((sender.device(None).map_err(|_| unnamed())?, None)),
        };
        let moment = address.time.map_or(moment, Moment::Known);
        let (timestamp, is_wrong) = moment.settle(arrived, zone);
        drafts.wrong_clocks += usize::from(is_wrong);
        let (device, name) = match device {
            Ok(device) => device,
            Err(why) => {
                entries.push(Err(Refusal::of("device", why)));
                continue;
            }
        };
        let name: Option<Label> = told.or(name);
        for (part, measured) in parts {
            let named = match &*part {
                "" => Ok((device.clone(), name.clone())),
                part => part_id(&device, part),
            };
            let (device, name) = match named {
                Ok(named) => named,
                Err(why) => {
                    entries.push(Err(Refusal::of(&part, why)));
                    continue;
                }
            };
            let mut hints = Hints { name, ..Hints::default() };
            let mut metrics = BTreeMap::new();
            for (metric, it) in measured {
                let meaning = vocabulary::meaning(metric.as_str()).filter(|_| !it.is_own);
                if let Some((kind, unit)) = meaning {
                    let modulus = it.modulus;
                    let taught =
                        MetricHints { kind: Some(kind), unit, modulus, ..MetricHints::default() };
                    hints.metrics.insert(metric.clone(), taught);
                }
                metrics.insert(metric, it.value);
            }
            let content = Content { timestamp, room: address.room.clone(), metrics, hints };
            entries.push(Ok(Draft { device: Some(device), content: Ok(content) }));
        }
    }
    Ok(drafts)
}

fn unnamed() -> Problem {
    let message =
        "is missing: the payload names none, so the address must, as ?device=kitchen-plug";
    Problem::field("device", message)
}
