//! Members as they are typed: `NAME=VALUE`. Knows no member.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::settings_file;

/// A member as it is typed.
pub(crate) struct TypedMember<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// The members that are typed, each once.
pub(crate) fn read(typed: &[String]) -> anyhow::Result<Vec<TypedMember<'_>>> {
    let mut names = BTreeSet::new();
    let mut members = Vec::new();
    for text in typed {
        let Some((name, value)) = text.split_once('=') else {
            bail!("{text:?} is no member; write NAME=VALUE");
        };
        if !names.insert(name) {
            bail!("{name} is written twice");
        }
        members.push(TypedMember { name, value });
    }
    Ok(members)
}

/// A secret member, of a file that has it alone.
pub(crate) fn secret(name: &str, file: &str) -> anyhow::Result<String> {
    let text = settings_file::content(Path::new(file)).with_context(|| name.to_owned())?;
    Ok(text.trim().to_owned())
}
