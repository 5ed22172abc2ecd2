//! Parses members as a person types them: `NAME=VALUE`. Does not know which members exist.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::settings_file;

/// A typed member.
pub(crate) struct TypedMember<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// Parses typed members; a duplicate is an error.
pub(crate) fn read(typed: &[String]) -> anyhow::Result<Vec<TypedMember<'_>>> {
    let mut names = BTreeSet::new();
    let mut members = Vec::new();
    for text in typed {
        let Some((name, value)) = text.split_once('=') else {
            bail!("{text:?} is not a member; write NAME=VALUE");
        };
        if !names.insert(name) {
            bail!("{name} is written twice");
        }
        members.push(TypedMember { name, value });
    }
    Ok(members)
}

/// Reads a secret member from a file that contains nothing else.
pub(crate) fn secret(name: &str, file: &str) -> anyhow::Result<String> {
    let text = settings_file::content(Path::new(file)).with_context(|| name.to_owned())?;
    Ok(text.trim().to_owned())
}
