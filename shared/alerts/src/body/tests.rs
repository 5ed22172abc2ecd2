//! The requests of each kind of channel.

use domain::given::{self, at};
use serde_json::{Value, json};

use super::*;
use crate::channel_kinds::webhook::{bytes_of, signature};
use crate::fit::utf16_units;
use crate::message::News;
use crate::secret::Secret;

const LINK: &str = "https://home.example/alerts?a=1&b=2#k=r4nd_0m";
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn message(news: News) -> Message {
    Message {
        number: 3,
        news,
        since: at("2026-01-11T13:05:00Z"),
        fired: at("2026-01-11T13:15:00Z"),
        ended: None,
        value: Decimal::parse("9.10000000000000000001").ok(),
        seen: None,
        is_silent: false,
    }
}

/// Sends messages about a subject with this name.
fn send(stored: &str, subject: &str, news: &[News], is_repeated: bool) -> Outgoing {
    let rule = serde_json::from_str(
        r#"{"name": "Warm", "device": "f", "metric": "temperature", "above": 8}"#,
    );
    let rule = Rule::from_json(rule.expect("JSON"), Timestamp::MIN).expect("a rule");
    let unit = "°C".parse().expect("a unit");
    let rule_id = "warm.1".parse().expect("an id");
    let names = Names {
        subject,
        unit: Some(&unit),
        zone: given::zone("Europe/Berlin"),
        now: at("2026-01-11T13:41:00Z"),
    };
    let messages: Vec<Message> = news.iter().map(|news| message(*news)).collect();
    let notices: Vec<Notice<'_>> = messages
        .iter()
        .map(|message| Notice { rule_id: &rule_id, rule: &rule, subject_id: "f", names, message })
        .collect();
    let now = at("2026-01-11T13:41:00.500Z");
    let storms = &BTreeMap::new();
    let post = Post { notices: &notices, storms, link: LINK, is_repeated, now };
    post.by(&Secret::from_stored(stored).expect("a secret"))
}

fn http(stored: &str, subject: &str, news: &[News]) -> Request {
    match send(stored, subject, news, false) {
        Outgoing::Http(request) => request,
        Outgoing::Email(_) => panic!("an e-mail"),
    }
}

/// A request by a channel, for tests of answers.
pub(crate) fn request(stored: &str) -> Request {
    http(stored, "Freezer", &[News::Fired])
}

fn body(request: &Request) -> Value {
    serde_json::from_str(request.body()).expect("JSON")
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers().iter().find(|(it, _)| *it == name).map(|(_, value)| value.as_str())
}

const TEXT: &str =
    "Warm: Freezer: temperature above 8 °C since 14:05; now 9.10000000000000000001 °C";

#[test]
fn ntfy() {
    let request = request(r#"{"kind": "ntfy", "topic": "freezer_x", "token": "tk_abc"}"#);
    assert_eq!((request.method(), request.uri().to_string()), ("POST", "https://ntfy.sh/".into()));
    assert_eq!(header(&request, "authorization"), Some("Bearer tk_abc"));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    assert_eq!(
        body(&request),
        json!({
            "topic": "freezer_x",
            "title": "Warm: Freezer",
            "message": "temperature above 8 °C since 14:05; now 9.10000000000000000001 °C",
            "priority": 4,
            "tags": ["warning"],
            "click": LINK,
        })
    );
    let own = r#"{"kind": "ntfy", "topic": "a", "server": "http://10.0.0.5:8080/ntfy/"}"#;
    let request = http(own, "Freezer", &[News::Recovered, News::TakenBack]);
    assert_eq!(request.uri(), "http://10.0.0.5:8080/ntfy/");
    assert_eq!(header(&request, "authorization"), None);
    let body = body(&request);
    assert_eq!((&body["title"], &body["priority"]), (&json!("2 messages"), &json!(3)));
    assert_eq!(body["tags"], json!(["white_check_mark"]));
    let message = body["message"].as_str().expect("a text");
    assert_eq!(message.lines().count(), 2);
    assert!(message.lines().all(|line| line.starts_with("Warm: Freezer: ")), "{message}");
}

#[test]
fn telegram_mentions_nobody() {
    let stored = r#"{"kind": "telegram", "token": "123:AB-c_d", "chat": -1001}"#;
    let request = http(stored, "@everyone <b>*_x_*</b>", &[News::Fired]);
    assert_eq!(request.uri(), "https://api.telegram.org/bot123:AB-c_d/sendMessage");
    let body = body(&request);
    assert_eq!(body["chat_id"], "-1001");
    assert_eq!(body["link_preview_options"], json!({"is_disabled": true}));
    assert_eq!(body.get("parse_mode"), None);
    let text = body["text"].as_str().expect("a text");
    assert!(text.starts_with("Warm: @\u{2060}everyone <b>*_x_*</b>: temperature"), "{text}");
    assert!(text.ends_with(&format!("\n{LINK}")), "{text}");
    let own =
        r#"{"kind": "telegram", "token": "1:a", "chat": "@b", "server": "http://localhost:8081/"}"#;
    assert_eq!(self::request(own).uri(), "http://localhost:8081/bot1:a/sendMessage");
}

#[test]
fn slack_mentions_nobody() {
    let stored = r#"{"kind": "slack", "address": "https://hooks.slack.com/services/T/B/x"}"#;
    let request = http(stored, "<!here> <@U1> &amp; *b*", &[News::Fired]);
    assert_eq!(request.uri(), "https://hooks.slack.com/services/T/B/x");
    let body = body(&request);
    let text = body["text"].as_str().expect("a text");
    assert!(text.starts_with("Warm: &lt;!here&gt; &lt;@U1&gt; &amp;amp; *b*: temp"), "{text}");
    assert!(text.ends_with("\nhttps://home.example/alerts?a=1&amp;b=2#k=r4nd_0m"), "{text}");
    for off in ["mrkdwn", "link_names", "unfurl_links", "unfurl_media"] {
        assert_eq!(body[off], false, "{off}");
    }
}

#[test]
fn discord_mentions_nobody_and_formats_nothing() {
    let stored = r#"{"kind": "discord", "address": "https://discord.com/api/webhooks/1/x"}"#;
    let request = http(stored, "@everyone <@1> [x](https://e.org) `_", &[News::Fired]);
    assert_eq!(request.uri(), "https://discord.com/api/webhooks/1/x?wait=true");
    let body = body(&request);
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    assert_eq!(body["flags"], 4);
    let text = body["content"].as_str().expect("a text");
    let expected = r"Warm: \@everyone \<\@1\> \[x\](https://e.org) \`\_: temperature";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with(&format!("\n{LINK}")), "{text}");
    let thread =
        r#"{"kind": "discord", "address": "https://discord.com/api/webhooks/1/x?thread_id=5"}"#;
    let uri = self::request(thread).uri().to_string();
    assert_eq!(uri, "https://discord.com/api/webhooks/1/x?thread_id=5&wait=true");
}

#[test]
fn a_webhook_is_signed_and_home_assistant_has_the_same_body() {
    let stored =
        format!(r#"{{"kind": "webhook", "address": "https://e.org/x?y", "key": "{KEY}"}}"#);
    let request = request(&stored);
    assert_eq!(request.uri(), "https://e.org/x?y");
    let id = header(&request, "webhook-id").expect("an id");
    assert_eq!(
        request.body(),
        format!(
            r#"{{"type":"alerts","title":"Warm: Freezer","text":"{TEXT}","link":"{LINK}","is_firing":true,"is_repeated":false,"messages":[{{"id":"{id}","rule":{{"id":"warm.1","name":"Warm"}},"subject":{{"id":"f","name":"Freezer"}},"news":"fired","is_firing":true,"value":9.10000000000000000001,"unit":"°C","limit":{{"above":8}},"since":"2026-01-11T13:05:00.000Z","ended":null,"text":"{TEXT}"}}]}}"#
        )
    );
    assert_eq!(header(&request, "webhook-timestamp"), Some("1768138860"));
    let signature = signature(&bytes_of(KEY).expect("a key"), id, 1_768_138_860, request.body());
    assert_eq!(header(&request, "webhook-signature"), Some(signature.as_str()));
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");

    let home = r#"{"kind": "home_assistant", "address": "http://10.0.0.5:8123/api/webhook/x"}"#;
    let home = self::request(home);
    assert_eq!((home.body(), home.uri().path()), (request.body(), "/api/webhook/x"));
    assert_eq!(home.headers(), [("content-type".into(), "application/json".to_owned())]);
}

/// The example that the standard's own libraries are tested with.
#[test]
fn the_signature_is_that_of_the_standard() {
    assert_eq!(
        signature(
            &bytes_of(KEY).expect("a key"),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#
        ),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    );
}

#[test]
fn an_id_stays_in_each_attempt_and_differs_between_messages() {
    let stored = format!(r#"{{"kind": "webhook", "address": "https://e.org", "key": "{KEY}"}}"#);
    let id = |news: &[News], is_repeated| match send(&stored, "Freezer", news, is_repeated) {
        Outgoing::Http(request) => header(&request, "webhook-id").expect("an id").to_owned(),
        Outgoing::Email(_) => panic!("an e-mail"),
    };
    assert_eq!(id(&[News::Fired], false), id(&[News::Fired], true));
    assert_ne!(id(&[News::Fired], false), id(&[News::Fired, News::Fired], false));
}

#[test]
fn an_email_has_a_subject_of_ascii() {
    let stored =
        r#"{"kind": "email", "topic_arn": "arn:aws:sns:eu-central-1:123456789012:alerts"}"#;
    for (subject, expected) in [
        ("Freezer", "Roomtide: Warm: Freezer".to_owned()),
        ("Kühl\ntruhe\u{202e}", "Roomtide: Warm: K?hltruhe".to_owned()),
        (&"x".repeat(100), format!("Roomtide: Warm: {}... (cut)", "x".repeat(26))),
    ] {
        let Outgoing::Email(email) = send(stored, subject, &[News::Fired], false) else {
            panic!("no e-mail");
        };
        assert_eq!(email.subject, expected);
        assert!(email.subject.is_ascii() && email.subject.len() < 100);
        assert!(email.text.ends_with(&format!("\n{LINK}")), "{}", email.text);
        assert_eq!(email.topic_arn, "arn:aws:sns:eu-central-1:123456789012:alerts");
        assert_eq!(format!("{email:?}"), "Email");
    }
}

#[test]
fn long_texts_are_cut_within_each_makers_limit_and_keep_the_link() {
    for subject in ["x".repeat(9_000), "&".repeat(9_000), "😀".repeat(9_000), "@\"".repeat(9_000)]
    {
        for news in [&[News::Fired][..], &[News::Fired; 60]] {
            for (stored, field, measure, limit) in [
                (r#"{"kind": "ntfy", "topic": "a"}"#, "message", bytes as fn(&str) -> usize, 3_000),
                (r#"{"kind": "telegram", "token": "1:a", "chat": 1}"#, "text", utf16_units, 4_096),
                (r#"{"kind": "slack", "address": "https://e.org"}"#, "text", utf16_units, 4_000),
                (
                    r#"{"kind": "discord", "address": "https://e.org"}"#,
                    "content",
                    utf16_units,
                    2_000,
                ),
            ] {
                let request = http(stored, &subject, news);
                let body = body(&request);
                let text = body[field].as_str().expect("a text");
                assert!(measure(text) <= limit, "{stored}: {}", measure(text));
                if field == "message" {
                    assert!(request.body().len() < 8_192, "{}", request.body().len());
                    assert_eq!(body["click"], LINK);
                } else {
                    assert!(
                        text.contains("(cut)") && text.contains("https://home.example"),
                        "{text}"
                    );
                }
                let more = text.contains(&format!("\n… and {} more", news.len() - 1));
                assert_eq!(more, news.len() > 1, "{text}");
            }
        }
    }
}

/// What is told by a count has one line for each news, in which names are as plain as in any other.
#[test]
fn a_storm_is_told_by_its_count() {
    let rule_id: RuleId = given::rule_id("warm");
    let rule =
        r#"{"name": "Warm", "kind": "freezer", "metric": "temperature", "above": 8, "for": "5m"}"#;
    let rule = serde_json::from_str(rule).expect("JSON");
    let rule = Rule::from_json(rule, Timestamp::MIN).expect("a rule");
    let (now, zone) = (at("2026-01-11T13:41:00Z"), given::zone("UTC"));
    let text = |told: &[(&str, News)], number: usize| {
        let messages: Vec<Message> = told.iter().map(|(_, news)| message(*news)).collect();
        let told = told.iter().zip(&messages);
        let notices: Vec<Notice<'_>> = told
            .map(|((subject, _), message)| {
                let names = Names { subject, unit: None, zone, now };
                Notice { rule_id: &rule_id, rule: &rule, subject_id: subject, names, message }
            })
            .collect();
        let storms = &BTreeMap::from([(rule_id.clone(), number)]);
        let post = Post { notices: &notices, storms, link: LINK, is_repeated: false, now };
        let secret = Secret::from_stored(r#"{"kind": "ntfy", "topic": "a"}"#).expect("a secret");
        let Outgoing::Http(request) = post.by(&secret) else { panic!("an e-mail") };
        let body = body(&request);
        let text = |member: &str| body[member].as_str().expect("a text").to_owned();
        (text("title"), text("message"))
    };
    let what = "temperature above 8 for 5m";
    for (news, expected) in [
        (News::Fired, what.to_owned()),
        (News::Repeated, format!("still {what}")),
        (News::Passed, format!("was {what}, and is over")),
        (News::Recovered, format!("over: {what}")),
        (News::TakenBack, format!("taken back: {what}")),
        (News::Edited, format!("over, because the rule was changed: {what}")),
    ] {
        let told = [("a", news), ("b\nc", news), ("d", news)];
        let (title, line) = text(&told, 3);
        assert_eq!(title, "Warm: 3 devices");
        assert_eq!(line, format!("Warm: 3 devices: {expected}: a, bc, d"));
        let (title, line) = text(&told[..1], 21);
        assert_eq!(title, "Warm: 21 devices");
        let expected = format!("Warm: 1 device: {expected}: a; 21 devices in all");
        assert_eq!(line, expected);
    }
    let many: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|it| (it, News::Fired)).to_vec();
    let (_, line) = text(&[&many[..], &[("g", News::Recovered)]].concat(), 7);
    let lines: Vec<&str> = line.lines().collect();
    let all = "7 devices in all";
    assert_eq!(
        lines,
        [
            format!("Warm: 6 devices: {what}: a, b, c, d, e and 1 more; {all}"),
            format!("Warm: 1 device: over: {what}: g; {all}"),
        ]
    );
}

#[test]
fn a_storm_counts_devices_of_one_name_one_by_one() {
    let rule_id: RuleId = given::rule_id("warm");
    let rule = json!({"name": "Warm", "kind": "freezer", "metric": "temperature", "above": 8});
    let rule = Rule::from_json(rule, Timestamp::MIN).expect("a rule");
    let now = at("2026-01-11T13:41:00Z");
    let names = Names { subject: "Freezer", unit: None, zone: given::zone("UTC"), now };
    let message = message(News::Fired);
    // The second device has two messages.
    let notices = ["a", "b", "b"].map(|subject_id| Notice {
        rule_id: &rule_id,
        rule: &rule,
        subject_id,
        names,
        message: &message,
    });
    let storms = &BTreeMap::from([(rule_id.clone(), 2)]);
    let post = Post { notices: &notices, storms, link: LINK, is_repeated: false, now };
    let lines = post.lines();
    assert_eq!(lines, ["Warm: 2 devices: temperature above 8: Freezer, Freezer"]);
}

#[test]
fn what_may_have_arrived_before_says_so() {
    for stored in [
        r#"{"kind": "ntfy", "topic": "a"}"#,
        r#"{"kind": "telegram", "token": "1:a", "chat": 1}"#,
        r#"{"kind": "home_assistant", "address": "https://e.org"}"#,
    ] {
        let Outgoing::Http(request) = send(stored, "Freezer", &[News::Fired], true) else {
            panic!("an e-mail");
        };
        assert!(request.body().contains("(sent again; it may have arrived before)"), "{stored}");
    }
}

#[test]
fn each_kind_of_rule_has_its_limit() {
    for (rule, expected) in [
        (r#""metric": "t", "above": 9, "below": 2"#, r#"{"above":9,"below":2}"#),
        (r#""budget_kwh": 10, "per": "day""#, r#"{"budget_kwh":10}"#),
        (r#""demand_kw": 4.5, "period": "15m""#, r#"{"demand_kw":4.5}"#),
        (r#""demand_kw": "peak", "period": "15m""#, "null"),
        (r#""silent_for": "usual""#, "null"),
    ] {
        let value = serde_json::from_str(&format!(r#"{{"name": "n", "device": "d", {rule}}}"#));
        let rule = Rule::from_json(value.expect("JSON"), Timestamp::MIN).expect("a rule");
        assert_eq!(serde_json::to_string(&limit(&rule)).expect("JSON"), expected);
    }
}
