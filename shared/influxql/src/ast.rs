//! Statements and expressions as they were written. Checks nothing and evaluates nothing.

use std::collections::BTreeMap;

use domain::Zone;

use crate::pattern::Pattern;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `SELECT`
    Select(Box<Select>),
    /// A `SHOW` whose list is made of the devices that there are.
    Show(Show),
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `SHOW RETENTION POLICIES`
    ShowRetentionPolicies,
    /// `CREATE DATABASE` or `CREATE RETENTION POLICY`: there is nothing to create.
    Create,
    /// A statement that Roomtide has not, by its name.
    Unsupported(String),
}

/// What a `SHOW` lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Listed {
    Measurements,
    FieldKeys,
    TagKeys,
    /// The values of the keys that are named.
    TagValues(Vec<Name>),
    Series,
}

/// `SHOW ... FROM ... WHERE ... LIMIT ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    pub(crate) listed: Listed,
    /// The measurements; none are all.
    pub(crate) sources: Vec<Name>,
    pub(crate) condition: Option<Expression>,
    pub(crate) page: Page,
}

/// `LIMIT` and `OFFSET`; a limit of 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

impl Page {
    /// The number of entries up to the end of the part that is asked for.
    pub(crate) const fn end(self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit.saturating_add(self.offset) }
    }

    /// The part of a list that is asked for.
    pub(crate) fn of<T>(self, list: Vec<T>) -> Vec<T> {
        list.into_iter().take(self.end()).skip(self.offset).collect()
    }

    /// The part of groups that is asked for. As InfluxDB has it, an offset without a limit leaves nothing.
    pub(crate) fn of_groups<K: Ord, G>(self, groups: BTreeMap<K, G>) -> Vec<(K, G)> {
        let has_groups = self.limit > 0 || self.offset == 0;
        self.of(groups.into_iter().filter(|_| has_groups).collect())
    }
}

/// `SELECT`
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub(crate) columns: Vec<Column>,
    pub(crate) sources: Sources,
    pub(crate) condition: Option<Expression>,
    pub(crate) dimensions: Vec<Expression>,
    pub(crate) fill: Fill,
    /// Whether the newest come first; `None` where the statement does not say.
    pub(crate) is_descending: Option<bool>,
    /// Of the rows of a series.
    pub(crate) rows: Page,
    pub(crate) series: Page,
    pub(crate) zone: Option<Zone>,
}

/// What a `FROM` names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sources {
    /// Measurements of whatever retention policy: there is one.
    Measurements(Vec<Name>),
    Subqueries(Vec<Select>),
}

/// An expression of a `SELECT`, and the name that is given to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) expression: Expression,
    pub(crate) alias: Option<String>,
}

/// A name, or an expression that names match.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Name {
    Is(String),
    IsNot(String),
    Matches(Pattern),
    MatchesNot(Pattern),
}

impl Name {
    /// Tells whether a name is meant.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        match self {
            Self::Is(wanted) => wanted == name,
            Self::IsNot(unwanted) => unwanted != name,
            Self::Matches(pattern) => pattern.is_in(name),
            Self::MatchesNot(pattern) => !pattern.is_in(name),
        }
    }
}

/// What a window without values shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    Null,
    /// Nothing: the window is left out.
    None,
    Number(f64),
    Previous,
    Linear,
}

/// The kind that `::` demands of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cast {
    /// `field`, or a type of numbers.
    Field,
    Tag,
    /// A type that no value of Roomtide has.
    Other,
}

/// An expression. None is nested deeper than the parser allows, so a walk over it may recurse.
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
    /// In nanoseconds.
    Duration(i64),
    Pattern(Pattern),
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
    /// All of them hold; there are at least two.
    All(Vec<Expression>),
    /// Any of them holds; there are at least two.
    Any(Vec<Expression>),
    Group(Box<Expression>),
}

impl Expression {
    /// Tells whether it is the name of the time.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Self::Reference { name, .. } if name.eq_ignore_ascii_case("time"))
    }

    /// Its kind as InfluxDB's messages name it.
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

    /// Tells whether it makes a number of two numbers.
    pub(crate) const fn is_arithmetic(self) -> bool {
        matches!(self, Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Modulo)
    }
}
