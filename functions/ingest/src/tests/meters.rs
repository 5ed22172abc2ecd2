//! What counts as the energy of the devices that payloads make: each counter once, and what is sold apart.

use domain::given::{cases, metric, number};
use domain::{DeviceId, Meter, MetricName};

use super::*;

impl Bench {
    /// What counts as used and as sold of each device of the table that measures energy or power.
    async fn meters(&self) -> Vec<String> {
        let devices = self.devices().await;
        let names = |names: &[&MetricName]| {
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("+")
        };
        let shown = |it: &Device| {
            let meter = Meter::of(it.metrics())?;
            Some(format!("{}: {}/{}", it.id(), names(&meter.used), names(&meter.sold)))
        };
        let mut shown: Vec<String> = devices.iter().filter_map(shown).collect();
        shown.sort();
        shown
    }
}

/// The payloads are as devices sent them, as makers document them and as people recorded them.
#[tokio::test]
async fn every_counter_of_a_payload_counts_once_and_only_in_its_direction() {
    for case in cases(include_str!("meters.txt")) {
        let bench = Bench::new();
        let (address, payload) = case.given.split_once(' ').expect("an address and a payload");
        let (status, text) = bench.payload(&format!("/readings/{address}"), payload).await;
        assert_eq!(status, 201, "{case}: {text}");
        assert_eq!(bench.meters().await, case.expected, "{case}");
    }
}

/// Whatever the metrics of a device are that payloads can have made, what counts is of one direction, and what is
/// not counted is in what is.
#[test]
fn any_metrics_of_the_vocabulary_together_count_once() {
    let kinds = ["cumulative_kwh_p", "cumulative_kwh_n", "current_w"];
    let ends = ["", "_a", "_b", "_c"];
    let all: Vec<String> =
        kinds.iter().flat_map(|kind| ends.map(|end| format!("{kind}{end}"))).collect();
    let id: DeviceId = given::device("d");
    for chosen in 1_u32..1 << all.len() {
        let names = (0..all.len()).filter(|n| chosen & (1 << n) != 0).map(|n| &*all[n]);
        let names: Vec<&str> = names.collect();
        let metrics = names.iter().map(|name| (metric(name), number("1")));
        let reading = Reading::new(id.clone(), Timestamp::MIN, None, metrics.collect());
        let observation = DeviceObservation::of(&reading.expect("a reading"));
        let mut metrics = observation.new_device(id.clone(), |_| true).into_parts().metrics;
        for (name, info) in &mut metrics {
            let (kind, unit) = formats::vocabulary::meaning(name.as_str()).expect("known");
            (info.kind, info.unit) = (kind, unit);
        }
        let meter = Meter::of(&metrics).expect("it measures");
        // Of a kind: the total, where it is there with the first of its parts or alone; else all.
        let of_kind = |kind: &str| -> Vec<&str> {
            let of_it = names.iter().copied().filter(|name| name.starts_with(kind));
            let of_it: Vec<&str> = of_it.collect();
            let has = |end: &str| of_it.contains(&&*format!("{kind}{end}"));
            let is_alone = has("") && (has("_a") || of_it.len() == 1);
            of_it.iter().copied().filter(|name| !is_alone || *name == kind).collect()
        };
        let [bought, sold, power] = kinds.map(of_kind);
        let has_counter = !bought.is_empty() || !sold.is_empty();
        let used = if has_counter { bought } else { power };
        let texts =
            |it: &[&MetricName]| it.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            (texts(&meter.used), texts(&meter.sold)),
            (
                used.iter().map(ToString::to_string).collect(),
                sold.iter().map(ToString::to_string).collect(),
            ),
            "{names:?}"
        );
    }
}
