//! Refuses requests that nobody sends on purpose: of foreign web pages, previews and prefetches. Checks no token.

use super::{Problem, ProblemKind, Request};
use domain::excerpt;

/// Headers by which a browser marks a prefetch or a preview.
const AHEAD: [&str; 4] = ["purpose", "sec-purpose", "x-purpose", "x-moz"];

/// Refuses a request from a page of another origin, and a browser's prefetch.
///
/// A browser sends `Sec-Fetch-Site` with every request, even for an image, and no page can change the header. Its value
/// is `none` if a person typed the address. Devices send none of these headers.
pub fn refuse(request: &Request) -> Result<(), Problem> {
    let site = request.header("sec-fetch-site");
    let is_foreign = site.is_some_and(|site| !matches!(site, "none" | "same-origin"));
    let ahead = AHEAD.into_iter().find(|name| request.header(name).is_some());

    let (name, reason) = if is_foreign {
        ("sec-fetch-site", "a web page of another origin asks")
    } else if let Some(name) = ahead {
        (name, "a browser asks before anybody does")
    } else {
        return Ok(());
    };

    let value = excerpt(request.header(name).unwrap_or_default());
    let detail = format!("The address stores a reading, and {reason}: {name} is {value:?}.");
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_people_are_served_and_pages_and_prefetches_are_not() {
        for (header, value, is_refused) in [
            ("user-agent", "curl", false),
            ("sec-fetch-site", "none", false),
            ("sec-fetch-site", "same-origin", false),
            ("sec-fetch-site", "same-site", true),
            ("sec-fetch-site", "cross-site", true),
            ("sec-fetch-site", "", true),
            ("sec-purpose", "prefetch;prerender", true),
            ("purpose", "prefetch", true),
            ("x-moz", "prefetch", true),
            ("x-purpose", "preview", true),
        ] {
            let headers = [(header.to_owned(), value.to_owned())].into();
            let refused = refuse(&Request { headers, ..Request::default() });
            assert_eq!(refused.is_err(), is_refused, "{header}: {value}");
            if let Err(problem) = refused {
                assert!(problem.detail.contains(header), "{}", problem.detail);
                assert_eq!(problem.kind, ProblemKind::Forbidden);
            }
        }
    }
}
