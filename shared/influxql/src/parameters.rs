//! The values of a query's parameters, read from a JSON object. Knows no query.

use std::collections::BTreeMap;

use crate::ast::Expression;
use crate::error::QueryError;

/// The values of a query's parameters, by name.
#[derive(Debug, Default)]
pub struct Parameters(BTreeMap<String, Expression>);

impl Parameters {
    /// Reads a JSON object whose values are texts, numbers, `true` and `false`.
    pub fn from_json(text: &str) -> Result<Self, QueryError> {
        let parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)
            .map_err(|why| QueryError::new(format!("error parsing query parameters: {why}")))?;
        let value = |(name, value): (String, _)| match literal(&value) {
            Some(literal) => Ok((name, literal)),
            None => Err(unusable(&name)),
        };
        parsed.into_iter().map(value).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&Expression> {
        self.0.get(name)
    }
}

fn literal(of: &serde_json::Value) -> Option<Expression> {
    match of {
        serde_json::Value::String(text) => Some(Expression::Text(text.clone())),
        serde_json::Value::Bool(value) => Some(Expression::Boolean(*value)),
        serde_json::Value::Number(number) => {
            let whole = number.as_i64().map(Expression::Integer);
            whole.or_else(|| number.as_f64().map(Expression::Number))
        }
        _ => None,
    }
}

fn unusable(name: &str) -> QueryError {
    let name = domain::excerpt(name);
    QueryError::new(format!(
        "error parsing query parameters: {name} is not a text, a number, true or false"
    ))
}
