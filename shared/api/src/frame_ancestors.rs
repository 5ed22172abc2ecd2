//! The origins whose pages may show the web page in a frame, for the page's policy. Writes no header.

use std::fmt;
use std::str::FromStr;

use domain::excerpt;

/// The origins whose pages may show the web page in a frame. By default there are no such origins.
///
/// As a text, the origins are separated by spaces, as in the header `Content-Security-Policy`. Source:
/// <https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Content-Security-Policy/frame-ancestors>
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameAncestors(Vec<String>);

/// The error of a text that is not a list of origins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an origin; expected http:// or https:// with a host and perhaps a port, such as \
     https://home.example.org:8123"
)]
pub struct FrameAncestorsError(String);

impl FromStr for FrameAncestors {
    type Err = FrameAncestorsError;

    fn from_str(text: &str) -> Result<Self, FrameAncestorsError> {
        let origin = |text: &str| {
            let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            // The origin becomes a part of a header, so other characters and wildcards are refused.
            let is_of_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
            match host {
                Some(host) if !host.is_empty() && host.chars().all(is_of_host) => {
                    Ok(text.to_owned())
                }
                _ => Err(FrameAncestorsError(excerpt(text))),
            }
        };

        let origins = text.split(|c: char| c == ',' || c.is_whitespace());
        origins
            .filter(|origin_text| !origin_text.is_empty())
            .map(origin)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl FromIterator<Self> for FrameAncestors {
    fn from_iter<T: IntoIterator<Item = Self>>(all: T) -> Self {
        Self(all.into_iter().flat_map(|ancestors| ancestors.0).collect())
    }
}

impl fmt::Display for FrameAncestors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("'none'") } else { f.write_str(&self.0.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_taken_and_whatever_else_a_policy_may_say_is_not() {
        let shown = |text: &str| text.parse::<FrameAncestors>().map(|it| it.to_string());
        assert_eq!(shown("").as_deref(), Ok("'none'"));
        assert_eq!(FrameAncestors::default().to_string(), "'none'");
        let two = "https://home.example.org:8123 http://[::1]:8123";
        assert_eq!(shown(two).as_deref(), Ok(two));
        assert_eq!(shown(" https://a,https://b ").as_deref(), Ok("https://a https://b"));
        for text in [
            "*",
            "https:",
            "https://",
            "https://*.example.org",
            "'self'",
            "home.example.org",
            "https://a/path",
            "https://a;script-src",
            "https://a\u{e9}",
            "data:",
        ] {
            let error = shown(text).expect_err(text).to_string();
            assert!(error.contains(text.split('\u{e9}').next().expect("a part")), "{error}");
        }
    }
}
