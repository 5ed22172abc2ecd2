//! Shortens lines of text to the limit of a service, and says how much is left out. Knows no service.

/// How a service measures a text, and how a character is escaped in it.
#[derive(Clone, Copy)]
pub(crate) struct TextForm {
    /// The largest length of a text in units.
    pub(crate) limit: usize,
    /// Counts the units of a text.
    pub(crate) measure: fn(&str) -> usize,
    /// Writes a character so that it has no special meaning in the service's markup.
    pub(crate) write: fn(char, &mut String),
}

/// The units that are reserved for the note that a text was cut.
const KEPT: usize = 48;

impl TextForm {
    /// The lines, followed by `end`, which is never cut. If the first line does not fit, it is cut between two
    /// characters; later lines that do not fit are counted.
    pub(crate) fn fit(self, lines: &[String], end: &str) -> String {
        let written: Vec<String> = lines.iter().map(|line| self.write_all(line)).collect();
        let end = if end.is_empty() { String::new() } else { format!("\n{end}") };
        let whole = written.join("\n") + &end;
        if (self.measure)(&whole) <= self.limit {
            return whole;
        }

        let room = self.limit.saturating_sub((self.measure)(&end) + KEPT);
        let (mut text, mut used) = (String::new(), 0);
        for (n, line) in written.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            used += (self.measure)(separator) + (self.measure)(line);
            if used <= room {
                text.push_str(separator);
                text.push_str(line);
                continue;
            }
            if n == 0 {
                self.cut(&lines[0], room, &mut text);
                text.push_str("… (cut)");
            }
            match lines.len() - n.max(1) {
                0 => {}
                more => text.push_str(&format!("\n… and {more} more")),
            }
            break;
        }

        text + &end
    }

    /// One line, cut where it is too long.
    pub(crate) fn fit_line(self, line: &str) -> String {
        self.fit(&[line.to_owned()], "")
    }

    fn write_all(self, line: &str) -> String {
        let mut written = String::new();
        line.chars().filter(|c| is_shown(*c)).for_each(|c| (self.write)(c, &mut written));
        written
    }

    fn cut(self, line: &str, room: usize, text: &mut String) {
        let mut used = 0;
        for c in line.chars().filter(|c| is_shown(*c)) {
            let mut written = String::new();
            (self.write)(c, &mut written);
            used += (self.measure)(&written);
            if used > room {
                break;
            }
            text.push_str(&written);
        }
    }
}

/// Whether a character may stand in a line. Names come from senders: a control character could end the line, and a
/// character that sets the direction of writing could reverse the rest of the line.
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

pub(crate) fn bytes(text: &str) -> usize {
    text.len()
}

pub(crate) fn utf16_units(text: &str) -> usize {
    text.encode_utf16().count()
}

pub(crate) fn plain(c: char, text: &mut String) {
    text.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(limit: usize, measure: fn(&str) -> usize) -> TextForm {
        TextForm { limit, measure, write: plain }
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn what_fits_exactly_is_whole() {
        let text = form(11, bytes).fit(&lines(&["abcd", "ef"]), "gh");
        assert_eq!(text, "abcd\nef\ngh");
        assert_eq!(form(10, bytes).fit(&lines(&["abcd", "ef"]), "gh"), text);
        assert_eq!(form(5, bytes).fit(&[], "end"), "\nend");
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_it_is_said() {
        for measure in [bytes as fn(&str) -> usize, utf16_units] {
            for c in ["x", "é", "語", "😀"] {
                for limit in 80..90 {
                    let text = form(limit, measure).fit(&[c.repeat(200)], "https://e.org");
                    assert!(measure(&text) <= limit, "{limit}: {text}");
                    assert!(
                        text.starts_with(c) && text.ends_with("… (cut)\nhttps://e.org"),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let many: Vec<String> = (0..1_000).map(|n| format!("line {n}")).collect();
        let text = form(200, bytes).fit(&many, "end");
        assert!(text.len() <= 200);
        assert!(text.starts_with("line 0\nline 1\n"), "{text}");
        let shown = text.lines().filter(|line| line.starts_with("line ")).count();
        assert!(text.ends_with(&format!("\n… and {} more\nend", 1_000 - shown)), "{text}");
        let text = form(100, bytes).fit(&lines(&[&"x".repeat(500), "b"]), "end");
        assert!(text.ends_with("x… (cut)\n… and 1 more\nend"), "{text}");
    }

    #[test]
    fn an_escaped_character_is_never_cut_in_two() {
        let write = |c: char, text: &mut String| match c {
            '&' => text.push_str("&amp;"),
            c => text.push(c),
        };
        for limit in 60..70 {
            let text = TextForm { limit, measure: bytes, write }.fit(&["&".repeat(100)], "");
            let cut = text.strip_suffix("… (cut)").expect("cut");
            assert!(cut.replace("&amp;", "").is_empty() && text.len() <= limit, "{text}");
        }
    }

    #[test]
    fn a_name_cannot_end_its_line_or_turn_it_around() {
        let text = form(100, bytes).fit_line("a\nb\u{202e}c\u{2066}\u{0}\u{2028}d\r");
        assert_eq!(text, "abcd");
    }
}
