//! The member of a rule that a person may mean by an unknown name. Reads no rule.

/// Names that other systems have for members of a rule.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("over", "above"),
    ("max", "above"),
    ("threshold", "above"),
    ("under", "below"),
    ("min", "below"),
    ("device_id", "device"),
    ("room_id", "room"),
    ("duration", "for"),
    ("hysteresis", "clear"),
];
/// The largest number of letters by which a mistyped name differs.
const MAX_MISTYPED: usize = 2;

/// The member for which an unknown name is another system's name, or from which the name differs by the fewest letters.
/// `None` if too many letters differ.
pub(crate) fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some((_, member)) = OTHER_NAMES.iter().find(|(name, _)| *name == unknown) {
        return Some(member);
    }

    let distances = known.iter().map(|name| (strsim::levenshtein(unknown, name), *name));
    let (letters, name) = distances.min_by_key(|(letters, _)| *letters)?;
    (letters <= MAX_MISTYPED && letters * 2 <= name.len()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_member_and_one_of_another_system_find_the_member_that_is_meant() {
        let known = ["name", "device", "above", "below", "per", "for", "clear_above"];
        for (unknown, expected) in [
            ("nmae", Some("name")),
            ("devise", Some("device")),
            ("abov", Some("above")),
            ("clear_abov", Some("clear_above")),
            ("over", Some("above")),
            ("colour", None),
            ("pet", Some("per")),
            ("no", None),
            ("", None),
        ] {
            assert_eq!(nearest(unknown, &known), expected, "{unknown}");
        }
    }
}
