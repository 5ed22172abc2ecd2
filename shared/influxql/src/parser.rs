//! Parses queries: statements and their clauses. Recurses only as deep as [`expressions`] allows.

mod expressions;
#[cfg(test)]
mod tests;

use domain::Zone;

use crate::ast::{
    Expression, Fill, Name, RowWindow, Select, SelectColumn, Show, ShowKind, Sources, Statement,
};
use crate::error::{QueryError, refuse};
use crate::lexer::{Lexeme, Lexer, Spanned, is_keyword};
use crate::parameters::Parameters;
use crate::pattern::RegularExpression;
use crate::value::float;

/// The largest text of a query: 64 KiB.
const MAX_TEXT: usize = 64 << 10;
/// The largest number of statements of a query.
const MAX_STATEMENTS: usize = 10;
/// The largest number of subqueries of a query, side by side or nested.
const MAX_SUBQUERIES: usize = 10;

/// Parses the statements of a query. The error says what is wrong in the words of InfluxDB 1.x.
pub fn parse(text: &str, parameters: &Parameters) -> Result<Vec<Statement>, QueryError> {
    if text.len() > MAX_TEXT {
        refuse!("the query is longer than {MAX_TEXT} bytes");
    }
    let mut parser =
        Parser { text, lexer: Lexer::new(text), parameters, depth: 0, chained: 0, subqueries: 0 };

    let mut statements = Vec::new();
    loop {
        while parser.takes_mark(";") {}
        if parser.peek().token == Lexeme::End {
            return Ok(statements);
        }

        if statements.len() == MAX_STATEMENTS {
            refuse!("the query has more than {MAX_STATEMENTS} statements");
        }
        statements.push(parser.statement()?);
        if parser.peek().token != Lexeme::End && !parser.takes_mark(";") {
            return Err(parser.unexpected(&[";", "EOF"]));
        }
    }
}

const STATEMENTS: [&str; 11] = [
    "SELECT", "DELETE", "SHOW", "CREATE", "DROP", "EXPLAIN", "GRANT", "REVOKE", "ALTER", "SET",
    "KILL",
];
const SHOWN: [&str; 16] = [
    "CONTINUOUS",
    "DATABASES",
    "DIAGNOSTICS",
    "FIELD",
    "GRANTS",
    "MEASUREMENT",
    "MEASUREMENTS",
    "QUERIES",
    "RETENTION",
    "SERIES",
    "SHARD",
    "SHARDS",
    "STATS",
    "SUBSCRIPTIONS",
    "TAG",
    "USERS",
];
const CREATED: [&str; 5] = ["CONTINUOUS", "DATABASE", "USER", "RETENTION", "SUBSCRIPTION"];

/// A query while it is parsed.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    parameters: &'a Parameters,
    /// The depth at which the current expression is nested in others.
    depth: usize,
    /// The number of operators of the query that follow another operator in a chain.
    chained: usize,
    subqueries: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Spanned {
        let mut ahead = self.lexer;
        ahead.next()
    }

    fn takes_mark(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek().token, Lexeme::Mark(next) if next == mark);
        if is_next {
            self.lexer.next();
        }
        is_next
    }

    fn expect_mark(&mut self, mark: &str) -> Result<(), QueryError> {
        if self.takes_mark(mark) { Ok(()) } else { Err(self.unexpected(&[mark])) }
    }

    fn takes_word(&mut self, keyword: &str) -> bool {
        let next = self.peek().token;
        let is_next = matches!(next, Lexeme::Word(word) if word.eq_ignore_ascii_case(keyword));
        if is_next {
            self.lexer.next();
        }
        is_next
    }

    fn expect_word(&mut self, keyword: &str) -> Result<(), QueryError> {
        if self.takes_word(keyword) { Ok(()) } else { Err(self.unexpected(&[keyword])) }
    }

    /// Takes one of these keywords; the error lists all of them.
    fn one_of(&mut self, keywords: &[&'static str]) -> Result<&'static str, QueryError> {
        let found = keywords.iter().find(|keyword| self.takes_word(keyword));
        found.copied().ok_or_else(|| self.unexpected(keywords))
    }

    /// An error at the next token, in the words of InfluxDB.
    fn unexpected(&self, expected: &[&str]) -> QueryError {
        let Spanned { token, at } = self.peek();
        // InfluxDB counts columns from 0 for a text without an end.
        let column = usize::from(!matches!(token, Lexeme::Bad(_)));
        let found = match token {
            Lexeme::Word(word) if is_keyword(&word) => word.to_uppercase(),
            Lexeme::Word(text) | Lexeme::Quoted(text) | Lexeme::Text(text) | Lexeme::Bad(text) => {
                text
            }
            Lexeme::Parameter(name) => format!("${name}"),
            Lexeme::Mark(mark) => mark.to_owned(),
            Lexeme::End => "EOF".to_owned(),
            Lexeme::Integer(_) | Lexeme::Number(_) | Lexeme::Duration(_) => {
                let rest = &self.text[at..];
                let is_of = |c: char| c.is_alphanumeric() || c == '.';
                rest[..rest.find(|c| !is_of(c)).unwrap_or(rest.len())].to_owned()
            }
        };

        let found = domain::excerpt(&found);
        self.error_at(at, column, &format!("found {found}, expected {}", expected.join(", ")))
    }

    fn error_at(&self, at: usize, column: usize, message: &str) -> QueryError {
        let before = &self.text[..at.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let character = before[begin..].chars().count() + at.saturating_sub(before.len()) + column;
        QueryError::new(format!("{message} at line {line}, char {character}"))
    }

    fn statement(&mut self) -> Result<Statement, QueryError> {
        match self.one_of(&STATEMENTS)? {
            "SELECT" => self.select(),
            "SHOW" => self.show(),
            "CREATE" => self.create(),
            other => Ok(self.unsupported(other)),
        }
    }

    /// Skips the rest of a statement, which is refused by its name.
    fn unsupported(&mut self, verb: &str) -> Statement {
        let object = match self.peek().token {
            Lexeme::Word(word) if is_keyword(&word) || verb == "CREATE" || verb == "DROP" => {
                format!(" {}", word.to_uppercase())
            }
            _ => String::new(),
        };
        while !matches!(self.peek().token, Lexeme::End | Lexeme::Mark(";")) {
            self.lexer.next();
        }
        let object = if verb == "DELETE" { String::new() } else { object };
        Statement::Unsupported(format!("{verb}{object}"))
    }

    fn create(&mut self) -> Result<Statement, QueryError> {
        match self.one_of(&CREATED)? {
            "DATABASE" => drop(self.identifier()?),
            "RETENTION" => self.expect_word("POLICY")?,
            other => {
                self.unsupported("");
                return Ok(Statement::Unsupported(format!("CREATE {other}")));
            }
        }
        self.unsupported("");
        Ok(Statement::Create)
    }

    fn show(&mut self) -> Result<Statement, QueryError> {
        let listed = match self.one_of(&SHOWN)? {
            "DATABASES" => return Ok(Statement::ShowDatabases),
            "RETENTION" => {
                self.expect_word("POLICIES")?;
                if self.takes_word("ON") {
                    self.identifier()?;
                }
                return Ok(Statement::ShowRetentionPolicies);
            }
            "MEASUREMENTS" => ShowKind::Measurements,
            "SERIES" if !self.is_cardinality() => ShowKind::Series,
            "FIELD" if self.takes_word("KEYS") => ShowKind::FieldKeys,
            "TAG" if self.takes_word("KEYS") => ShowKind::TagKeys,
            "TAG" if self.takes_word("VALUES") => ShowKind::TagValues(Vec::new()),
            "TAG" => return Err(self.unexpected(&["KEY", "KEYS", "VALUES"])),
            "FIELD" if !self.is_cardinality() => return Err(self.unexpected(&["KEY", "KEYS"])),
            other => {
                let counted = if self.is_cardinality() { " CARDINALITY" } else { "" };
                self.unsupported("");
                return Ok(Statement::Unsupported(format!("SHOW {other}{counted}")));
            }
        };

        self.listing(listed)
    }

    /// Whether a `SHOW` asks for the number of entries, not for the entries.
    fn is_cardinality(&self) -> bool {
        let mut ahead = self.lexer;
        let words = [ahead.next().token, ahead.next().token];
        let is = |token: &Lexeme, word: &str| matches!(token, Lexeme::Word(it) if it.eq_ignore_ascii_case(word));
        words.iter().any(|token| is(token, "CARDINALITY")) || is(&words[0], "EXACT")
    }

    fn listing(&mut self, mut listed: ShowKind) -> Result<Statement, QueryError> {
        if self.takes_word("ON") {
            self.identifier()?;
        }

        let mut sources = Vec::new();
        if listed == ShowKind::Measurements {
            if self.takes_word("WITH") {
                self.expect_word("MEASUREMENT")?;
                sources.push(self.compared_name()?);
            }
        } else if self.takes_word("FROM") {
            sources = self.list(Self::source)?;
        }

        if matches!(listed, ShowKind::TagValues(_)) {
            self.expect_word("WITH")?;
            self.expect_word("KEY")?;
            listed = ShowKind::TagValues(self.keys()?);
        }

        let condition = self.condition()?;
        self.order()?;
        let page = self.page("LIMIT", "OFFSET")?;
        Ok(Statement::Show(Show { listed, sources, condition, page }))
    }

    /// `= name`, `!= name`, `=~ /pattern/` or `!~ /pattern/`.
    fn compared_name(&mut self) -> Result<Name, QueryError> {
        if self.takes_mark("=~") {
            Ok(Name::Matches(self.pattern()?))
        } else if self.takes_mark("!~") {
            Ok(Name::MatchesNot(self.pattern()?))
        } else if self.takes_mark("!=") {
            Ok(Name::IsNot(self.identifier()?))
        } else if self.takes_mark("=") {
            Ok(Name::Is(self.identifier()?))
        } else {
            Err(self.unexpected(&["=", "!=", "=~", "!~"]))
        }
    }

    fn keys(&mut self) -> Result<Vec<Name>, QueryError> {
        if !self.takes_word("IN") {
            return Ok(vec![self.compared_name()?]);
        }
        self.expect_mark("(")?;
        let keys = self.list(|parser| parser.identifier().map(Name::Is))?;
        self.expect_mark(")")?;
        Ok(keys)
    }

    /// A list whose elements are separated by commas.
    fn list<T>(
        &mut self,
        one: fn(&mut Self) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let mut all = vec![one(self)?];
        while self.takes_mark(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn select(&mut self) -> Result<Statement, QueryError> {
        let columns = self.columns()?;
        if self.takes_word("INTO") {
            self.unsupported("");
            return Ok(Statement::Unsupported("SELECT INTO".to_owned()));
        }
        let select = self.select_from(columns)?;
        Ok(Statement::Select(Box::new(select)))
    }

    /// The rest of a `SELECT` after its columns.
    fn select_from(&mut self, columns: Vec<SelectColumn>) -> Result<Select, QueryError> {
        self.expect_word("FROM")?;
        let sources = if self.peek().token == Lexeme::Mark("(") {
            Sources::Subqueries(self.list(Self::subquery)?)
        } else {
            Sources::Measurements(self.list(Self::source)?)
        };

        let condition = self.condition()?;
        let dimensions = self.dimensions()?;
        let fill = self.fill()?;
        let is_descending = self.order()?;
        let rows = self.page("LIMIT", "OFFSET")?;
        let series = self.page("SLIMIT", "SOFFSET")?;
        let zone = self.zone()?;

        Ok(Select {
            columns,
            sources,
            condition,
            dimensions,
            fill,
            is_descending,
            rows,
            series,
            zone,
        })
    }

    fn subquery(&mut self) -> Result<Select, QueryError> {
        self.subqueries += 1;
        if self.subqueries > MAX_SUBQUERIES {
            refuse!("the query has more than {MAX_SUBQUERIES} subqueries");
        }

        self.expect_mark("(")?;
        self.expect_word("SELECT")?;
        let columns = self.columns()?;
        let select = self.select_from(columns)?;
        self.expect_mark(")")?;
        Ok(select)
    }

    fn columns(&mut self) -> Result<Vec<SelectColumn>, QueryError> {
        self.list(|parser| {
            let expression = parser.column()?;
            let alias = if parser.takes_word("AS") { Some(parser.identifier()?) } else { None };
            Ok(SelectColumn { expression, alias })
        })
    }

    /// The measurement of `m`, `policy.m`, `database.policy.m` or `database..m`; `m` may be a pattern. What stands
    /// before it is only counted.
    fn source(&mut self) -> Result<Name, QueryError> {
        let mut before: Vec<String> = Vec::new();
        let name = loop {
            if let Some(pattern) = self.takes_pattern()? {
                break Name::Matches(pattern);
            }
            if !before.is_empty() && self.takes_mark(".") {
                before.push(String::new());
                continue;
            }
            let name = self.identifier()?;
            if !self.takes_mark(".") {
                break Name::Is(name);
            }
            before.push(name);
        };

        if before.len() > 2 {
            let parts: Vec<String> = before.iter().map(|name| format!("{name:?}")).collect();
            let last = match &name {
                Name::Is(name) => name.clone(),
                _ => "/regex/".to_owned(),
            };
            let message = format!("too many segments in {}.{last}", parts.join("."));
            return Err(self.error_at(0, 1, &message));
        }

        Ok(name)
    }

    fn condition(&mut self) -> Result<Option<Expression>, QueryError> {
        if self.takes_word("WHERE") { self.expression().map(Some) } else { Ok(None) }
    }

    fn dimensions(&mut self) -> Result<Vec<Expression>, QueryError> {
        if !self.takes_word("GROUP") {
            return Ok(Vec::new());
        }
        self.expect_word("BY")?;
        self.list(Self::column)
    }

    fn fill(&mut self) -> Result<Fill, QueryError> {
        let mut ahead = self.lexer;
        let is_fill =
            matches!(ahead.next().token, Lexeme::Word(word) if word.eq_ignore_ascii_case("fill"));
        if !is_fill || ahead.next().token != Lexeme::Mark("(") {
            return Ok(Fill::Null);
        }

        let refused = || QueryError::new("expected number argument in fill()");
        let Expression::Call { arguments, .. } = self.expression()? else { return Err(refused()) };
        let [argument] = &arguments[..] else {
            refuse!("fill requires an argument, e.g.: 0, null, none, previous, linear");
        };

        match argument {
            Expression::Integer(number) => Ok(Fill::Number(float(*number))),
            Expression::Number(number) => Ok(Fill::Number(*number)),
            Expression::Reference { name, .. } => match name.to_ascii_lowercase().as_str() {
                "null" => Ok(Fill::Null),
                "none" => Ok(Fill::None),
                "previous" => Ok(Fill::Previous),
                "linear" => Ok(Fill::Linear),
                _ => Err(refused()),
            },
            _ => Err(refused()),
        }
    }

    /// The clause `ORDER BY`: whether the newest rows come first; `None` without the clause.
    fn order(&mut self) -> Result<Option<bool>, QueryError> {
        if !self.takes_word("ORDER") {
            return Ok(None);
        }
        self.expect_word("BY")?;
        let mut is_descending = self.takes_word("DESC");
        if is_descending || self.takes_word("ASC") {
            return Ok(Some(is_descending));
        }

        let by = self.identifier()?;
        is_descending = self.takes_word("DESC");
        if !is_descending {
            self.takes_word("ASC");
        }

        if !by.eq_ignore_ascii_case("time") || self.takes_mark(",") {
            refuse!("only ORDER BY time supported at this time");
        }
        Ok(Some(is_descending))
    }

    fn page(&mut self, limit: &str, offset: &str) -> Result<RowWindow, QueryError> {
        Ok(RowWindow { limit: self.count(limit)?, offset: self.count(offset)? })
    }

    fn count(&mut self, keyword: &str) -> Result<usize, QueryError> {
        if !self.takes_word(keyword) {
            return Ok(0);
        }
        match self.peek().token {
            Lexeme::Integer(number) => {
                self.lexer.next();
                Ok(usize::try_from(number).unwrap_or(usize::MAX))
            }
            _ => Err(self.unexpected(&["integer"])),
        }
    }

    fn zone(&mut self) -> Result<Option<Zone>, QueryError> {
        if !self.takes_word("tz") {
            return Ok(None);
        }

        self.expect_mark("(")?;
        let Lexeme::Text(name) = self.peek().token else {
            refuse!("expected string argument in tz()");
        };
        self.lexer.next();
        self.expect_mark(")")?;

        let unknown = |_| {
            let name = domain::excerpt(&name);
            QueryError::new(format!("unable to find time zone {name}"))
        };
        let zone = if name.is_empty() { Ok(Zone::UTC) } else { name.parse() };
        zone.map(Some).map_err(unknown)
    }

    /// A name, in quotes or without.
    fn identifier(&mut self) -> Result<String, QueryError> {
        match self.peek().token {
            Lexeme::Word(word) if !is_keyword(&word) => {
                self.lexer.next();
                Ok(word)
            }
            Lexeme::Quoted(name) => {
                self.lexer.next();
                Ok(name)
            }
            _ => Err(self.unexpected(&["identifier"])),
        }
    }

    /// A regular expression, if the next token is one.
    fn takes_pattern(&mut self) -> Result<Option<RegularExpression>, QueryError> {
        let Spanned { at, .. } = self.peek();
        match self.lexer.regex() {
            None => Ok(None),
            Some(Ok(text)) => {
                let compiled = RegularExpression::parse(&text);
                compiled.map(Some).map_err(|why| self.error_at(at, 0, &why.to_string()))
            }
            Some(Err(_)) => Err(self.error_at(at, 0, "found bad regex, expected regex")),
        }
    }

    fn pattern(&mut self) -> Result<RegularExpression, QueryError> {
        let pattern = self.takes_pattern()?;
        pattern.ok_or_else(|| self.unexpected(&["regex"]))
    }
}
