//! Rust source split into code and literals, comments dropped. A reader for rules, not a parser: it
//! knows where strings, characters, comments and test modules begin and end, and nothing else.

/// A file's code, with every literal emptied, and its literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The code; `""` stands where a literal was, a space where a comment was.
    pub(crate) code: String,
    /// The literals in their order.
    pub(crate) literals: Vec<Literal>,
}

/// A string, byte or character literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// What it says, escapes resolved.
    pub(crate) text: String,
    /// Where in `code` it stood.
    at: usize,
}

impl Source {
    /// Splits `text`.
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = Reader {
            rest: text,
            line: 1,
            source: Self { code: String::new(), literals: Vec::new() },
        };
        while reader.step() {}
        reader.source
    }

    /// The same without the items that only tests compile.
    pub(crate) fn without_tests(mut self) -> Self {
        let marks = ["#[cfg(test)]", "#[cfg(all(test,"];
        while let Some(start) = marks.iter().filter_map(|mark| self.code.find(mark)).min() {
            let end = start + item_length(&self.code[start..]);
            self.code.replace_range(start..end, "");
            self.literals.retain(|literal| !(start..end).contains(&literal.at));
            for literal in self.literals.iter_mut().filter(|literal| literal.at >= end) {
                literal.at -= end - start;
            }
        }
        self
    }
}

/// Drops what stands between `{` and `}` as a format: in `{:#}` and `{0:#x}` the sign asks for the long
/// form. In `{:#>8}` it is printed, so that stays.
pub(crate) fn without_format_specs(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        kept.push_str(&rest[..open]);
        let inside = &rest[open + 1..];
        let length = inside.find('}').filter(|length| is_format(&inside[..*length]));
        rest = if let Some(length) = length {
            &inside[length + 1..]
        } else {
            kept.push('{');
            inside
        };
    }
    kept + rest
}

fn is_format(inside: &str) -> bool {
    let Some((name, spec)) = inside.split_once(':') else { return false };
    let fills = ["#<", "#>", "#^"].iter().any(|fill| spec.contains(fill));
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !fills && name.chars().all(word) && spec.chars().all(|c| word(c) || "<>^+-#?.*$".contains(c))
}

/// The length of the item at the start of `code`, its attributes included: to the end of its first block
/// or to its semicolon.
fn item_length(code: &str) -> usize {
    let (mut round, mut curly) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round = round.saturating_sub(1),
            '{' => curly += 1,
            '}' => {
                curly = curly.saturating_sub(1);
                if curly == 0 {
                    return at + 1;
                }
            }
            ';' if round == 0 && curly == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    source: Source,
}

impl Reader<'_> {
    /// Takes the next comment, literal, word or sign; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            self.source.code.push(' ');
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment_length(self.rest));
            self.source.code.push(' ');
        } else if first == '"' {
            self.escaped(1, '"');
        } else if first == '\'' && is_character(self.rest) {
            self.escaped(1, '\'');
        } else if first.is_alphabetic() || first == '_' {
            self.word();
        } else {
            self.source.code.push(first);
            self.skip(first.len_utf8());
        }
        true
    }

    /// A word, or a literal with a prefix: `b'#'`, `b"..."`, `c"..."`, `r"..."`, `br#"..."#`.
    fn word(&mut self) {
        let length =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(length);
        let hashes = after.len() - after.trim_start_matches('#').len();
        if matches!(word, "r" | "br" | "cr") && after[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = length + hashes + 1;
            let inside = self.rest[start..].find(&end).unwrap_or(self.rest.len() - start);
            let text = self.rest[start..start + inside].to_owned();
            self.literal(text, (start + inside + end.len()).min(self.rest.len()));
        } else if matches!(word, "b" | "c") && after.starts_with('"') {
            self.escaped(length + 1, '"');
        } else if word == "b" && after.starts_with('\'') {
            self.escaped(length + 1, '\'');
        } else {
            self.source.code.push_str(word);
            self.skip(length);
        }
    }

    /// A literal whose text begins at `start` and ends before the next `end` without a backslash.
    fn escaped(&mut self, start: usize, end: char) {
        let mut text = String::new();
        let mut chars = self.rest[start..].char_indices();
        let mut length = self.rest.len();
        while let Some((at, c)) = chars.next() {
            if c == end {
                length = start + at + 1;
                break;
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let code: String = match chars.next() {
                Some((_, 'x')) => chars.by_ref().take(2).map(|(_, c)| c).collect(),
                Some((_, 'u')) => {
                    chars.by_ref().skip(1).map(|(_, c)| c).take_while(|c| *c != '}').collect()
                }
                Some((_, other)) => {
                    text.push(other);
                    continue;
                }
                None => continue,
            };
            text.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
        }
        self.literal(text, length);
    }

    fn literal(&mut self, text: String, length: usize) {
        let at = self.source.code.len();
        self.source.literals.push(Literal { line: self.line, text, at });
        self.source.code.push_str("\"\"");
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

/// Whether `'` begins a character and not a lifetime: `'a'` and `'\n'`, but `'a`.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

/// Block comments nest.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[test]
fn literals_are_found_and_emptied() {
    let source = Source::read(
        "let a = \"x\\\"y\"; // \"no\"\nlet b = ['#', b'\\'', '\\u{e9}']; /* '/* */' */ let c = r#\"a\"b\"#;\nfn f<'a>(r#type: &'a u8) {}",
    );
    let found: Vec<_> = source.literals.iter().map(|it| (it.line, it.text.as_str())).collect();
    assert_eq!(found, [(1, "x\"y"), (2, "#"), (2, "'"), (2, "é"), (2, "a\"b")]);
    assert_eq!(
        source.code,
        "let a = \"\";  \nlet b = [\"\", \"\", \"\"];   let c = \"\";\nfn f<'a>(r#type: &'a u8) {}"
    );
}

#[test]
fn what_only_tests_compile_is_cut_and_nothing_more() {
    let source = Source::read(
        "a(\"1\"); #[cfg(test)] mod t { fn f() { b(\"2\"); } } c(\"3\"); #[cfg(test)] const X: [u8; 1] = *b\"4\"; d(\"5\");\n#[cfg(any(test, feature = \"fake\"))] e(\"6\");",
    )
    .without_tests();
    let found: Vec<_> = source.literals.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(found, ["1", "3", "5", "fake", "6"]);
    assert!(!source.code.contains("mod t") && source.code.contains("d(\"\")"), "{}", source.code);
}

#[test]
fn only_formats_are_dropped() {
    for (text, kept) in [
        ("{e:#} {:#?} {0:#x}", "  "),
        ("{:#>8}", "{:#>8}"),
        ("{a}#{b}", "{a}#{b}"),
        ("{\"a\": \"#\"}", "{\"a\": \"#\"}"),
        ("{{#}}", "{{#}}"),
        ("{", "{"),
    ] {
        assert_eq!(without_format_specs(text), kept, "{text}");
    }
}
