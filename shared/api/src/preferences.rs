//! Parses `Accept` and `Accept-Encoding`: names with weights. Knows no format of an answer.

/// The names of an `Accept` header of any kind, in lower case, each with its weight from 0 to 1.
///
/// Source: RFC 9110, 12.4.2. A weight that cannot be read counts as 1, like a missing weight.
pub fn weighted(header: &str) -> impl Iterator<Item = (String, f32)> {
    header.split(',').filter_map(|part| {
        let part = part.to_ascii_lowercase();
        let mut parameters = part.split(';').map(str::trim);
        let name = parameters.next().filter(|name| !name.is_empty())?.to_owned();
        let weight = parameters.find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            if key.trim() == "q" { value.trim().parse().ok() } else { None }
        });
        Some((name, weight.unwrap_or(1.0)))
    })
}

/// The content coding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// No coding.
    Identity,
    /// gzip, where it makes the answer smaller.
    Gzip,
    /// gzip in any case: the client takes nothing else.
    GzipOnly,
}

impl Coding {
    /// The coding that an `Accept-Encoding` header prefers; no coding without the header.
    ///
    /// Source: RFC 9110, 12.5.3. A client that refuses every supported coding gets the plain answer.
    pub fn preferred(accept_encoding: &str) -> Self {
        let (mut gzip, mut identity, mut any) = (None, None, None);
        for (name, weight) in weighted(accept_encoding) {
            match name.as_str() {
                "gzip" | "x-gzip" => gzip = Some(weight),
                "identity" => identity = Some(weight),
                "*" => any = Some(weight),
                _ => {}
            }
        }

        let is_refused = |weight: Option<f32>| weight.is_some_and(|weight| weight <= 0.0);
        let Some(gzip) = gzip.or(any).filter(|weight| *weight > 0.0) else { return Self::Identity };
        if is_refused(identity.or(any)) {
            Self::GzipOnly
        } else if identity.is_some_and(|identity| identity > gzip) {
            Self::Identity
        } else {
            Self::Gzip
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_is_the_one_that_the_client_weighs_most() {
        for (header, expected) in [
            ("", Coding::Identity),
            ("gzip", Coding::Gzip),
            ("X-GZIP", Coding::Gzip),
            ("br, gzip;q=0.5", Coding::Gzip),
            ("*", Coding::Gzip),
            ("gzip;q=0", Coding::Identity),
            ("gzip;q=0.0", Coding::Identity),
            ("gzip; q = 0.000", Coding::Identity),
            ("gzip;q=0, *", Coding::Identity),
            ("*;q=0", Coding::Identity),
            ("*;q=0, gzip", Coding::GzipOnly),
            ("identity;q=0, gzip;q=0.1", Coding::GzipOnly),
            ("identity;q=0", Coding::Identity),
            ("identity", Coding::Identity),
            ("identity, gzip", Coding::Gzip),
            ("identity;q=1, gzip;q=0.5", Coding::Identity),
            ("identity;q=0.5, *;q=0", Coding::Identity),
            ("deflate, br", Coding::Identity),
        ] {
            assert_eq!(Coding::preferred(header), expected, "{header}");
        }
    }

    #[test]
    fn a_weight_is_found_behind_other_parameters() {
        let names: Vec<_> = weighted("Text/CSV; header=present; q=0.3, , */*;q=x").collect();
        assert_eq!(names, [("text/csv".to_owned(), 0.3), ("*/*".to_owned(), 1.0)]);
    }
}
