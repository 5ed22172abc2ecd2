//! Statements and expressions as they were written. Checks nothing and evaluates nothing.

use std::collections::BTreeMap;

use domain::Zone;

use crate::pattern::RegularExpression;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `SELECT`
    Select(Box<Select>),
    /// A `SHOW` that lists names of the registered devices.
    Show(Show),
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `SHOW RETENTION POLICIES`
    ShowRetentionPolicies,
    /// `CREATE DATABASE` or `CREATE RETENTION POLICY`. Neither creates anything.
    Create,
    /// A statement that Roomtide does not support, by its name.
    Unsupported(String),
}

/// The kind of entries that a `SHOW` lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ShowKind {
    Measurements,
    FieldKeys,
    TagKeys,
    /// The values of the tags with these keys.
    TagValues(Vec<Name>),
    Series,
}

/// `SHOW ... FROM ... WHERE ... LIMIT ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    pub(crate) listed: ShowKind,
    /// The measurements; empty for all.
    pub(crate) sources: Vec<Name>,
    pub(crate) condition: Option<Expression>,
    pub(crate) page: RowWindow,
}

/// `LIMIT` and `OFFSET`; a limit of 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowWindow {
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

impl RowWindow {
    /// The number of entries up to the end of the page.
    pub(crate) const fn end(self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit.saturating_add(self.offset) }
    }

    /// The entries of a list that are on the page.
    pub(crate) fn of<T>(self, list: Vec<T>) -> Vec<T> {
        list.into_iter().take(self.end()).skip(self.offset).collect()
    }

    /// The groups that are on the page. As in InfluxDB, an offset without a limit leaves no group.
    pub(crate) fn of_groups<K: Ord, G>(self, groups: BTreeMap<K, G>) -> Vec<(K, G)> {
        let has_groups = self.limit > 0 || self.offset == 0;
        self.of(groups.into_iter().filter(|_| has_groups).collect())
    }
}

/// `SELECT`
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub(crate) columns: Vec<SelectColumn>,
    pub(crate) sources: Sources,
    pub(crate) condition: Option<Expression>,
    pub(crate) dimensions: Vec<Expression>,
    pub(crate) fill: Fill,
    /// Whether the newest rows come first; `None` if the statement does not say.
    pub(crate) is_descending: Option<bool>,
    /// The page of the rows of each series.
    pub(crate) rows: RowWindow,
    pub(crate) series: RowWindow,
    pub(crate) zone: Option<Zone>,
}

/// The sources that a `FROM` names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sources {
    /// Measurements. A retention policy before the name is ignored, since there is only one policy.
    Measurements(Vec<Name>),
    Subqueries(Vec<Select>),
}

/// A column of a `SELECT`: an expression and its alias.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectColumn {
    pub(crate) expression: Expression,
    pub(crate) alias: Option<String>,
}

/// A condition on a name: equal or not equal to a text, or matching or not matching a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Name {
    Is(String),
    IsNot(String),
    Matches(RegularExpression),
    MatchesNot(RegularExpression),
}

impl Name {
    /// Whether a name meets the condition.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        match self {
            Self::Is(wanted) => wanted == name,
            Self::IsNot(unwanted) => unwanted != name,
            Self::Matches(pattern) => pattern.is_in(name),
            Self::MatchesNot(pattern) => !pattern.is_in(name),
        }
    }
}

/// The way in which a window without values is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    Null,
    /// Nothing: the window is left out.
    None,
    Number(f64),
    Previous,
    Linear,
}

/// The type after `::`, which restricts a name to fields or tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cast {
    /// `field`, or a type of numbers.
    Field,
    Tag,
    /// A type whose values Roomtide does not store.
    Other,
}

/// An expression. The parser limits its depth, so recursive functions on expressions are safe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Reference {
        name: String,
        cast: Option<Cast>,
    },
    Number(f64),
    Integer(i64),
    Text(String),
    Boolean(bool),
    /// A duration in nanoseconds.
    Duration(i64),
    Pattern(RegularExpression),
    /// `*`, `*::field`, `*::tag`
    Wildcard(Option<Cast>),
    Call {
        name: String,
        arguments: Vec<Expression>,
    },
    Binary {
        operator: Operator,
        sides: Box<[Expression; 2]>,
    },
    /// At least two expressions, joined by `AND`.
    All(Vec<Expression>),
    /// At least two expressions, joined by `OR`.
    Any(Vec<Expression>),
    Group(Box<Expression>),
}

impl Expression {
    /// Whether the expression is the name `time`.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Self::Reference { name, .. } if name.eq_ignore_ascii_case("time"))
    }

    /// Whether `is_wanted` accepts the expression or a part of it.
    pub(crate) fn has(&self, is_wanted: &impl Fn(&Self) -> bool) -> bool {
        is_wanted(self)
            || match self {
                Self::Call { arguments, .. } => arguments.iter().any(|part| part.has(is_wanted)),
                Self::Binary { sides, .. } => sides.iter().any(|side| side.has(is_wanted)),
                Self::Group(inside) => inside.has(is_wanted),
                _ => false,
            }
    }

    /// Whether the expression stands for several names.
    pub(crate) const fn is_wildcard(&self) -> bool {
        matches!(self, Self::Wildcard(_) | Self::Pattern(_))
    }

    /// The kind of the expression, as InfluxDB's messages name it.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Reference { .. } => "*influxql.VarRef",
            Self::Number(_) => "*influxql.NumberLiteral",
            Self::Integer(_) => "*influxql.IntegerLiteral",
            Self::Text(_) => "*influxql.StringLiteral",
            Self::Boolean(_) => "*influxql.BooleanLiteral",
            Self::Duration(_) => "*influxql.DurationLiteral",
            Self::Pattern(_) => "*influxql.RegexLiteral",
            Self::Wildcard(_) => "*influxql.Wildcard",
            Self::Call { .. } => "*influxql.Call",
            Self::Binary { .. } | Self::All(_) | Self::Any(_) => "*influxql.BinaryExpr",
            Self::Group(_) => "*influxql.ParenExpr",
        }
    }
}

/// An operator on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Matches,
    MatchesNot,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// The operator with its sides exchanged.
    pub(crate) const fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// The operator as it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Matches => "=~",
            Self::MatchesNot => "!~",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Whether the operator computes a number from two numbers.
    pub(crate) const fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Modulo)
    }
}
