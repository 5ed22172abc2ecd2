//! Media types of bodies: which are lines of JSON, which cannot be readings at all. Parses no body.

/// A media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a body of this `Content-Type` is one JSON value a line.
///
/// No registered name exists; `application/x-ndjson`, `application/ndjson`, `application/jsonl` and
/// `application/x-jsonlines` are all in use, in any letter case.
#[must_use]
pub fn is_ndjson(content_type: &str) -> bool {
    let essence = essence(content_type);
    let Some(("application" | "text", subtype)) = essence.split_once('/') else { return false };
    matches!(subtype.strip_prefix("x-").unwrap_or(subtype), "ndjson" | "jsonl" | "jsonlines")
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
            assert!(is_ndjson(content_type), "{content_type}");
        }
        for content_type in
            ["", "application/json", "text/plain; x=ndjson", "ndjson", "image/jsonl"]
        {
            assert!(!is_ndjson(content_type), "{content_type}");
        }
    }
}
