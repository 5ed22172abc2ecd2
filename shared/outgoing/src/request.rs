//! An HTTP request that shows nothing of its address, headers and body. Sends nothing.

use std::borrow::Cow;
use std::fmt;

use http::Uri;
use percent_encoding::percent_decode_str;

use crate::url::Url;

/// An HTTP request. Its address, headers and body are secret; `Debug` shows no part of them.
#[derive(Clone)]
pub struct Request {
    maker: &'static str,
    /// The member of the settings that has the address.
    field: &'static str,
    method: &'static str,
    url: Url,
    headers: Vec<(Cow<'static, str>, String)>,
    body: String,
    /// Secret texts that the reason of a failure must not contain. It must not contain the address either.
    secrets: Vec<String>,
}

impl Request {
    /// A `GET` request to an address from the member `field` of the settings. `maker` names the server in texts.
    pub fn get(maker: &'static str, field: &'static str, url: Url) -> Self {
        let (headers, body, secrets) = (Vec::new(), String::new(), Vec::new());
        Self { maker, field, method: "GET", url, headers, body, secrets }
    }

    /// A `POST` request of JSON to an address from the member `field` of the settings. `maker` names the server in
    /// texts.
    pub fn post(maker: &'static str, field: &'static str, url: Url, body: String) -> Self {
        let json = (Cow::Borrowed("content-type"), "application/json".to_owned());
        Self { method: "POST", headers: vec![json], body, ..Self::get(maker, field, url) }
    }

    /// The request with further headers. A header replaces an earlier one of the same name.
    #[must_use]
    pub fn with_headers<N: Into<Cow<'static, str>>>(
        mut self,
        headers: impl IntoIterator<Item = (N, String)>,
    ) -> Self {
        for (name, value) in headers {
            let name = name.into();
            self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            self.headers.push((name, value));
        }
        self
    }

    /// The request with secret texts that the reason of a failure must not contain.
    #[must_use]
    pub fn with_secrets<'a>(self, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Self { secrets: secrets.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The name of the server in texts.
    pub const fn maker(&self) -> &'static str {
        self.maker
    }

    /// The member of the settings that has the address.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The method.
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// The address.
    pub const fn uri(&self) -> &Uri {
        self.url.uri()
    }

    /// The headers.
    pub fn headers(&self) -> &[(Cow<'static, str>, String)] {
        &self.headers
    }

    /// The body.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether a text of the server repeats a secret. Servers like to name the path that they do not know.
    pub fn is_part_of(&self, text: &str) -> bool {
        /// The least length of a secret part. A shorter part of a path is probably a word and not a password.
        const SHORTEST: usize = 6;
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let is_in = |part: &str| text.contains(part) || text.contains(&decode(part));
        let uri = self.uri();
        let parts = uri.path().split('/').chain(uri.query().unwrap_or_default().split(['&', '=']));
        self.secrets.iter().any(|secret| is_in(secret))
            || uri.path().len() > 1 && is_in(uri.path())
            || uri.host().is_some_and(is_in)
            || parts.filter(|part| part.len() >= SHORTEST).any(is_in)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", self.maker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Reach;

    #[test]
    fn a_get_has_no_body_and_shows_nothing() {
        let url = Url::parse("https://hc-ping.com/geheim", Reach::Public).expect("an address");
        let request = Request::get("the heartbeat", "address", url);
        assert_eq!((request.method(), request.body(), request.headers().len()), ("GET", "", 0));
        assert_eq!(format!("{request:?}"), "Request(the heartbeat)");
    }

    #[test]
    fn a_header_is_sent_once() {
        let url = Url::parse("https://example.org/a", Reach::Public).expect("an address");
        let request = Request::post("M", "url", url, String::new());
        let form = "application/x-www-form-urlencoded";
        let request = request.with_headers([("Content-Type", form.to_owned())]);
        assert_eq!(request.headers(), [("Content-Type".into(), form.to_owned())]);
    }
}
