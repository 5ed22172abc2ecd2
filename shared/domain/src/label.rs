//! What people call things: names, kinds, tags. Says nothing of what is called so.

/// The longest label, in characters.
const MAX_LENGTH: usize = 100;

/// Why a text is no label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Nothing, or nothing but white space.
    #[error("is empty")]
    Empty,
    /// More than a list has room for.
    #[error("is {0} characters long; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// What would leave its line of a list.
    #[error("holds a control character")]
    Control,
}

/// Whether a text may be a label.
pub fn check_label(text: &str) -> Result<(), LabelError> {
    match text.chars().count() {
        _ if text.trim().is_empty() => Err(LabelError::Empty),
        length if length > MAX_LENGTH => Err(LabelError::TooLong(length)),
        _ if text.chars().any(char::is_control) => Err(LabelError::Control),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_short_line() {
        assert_eq!(check_label("desk, ESP32"), Ok(()));
        assert_eq!(check_label(&"é".repeat(100)), Ok(()));
        for (text, why) in [
            ("", LabelError::Empty),
            (" \n", LabelError::Empty),
            (&"x".repeat(101), LabelError::TooLong(101)),
            ("a\nb", LabelError::Control),
            ("\u{1b}[31m", LabelError::Control),
        ] {
            assert_eq!(check_label(text), Err(why), "{text:?}");
        }
    }
}
