//! Media types of bodies: which may be JSON, and which are NDJSON. Parses no body.

/// A media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Tells whether a body of this `Content-Type` is one JSON value per line.
///
/// No media type is registered for this: `application/x-ndjson`, `application/ndjson`, `application/jsonl` and
/// `application/x-jsonlines` are all in use.
pub fn is_ndjson(content_type: &str) -> bool {
    let essence = essence(content_type);
    let Some(("application" | "text", subtype)) = essence.split_once('/') else { return false };
    matches!(subtype.strip_prefix("x-").unwrap_or(subtype), "ndjson" | "jsonl" | "jsonlines")
}

/// Tells whether a body of this `Content-Type` may be JSON or NDJSON.
///
/// JSON's own types are taken, and types that say nothing of the content: no type, plain text, a form (the default of
/// curl), bytes, and gzip without a `Content-Encoding`.
pub(super) fn may_be_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    let unspecific = matches!(
        essence.as_str(),
        "" | "text/plain"
            | "application/x-www-form-urlencoded"
            | "application/octet-stream"
            | "application/gzip"
            | "application/x-gzip"
    );
    let json = matches!(essence.as_str(), "application/json" | "text/json" | "application/x-json");
    unspecific || json || essence.ends_with("+json") || is_ndjson(content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_json_are_known_by_every_name_and_letter_case() {
        for content_type in [
            "application/x-ndjson",
            "application/ndjson",
            "application/jsonl",
            "application/x-jsonlines",
            "Application/X-NDJSON; charset=utf-8",
            "text/jsonl",
        ] {
            assert!(is_ndjson(content_type) && may_be_json(content_type), "{content_type}");
        }
        for content_type in
            ["", "application/json", "text/plain; x=ndjson", "ndjson", "image/jsonl"]
        {
            assert!(!is_ndjson(content_type), "{content_type}");
        }
    }

    #[test]
    fn what_cannot_be_json_is_known_by_its_type() {
        for content_type in [
            "",
            "application/json",
            "APPLICATION/JSON; charset=utf-8",
            "application/merge-patch+json",
            "text/plain;charset=UTF-8",
            "application/x-www-form-urlencoded",
            "application/octet-stream",
            "application/gzip",
        ] {
            assert!(may_be_json(content_type), "{content_type}");
        }
        for content_type in
            ["multipart/form-data; boundary=x", "image/png", "text/csv", "application/cbor", "json"]
        {
            assert!(!may_be_json(content_type), "{content_type}");
        }
    }
}
