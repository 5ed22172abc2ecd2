//! Lets the web page send requests to the address that stores readings, as the CORS settings of a function URL do.
//! Refuses nothing.
//!
//! Source: <https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html>

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

/// The answer to a browser's preflight request; `None` for any other request.
pub(super) fn preflight(parts: &Parts) -> Option<Response> {
    let asks = parts.method == Method::OPTIONS
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !asks {
        return None;
    }

    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, content-encoding"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(permitting(parts, response))
}

/// Adds the headers with which a browser lets the web page read the response.
pub(super) fn permitting(parts: &Parts, mut response: Response) -> Response {
    if parts.headers.contains_key(ORIGIN) {
        let all = HeaderValue::from_static("*");
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, all);
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_page_may_ask_after_it_asked_whether_it_may_and_others_get_no_header() {
        let parts = |method: &str, headers: &[(&str, &str)]| {
            let request = Request::builder().method(method).uri("/readings");
            let request =
                headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
            request.body(()).unwrap().into_parts().0
        };

        let origin = ("origin", "http://127.0.0.1:8080");
        let asked = parts("OPTIONS", &[origin, ("access-control-request-method", "POST")]);
        let answer = preflight(&asked).expect("answered");
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert_eq!(answer.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(answer.headers()[ACCESS_CONTROL_ALLOW_METHODS].to_str().unwrap().contains("POST"));

        for (method, headers) in [("OPTIONS", &[origin][..]), ("POST", &[origin])] {
            assert!(preflight(&parts(method, headers)).is_none(), "{method}");
        }

        let allowed = |headers: &[(&str, &str)]| {
            let answer = permitting(&parts("POST", headers), Response::new(Body::empty()));
            answer.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN)
        };
        assert!(allowed(&[origin]) && !allowed(&[]));
    }
}
