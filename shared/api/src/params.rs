//! Query parameters, checked: known to the endpoint, not repeated, each of its kind.

use std::fmt::Display;
use std::str::FromStr;

use super::endpoints::{ENDPOINTS, Endpoint, Kind, METRIC_PREFIX, Operation, Parameter};
use super::{Format, Problem, Request};
use domain::{MAX_METRICS, MetricName, Order, excerpt};

/// The parameters of a request, checked by the table of endpoints. An unknown or repeated parameter is refused: a typo
/// in `from` must not silently answer for the last 24 hours.
#[derive(Debug)]
pub struct Params {
    known: &'static [Parameter],
    given: Vec<(String, String)>,
}

/// Parameters that change the form of an answer, but not its content.
const PRESENTATION: [&str; 3] = ["limit", "cursor", "format"];

impl Params {
    /// The parameters of a request to an endpoint.
    pub fn of(request: &Request, endpoint: &Endpoint) -> Result<Self, Problem> {
        let (known, mut given) = (endpoint.parameters, request.query());
        if endpoint.dialect().is_some() || endpoint.operation == Operation::WebPage {
            // InfluxDB ignores unknown parameters, and takes the first of repeated ones. The parameters of the web page
            // are for its script.
            given.retain(|(name, _)| find(known, name).is_some());
            return Ok(Self { known, given });
        }

        for (n, (name, value)) in given.iter().enumerate() {
            let is_repeatable =
                find(known, name).is_some_and(|parameter| parameter.kind.is_repeatable());
            if !is_repeatable && given[..n].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(&excerpt(name), "is given twice"));
            }

            let Some(parameter) = find(known, name) else {
                if endpoint.takes_conditions() {
                    check_condition(known, name)?;
                    continue;
                }
                // The names are checked later, by the payload format.
                if endpoint.takes_values() {
                    continue;
                }
                let message = format!("unknown parameter; {}", expected(known));
                return Err(Problem::field(&excerpt(name), message));
            };

            check(parameter.kind, value).map_err(|expected| {
                let message = format!("is {:?}; expected {expected}", excerpt(value));
                Problem::field(name, message)
            })?;
        }

        Ok(Self { known, given })
    }

    /// A parameter as it was sent, decoded.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may be repeated, decoded.
    pub fn each(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A parameter, parsed by its type.
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let parse = |text: &str| text.parse().map_err(|why: T::Err| Problem::field(name, why));
        self.get(name).map(parse).transpose()
    }

    /// The largest number of entries of a page: `limit`, else the endpoint's default.
    pub fn limit(&self) -> usize {
        let limit = self.known.iter().find_map(|parameter| match parameter.kind {
            Kind::Count { default, .. } => Some((parameter.name, default)),
            _ => None,
        });
        let (name, default) = limit.expect("an endpoint that counts has the parameter");
        self.get(name).map_or(default, |text| text.parse().expect("it was checked"))
    }

    /// The conditions: names of metrics, and the wanted values as they were sent.
    pub fn conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.given.iter().filter(|(name, _)| find(self.known, name).is_none());
        named
            .map(|(name, value)| (name.strip_prefix(METRIC_PREFIX).unwrap_or(name), value.as_str()))
    }

    /// The order of a range: `order`, else oldest first.
    pub fn order(&self) -> Order {
        match self.get("order") {
            Some("desc") => Order::Descending,
            _ => Order::Ascending,
        }
    }

    /// Tells whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// The requested form: `format`, else `Accept`, else JSON.
    pub fn format(&self, request: &Request) -> Format {
        let accepted = || Format::accepted(request.header("accept").unwrap_or_default());
        self.get("format").and_then(Format::parse).unwrap_or_else(accepted)
    }

    /// The metrics that a parameter names. `None`, for all metrics, if the parameter is absent.
    pub fn metrics(&self, name: &str) -> Result<Option<Vec<MetricName>>, Problem> {
        let Some(words) = self.words(name)? else { return Ok(None) };
        if words.len() > MAX_METRICS {
            let message = format!("are {}; at most {MAX_METRICS} can be chosen", words.len());
            return Err(Problem::field(name, message));
        }
        let parse = |word: &str| word.parse().map_err(|why| Problem::field(name, why));
        words.into_iter().map(parse).collect::<Result<_, _>>().map(Some)
    }

    /// The words of a list, in the order of the request. A repeated word is refused, because an answer would have two
    /// members of one name, or an id would have one part twice.
    pub fn words(&self, name: &str) -> Result<Option<Vec<&str>>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_repeated =
            |(n, word): &(usize, &&str)| !word.is_empty() && words[..*n].contains(word);
        match words.iter().enumerate().find(is_repeated) {
            Some((_, word)) => Err(Problem::field(name, format!("names {} twice", excerpt(word)))),
            None => Ok(Some(words)),
        }
    }

    /// A text that is equal for two requests for the same entries, even if the requests differ in page or form.
    pub fn query_fingerprint(&self, request: &Request) -> String {
        let mut asked: Vec<_> =
            self.given.iter().filter(|(name, _)| !PRESENTATION.contains(&name.as_str())).collect();
        asked.sort();
        format!("{} {asked:?}", request.path.trim_end_matches('/'))
    }

    /// The address of the next page.
    pub fn next(&self, request: &Request, cursor: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.given.iter().filter(|(name, _)| name != "cursor"));
        query.append_pair("cursor", cursor);
        format!("{}?{}", request.path, query.finish())
    }
}

fn find<'a>(known: &'a [Parameter], name: &str) -> Option<&'a Parameter> {
    let is_one =
        |parameter: &&Parameter| !matches!(parameter.kind, Kind::Conditions | Kind::Values);
    known.iter().find(|parameter| parameter.name == name && is_one(parameter))
}

/// Refuses a condition with the name of another endpoint's parameter: the client likely means the parameter.
fn check_condition(known: &[Parameter], name: &str) -> Result<(), Problem> {
    let all = || ENDPOINTS.iter().flat_map(|endpoint| endpoint.parameters);
    if !all().any(|parameter| parameter.name == name) {
        return Ok(());
    }
    let message =
        format!("unknown parameter; {}; {METRIC_PREFIX}{name} is a metric", expected(known));
    Err(Problem::field(name, message))
}

/// The names of the parameters that an endpoint takes, for a message.
fn expected(known: &[Parameter]) -> String {
    if known.is_empty() {
        return "this endpoint takes none".to_owned();
    }
    let names: Vec<_> = known.iter().map(|parameter| parameter.name).collect();
    format!("expected one of {}", names.join(", "))
}

/// Refuses a value that does not fit its kind. The error names the expected values. A value with a type of the domain
/// is checked later, by that type.
fn check(kind: Kind, value: &str) -> Result<(), String> {
    let expected = match kind {
        Kind::Flag if !matches!(value, "true" | "false" | "1" | "0") => "true or false".to_owned(),
        Kind::Words { of } if value.split(',').any(|word| !of.contains(&word.trim())) => {
            format!("some of {}, separated by commas", of.join(", "))
        }
        Kind::Count { max, .. } if !value.parse().is_ok_and(|count| (1..=max).contains(&count)) => {
            format!("a whole number from 1 to {max}")
        }
        Kind::Choice { of, .. } if !of.contains(&value) => of.join(" or "),
        Kind::Format if Format::parse(value).is_none() => "json, csv or ndjson".to_owned(),
        _ => return Ok(()),
    };
    Err(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::find_path;

    fn read(path: &str, query: &str) -> Result<Params, String> {
        let request = Request { raw_query: query.to_owned(), ..Request::default() };
        let (endpoint, _) = find_path("GET", path).expect("an endpoint");
        Params::of(&request, endpoint).map_err(|problem| problem.detail)
    }

    #[test]
    fn limits_and_defaults_are_those_of_the_endpoint() {
        for (path, default, max) in [("/rooms", 100, 1_000), ("/rooms/r/readings", 1_000, 10_000)] {
            assert_eq!(read(path, "").expect("no parameter").limit(), default);
            assert_eq!(read(path, &format!("limit={max}")).expect("the largest").limit(), max);
            for limit in ["0".to_owned(), (max + 1).to_string(), "-1".to_owned(), String::new()] {
                let why = read(path, &format!("limit={limit}")).expect_err(&limit);
                let expected =
                    format!("limit: is {limit:?}; expected a whole number from 1 to {max}");
                assert_eq!(why, expected);
            }
        }
        assert_eq!(read("/rooms/r/readings", "").expect("none").order(), Order::Ascending);
        let params = read("/rooms/r/readings", "order=desc&metrics=b,%20a").expect("known");
        assert_eq!(params.order(), Order::Descending);
        assert_eq!(params.metrics("metrics").expect("names").map(|names| names.len()), Some(2));
        assert!(read("/devices", "latest=true").expect("a flag").flag("latest"));
        assert!(!read("/devices", "latest=false").expect("a flag").flag("latest"));
        let params = read("/devices", "where=a%3E=1&tag=x&where=b=*").expect("repeatable");
        assert_eq!(params.each("where").collect::<Vec<_>>(), ["a>=1", "b=*"]);
    }

    #[test]
    fn no_list_names_a_word_twice() {
        for (path, name) in
            [("/series", "fn"), ("/series", "metric"), ("/rooms/r/readings", "metrics")]
        {
            let words = if name == "fn" { ["mean", "min"] } else { ["a", "b"] };
            let [first, second] = words;
            let params = read(path, &format!("{name}={first},{second}")).expect("a list");
            assert_eq!(params.words(name).expect("each once"), Some(words.to_vec()));
            let twice = format!("{name}={first},{second},%20{first}");
            let params = read(path, &twice).expect("known words");
            let why = params.words(name).expect_err("twice").detail;
            assert_eq!(why, format!("{name}: names {first} twice"));
        }
        assert_eq!(read("/series", "").expect("no list").words("fn").expect("none"), None);
    }

    #[test]
    fn any_further_parameter_is_a_condition_where_conditions_are_taken() {
        let path = "/devices/d/conditions";
        let params =
            read(path, "from=-1d&temperature=28..&metric.from=1&explain=1").expect("known");
        let conditions: Vec<_> = params.conditions().collect();
        assert_eq!(conditions, [("temperature", "28.."), ("from", "1")]);
        assert_eq!(params.get("from"), Some("-1d"));
        for name in ["limit", "conditions", "every"] {
            let why = read(path, &format!("{name}=1")).expect_err(name);
            let hint = format!("; metric.{name} is a metric");
            assert!(why.starts_with(&format!("{name}: unknown parameter; expected one of from")));
            assert!(why.ends_with(&hint), "{why}");
        }
        assert_eq!(read(path, "t=1&t=2").expect_err("twice"), "t: is given twice");
    }

    #[test]
    fn the_address_of_the_page_may_say_more_to_its_script() {
        assert_eq!(read("/", "lang=de&lang=ja&fbclid=x").expect("a page").get("lang"), None);
    }

    #[test]
    fn every_bad_parameter_is_named_with_what_is_expected() {
        for (path, query, expected) in [
            (
                "/rooms",
                "form=csv",
                "form: unknown parameter; expected one of limit, cursor, format",
            ),
            ("/openapi.json", "a=1", "a: unknown parameter; this endpoint takes none"),
            ("/rooms", "limit=1&limit=2", "limit: is given twice"),
            ("/rooms", "format=xml", "format: is \"xml\"; expected json, csv or ndjson"),
            ("/devices", "latest=yes", "latest: is \"yes\"; expected true or false"),
            ("/rooms/r/readings", "order=up", "order: is \"up\"; expected asc or desc"),
            (
                "/series",
                "fn=mean,median",
                "fn: is \"mean,median\"; expected some of mean, min, max, sum, count, first, last, \
                 time_mean, increase, separated by commas",
            ),
        ] {
            assert_eq!(read(path, query).expect_err(query), expected);
        }
    }
}
