//! Makes the name of a metric from a field or a measurement. Knows no line.

use domain::text_id::short_digest;
use domain::{MetricName, MetricNameError};

/// The largest length of a metric's name.
const MAX_LENGTH: usize = 64;

/// Converts a text to the name of a metric, in snake case. Characters other than letters and digits become `_`. Texts
/// that are empty, too long, reserved or not ASCII get a digest that tells them apart.
pub(crate) fn metric_name(text: &str) -> MetricName {
    if let Ok(name) = text.parse() {
        return name;
    }

    let mut snake = snake(text);
    if !snake.starts_with(|c: char| c.is_ascii_lowercase()) {
        snake.insert_str(0, "m_");
    }

    if text.is_ascii() && !text.is_empty() && snake.len() <= MAX_LENGTH {
        match snake.parse() {
            Err(MetricNameError::Reserved(_)) => {}
            name => return name.expect("it has the form of a name"),
        }
    }

    let digest = short_digest(text);
    snake.truncate(MAX_LENGTH - 1 - digest.len());
    format!("{snake}_{digest}").parse().expect("it has the form of a name")
}

fn snake(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut snake = String::with_capacity(text.len() + 4);
    for (n, c) in characters.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| characters[n]);
        let is_word_behind = characters.get(n + 1).is_some_and(char::is_ascii_lowercase);
        let is_border = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && is_word_behind)
            });

        if is_border {
            snake.push('_');
        }
        snake.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_one_name() {
        for (text, name) in [
            ("usage_idle", "usage_idle"),
            ("usageIdle", "usage_idle"),
            ("CPU", "cpu"),
            ("HTTPServer", "http_server"),
            ("PM2.5", "pm2_5"),
            ("Total kWh", "total_k_wh"),
            ("1m", "m_1m"),
            ("_private", "m__private"),
            ("a-b c", "a_b_c"),
        ] {
            assert_eq!(metric_name(text).as_str(), name, "{text}");
        }
        let long = "x".repeat(65);
        for (text, beginning, length) in [
            ("timestamp", "timestamp_", 16),
            ("pk", "pk_", 9),
            ("", "m__", 9),
            ("温度", "m____", 11),
            ("température", "temp_rature_", 18),
            (&long, "xxxx", 64),
        ] {
            let name = metric_name(text);
            assert!(name.as_str().starts_with(beginning), "{text}: {name}");
            assert_eq!(name.as_str().len(), length, "{text}: {name}");
        }
        assert_ne!(metric_name("温度"), metric_name("湿度"));
        assert_ne!(metric_name(&long), metric_name(&"x".repeat(66)));
    }
}
