//! `roomtide qr`: draws standard input as a QR code, for a phone's camera. Keeps nothing.

use std::io::{self, IsTerminal as _, Read as _};

use anyhow::Context as _;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

use crate::output::{print, print_as_is};

/// The largest number of bytes that are read, more than any code has: a pipe may have no end.
const MAX_READ: u64 = 64 << 10;

/// Draws standard input.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut text = String::new();
    io::stdin().lock().take(MAX_READ).read_to_string(&mut text).context("standard input")?;
    let drawn = draw(text.trim())?;
    for line in drawn.lines() {
        // White on black, whatever colours the terminal has.
        if io::stdout().is_terminal() {
            print_as_is(format_args!("\x1b[97;40m{line}\x1b[0m"));
        } else {
            print(line);
        }
    }
    Ok(())
}

/// The QR code of a text, in block characters. The light modules are drawn, which is right for a dark terminal; readers
/// accept the inverted form too.
fn draw(text: &str) -> anyhow::Result<String> {
    // The lowest level of error correction gives the smallest code. A screen needs no more.
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .context("this text is too long for a QR code, which has at most 2953 bytes")?;
    let (light, dark) = (Dense1x2::Light, Dense1x2::Dark);
    Ok(code.render::<Dense1x2>().dark_color(light).light_color(dark).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_a_token_fits_a_terminal() {
        let host = "https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.ap-northeast-1.on.aws";
        let drawn = draw(&format!("{host}/#token=rt_{}", "x".repeat(49))).unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{drawn}");
        // Two rows of modules are a line, and the quiet zone is four modules wide.
        assert_eq!(lines.len(), lines[0].chars().count().div_ceil(2));
        assert!(drawn.contains('█') && drawn.contains('▄'));
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_with_the_limit() {
        let error = draw(&"x".repeat(2954)).unwrap_err().to_string();
        assert!(error.contains("2953 bytes"), "{error}");
    }
}
