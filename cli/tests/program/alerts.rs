//! `roomtide alerts` against a server: rules and channels as a person makes, tries and moves them.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::server::{self, PROGRAM, Server};

/// Runs the subcommand; its exit code, and what it said.
fn alerts(server: &Server, words: &[&str]) -> (Option<i32>, String) {
    server::run(Command::new(PROGRAM).arg("alerts").args(words).args(["--url", &server.url]))
}

fn with_input(server: &Server, words: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("alerts").args(words).args(["--url", &server.url]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = process.wait_with_output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn ok(server: &Server, words: &[&str]) -> String {
    let (code, said) = alerts(server, words);
    assert_eq!(code, Some(0), "{words:?}: {said}");
    said
}

fn freezer(server: &Server) -> String {
    let limits = ["metric=temperature", "above=-12", "clear=-15", "for=0s", "repeat=6h"];
    let words = ["set", "freezer", "name=Freezer warm", "device=freezer"];
    ok(server, &[&words[..], &limits].concat())
}

fn store_warm_reading(server: &Server) {
    let reading = json!({"device_id": "freezer", "temperature": -5}).to_string();
    let request = http::Request::post(format!("{}/readings", server.url)).body(reading).unwrap();
    assert!(ureq::Agent::new_with_defaults().run(request).unwrap().status().is_success());
}

#[test]
fn a_rule_is_made_changed_paused_acknowledged_and_deleted() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&data.path().join("data"));
    assert!(ok(&server, &["list"]).starts_with("no rules"));
    let said = freezer(&server);
    assert!(said.contains("Freezer warm: device freezer metric temperature above -12"), "{said}");
    assert!(said.contains("device: nothing of freezer has arrived yet"), "{said}");
    store_warm_reading(&server);
    // The same rule again is judged on what is there now.
    let said = ok(&server, &["set", "freezer", "name=Freezer"]);
    assert!(said.starts_with("freezer  firing 1\n  Freezer: "), "{said}");
    assert!(said.contains("device:freezer  firing  since ") && said.contains("value -5"), "{said}");
    assert!(said.contains("repeat 6h"), "a member that was not named stays: {said}");
    let said = ok(&server, &["set", "freezer", "repeat="]);
    assert!(!said.contains("repeat"), "{said}");
    let said = ok(&server, &["acknowledge", "freezer", "device:freezer"]);
    assert!(said.contains("acknowledged"), "{said}");
    // By the name that the rule had when it told: the stream may have been first.
    let said = ok(&server, &["history", "freezer"]);
    assert!(said.contains(": freezer: temperature above -12"), "{said}");
    assert!(ok(&server, &["pause", "freezer", "2h"]).contains("paused_until 20"));
    assert!(!ok(&server, &["pause", "freezer", "off"]).contains("paused_until"));
    let shown: Value = serde_json::from_str(&ok(&server, &["show", "freezer", "--json"])).unwrap();
    assert_eq!((&shown["id"], &shown["clear_above"]), (&json!("freezer"), &json!("-15")));
    let again = with_input(&server, &["set", "freezer", "--file", "-"], &shown.to_string());
    assert_eq!(again.0, Some(0), "{}", again.1);
    assert_eq!(ok(&server, &["delete", "freezer"]).trim(), "freezer is deleted");
    for (words, why) in [
        (&["show", "freezer"][..], "There is no rule \"freezer\"."),
        (&["acknowledge", "freezer"], "There is no rule \"freezer\"."),
        (&["set", "a#b", "name=x"], "rule_id: contains '#'"),
        (&["set", "x", "name=x", "device=d", "above=1"], "metric: is missing"),
        (&["set", "x", "name=x", "colour=red"], "device: needs exactly one of"),
        (&["set", "x", "name"], "\"name\" is no member"),
        (&["test", "phone"], "There is no channel \"phone\"."),
    ] {
        let (code, said) = alerts(&server, words);
        assert!(code == Some(1) && said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn rules_and_channels_move_to_another_system_without_what_is_secret() {
    let data = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| Server::start(&data.path().join(name)));
    let topic = data.path().join("topic");
    fs::write(&topic, "geheim-1\n").unwrap();
    let topic = format!("topic=@{}", topic.display());
    let phone =
        ["set-channel", "phone", "kind=ntfy", "name=Phone", "quiet_hours=22:00-07:00", &topic];
    let mut said = ok(&here, &phone);
    said += &ok(&here, &["set-channel", "phone", "name=My phone"]);
    said += &ok(&here, &["test", "phone"]);
    said += &ok(&here, &["channels"]);
    assert!(said.contains("My phone  quiet 22:00-07:00") && !said.contains("geheim"), "{said}");
    freezer(&here);
    let file = data.path().join("alerts.toml");
    let path = file.to_str().unwrap();
    ok(&here, &["export", path]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("[rules.freezer]") && text.contains("[channels.phone]"), "{text}");
    assert!(!text.contains("geheim") && !text.contains("changed"), "{text}");

    let dry = ok(&there, &["import", path, "--dry-run"]);
    assert_eq!(dry.trim(), "1 rule and 1 channel would be saved");
    assert!(ok(&there, &["list"]).starts_with("no rules"));
    let (code, said) = alerts(&there, &["import", path]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("channels/phone: topic: is missing"), "{said}");
    assert!(said.contains("1 saved, 1 refused"), "{said}");
    let whole = text.replace("[channels.phone]\n", "[channels.phone]\ntopic = \"geheim-2\"\n");
    fs::write(&file, whole).unwrap();
    assert!(ok(&there, &["import", path]).contains("2 saved, 0 refused"));
    assert_eq!(ok(&there, &["export"]).trim(), text.trim(), "it is the same there");
    // Again, it changes nothing.
    assert!(ok(&there, &["import", path]).contains("2 saved, 0 refused"));
    ok(&there, &["delete-channel", "phone"]);
    assert!(ok(&there, &["channels"]).starts_with("no channels"));
    fs::write(&file, "[rule.a]\n").unwrap();
    let (code, said) = alerts(&there, &["import", path]);
    assert!(code == Some(1) && said.contains("rule is not known"), "{said}");
}
