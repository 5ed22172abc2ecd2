//! Query parameters: each known, each once, each of its form. Knows no endpoint.

use std::fmt::Display;
use std::str::FromStr;

use super::{Problem, Request};
use domain::{MAX_METRICS, MetricName, Order, excerpt};

/// The parameters of a request. An unknown or repeated one is refused: a typo in `from` must not
/// silently answer for the last 24 hours.
#[derive(Debug)]
pub struct Params(Vec<(String, String)>);

/// Parameters that change how an answer is written but not what it says.
const PRESENTATION: [&str; 3] = ["limit", "cursor", "format"];

impl Params {
    /// The parameters of `request`, of which none but `allowed` may be given.
    pub fn of(request: &Request, allowed: &[&str]) -> Result<Self, Problem> {
        let params = request.query();
        for (n, (name, _)) in params.iter().enumerate() {
            if !allowed.contains(&name.as_str()) {
                let known = match allowed {
                    [] => "there are none here".to_owned(),
                    allowed => format!("known here: {}", allowed.join(", ")),
                };
                return Err(Problem::field(&excerpt(name), format!("is no parameter; {known}")));
            }
            if params[..n].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name, "is given twice"));
            }
        }
        Ok(Self(params))
    }

    /// A parameter as it was sent, decoded.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is read by its type.
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let parse =
            |text: &str| text.parse().map_err(|why: T::Err| Problem::field(name, why.to_string()));
        self.get(name).map(parse).transpose()
    }

    /// How many entries are asked for.
    pub fn limit(&self, default: usize, most: usize) -> Result<usize, Problem> {
        let Some(text) = self.get("limit") else { return Ok(default) };
        text.parse().ok().filter(|limit| (1..=most).contains(limit)).ok_or_else(|| {
            let message =
                format!("is {:?}; expected a whole number from 1 to {most}", excerpt(text));
            Problem::field("limit", message)
        })
    }

    /// Oldest first unless `order=desc` is asked for.
    pub fn order(&self) -> Result<Order, Problem> {
        match self.get("order") {
            None | Some("asc") => Ok(Order::Ascending),
            Some("desc") => Ok(Order::Descending),
            Some(text) => Err(Problem::field(
                "order",
                format!("is {:?}; expected asc or desc", excerpt(text)),
            )),
        }
    }

    /// A parameter that is `true` or `false`; `false` without it.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => {
                Err(Problem::field(name, format!("is {:?}; expected true or false", excerpt(text))))
            }
        }
    }

    /// The metrics asked for; `None` are all.
    pub fn metrics(&self) -> Result<Option<Vec<MetricName>>, Problem> {
        let Some(text) = self.get("metrics") else { return Ok(None) };
        let parse = |name: &str| {
            name.trim().parse().map_err(|why| Problem::field("metrics", format!("{why}")))
        };
        let names = text.split(',').map(parse).collect::<Result<Vec<MetricName>, _>>()?;
        if names.len() > MAX_METRICS {
            let message = format!("are {}; at most {MAX_METRICS} can be chosen", names.len());
            return Err(Problem::field("metrics", message));
        }
        match names.iter().enumerate().find(|(n, name)| names[..*n].contains(name)) {
            Some((_, name)) => Err(Problem::field("metrics", format!("name {name} twice"))),
            None => Ok(Some(names)),
        }
    }

    /// What the request asks for, apart from how much of it at a time and in which form.
    #[must_use]
    pub fn query_fingerprint(&self, request: &Request) -> String {
        let mut asked: Vec<_> =
            self.0.iter().filter(|(name, _)| !PRESENTATION.contains(&name.as_str())).collect();
        asked.sort();
        format!("{} {asked:?}", request.path.trim_end_matches('/'))
    }

    /// The address of the next page.
    #[must_use]
    pub fn next(&self, request: &Request, cursor: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.0.iter().filter(|(name, _)| name != "cursor"));
        query.append_pair("cursor", cursor);
        format!("{}?{}", request.path, query.finish())
    }
}
