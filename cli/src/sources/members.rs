//! The members of a source as a person types them. Checks no member: the server does.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::file::EXTRAS;
use crate::greeting::quoted;
use crate::typed_members::{self, TypedMember};

/// The member with a source's secrets.
const SECRETS: &str = "secrets";

/// Members of a saved source that do not say where a secret goes, nor what is read of the answer.
const BESIDE_REQUEST: [&str; 7] = ["kind", "room", "rooms", "every", "on", "since", SECRETS];

/// Refuses a secret for a request that only the saved source has: whoever edits sources may have prepared the address,
/// or a reader that stores the secret from an answer.
pub(super) fn ensure_request_is_typed(
    source: &str,
    saved: &Map<String, Value>,
    typed: &[String],
) -> anyhow::Result<()> {
    let typed = typed_members::read(typed)?;
    // A value that begins with `@` is a secret, even that of `url`.
    let (secrets, typed): (Vec<_>, Vec<_>) =
        typed.iter().partition(|member| member.value.starts_with('@'));
    if secrets.is_empty() || !saved.contains_key("url") {
        return Ok(());
    }

    let mut prepared = saved.clone();
    prepared.retain(|name, _| {
        !BESIDE_REQUEST.contains(&name.as_str()) && !EXTRAS.contains(&name.as_str())
    });
    typed.iter().for_each(|member| drop(prepared.remove(member.name)));
    let prepared: Vec<_> = prepared.iter().map(|(name, value)| as_typed(name, value)).collect();
    ensure!(
        prepared.is_empty(),
        "{source}: the secret would go with what is saved; if that is right, write it too: {}",
        prepared.join(" ")
    );
    Ok(())
}

/// A member as a person types it in a shell.
fn as_typed(name: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    quoted(&format!("{name}={value}"))
}

/// The stored source with the typed members. A secret is read from a file: a typed secret would stay in the history of
/// the shell and in the list of processes.
pub(super) fn over(
    mut source: Map<String, Value>,
    typed: &[String],
) -> anyhow::Result<Map<String, Value>> {
    let mut secrets = Map::new();
    for TypedMember { name, value } in typed_members::read(typed)? {
        ensure!(name != SECRETS, "{name} is typed as NAME=@FILE for each of them");
        if let Some(file) = value.strip_prefix('@') {
            secrets.insert(name.to_owned(), typed_members::secret(name, file)?.into());
        } else if let Some(device) = name.strip_prefix("room.") {
            let rooms = source.entry("rooms").or_insert_with(|| json!({}));
            let rooms = rooms.as_object_mut().context("rooms is not an object")?;
            let mut entry =
                rooms.get(device).and_then(Value::as_object).cloned().unwrap_or_default();
            entry.insert("room".to_owned(), value.into());
            set(rooms, device, (!value.is_empty()).then(|| entry.into()));
        } else {
            set(&mut source, name, typed_value(name, value)?);
        }
    }

    match source.get_mut(SECRETS) {
        _ if secrets.is_empty() => {}
        Some(Value::Object(given)) => given.extend(secrets),
        _ => drop(source.insert(SECRETS.to_owned(), secrets.into())),
    }
    Ok(source)
}

fn set(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value)),
        None => drop(members.remove(name)),
    }
}

/// The JSON of a typed value; `None` if it is empty.
fn typed_value(name: &str, value: &str) -> anyhow::Result<Option<Value>> {
    let is_json = matches!(value, "true" | "false") || value.starts_with(['{', '[']);
    if is_json {
        let value = serde_json::from_str(value).with_context(|| format!("{name} is not JSON"))?;
        return Ok(Some(value));
    }
    Ok((!value.is_empty()).then(|| value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: Value, typed: &[&str]) -> Result<Value, String> {
        let Value::Object(source) = source else { panic!("an object") };
        let typed: Vec<String> = typed.iter().map(|&member| member.to_owned()).collect();
        over(source, &typed).map(Value::Object).map_err(|why| format!("{why:#}"))
    }

    #[test]
    fn what_is_typed_is_laid_over_what_is_there() {
        let source = json!({"kind": "remo", "every": "5m", "secrets": ["token"], "rooms": {"a1": null, "b2": null, "c3": {"room": "hall", "name": "Hall"}}});
        let typed = [
            "every=",
            "on=false",
            "room.a1=living",
            "room.c3=attic",
            "room.b2=",
            "mpan=1000000000000",
        ];
        let expected = json!({"kind": "remo", "secrets": ["token"], "on": false, "mpan": "1000000000000",
            "rooms": {"a1": {"room": "living"}, "c3": {"room": "attic", "name": "Hall"}}});
        assert_eq!(read(source, &typed), Ok(expected));

        let typed =
            ["kind=json", "url=https://example.org/?a=b", r#"metrics={"t": "/a"}"#, "room.x=y"];
        let expected = json!({"kind": "json", "url": "https://example.org/?a=b", "metrics": {"t": "/a"},
            "rooms": {"x": {"room": "y"}}});
        assert_eq!(read(json!({}), &typed), Ok(expected));
    }

    #[test]
    fn a_secret_is_in_a_file_beside_those_that_are_given() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "geheim\n").unwrap();
        let token = format!("token=@{}", file.path().display());
        for (secrets, expected) in [
            (json!(["token"]), json!({"token": "geheim"})),
            (json!({"token": "old", "secret": "s"}), json!({"token": "geheim", "secret": "s"})),
        ] {
            let read = read(json!({ "secrets": secrets }), &[&token]);
            assert_eq!(read, Ok(json!({ "secrets": expected })));
        }
    }

    #[test]
    fn what_is_no_member_is_refused() {
        for (member, why) in [
            ("room", "\"room\" is not a member; write NAME=VALUE"),
            ("rooms={a}", "rooms is not JSON: key must be a string"),
            ("room.a1=living", "rooms is not an object"),
            ("token=@/no/such/file", "token: cannot read /no/such/file"),
            (r#"secrets={"token": "geheim"}"#, "secrets is typed as NAME=@FILE for each of them"),
        ] {
            let refused = read(json!({"rooms": []}), &[member]).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }
}
