//! The database and the retention policy of the lines of an export, and whether they are taken. Reads no point.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

use crate::import::sources::Notes;

/// The number sign, with which a comment begins.
const COMMENT: u8 = 0x23;
/// InfluxDB's database about itself.
const INTERNAL: &str = "_internal";
/// The retention policy that a database has by itself.
const DEFAULT_POLICY: &str = "autogen";

/// A database, perhaps with one of its retention policies: `home` or `home.two_years`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct Database {
    name: String,
    policy: Option<String>,
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, policy) = match text.rsplit_once('.') {
            Some((name, policy)) if !policy.is_empty() => (name, Some(policy.to_owned())),
            _ => (text, None),
        };
        if name.is_empty() {
            return Err("expected DATABASE or DATABASE.POLICY".to_owned());
        }
        Ok(Self { name: name.to_owned(), policy })
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.policy.iter().try_for_each(|policy| write!(f, ".{policy}"))
    }
}

impl Database {
    /// The database of this name.
    pub(in crate::import) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), policy: None }
    }

    /// Returns the database and the policy, where these databases are known: a name may have a point.
    pub(in crate::import) fn among(&self, known: &[String]) -> (String, Option<String>) {
        match &self.policy {
            Some(policy) if known.contains(&format!("{}.{policy}", self.name)) => {
                (format!("{}.{policy}", self.name), None)
            }
            policy => (self.name.clone(), policy.clone()),
        }
    }

    fn has(&self, (name, policy): &Context) -> bool {
        self.name == *name && self.policy.as_ref().is_none_or(|wanted| wanted == policy)
    }
}

/// A database and a retention policy, as comments name them.
type Context = (String, String);

/// The contexts of a file.
pub(super) struct Contexts {
    wanted: Vec<Database>,
    /// Those that statements at the beginning declare.
    declared: Vec<Context>,
    /// The one that is taken where none is asked for.
    default: Option<Context>,
    current: Context,
    seen: Vec<Context>,
    notes: Notes,
}

impl Contexts {
    pub(super) const fn new(wanted: Vec<Database>, notes: Notes) -> Self {
        let current = (String::new(), String::new());
        Self { wanted, declared: Vec::new(), default: None, current, seen: Vec::new(), notes }
    }

    /// Reads a line that tells of databases; returns whether it does.
    pub(super) fn is_mark(&mut self, text: &[u8]) -> bool {
        let (text, is_comment) = match text.split_first() {
            Some((&COMMENT, comment)) => (comment.trim_ascii(), true),
            _ => (text.trim_ascii(), false),
        };
        if !is_comment && !text.starts_with(b"CREATE ") {
            return false;
        }
        let text = String::from_utf8_lossy(text);
        if let Some(name) = text.strip_prefix("CONTEXT-DATABASE:") {
            self.current = (name.trim().to_owned(), String::new());
        } else if let Some(policy) = text.strip_prefix("CONTEXT-RETENTION-POLICY:") {
            policy.trim().clone_into(&mut self.current.1);
        } else if let Some(names) = text.strip_prefix("CREATE DATABASE ") {
            let (name, policy) = names.split_once(" WITH NAME ").unwrap_or((names, DEFAULT_POLICY));
            self.declared.push((unquoted(name), unquoted(policy)));
        } else {
            return is_comment || text.starts_with("CREATE RETENTION POLICY ");
        }
        true
    }

    /// Returns whether the lines here are taken; counts them otherwise.
    pub(super) fn takes(&mut self) -> bool {
        if self.current.0.is_empty() {
            return true; // a file without marks
        }
        if !self.seen.contains(&self.current) {
            self.seen.push(self.current.clone());
            self.choose();
        }
        let takes = match &self.default {
            _ if !self.wanted.is_empty() => self.wanted.iter().any(|it| it.has(&self.current)),
            default => default.as_ref() == Some(&self.current),
        };
        if !takes {
            let (name, policy) = &self.current;
            let what = format!("lines of {name}.{policy}; --database {name}.{policy} imports them");
            self.notes.leave_out(&what);
        }
        takes
    }

    /// Chooses the context that is taken where none is asked for: of the declared ones or the first ones that no
    /// database of InfluxDB itself is, one with the policy that a database has by itself.
    fn choose(&mut self) {
        if self.default.is_some() || !self.wanted.is_empty() {
            return;
        }
        let mut known: Vec<&Context> = self.declared.iter().chain([&self.current]).collect();
        known.sort_by_key(|(name, policy)| {
            (name == INTERNAL, policy != DEFAULT_POLICY, name.clone(), policy.clone())
        });
        let (name, policy) = known[0];
        if name == INTERNAL && self.declared.is_empty() {
            return;
        }
        self.default = Some((name.clone(), policy.clone()));
        self.notes.say(format!("database     {name}, retention policy {policy}"));
    }

    /// Fails if a database that is asked for is not in the file.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let is_there = |wanted: &&Database| !self.seen.iter().any(|it| wanted.has(it));
        let Some(missing) = self.wanted.iter().find(is_there) else { return Ok(()) };
        let there: Vec<_> =
            self.seen.iter().map(|(name, policy)| format!("{name}.{policy}")).collect();
        let there = if there.is_empty() {
            "names none".to_owned()
        } else {
            format!("has {}", there.join(", "))
        };
        bail!("--database {:?} is not in the file, which {there}", missing.name)
    }
}

/// Removes the quotes of an identifier.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.map_or_else(|| text.to_owned(), |text| text.replace("\\\"", "\"").replace("\\\\", "\\"))
}
