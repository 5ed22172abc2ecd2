//! The members of a rule or channel as a person types them, made into JSON. Checks no value; the server does.

use anyhow::bail;
use serde_json::{Map, Value};

use crate::typed_members::{self, TypedMember};

/// The names of the members that are true or false.
const FLAGS: [&str; 3] = ["on", "recovery", "ignores_quiet_hours"];
/// The name of the member that is a list.
const LIST: &str = "counter";
/// The limits, each with the member of an answer that holds its `clear`. Without a `clear`, an answer repeats the limit
/// there.
const LIMITS: [(&str, &str); 2] = [("above", "clear_above"), ("below", "clear_below")];

/// Applies the typed members to the object that the server has. For a channel, `NAME=@FILE` reads the value from a
/// file, and a member that no answer shows may be a secret, so it is removed by `null`.
pub(super) fn over(
    mut known: Map<String, Value>,
    typed: &[String],
    is_channel: bool,
) -> anyhow::Result<Value> {
    for TypedMember { name, value } in typed_members::read(typed)? {
        for (limit, clear) in LIMITS {
            let is_gone = value.is_empty() || known.get(clear) == known.get(limit);
            if name == "clear" || name == limit && is_gone {
                known.remove(clear);
            }
        }
        let value = match value.strip_prefix('@') {
            Some(file) if is_channel && name != "chat" => typed_members::secret(name, file)?,
            _ => value.to_owned(),
        };
        if value.is_empty() {
            if known.remove(name).is_none() && is_channel {
                known.insert(name.to_owned(), Value::Null);
            }
        } else {
            known.insert(name.to_owned(), typed_value(name, value)?);
        }
    }

    Ok(Value::Object(known))
}

fn typed_value(name: &str, value: String) -> anyhow::Result<Value> {
    if FLAGS.contains(&name) {
        return match value.as_str() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            other => bail!("{name} is {other:?}; expected true or false"),
        };
    }
    if name == LIST {
        return Ok(value.split(',').map(str::trim).collect());
    }
    Ok(value.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(known: Value, typed: &[&str]) -> Result<Value, String> {
        let Value::Object(known) = known else { panic!("an object") };
        let typed: Vec<String> = typed.iter().map(|&it| it.to_owned()).collect();
        over(known, &typed, true).map_err(|why| format!("{why:#}"))
    }

    #[test]
    fn what_is_typed_is_laid_over_what_is_there() {
        let known =
            json!({"name": "Freezer", "above": "-12", "clear_above": "-15", "repeat": "6h"});
        assert_eq!(
            read(known, &["above=-10", "clear=-13", "repeat=", "on=false", "name=a=b"]),
            Ok(json!({"name": "a=b", "above": "-10", "clear": "-13", "on": false}))
        );
        assert_eq!(
            read(json!({}), &["counter=reset, suspect", "chat=@group"]),
            Ok(json!({"counter": ["reset", "suspect"], "chat": "@group"}))
        );
    }

    /// An answer names the limit itself where a rule has no `clear`.
    #[test]
    fn another_limit_takes_the_clear_with_it_that_is_the_limit() {
        for limit in ["above", "below"] {
            let clear = format!("clear_{limit}");
            let moved = |typed: &str, was: &str| {
                let known = json!({"name": "Freezer", limit: "-12", &*clear: was});
                read(known, &[&format!("{limit}={typed}")])
            };
            let alone = |at: &str| Ok(json!({"name": "Freezer", limit: at}));
            assert_eq!((moved("-10", "-12"), moved("-20", "-12")), (alone("-10"), alone("-20")));
            let both = json!({"name": "Freezer", limit: "-10", &*clear: "-15"});
            assert_eq!(moved("-10", "-15"), Ok(both), "a clear of its own stays");
            let none = Ok(json!({"name": "Freezer"}));
            assert_eq!(moved("", "-15"), none, "a clear goes with its limit");
        }
    }

    #[test]
    fn a_member_that_is_written_twice_is_refused() {
        let refused = read(json!({}), &["above=1", "on=true", "above=2"]).unwrap_err();
        assert_eq!(refused, "above is written twice");
    }

    #[test]
    fn a_secret_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "tk_1\n").unwrap();
        let member = format!("token=@{}", file.path().display());
        assert_eq!(read(json!({}), &[&member]), Ok(json!({"token": "tk_1"})));
    }

    #[test]
    fn a_member_of_a_channel_that_no_answer_shows_is_removed_by_null() {
        let channel = json!({"kind": "ntfy", "quiet_hours": "22:00-07:00"});
        let changed = read(channel, &["quiet_hours=", "topic=t", "token="]);
        assert_eq!(changed, Ok(json!({"kind": "ntfy", "topic": "t", "token": null})));
    }

    #[test]
    fn what_is_no_member_is_refused() {
        for (member, why) in [
            ("above", "\"above\" is not a member; write NAME=VALUE"),
            ("on=yes", "on is \"yes\"; expected true or false"),
            ("token=@/no/such/file", "token: cannot read /no/such/file"),
        ] {
            let refused = read(json!({}), &[member]).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }
}
