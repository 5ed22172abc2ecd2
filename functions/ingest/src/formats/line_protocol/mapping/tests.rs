//! The mapping: real senders' lines, its rule by random lines, and the sender's settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::given::label;
use domain::{Label, MetricKind, Unit};
use proptest::prelude::*;

use super::*;
use crate::formats::line_invariants::hold;
use crate::formats::line_protocol::lines;

const SENDERS: &str = include_str!("../../../../../../tests/line_protocol/senders.txt");

fn with_line<T>(text: &str, then: impl FnOnce(&ProtocolLine<'_>) -> T) -> T {
    then(&lines(text.as_bytes()).next().expect("a line").line.expect(text))
}

/// What a line becomes: a line of text for each device.
fn mapped(text: &str, rules: &MappingRules) -> Vec<String> {
    with_line(text, |line| {
        let mapped = map(line, rules).expect(text);
        let room = mapped.room.as_ref().map(|(room, _)| format!("  in {room}")).unwrap_or_default();
        let points = mapped.points.iter().map(|point| {
            let metrics: Vec<_> = point.metrics.iter().map(|metric| metric.name.as_str()).collect();
            format!("{}  {}{room}", point.device, metrics.join(" "))
        });
        points.collect()
    })
}

#[test]
fn lines_of_real_senders_become_these_devices_and_metrics() {
    let mut written = String::new();
    let (mut senders, mut of) = (0, BTreeMap::new());
    for line in SENDERS.lines().filter(|line| !line.starts_with("    ")) {
        writeln!(written, "{line}").expect("memory");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        senders += 1;
        hold(line.as_bytes());
        let all = mapped(line, &MappingRules::default());
        let all = if all.is_empty() { vec!["nothing".to_owned()] } else { all };
        for point in all {
            writeln!(written, "    {point}").expect("memory");
            of.entry(point).or_insert_with(Vec::new).push(line);
        }
    }
    assert!(written == SENDERS, "write this into the file, if it is right:\n{written}");
    assert!(senders >= 60, "{senders}");
    of.remove("nothing");
    for (point, lines) in of {
        assert_eq!(lines.len(), 1, "{point} is of {lines:?}");
    }
}

#[test]
fn the_three_sentences_of_the_readme_hold() {
    for (line, expected) in [
        ("temperature,room=kitchen value=21", &["kitchen  temperature  in kitchen"][..]),
        ("mem,host=pi used=5", &["pi::mem  used"]),
        ("cpu,cpu=cpu0,host=pi usage_idle=98", &["pi:cpu0::cpu  usage_idle"]),
        ("weather temp=1,value=2", &["weather  weather", "weather  temp"]),
        ("a,host=pi value=1,x=2", &["pi  a", "pi::a  x"]),
    ] {
        assert_eq!(mapped(line, &MappingRules::default()), expected, "{line}");
    }
}

#[test]
fn what_cannot_be_read_back_gets_a_digest_and_a_name() {
    for line in [
        "t,mac=A4:CF:12 value=1",
        "t,host=küche value=1",
        "t,host=Device value=1",
        "t,host=.. value=1",
    ] {
        let id = &mapped(line, &MappingRules::default())[0];
        let id = id.split(' ').next().expect("an id");
        assert_eq!(id.rsplit('-').next().map(str::len), Some(12), "{id}");
    }
    let long = format!("t,a={0},b={0} value=1", "x".repeat(70));
    let id = mapped(&long, &MappingRules::default())[0].split(' ').next().expect("an id").len();
    assert_eq!(id, 112 + 13);
    with_line("t,host=Küche\\ 1 value=1", |line| {
        let mapped = map(line, &MappingRules::default()).expect("mapped");
        let about = mapped.about(&mapped.points[0]);
        assert_eq!(about.name.as_ref().map(Label::as_str), Some("Küche 1"));
    });
}

/// Neither by chance nor by intent does a line write into the device of another that has a digest.
#[test]
fn what_ends_like_a_digest_gets_one() {
    let id = |line: &str| {
        let id = mapped(line, &MappingRules::default()).remove(0);
        id.split(' ').next().expect("an id").to_owned()
    };
    let digested = id("t,host=küche value=1");
    let forged = id(&format!("t,host={digested} value=1"));
    assert!(forged.starts_with(&format!("{digested}-")), "{forged}");
    assert_ne!(id(&format!("t,host={forged} value=1")), forged);
    let part = id("t,host=pi x=1").replace("::t", &format!("::{digested}"));
    assert_ne!(id(&format!("{digested},host=pi x=1")), part);
    let long = format!("t,host={}-abcdefghijkl value=1", "x".repeat(112));
    assert_ne!(id(&long), long[7..132], "as long as one with a digest may be");
    for plain in ["pi-abcdefghijk", "pi-abcdefghijklm", "pi-ABCDEFGHIJKL", "pi-abcdefghijk1"] {
        assert_eq!(id(&format!("t,host={plain} value=1")), plain);
    }
    let name: Label = label(&digested);
    with_line(&format!("t,host={digested} value=1"), |line| {
        let mapped = map(line, &MappingRules::default()).expect("mapped");
        assert_eq!(mapped.about(&mapped.points[0]).name, Some(name.clone()));
    });
    let (_, named) = id_of::<DeviceId>(&digested).expect("an id");
    assert_eq!(named, Some(name));
    // The token's own device is what it is, whatever it ends like.
    let own = MappingRules { device: digested.parse().ok(), ..MappingRules::default() };
    assert_eq!(mapped("t value=1", &own), [format!("{digested}  t")]);
}

/// A control character is neither in an id nor in a name, and lines that differ in one differ in their ids.
#[test]
fn control_characters_reach_no_id_and_no_name() {
    let mut ids = Vec::new();
    for control in ['\0', '\u{1}', '\t', '\u{b}', '\r', '\u{1b}', '\u{7f}', '\u{85}'] {
        let line = format!(
            "m,host=a{control}b,room=c{control}d value=1,friendly_name_str=\"e{control}f\""
        );
        with_line(&line, |line| {
            let mapped = map(line, &MappingRules::default()).expect("mapped");
            let point = &mapped.points[0];
            let about = mapped.about(point);
            assert!(point.device.as_str().starts_with("a_b:c_d-"), "{}", point.device);
            let (room, name) = mapped.room.as_ref().expect("a room");
            assert!(room.as_str().starts_with("c_d-") && name.is_none(), "{room}");
            assert_eq!(about.name, None);
            assert_eq!(
                about.tags["host"],
                format!("a{control}b"),
                "what it was is kept with the device"
            );
            ids.push(point.device.clone());
        });
    }
    let number = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), number);
}

#[test]
fn a_line_teaches_its_tags_and_fields_and_home_assistant_units() {
    let line = "kWh,domain=sensor,entity_id=meter,area=Living\\ Room friendly_name_str=\"Meter\",state_class_str=\"total_increasing\",device_class_str=\"energy\",value=1";
    with_line(line, |line| {
        let mapped = map(line, &MappingRules::default()).expect("mapped");
        let about = mapped.about(&mapped.points[0]);
        assert_eq!(about.name.as_ref().map(Label::as_str), Some("Meter"));
        assert_eq!(about.tags["area"], "Living Room");
        let (metric, of_metric) = about.metrics.iter().next().expect("one");
        assert_eq!(metric.as_str(), "energy");
        assert_eq!(of_metric.kind, Some(MetricKind::Counter));
        assert_eq!(of_metric.unit.as_ref().map(Unit::as_str), Some("kWh"));
        let field = of_metric.field.as_ref().expect("a field");
        assert_eq!((field.measurement.as_str(), field.field.as_str()), ("kWh", "value"));
        assert_eq!(about.room_name.as_ref().map(Label::as_str), Some("Living Room"));
        assert_eq!(mapped.strings, 3);
    });
}

#[test]
fn settings_of_the_sender_decide_about_ids_and_rooms() {
    let id = |text: &str| Some(text.parse::<DeviceId>().expect("an id"));
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let line = "disk,host=pi,device=sda1,path=/var,zone=attic used=1,value=2";
    for (rules, expected) in [
        (
            MappingRules { device: id("d"), ..MappingRules::default() },
            ["d:sda1:var:attic  disk", "d:sda1:var:attic::disk  used"],
        ),
        (
            MappingRules { prefix: id("cabin"), ..MappingRules::default() },
            ["cabin:pi:sda1:var:attic  disk", "cabin:pi:sda1:var:attic::disk  used"],
        ),
        (
            MappingRules { device_tags: tags(&["path", "host"]), ..MappingRules::default() },
            ["var:pi  disk", "var:pi::disk  used"],
        ),
        (
            MappingRules { room_tag: Some("zone".to_owned()), ..MappingRules::default() },
            ["pi:sda1:var:attic  disk  in attic", "pi:sda1:var:attic::disk  used  in attic"],
        ),
    ] {
        assert_eq!(mapped(line, &rules), expected, "{rules:?}");
    }
    let own = MappingRules { device: id("d"), ..MappingRules::default() };
    for (line, expected) in [
        ("weather temp=1", "d::weather  temp"),
        ("temperature,host=pi value=1", "d  temperature"),
        ("°C,domain=sensor,entity_id=a value=1", "d:sensor.a  temperature"),
    ] {
        assert_eq!(mapped(line, &own), [expected], "{line}");
    }
}

#[test]
fn fields_that_cannot_be_kept_are_named_and_the_others_are_taken() {
    with_line("a usageIdle=1,usage_idle=2,b=1e300,c=3,c=4,s=\"x\",ok=t", |line| {
        let mapped = map(line, &MappingRules::default()).expect("mapped");
        let refused: Vec<_> = mapped.refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            refused,
            [
                "fields \"usageIdle\" and \"usage_idle\" are both called usage_idle",
                "field \"b\": \"1e300\" is outside of 1E-130 to 9.99E+125",
            ]
        );
        let metrics: Vec<_> = mapped.points[0]
            .metrics
            .iter()
            .map(|metric| format!("{}={}", metric.name, metric.value))
            .collect();
        assert_eq!(metrics, ["usage_idle=1", "c=4", "ok=1"]);
        assert_eq!(mapped.strings, 1);
    });
}

/// The identity of a point by the rule in docs/connect/influxdb-clients.md, worked out another way. No two points
/// that differ share a device and a metric.
fn canonical(
    measurement: &str,
    tags: &BTreeMap<String, String>,
    field: &str,
) -> (Vec<String>, Option<String>, String) {
    let cut = |text: &str| -> Vec<String> {
        text.split('/').filter(|it| !it.is_empty()).map(|it| it.replace(' ', "_")).collect()
    };
    let host = ["host", "hostname", "device_id", "device", "entity_id", "sensor_id"]
        .into_iter()
        .find(|tag| tags.contains_key(*tag));
    let first = host.iter().map(|tag| &tags[*tag]);
    let others =
        tags.iter().filter(|(tag, _)| host != Some(tag.as_str()) && *tag != "friendly_name");
    let values: Vec<String> =
        first.chain(others.map(|(_, value)| value)).flat_map(|it| cut(it)).collect();
    let field = if field == "value" { measurement } else { field };
    let metric = metric_name(field).to_string();
    if values.is_empty() {
        return (cut(measurement), None, metric);
    }
    let measurement = (field != measurement).then(|| cut(measurement).join(":"));
    (values, measurement, metric)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn points_share_a_device_and_a_metric_only_where_the_rule_says_so(
        points in prop::collection::vec(
            (
                "[ab]",
                prop::collection::btree_map(
                    "host|hostname|device|room|friendly_name|x|y",
                    "[ab:/ é_-]{1,3}|device|\\.\\.|[ab]-[a-z]{12}",
                    0..3,
                ),
                "value|a|b|aB|a_b",
            ),
            2..12,
        )
    ) {
        let mut seen = BTreeMap::new();
        for (measurement, tags, field) in points {
            let escape = |text: &str| text.replace(' ', "\\ ");
            let written: String =
                tags.iter().map(|(tag, value)| format!(",{tag}={}", escape(value))).collect();
            let line = format!("{measurement}{written} {field}=1");
            let slot = mapped(&line, &MappingRules::default())[0].replace(" in ", "\0");
            let slot = slot.split('\0').next().expect("a part").trim_end().to_owned();
            let rule = canonical(&measurement, &tags, &field);
            let known = seen.entry(slot).or_insert_with(|| (rule.clone(), line.clone()));
            prop_assert_eq!(&known.0, &rule, "{} and {}", &known.1, line);
        }
    }
}
