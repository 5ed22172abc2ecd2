//! Turns devices' own payloads into drafts, each with its device and its time of measurement. Reads no clock.

use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use domain::text_id::{id_of, part_id};
use domain::{About, AboutMetric, Label, MetricName, Timestamp, Zone};

use crate::formats::draft::{Content, Entry, Refusal, SentReading};
use crate::formats::moment::PayloadTime;
use crate::formats::payload::{Measured, Payload};
use crate::formats::vocabulary;
use crate::intake::sender::RequestSender;
use crate::intake::submission::AddressHints;

/// The drafts that were made of payloads.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    pub(crate) entries: Vec<Entry>,
    /// The number of payloads of devices whose clock is wrong.
    pub(crate) wrong_clocks: usize,
    /// The names of members that are not stored because they are not numbers.
    pub(crate) ignored: BTreeSet<String>,
}

/// Makes drafts of payloads.
///
/// The address names the device, else the payload. If neither does, the readings are of the sender's only device.
pub(crate) fn drafts(
    payloads: Vec<Payload>,
    address: &AddressHints,
    sender: &RequestSender<'_>,
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
        drafts.ignored.extend(ignored);
        drafts.entries.extend(refused.into_iter().map(Err));
        if parts.is_empty() {
            continue;
        }

        // Without any name the whole body is refused. A name that makes no id refuses this payload only.
        let device = match (&address.device, device) {
            (Some(device), _) => Ok((device.clone(), address.name.clone())),
            (None, Some(name)) => id_of(&name),
            (None, None) => Ok((sender.device(None).map_err(|_| unnamed(sender))?, None)),
        };
        let moment = address.time.map_or(moment, PayloadTime::Known);
        let (timestamp, is_wrong) = moment.settle(arrived, zone);
        drafts.wrong_clocks += usize::from(is_wrong);
        let (device, name_of_id) = match device {
            Ok(device) => device,
            Err(why) => {
                drafts.entries.push(Err(Refusal::of("device", why)));
                continue;
            }
        };

        let name: Option<Label> = name.and_then(|name| name.parse().ok()).or(name_of_id);
        for (part, measured) in parts {
            // The part without a name is the device itself.
            let named = match &*part {
                "" => Ok((device.clone(), name.clone())),
                part => part_id(&device, part),
            };
            let draft = named.map_err(|why| Refusal::of(&part, why)).map(|(id, name)| {
                let room = address.room.clone();
                let content = Content { timestamp, room, ..content_of(measured, name) };
                SentReading { device: Some(id), content: Ok(content) }
            });
            drafts.entries.push(draft);
        }
    }
    Ok(drafts)
}

/// The values of a device's part, with the vocabulary's meaning of their names, but without time and room.
fn content_of(measured: BTreeMap<MetricName, Measured>, name: Option<Label>) -> Content {
    let mut about = About { name, ..About::default() };
    let mut metrics = BTreeMap::new();
    for (metric, value) in measured {
        let meaning = vocabulary::meaning(metric.as_str()).filter(|_| !value.is_own);
        if let Some((kind, unit)) = meaning {
            let modulus = value.modulus;
            let of_metric =
                AboutMetric { kind: Some(kind), unit, modulus, ..AboutMetric::default() };
            about.metrics.insert(metric.clone(), of_metric);
        }
        metrics.insert(metric, value.value);
    }

    Content { timestamp: None, room: None, metrics, about }
}

fn unnamed(sender: &RequestSender<'_>) -> Problem {
    let by = match sender {
        RequestSender::Fetching(_) => "source must",
        _ => "address must, as ?device=kitchen-plug",
    };
    Problem::field("device", format!("is missing: the payload names none, so the {by}"))
}
