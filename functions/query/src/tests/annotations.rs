//! `/annotations`: kept, listed, replaced, deleted, refused.

use super::*;

const KETTLE: &str = "/annotations/2026-01-11T16:00:00.000Z-kettle";

impl Bench {
    async fn note(&self, id: &str, body: &Value) -> Answer {
        self.send("PUT", &format!("/annotations/{id}"), json!({}), &body.to_string()).await
    }

    async fn noted(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/annotations{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let rows = answer.rows();
        rows.iter().map(|it| it["text"].as_str().expect("a text").to_owned()).collect()
    }
}

fn id(minute: i64, suffix: &str) -> String {
    format!("{}-{suffix}", at_minute(minute))
}

#[tokio::test]
async fn a_note_of_a_device_a_room_or_a_home_is_listed_in_the_order_of_time() {
    let bench = Bench::new().await;
    bench.patch("/rooms/r", r#"{"home": "villa"}"#).await;
    let kept = bench
        .note(&id(5, "a"), &json!({"device": "a", "text": "Kettle", "to": at_minute(7)}))
        .await;
    let expected = json!({
        "annotation_id": id(5, "a"), "from": at_minute(5), "to": at_minute(7), "device": "a", "text": "Kettle",
    });
    assert_eq!((kept.status, kept.json()), (200, expected.clone()));
    for (minute, about, text) in
        [(3, json!({"home": "villa"}), "Party"), (9, json!({"room": "r"}), "=Window")]
    {
        let mut body = about;
        body["text"] = json!(text);
        body["to"] = Value::Null;
        assert_eq!(bench.note(&id(minute, "x"), &body).await.status, 200);
    }
    let all = bench.get("/annotations").await.json();
    assert_eq!(all["data"][1], expected);
    assert_eq!(all["data"][0]["to"], Value::Null);
    assert_eq!((&all["has_more"], &all["next_cursor"]), (&json!(false), &Value::Null));
    for (query, expected) in [
        ("", &["Party", "Kettle", "=Window"][..]),
        ("?device=a", &["Kettle"]),
        ("?device=b", &[]),
        ("?room=r", &["=Window"]),
        ("?home=villa", &["Party"]),
        (&format!("?from={}", at_minute(6)), &["Kettle", "=Window"]),
        (&format!("?to={}", at_minute(5)), &["Party"]),
        (&format!("?from={}&to={}", at_minute(7), at_minute(9)), &[]),
        ("?from=-2h&to=now", &["Party", "Kettle", "=Window"]),
    ] {
        assert_eq!(bench.noted(query).await, expected, "{query}");
    }
    let csv = bench.get("/annotations?format=csv&room=r").await.text;
    let header = "annotation_id,from,to,device,room,home,text";
    // A spreadsheet would take the text for a formula.
    assert_eq!(csv, format!("{header}\n{},{},,,r,,'=Window\n", id(9, "x"), at_minute(9)));
    // Page by page each once.
    let mut url = "/annotations?limit=1".to_owned();
    let mut walked = Vec::new();
    loop {
        let page = bench.get(&url).await.json();
        walked.push(page["data"][0]["text"].clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        url = format!("/annotations?limit=1&cursor={cursor}");
    }
    assert_eq!(walked, ["Party", "Kettle", "=Window"]);
}

#[tokio::test]
async fn put_again_a_note_is_replaced_and_deleted_it_is_gone() {
    let bench = Bench::new().await;
    let body = json!({"device": "a", "text": "Kettle", "to": "2026-01-11T16:10:00Z"});
    for _ in 0..2 {
        assert_eq!(bench.send("PUT", KETTLE, json!({}), &body.to_string()).await.status, 200);
    }
    let other = json!({"room": "s", "text": "Oven"}).to_string();
    assert_eq!(bench.send("PUT", KETTLE, json!({}), &other).await.status, 200);
    let all = bench.get("/annotations").await.json();
    assert_eq!(all["data"].as_array().map(Vec::len), Some(1));
    let now = &all["data"][0];
    assert_eq!(
        (&now["text"], &now["room"], &now["to"]),
        (&json!("Oven"), &json!("s"), &Value::Null)
    );
    for deleted in [1, 0] {
        let answer = bench.send("DELETE", KETTLE, json!({}), "").await;
        let expected = json!({"deleted": deleted, "has_more": false, "left": 0});
        assert_eq!((answer.status, answer.json()), (200, expected));
    }
    assert_eq!(bench.noted("").await, [""; 0]);
}

#[tokio::test]
async fn a_note_that_cannot_be_kept_is_refused_by_the_member_at_fault() {
    let bench = Bench::new().await;
    bench.refuses(&json!({}), include_str!("refused/annotations.txt")).await;
    for (length, expected) in
        [(101, "400 text: is 101 characters long"), (9_000, "413 The body is 9024 bytes long")]
    {
        let body = json!({"device": "a", "text": "x".repeat(length)}).to_string();
        let told = bench.send("PUT", KETTLE, json!({}), &body).await.problem();
        assert!(told.starts_with(expected), "{told}");
    }
    let body = json!({"device": "a", "text": "x"});
    for id in ["kettle", "2026-01-11T16:00:00Z-x", "2026-01-11T16:00:00.000Z-%23", "TS%23x", "ROOM"]
    {
        for (method, body) in [("PUT", body.to_string()), ("DELETE", String::new())] {
            let answer = bench.send(method, &format!("/annotations/{id}"), json!({}), &body).await;
            assert_eq!(answer.status, 400, "{method} {id}: {}", answer.text);
            assert!(answer.text.contains("annotation_id: "), "{}", answer.text);
        }
    }
    assert_eq!(bench.noted("").await, [""; 0]);
    for (query, expected) in [
        ("device=a&room=r", "room: stands beside device; name one of them"),
        ("device=a%23", "device: contains"),
        ("from=yesterday", "from: "),
        ("from=now&to=-1h", "from: "),
        ("limit=1001", "limit: "),
        ("cursor=abc", "cursor: "),
        ("every=1d", "every: unknown parameter"),
    ] {
        let problem = bench.problem(&format!("/annotations?{query}")).await;
        assert!(problem.starts_with(&format!("400 {expected}")), "{query}: {problem}");
    }
}

#[tokio::test]
async fn notes_are_for_readers_and_their_edits_for_admins() {
    let bench = Bench::new_with(true).await;
    let device = domain::WriteScope::from(["a".parse().expect("an id")]);
    let any = domain::WriteScope { devices: domain::WritableDevices::Any, ..device.clone() };
    for (name, scope) in [
        ("one", Scope::Write(device)),
        ("any", Scope::Write(any)),
        ("read", Scope::Read),
        ("admin", Scope::Admin),
    ] {
        bench.store.add_token(&given::token(name, scope), &invocation()).await.expect("memory");
    }
    let body = r#"{"device": "a", "text": "Kettle"}"#;
    for (name, get, edit) in [
        ("", 401, 401),
        ("one", 403, 403),
        ("any", 403, 403),
        ("read", 200, 403),
        ("admin", 200, 200),
    ] {
        let headers = json!({"authorization": format!("Bearer {}", given::secret(name))});
        for (method, url, status) in
            [("GET", "/annotations", get), ("PUT", KETTLE, edit), ("DELETE", KETTLE, edit)]
        {
            let answer = bench.send(method, url, headers.clone(), body).await;
            assert_eq!(answer.status, status, "{method} with {name:?}: {}", answer.text);
        }
    }
    let line = bench.log().lines().last().map(ToOwned::to_owned).unwrap_or_default();
    assert!(line.contains("\"annotation\":\"2026-01-11T16:00:00.000Z-kettle\""), "{line}");
}

#[tokio::test]
async fn notes_of_a_device_are_deleted_with_it_and_those_of_its_room_stay() {
    let bench = Bench::new().await;
    for (minute, body) in [
        (1, json!({"device": "a", "text": "Kettle"})),
        (2, json!({"device": "b", "text": "Oven"})),
        (3, json!({"room": "r", "text": "Window"})),
    ] {
        assert_eq!(bench.note(&id(minute, "x"), &body).await.status, 200);
    }
    let deleted = bench.send("DELETE", "/devices/a", json!({}), "").await;
    assert_eq!(deleted.status, 202, "{}", deleted.text);
    assert_eq!(bench.noted("").await, ["Oven", "Window"]);
    let late = bench.note(&id(4, "x"), &json!({"device": "a", "text": "Late"})).await;
    assert_eq!(late.status, 410, "{}", late.text);
}
