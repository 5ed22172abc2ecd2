//! Parses expressions. Refuses expressions that are nested deeper than [`MAX_DEPTH`], and more than [`MAX_CHAINED`]
//! operators in chains, since each operator of a chain makes the tree deeper by one. So functions on the tree may
//! recurse.

use super::Parser;
use crate::ast::{Cast, Expression, Operator};
use crate::duration;
use crate::error::{QueryError, refuse};
use crate::lexer::{Lexeme, is_keyword};

/// The largest depth of nested expressions.
const MAX_DEPTH: usize = 32;
/// The largest number of a query's operators after the first operator of a chain, such as `a + b + c`.
const MAX_CHAINED: usize = 500;

const OPERAND: [&str; 4] = ["identifier", "string", "number", "bool"];

impl Parser<'_> {
    /// An expression of `AND`, `OR`, comparisons and arithmetic.
    pub(super) fn expression(&mut self) -> Result<Expression, QueryError> {
        self.nested(|parser| {
            let mut any = vec![parser.conjunction()?];
            while parser.takes_word("OR") {
                any.push(parser.conjunction()?);
            }
            Ok(one_or(any, Expression::Any))
        })
    }

    /// A column or a dimension: a pattern or an expression.
    pub(super) fn column(&mut self) -> Result<Expression, QueryError> {
        match self.takes_pattern()? {
            Some(pattern) => Ok(Expression::Pattern(pattern)),
            None => self.expression(),
        }
    }

    /// Parses an expression that is nested in another expression.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn conjunction(&mut self) -> Result<Expression, QueryError> {
        let mut all = vec![self.comparison()?];
        while self.takes_word("AND") {
            all.push(self.comparison()?);
        }
        Ok(one_or(all, Expression::All))
    }

    fn comparison(&mut self) -> Result<Expression, QueryError> {
        const OPERATORS: [Operator; 8] = [
            Operator::Matches,
            Operator::MatchesNot,
            Operator::Equal,
            Operator::NotEqual,
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
        ];
        self.chain(&OPERATORS, Self::sum)
    }

    fn sum(&mut self) -> Result<Expression, QueryError> {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Expression, QueryError> {
        self.chain(&[Operator::Multiply, Operator::Divide, Operator::Modulo], Self::operand)
    }

    /// Parses operands joined by operators of the same rank, from left to right.
    fn chain(
        &mut self,
        operators: &[Operator],
        operand: fn(&mut Self) -> Result<Expression, QueryError>,
    ) -> Result<Expression, QueryError> {
        let mut left = operand(self)?;
        let mut is_first = true;
        while let Some(operator) = operators.iter().find(|next| self.takes_mark(next.as_str())) {
            self.chained += usize::from(!std::mem::take(&mut is_first));
            if self.chained > MAX_CHAINED {
                refuse!("the query has more than {MAX_CHAINED} operators in chains");
            }

            let right = match operator {
                Operator::Matches | Operator::MatchesNot => Expression::Pattern(self.pattern()?),
                _ => operand(self)?,
            };
            left = Expression::Binary { operator: *operator, sides: Box::new([left, right]) };
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expression, QueryError> {
        if self.takes_mark("(") {
            let inside = self.expression()?;
            self.expect_mark(")")?;
            return Ok(Expression::Group(Box::new(inside)));
        }

        if self.takes_mark("-") {
            return Ok(negative(self.nested(Self::operand)?));
        }

        if self.takes_mark("+") {
            return self.nested(Self::operand);
        }
        if self.takes_mark("*") {
            let cast = self.cast()?;
            return Ok(Expression::Wildcard(cast));
        }

        let token = self.peek().token;
        let literal = match token {
            Lexeme::Text(text) => Expression::Text(text),
            Lexeme::Integer(number) => Expression::Integer(number),
            Lexeme::Number(number) => Expression::Number(number),
            Lexeme::Duration(length) => Expression::Duration(length),
            Lexeme::Parameter(name) => self
                .parameters
                .get(&name)
                .cloned()
                .ok_or_else(|| QueryError::new(format!("missing parameter: {name}")))?,
            Lexeme::Word(word) if word.eq_ignore_ascii_case("true") => Expression::Boolean(true),
            Lexeme::Word(word) if word.eq_ignore_ascii_case("false") => Expression::Boolean(false),
            Lexeme::Word(word) if word.eq_ignore_ascii_case("distinct") => {
                self.lexer.next();
                // `distinct(field)` or `distinct field`
                let arguments = vec![self.nested(Self::operand)?];
                return Ok(Expression::Call { name: "distinct".to_owned(), arguments });
            }
            Lexeme::Word(word) if !is_keyword(&word) => return self.call_or_reference(),
            Lexeme::Quoted(_) => return self.call_or_reference(),
            Lexeme::Bad(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(bad_duration(&text));
            }
            _ => return Err(self.unexpected(&OPERAND)),
        };

        self.lexer.next();
        Ok(literal)
    }

    fn call_or_reference(&mut self) -> Result<Expression, QueryError> {
        let is_quoted = matches!(self.peek().token, Lexeme::Quoted(_));
        let mut name = self.identifier()?;
        if !is_quoted && self.takes_mark("(") {
            let mut arguments = Vec::new();
            if !self.takes_mark(")") {
                arguments = self.list(Self::column)?;
                self.expect_mark(")")?;
            }
            return Ok(Expression::Call { name: name.to_ascii_lowercase(), arguments });
        }

        while self.takes_mark(".") {
            name = format!("{name}.{}", self.identifier()?);
        }

        let cast = self.cast()?;
        Ok(Expression::Reference { name, cast })
    }

    /// A `::type` after a name.
    fn cast(&mut self) -> Result<Option<Cast>, QueryError> {
        const TYPES: [&str; 7] =
            ["float", "integer", "unsigned", "string", "boolean", "field", "tag"];
        if !self.takes_mark("::") {
            return Ok(None);
        }
        let found = TYPES.iter().find(|name| self.takes_word(name));
        match found.copied() {
            Some("tag") => Ok(Some(Cast::Tag)),
            Some("string" | "boolean") => Ok(Some(Cast::Other)),
            Some(_) => Ok(Some(Cast::Field)),
            None => Err(self.unexpected(&TYPES)),
        }
    }
}

fn one_or(mut parts: Vec<Expression>, joined: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 { parts.remove(0) } else { joined(parts) }
}

fn negative(of: Expression) -> Expression {
    match of {
        Expression::Integer(number) => Expression::Integer(-number),
        Expression::Number(number) => Expression::Number(-number),
        Expression::Duration(length) => Expression::Duration(-length),
        other => Expression::Binary {
            operator: Operator::Multiply,
            sides: Box::new([Expression::Integer(-1), other]),
        },
    }
}

/// The error of a number followed by letters that are not a unit of a duration.
fn bad_duration(text: &str) -> QueryError {
    let small: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    if duration::parse(&small).is_none() {
        return QueryError::new("invalid duration");
    }
    let text = domain::excerpt(text);
    QueryError::new(format!("overflowed duration {text}: choose a smaller duration or INF"))
}

fn too_deep() -> QueryError {
    QueryError::new(format!("an expression is nested deeper than {MAX_DEPTH}"))
}
