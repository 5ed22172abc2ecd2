//! The text of a token: its form and its checksum. Makes no random bits and knows no stored token.

/// The prefix of every token, by which people and secret scanners recognise a token.
pub const TOKEN_PREFIX: &str = "rt_";
/// The number of characters of 256 random bits in base64url.
const RANDOM: usize = 43;
/// The number of characters of the checksum.
const CHECKSUM: usize = 6;
/// The digits of the checksum, as in GitHub's tokens.
/// Source: <https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/>
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A text that cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenSecretError {
    /// The text does not have the form of a token.
    #[error(
        "The token is not valid: a token is {TOKEN_PREFIX} with {RANDOM} or {} characters after it.",
        RANDOM + CHECKSUM
    )]
    Form,
    /// The last characters are not the checksum of the others.
    #[error("The token is mistyped or cut: its checksum does not fit. Copy it again, whole.")]
    Checksum,
}

/// Adds the checksum to 43 random characters of base64url, which makes a token. A mistyped token is then noticed
/// without reading the table.
pub fn token_of(random: &str) -> String {
    let text = format!("{TOKEN_PREFIX}{random}");
    let checksum = checksum(&text);
    text + &checksum
}

/// Refuses a text that cannot be a token. Accepts tokens that were made before tokens had a checksum.
pub fn check_token(text: &str) -> Result<(), TokenSecretError> {
    let rest = text.strip_prefix(TOKEN_PREFIX).ok_or(TokenSecretError::Form)?;
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !rest.bytes().all(is_base64url) {
        return Err(TokenSecretError::Form);
    }

    match rest.len() {
        RANDOM => Ok(()),
        length if length == RANDOM + CHECKSUM => {
            let (random, given) = text.split_at(text.len() - CHECKSUM);
            if checksum(random) == given { Ok(()) } else { Err(TokenSecretError::Checksum) }
        }
        _ => Err(TokenSecretError::Form),
    }
}

/// The CRC-32 of a text, in six digits to the base 62.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    digits.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_form_and_each_mistyped_character_is_told() {
        let random = "0123456789abcdefghijklmnopqrstuvwxyzABCDE-_";
        let token = token_of(random);
        assert_eq!((token.len(), check_token(&token)), (52, Ok(())));
        assert_eq!(check_token(&format!("rt_{random}")), Ok(()), "of before");
        for at in 3..token.len() {
            let mut mistyped = token.clone().into_bytes();
            mistyped[at] = if mistyped[at] == b'x' { b'y' } else { b'x' };
            let mistyped = String::from_utf8(mistyped).expect("ASCII");
            assert_eq!(check_token(&mistyped), Err(TokenSecretError::Checksum), "{mistyped}");
        }
        let short = &token[..token.len() - 1];
        for text in ["", "x", "rt_", random, short, &format!("{token}x"), &format!("rt_{random} ")]
        {
            assert_eq!(check_token(text), Err(TokenSecretError::Form), "{text:?}");
        }
        assert_eq!(
            check_token(&format!("rt_{}", "é".repeat(21) + "x")),
            Err(TokenSecretError::Form)
        );
        for error in [TokenSecretError::Form, TokenSecretError::Checksum] {
            assert!(!error.to_string().contains(random), "{error}");
        }
    }
}
