//! The database and retention policy of an export's lines, and whether the lines are imported. Reads no point.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

use crate::notes::Notes;
use crate::point::COMMENT;

/// The byte that begins a comment.
const MARK: u8 = COMMENT as u8;
/// InfluxDB's internal database.
const INTERNAL: &str = "_internal";
/// The default retention policy of a database.
const DEFAULT_POLICY: &str = "autogen";

/// A database on the command line, perhaps with one of its retention policies: `home` or `home.two_years`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
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
    /// Makes a database of this name.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), policy: None }
    }

    /// Returns the database and the policy. Needs the existing databases, because a name may contain a point. In the
    /// name of a bucket of InfluxDB 2, a slash separates both.
    pub fn among(&self, known: &[String]) -> (String, Option<String>) {
        let whole = self.to_string();
        if known.contains(&whole) {
            return (whole, None);
        }
        match whole.split_once('/') {
            Some((database, policy)) if !known.contains(&self.name) => {
                (database.to_owned(), Some(policy.to_owned()))
            }
            _ => (self.name.clone(), self.policy.clone()),
        }
    }

    fn has(&self, (name, policy): &Context) -> bool {
        self.name == *name && self.policy.as_ref().is_none_or(|wanted| wanted == policy)
    }
}

/// A database and a retention policy, as the file's comments name them.
type Context = (String, String);

/// The databases and policies of a file.
pub(super) struct Contexts {
    wanted: Vec<Database>,
    /// The contexts that statements at the beginning declare.
    declared: Vec<Context>,
    /// The context that is imported if none is requested.
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

    /// Parses a comment or statement that names a database or policy. Returns whether the line is a comment or such a
    /// statement, and so no point.
    pub(super) fn is_mark(&mut self, text: &[u8]) -> bool {
        let (text, is_comment) = match text.split_first() {
            Some((&MARK, comment)) => (comment.trim_ascii(), true),
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

    /// Returns whether the lines of the current context are imported; counts them otherwise.
    pub(super) fn takes(&mut self) -> bool {
        if self.current.0.is_empty() {
            return true; // a file without marks
        }

        if !self.seen.contains(&self.current) {
            self.seen.push(self.current.clone());
            self.choose();
        }

        let takes = match &self.default {
            _ if !self.wanted.is_empty() => {
                self.wanted.iter().any(|wanted| wanted.has(&self.current))
            }
            default => default.as_ref() == Some(&self.current),
        };

        if !takes {
            let (name, policy) = &self.current;
            let what = format!("lines of {name}.{policy}; --database {name}.{policy} imports them");
            self.notes.leave_out(&what);
        }
        takes
    }

    /// Chooses the default context. InfluxDB's internal database comes last, and contexts with the default policy come
    /// first.
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

    /// Fails if the file does not have a requested database.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let is_missing = |wanted: &&Database| !self.seen.iter().any(|seen| wanted.has(seen));
        let Some(missing) = self.wanted.iter().find(is_missing) else { return Ok(()) };

        let seen: Vec<_> =
            self.seen.iter().map(|(name, policy)| format!("{name}.{policy}")).collect();
        let seen = if seen.is_empty() {
            "names none".to_owned()
        } else {
            format!("has {}", seen.join(", "))
        };
        bail!("--database {:?} is not in the file, which {seen}", missing.name)
    }
}

/// Removes the quotes of an identifier.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.map_or_else(|| text.to_owned(), |text| text.replace("\\\"", "\"").replace("\\\\", "\\"))
}
