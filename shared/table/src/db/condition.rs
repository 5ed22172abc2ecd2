//! Conditions on one item, for writes and for the filters of queries. Evaluates none.

use std::borrow::Cow;

use crate::item::Attribute;

/// A condition on an item. For an item that does not exist, every attribute is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum If {
    /// There is nothing at the path.
    Absent(Path),
    /// There is something at the path.
    Present(Path),
    /// The value at the path exists, has the type of the given value, and is in this relation to it.
    Compare(Path, Op, Attribute),
    /// The set of texts at the path has this element.
    Holds(Path, String),
    /// There is a set of texts at the path, with fewer elements than this.
    Fewer(Path, usize),
    /// One of the conditions holds.
    Any(Vec<If>),
}

/// A comparison. Numbers compare as numbers, texts and bytes by their bytes. For values of other types there is only
/// [`Is`](Self::Is).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Op {
    Is,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The path of a value in an item: an attribute, or a member of an attribute that is a map.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The name of the attribute.
    pub attribute: Cow<'static, str>,
    /// The name of the member.
    pub member: Option<String>,
}

impl From<&'static str> for Path {
    fn from(attribute: &'static str) -> Self {
        Self { attribute: Cow::Borrowed(attribute), member: None }
    }
}

/// The path of an attribute whose name comes from data, such as that of a metric.
impl From<String> for Path {
    fn from(attribute: String) -> Self {
        Self { attribute: Cow::Owned(attribute), member: None }
    }
}

/// The path of a member of an attribute that is a map.
pub fn member(attribute: &'static str, member: impl Into<String>) -> Path {
    Path { attribute: Cow::Borrowed(attribute), member: Some(member.into()) }
}

/// There is nothing at the path.
pub fn absent(path: impl Into<Path>) -> If {
    If::Absent(path.into())
}

/// There is something at the path.
pub fn present(path: impl Into<Path>) -> If {
    If::Present(path.into())
}

/// The value at the path is equal to this value.
pub fn is(path: impl Into<Path>, value: Attribute) -> If {
    If::Compare(path.into(), Op::Is, value)
}

/// The value at the path is the known one; if none is known, there is nothing at the path.
pub fn still(path: impl Into<Path>, known: Option<Attribute>) -> If {
    match known {
        Some(value) => is(path, value),
        None => absent(path),
    }
}

/// The value at the path is less than this value.
pub fn below(path: impl Into<Path>, value: Attribute) -> If {
    If::Compare(path.into(), Op::Below, value)
}

/// The value at the path is this one or less.
pub fn at_most(path: impl Into<Path>, value: Attribute) -> If {
    If::Compare(path.into(), Op::AtMost, value)
}

/// The value at the path is greater than this value.
pub fn above(path: impl Into<Path>, value: Attribute) -> If {
    If::Compare(path.into(), Op::Above, value)
}

/// The value at the path is equal to this value or greater.
pub fn at_least(path: impl Into<Path>, value: Attribute) -> If {
    If::Compare(path.into(), Op::AtLeast, value)
}

/// There is nothing at the path, or the value at the path is in this relation to the given one.
pub fn absent_or(path: impl Into<Path>, op: Op, value: Attribute) -> If {
    let path = path.into();
    any([absent(path.clone()), If::Compare(path, op, value)])
}

/// The set at the path has this element.
pub fn holds(path: impl Into<Path>, element: impl Into<String>) -> If {
    If::Holds(path.into(), element.into())
}

/// The set at the path has fewer elements than this.
pub fn fewer(path: impl Into<Path>, limit: usize) -> If {
    If::Fewer(path.into(), limit)
}

/// One of the conditions holds.
pub fn any(conditions: impl IntoIterator<Item = If>) -> If {
    If::Any(conditions.into_iter().collect())
}
