//! Durations as InfluxQL writes them, in nanoseconds. Reads no clock.

pub(crate) const SECOND: i64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub(crate) const MILLISECOND: i64 = 1_000_000;

/// Reads a duration such as `90s` or `1h30m`; `None` for other texts and for durations that are too long.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let length = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());

        let nanoseconds = match &unit[..length] {
            "ns" => 1,
            "u" | "µ" => 1_000,
            "ms" => MILLISECOND,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3_600 * SECOND,
            "d" => 86_400 * SECOND,
            "w" => 604_800 * SECOND,
            _ => return None,
        };

        total = total.checked_add(count.checked_mul(nanoseconds)?)?;
        rest = &unit[length..];
    }

    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, expected) in [
            ("1ns", Some(1)),
            ("2u", Some(2_000)),
            ("2µ", Some(2_000)),
            ("3ms", Some(3_000_000)),
            ("1h30m", Some(5_400 * SECOND)),
            ("1w", Some(604_800 * SECOND)),
            ("", None),
            ("5", None),
            ("m", None),
            ("1y", None),
            ("99999999999w", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
