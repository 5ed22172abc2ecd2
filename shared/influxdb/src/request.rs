//! The parameters of `/query`, in the address and in a form. Parses no query.

use std::collections::BTreeMap;

use api::{Problem, Request};
use influxql::{Epoch, Form, Parameters, QueryError};

/// The rows of a chunk where a request does not say.
const CHUNK: usize = 10_000;

/// What a request asks.
#[derive(Debug)]
pub struct QueryRequest {
    given: BTreeMap<String, String>,
    /// Whether it is a `POST`, which may create.
    pub is_post: bool,
    is_csv: bool,
}

impl QueryRequest {
    /// Reads the form of a `POST`, and the address. Of a parameter that is given several times, the first counts.
    pub fn of(request: &Request) -> Result<Self, Problem> {
        let mut given = BTreeMap::new();
        let is_post = request.method == "POST";
        if is_post {
            let body = api::inflate(&request.body)?;
            for (name, value) in form_urlencoded::parse(&body).into_owned() {
                given.entry(name).or_insert(value);
            }
        }
        for (name, value) in request.query() {
            given.entry(name).or_insert(value);
        }
        let accepted = request.header("accept").unwrap_or_default();
        let is_csv = accepted.contains("application/csv") || accepted.contains("text/csv");
        Ok(Self { given, is_post, is_csv })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// The query.
    pub fn query(&self) -> Result<&str, QueryError> {
        self.get("q").ok_or_else(|| QueryError::new("missing required parameter \"q\""))
    }

    /// The database that it names.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.get("db")
    }

    /// The form of the answer.
    #[must_use]
    pub fn form(&self) -> Form {
        let chunk = || self.get("chunk_size").and_then(|text| text.parse().ok());
        Form {
            epoch: Epoch::parse(self.get("epoch").unwrap_or_default()),
            is_pretty: self.flag("pretty"),
            is_csv: self.is_csv,
            chunk: self.flag("chunked").then(|| chunk().filter(|rows| *rows > 0).unwrap_or(CHUNK)),
        }
    }

    /// The values of the query's parameters.
    pub fn parameters(&self) -> Result<Parameters, QueryError> {
        self.get("params").map_or_else(|| Ok(Parameters::default()), Parameters::from_json)
    }
}
