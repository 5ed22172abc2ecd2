//! A file of Rust as its tokens, without comments and what only tests compile. Knows no types.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What a file ships: its tokens, without comments and what only tests compile.
#[derive(Debug)]
pub(crate) struct Source(pub(crate) TokenStream);

/// A string, byte or character literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// What it says, escapes resolved.
    pub(crate) text: String,
}

impl Source {
    /// Reads a file that compiles.
    pub(crate) fn shipped(text: &str) -> Self {
        Self(without_tests(text.parse().unwrap_or_else(|why| panic!("{why}: {text}"))))
    }

    /// The code without blanks, but for one between two words; `""` stands where a literal was.
    pub(crate) fn code(self) -> String {
        let mut code = String::new();
        write_code(self.0, &mut code);
        code
    }

    /// The strings, bytes and characters in their order.
    pub(crate) fn literals(self) -> Vec<Literal> {
        let mut literals = Vec::new();
        add_literals(self.0, &mut literals);
        literals
    }
}

fn write_code(tokens: TokenStream, code: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = signs(group.delimiter());
                code.push_str(open);
                write_code(group.stream(), code);
                code.push_str(close);
            }
            TokenTree::Ident(word) => {
                if code.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    code.push(' ');
                }
                code.push_str(&word.to_string());
            }
            TokenTree::Punct(sign) => code.push(sign.as_char()),
            TokenTree::Literal(_) => code.push_str("\"\""),
        }
    }
}

fn add_literals(tokens: TokenStream, literals: &mut Vec<Literal>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => add_literals(group.stream(), literals),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                literals.extend(text_of(&literal).map(|text| Literal { line, text }));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn signs(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// What a literal says that is no number.
fn text_of(literal: &proc_macro2::Literal) -> Option<String> {
    let of_bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some(text.value()),
        syn::Lit::ByteStr(bytes) => Some(of_bytes(&bytes.value())),
        syn::Lit::CStr(text) => Some(of_bytes(text.value().as_bytes())),
        syn::Lit::Byte(byte) => Some(of_bytes(&[byte.value()])),
        syn::Lit::Char(char) => Some(char.value().to_string()),
        _ => None,
    }
}

/// Drops comments, and each item under `#[cfg(test)]` or `#[cfg(all(test, ...))]`: to the end of its first block
/// or to its semicolon.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    let mut is_test = false;
    while let Some(token) = tokens.next() {
        if let TokenTree::Punct(sign) = &token
            && sign.as_char() == '#'
        {
            let is_inner =
                |next: &TokenTree| matches!(next, TokenTree::Punct(sign) if sign.as_char() == '!');
            let inner = tokens.next_if(is_inner);
            let Some(attribute) = tokens.next() else { continue };
            let text = attribute.to_string().replace(' ', "");
            is_test |= text == "[cfg(test)]" || text.starts_with("[cfg(all(test,");
            if !is_test && !text.starts_with("[doc=") {
                kept.extend([token].into_iter().chain(inner).chain([attribute]));
            }
            continue;
        }
        if is_test {
            is_test = !match &token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(sign) => sign.as_char() == ';',
                _ => false,
            };
            continue;
        }
        kept.push(match token {
            TokenTree::Group(group) => {
                TokenTree::Group(Group::new(group.delimiter(), without_tests(group.stream())))
            }
            other => other,
        });
    }
    kept.into_iter().collect()
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

#[test]
fn literals_are_found_and_emptied() {
    let text = "const A: &str = \"x\\\"y\"; // \"no\"\n/// #\nconst B: [u8; 2] = ['#', b'\\'', '\\u{e9}']; /* '/* */' */ fn f<'a>() { r#\"a\"b\"# }";
    let literals = Source::shipped(text).literals();
    let found: Vec<_> = literals.iter().map(|it| (it.line, it.text.as_str())).collect();
    assert_eq!(found, [(1, "x\"y"), (3, "#"), (3, "'"), (3, "é"), (3, "a\"b")]);
    assert_eq!(
        Source::shipped(text).code(),
        "const A:&str=\"\";const B:[u8;\"\"]=[\"\",\"\",\"\"];fn f<'a>(){\"\"}"
    );
}

#[test]
fn what_only_tests_compile_is_cut_and_nothing_more() {
    let text = "a!(\"1\"); #[cfg(test)] mod t { fn f() { b(\"2\"); } } c!(\"3\"); #[cfg(test)] const X: [u8; 1] = *b\"4\"; d!(\"5\");\n#[cfg(any(test, feature = \"fake\"))] e!(\"6\"); #[cfg(all(test, unix))] #[path = \"7\"] mod g;";
    let literals = Source::shipped(text).literals();
    let found: Vec<_> = literals.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(found, ["1", "3", "5", "fake", "6"]);
    let code = Source::shipped(text).code();
    assert!(!code.contains("mod") && code.contains("d!(\"\")"), "{code}");
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
