//! What counts as the energy of the devices that payloads make: each counter once, and what is sold apart.

use domain::{DeviceId, Meter, MetricName};
use table::ReadRegistry as _;

use super::*;

impl Bench {
    /// What counts as used and as sold of each device of the table that measures energy or power.
    async fn meters(&self) -> Vec<String> {
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let devices = self.store.devices(&invocation).await.expect("memory").found;
        let names = |names: &[&MetricName]| {
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("+")
        };
        let shown = |it: &domain::Device| {
            let meter = Meter::of(it.metrics())?;
            Some(format!("{}: {}/{}", it.id(), names(&meter.used), names(&meter.sold)))
        };
        let mut shown: Vec<String> = devices.iter().filter_map(shown).collect();
        shown.sort();
        shown
    }
}

/// Payloads as devices sent them, as makers document them and as people recorded them.
const PAYLOADS: &[(&str, &str, &[&str])] = &[
    (
        "tasmota?device=d",
        r#"{"Time":"2018-02-15T17:37:10","ENERGY":{"TotalStartTime":"2018-11-14T18:39:40","Total":6.294,"Yesterday":5.340,"Today":0.954,"Period":217,"Power":2635,"ApparentPower":2650,"ReactivePower":282,"Factor":0.99,"Voltage":227,"Current":11.661}}"#,
        &["d: cumulative_kwh_p/"],
    ),
    (
        "tasmota?device=d",
        r#"{"Time":"2026-11-22T10:00:00","ENERGY":{"Total":[0.005,1.507],"Power":[1000,2000]}}"#,
        &["d: cumulative_kwh_p_a+cumulative_kwh_p_b/"],
    ),
    (
        "tasmota?device=d",
        r#"{"Time":"2026-11-22T10:00:00","ENERGY":{"Total":[10,20,30],"ExportActive":[1,1,1],"Power":[1,2,3]}}"#,
        &[
            "d: cumulative_kwh_p_a+cumulative_kwh_p_b+cumulative_kwh_p_c/cumulative_kwh_n_a+cumulative_kwh_n_b+cumulative_kwh_n_c",
        ],
    ),
    (
        "tasmota?device=d",
        r#"{"Time":"2026-11-22T10:00:00","ENERGY":{"Total":10,"ExportActive":1,"Power":[1,2,3]}}"#,
        &["d: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    (
        "tasmota?device=d",
        r#"{"Time":"2026-11-22T10:00:00","ENERGY":{"ExportActive":[1,1],"Power":[1,2]}}"#,
        &["d: /cumulative_kwh_n_a+cumulative_kwh_n_b"],
    ),
    (
        "tasmota?device=d",
        r#"{"Time":"2026-11-22T10:00:00","ENERGY":{"Power":[1,2]}}"#,
        &["d: current_w_a+current_w_b/"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"ts":1787950560.02,"switch:0":{"id":0,"aenergy":{"by_minute":[0,0,0],"minute_ts":1787950560,"total":1885.832},"apower":0.0}}}"#,
        &["s: cumulative_kwh_p/"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"switch:0":{"id":0,"aenergy":{"total":5},"ret_aenergy":{"total":1},"apower":1},"switch:1":{"id":1,"aenergy":{"total":7},"apower":2}}}"#,
        &["s: cumulative_kwh_p/cumulative_kwh_n", "s:switch:1: cumulative_kwh_p/"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"em:0":{"id":0,"a_act_power":120.1,"b_act_power":0.0,"c_act_power":0.0,"total_act_power":120.1}}}"#,
        &["s: current_w/"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"em:0":{"a_act_power":1,"b_act_power":2,"c_act_power":3}}}"#,
        &["s: current_w_a+current_w_b+current_w_c/"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyFullStatus","params":{"em:0":{"total_act_power":2413.825},"emdata:0":{"id":0,"a_total_act_energy":3105576.42,"a_total_act_ret_energy":0,"b_total_act_energy":195765.72,"b_total_act_ret_energy":0,"c_total_act_energy":2114072.05,"c_total_act_ret_energy":0,"total_act":5415414.19,"total_act_ret":0.0}}}"#,
        &["s: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"emdata:0":{"a_total_act_energy":1,"b_total_act_energy":2,"c_total_act_energy":3,"a_total_act_ret_energy":4,"b_total_act_ret_energy":5,"c_total_act_ret_energy":6}}}"#,
        &[
            "s: cumulative_kwh_p_a+cumulative_kwh_p_b+cumulative_kwh_p_c/cumulative_kwh_n_a+cumulative_kwh_n_b+cumulative_kwh_n_c",
        ],
    ),
    (
        "shelly",
        r#"{"src":"s","method":"NotifyStatus","params":{"em1:0":{"act_power":1},"em1data:0":{"total_act_energy":10,"total_act_ret_energy":2},"em1:1":{"act_power":3},"em1data:1":{"total_act_energy":20,"total_act_ret_energy":4}}}"#,
        &["s: cumulative_kwh_p/cumulative_kwh_n", "s:em1:1: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    (
        "shelly",
        r#"{"mac":"M","unixtime":0,"relays":[{"ison":true},{"ison":false}],"meters":[{"power":5,"total":60},{"power":7,"total":120}]}"#,
        &["M: cumulative_kwh_p/", "M:relay:1: cumulative_kwh_p/"],
    ),
    (
        "shelly",
        r#"{"mac":"M","unixtime":0,"emeters":[{"power":12.5,"total":80481.0,"total_returned":9.5},{"power":1,"total":2,"total_returned":0},{"power":1,"total":3,"total_returned":0}]}"#,
        &[
            "M: cumulative_kwh_p_a+cumulative_kwh_p_b+cumulative_kwh_p_c/cumulative_kwh_n_a+cumulative_kwh_n_b+cumulative_kwh_n_c",
        ],
    ),
    (
        "shelly",
        r#"{"mac":"M","unixtime":0,"emeters":[{"power":12.5,"total":80481.0,"total_returned":9.5},{"power":1,"total":2,"total_returned":0}]}"#,
        &["M: cumulative_kwh_p/cumulative_kwh_n", "M:emeter:1: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    (
        "tasmota?device=d",
        r#"{"SML":{"Total_in":42000.5,"Total_out":0,"Power_curr":538}}"#,
        &["d:SML: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    (
        "zigbee2mqtt?device=d",
        r#"{"power_a":1,"power_b":2,"power_ab":3,"energy_a":10,"energy_b":20,"energy_produced_a":1,"energy_produced_b":0}"#,
        &["d: cumulative_kwh_p_a+cumulative_kwh_p_b/cumulative_kwh_n_a+cumulative_kwh_n_b"],
    ),
    (
        "zigbee2mqtt?device=d",
        r#"{"current":0.05,"energy":12.34,"linkquality":120,"power":10.4,"state":"ON","voltage":231,"last_seen":"2020-02-26T20:44:09+01:00"}"#,
        &["d: cumulative_kwh_p/"],
    ),
    (
        "zigbee2mqtt?device=d",
        r#"{"energy":12.34,"produced_energy":3,"power":-10.4}"#,
        &["d: cumulative_kwh_p/cumulative_kwh_n"],
    ),
    ("zigbee2mqtt?device=d", r#"{"produced_energy":3,"power":-10.4}"#, &["d: /cumulative_kwh_n"]),
    // The power without a phase in its name is that of phase A.
    (
        "zigbee2mqtt?device=d",
        r#"{"power":1,"power_phase_b":2,"power_phase_c":3}"#,
        &["d: current_w+current_w_b+current_w_c/"],
    ),
    (
        "switchbot",
        r#"{"statusCode":100,"body":{"deviceId":"B","deviceType":"Plug Mini (JP)","power":"on","voltage":100.5,"weight":12.5,"electricityOfDay":30,"electricCurrent":125}}"#,
        &["B: current_w/"],
    ),
    (
        "remo?device=d",
        r#"{"smart_meter":{"echonetlite_properties":[{"epc":211,"val":"1"},{"epc":215,"val":"6"},{"epc":224,"val":"80481"},{"epc":225,"val":"1"},{"epc":227,"val":"9"},{"epc":231,"val":"599"}]}}"#,
        &["d: cumulative_kwh_p/cumulative_kwh_n"],
    ),
];

#[tokio::test]
async fn every_counter_of_a_payload_counts_once_and_only_in_its_direction() {
    for (address, payload, expected) in PAYLOADS {
        let bench = Bench::new();
        let (status, text) = bench.payload(&format!("/readings/{address}"), payload).await;
        assert_eq!(status, 201, "{payload}: {text}");
        assert_eq!(bench.meters().await, *expected, "{payload}");
    }
}

/// Lines of Home Assistant about a house: its meter, a copy of that, what comes back, a roof, a battery, a plug, the
/// integral of a power.
const HOUSE: &[(&str, &str, &str, Option<&str>)] = &[
    ("house_meter", "total_increasing", "counter", None),
    ("house_meter_daily", "total_increasing", "counter", None),
    ("house_meter_energy_returned", "total_increasing", "counter", Some("export")),
    ("envoy_lifetime_energy_production", "total_increasing", "counter", Some("production")),
    ("powerwall_battery_charged", "total_increasing", "counter", Some("storage")),
    ("kitchen_plug_energy", "total_increasing", "counter", None),
    ("house_integrated_energy", "total", "counter net", None),
    ("battery_stored_energy", "measurement", "gauge", None),
];

#[tokio::test]
async fn home_assistant_teaches_counters_and_the_roles_that_names_leave_no_doubt_about() {
    let bench = Bench::new();
    let lines = HOUSE.iter().map(|(entity, class, ..)| {
        format!(
            "kWh,domain=sensor,entity_id={entity} device_class_str=\"energy\",state_class_str=\"{class}\",value=5 1768147200"
        )
    });
    let power = "W,domain=sensor,entity_id=roof,friendly_name=Solar\\ power value=5 1768147200";
    let cold = "°C,domain=sensor,entity_id=solar_return,friendly_name=Solar value=5 1768147200";
    let lines: Vec<String> = lines.chain([power.to_owned(), cold.to_owned()]).collect();
    assert_eq!(bench.lines("/write?precision=s", &lines.join("\n")).await.0, 204);
    let mut expected: Vec<(&str, &str, Option<&str>)> =
        HOUSE.iter().map(|(entity, _, kind, role)| (*entity, *kind, *role)).collect();
    expected.extend([("roof", "gauge", Some("production")), ("solar_return", "gauge", None)]);
    for (entity, kind, role) in expected {
        let device = bench.device(&format!("sensor.{entity}")).await;
        let (_, info) = device.metrics().iter().next().expect("one");
        let net = if info.is_net { " net" } else { "" };
        assert_eq!(format!("{}{net}", info.kind.as_str()), kind, "{entity}");
        assert_eq!(info.role.map(domain::Role::as_str), role, "{entity}");
        assert_eq!(info.cycle.is_some(), info.is_net, "{entity}");
    }
}

#[tokio::test]
async fn a_role_that_a_person_set_is_not_taught_again_and_a_known_device_learns_one() {
    let bench = Bench::new();
    let line = |second: i64| {
        format!(
            "kWh,domain=sensor,entity_id=solar device_class_str=\"energy\",state_class_str=\"total_increasing\",value=5 {}",
            1_768_147_200 + second
        )
    };
    let role_after = async |second: i64, role: Edit<domain::Role>| {
        let patch = DevicePatch {
            metrics: [(
                "energy".parse().expect("a name"),
                domain::MetricPatch { role, ..Default::default() },
            )]
            .into(),
            ..DevicePatch::default()
        };
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let id = "sensor.solar".parse().expect("an id");
        let now = bench.clock.now();
        bench.store.edit_device(&id, &patch, now, &invocation).await.expect("memory");
        for n in 0..3 {
            bench.clock.advance(Duration::from_secs(61));
            assert_eq!(bench.lines("/write?precision=s", &line(second + n)).await.0, 204);
        }
        bench.device("sensor.solar").await.metrics().values().next().expect("one").role
    };
    bench.lines("/write?precision=s", &line(0)).await;
    // It was described before roles were known; a person handed it back.
    assert_eq!(role_after(1, Edit::Clear).await, Some(domain::Role::Production));
    assert_eq!(role_after(5, Edit::Set(domain::Role::None)).await, Some(domain::Role::None));
}

/// Whatever the metrics of a device are that payloads can have made, what counts is of one direction, and what is
/// not counted is in what is.
#[test]
fn any_metrics_of_the_vocabulary_together_count_once() {
    let kinds = ["cumulative_kwh_p", "cumulative_kwh_n", "current_w"];
    let ends = ["", "_a", "_b", "_c"];
    let all: Vec<String> =
        kinds.iter().flat_map(|kind| ends.map(|end| format!("{kind}{end}"))).collect();
    let id: DeviceId = "d".parse().expect("an id");
    for chosen in 1_u32..1 << all.len() {
        let names = (0..all.len()).filter(|n| chosen & (1 << n) != 0).map(|n| &*all[n]);
        let names: Vec<&str> = names.collect();
        let metrics = names
            .iter()
            .map(|name| (name.parse().expect("a name"), Decimal::parse("1").expect("a number")));
        let reading = Reading::new(id.clone(), Timestamp::MIN, None, metrics.collect());
        let observation = domain::DeviceObservation::of(&reading.expect("a reading"));
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
