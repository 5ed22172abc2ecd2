//! The parameters of `/query`, in the address and in a form. Parses no query.

use std::collections::BTreeMap;

use api::{Problem, Request};
use influxql::{AnswerForm, Epoch, Parameters, QueryError};

/// The parameters of a request to `/query`.
#[derive(Debug)]
pub struct QueryRequest {
    given: BTreeMap<String, String>,
    /// Whether the request is a `POST`. Only a `POST` may create something.
    pub is_post: bool,
}

impl QueryRequest {
    /// Reads the form of a `POST`, then the address. If a parameter is given several times, the first counts.
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
        Ok(Self { given, is_post })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// The query.
    pub fn query(&self) -> Result<&str, QueryError> {
        self.get("q").ok_or_else(|| QueryError::new("missing required parameter \"q\""))
    }

    /// The database that the request names.
    pub fn database(&self) -> Option<&str> {
        self.get("db")
    }

    /// The form of the answer. `chunked` and `chunk_size` change nothing: Lambda sends an answer as a whole, and a
    /// client that asked for several documents also accepts a single one.
    pub fn form(&self) -> AnswerForm {
        let epoch = Epoch::parse(self.get("epoch").unwrap_or_default());
        AnswerForm { epoch, is_pretty: self.get("pretty") == Some("true") }
    }

    /// The values of the parameters in the query.
    pub fn parameters(&self) -> Result<Parameters, QueryError> {
        self.get("params").map_or_else(|| Ok(Parameters::default()), Parameters::from_json)
    }
}
