//! The fenced blocks of README.md and docs/, and the commands in those of a shell. Runs none. The tests of the command line
//! read this file too.

use std::fs;
use std::path::Path;

/// A fenced block of a document.
pub(crate) struct Block {
    /// The document, as a path within the project.
    pub(crate) page: String,
    /// The line of the fence.
    pub(crate) line: usize,
    /// The word behind the fence: `sh`, `json`.
    pub(crate) language: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The blocks of README.md and of all pages in docs/.
pub(crate) fn documented_blocks() -> Vec<Block> {
    let mut pages = vec!["README.md".to_owned()];
    add_pages("docs", &mut pages);
    pages.sort();

    let read = |page: &String| fs::read_to_string(project().join(page)).expect("UTF-8");
    pages.iter().flat_map(|page| blocks_of(page, &read(page))).collect()
}

/// The folder of the project, seen from `tests` and from `cli`.
fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package is in the project")
}

/// Adds the pages in a folder and below it.
fn add_pages(folder: &str, pages: &mut Vec<String>) {
    for entry in fs::read_dir(project().join(folder)).expect("a folder") {
        let entry = entry.expect("a file");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            add_pages(&path, pages);
        } else if entry.path().extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The blocks of one document.
pub(crate) fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (line, content) in (1..).zip(text.lines()) {
        let fence = content.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, None) => None,
            (None, Some(language)) => {
                let (page, language) = (page.to_owned(), language.trim().to_owned());
                Some(Block { page, line, language, text: String::new() })
            }
            (Some(mut block), None) => {
                block.text.push_str(content);
                block.text.push('\n');
                Some(block)
            }
            (Some(block), Some(_)) => {
                blocks.push(block);
                None
            }
        };
    }
    blocks
}

/// The commands of a shell's text: the words of each, without quotes. Assignments, redirections and comments are left out.
/// A command in `$(...)` comes before the one that it stands in.
pub(crate) fn commands(text: &str) -> Vec<Vec<String>> {
    let mut shell = Shell { rest: text.chars().peekable(), ..Shell::default() };
    shell.read();
    shell.commands
}

/// Words that stand before a command and are none.
const RESERVED: [&str; 3] = ["until", "do", "done"];

struct Shell<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The word that is being read; `None` between words.
    word: Option<String>,
    /// Whether the next word is the file of a redirection.
    is_redirected: bool,
}

impl Default for Shell<'_> {
    fn default() -> Self {
        let rest = "".chars().peekable();
        Self { rest, commands: Vec::new(), words: Vec::new(), word: None, is_redirected: false }
    }
}

impl Shell<'_> {
    fn read(&mut self) {
        while let Some(next) = self.rest.next() {
            match next {
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '\'' => self.read_single_quoted(),
                '"' => self.read_double_quoted(),
                '$' => self.read_dollar(),
                '#' if self.word.is_none() => {
                    while self.rest.next_if(|next| *next != '\n').is_some() {}
                }
                ' ' | '\t' => self.end_word(),
                '\n' | ';' | '|' | '&' | '(' | ')' => self.end_command(),
                '<' | '>' => {
                    self.end_word();
                    self.is_redirected = true;
                }
                other => self.push(other),
            }
        }
        self.end_command();
    }

    fn push(&mut self, next: char) {
        self.word.get_or_insert_default().push(next);
    }

    fn read_single_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(next) = self.rest.next_if(|next| *next != '\'') {
            self.push(next);
        }
        self.rest.next();
    }

    fn read_double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(next) = self.rest.next_if(|next| *next != '"') {
            match next {
                '$' => self.read_dollar(),
                '\\' => {
                    let escaped = self.rest.next_if(|next| matches!(next, '"' | '\\' | '$' | '`'));
                    self.push(escaped.unwrap_or('\\'));
                }
                other => self.push(other),
            }
        }
        self.rest.next();
    }

    /// A variable stays as it is written. So does `$(...)`, whose commands are read.
    fn read_dollar(&mut self) {
        self.push('$');
        if self.rest.next_if_eq(&'(').is_none() {
            return;
        }
        let mut inner = String::new();
        let mut depth = 1;
        for next in self.rest.by_ref() {
            depth += match next {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if depth == 0 {
                break;
            }
            inner.push(next);
        }

        // $((...)) is arithmetic.
        if !inner.starts_with('(') {
            self.commands.extend(commands(&inner));
        }
        self.word.get_or_insert_default().push_str(&format!("({inner})"));
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_redirected) {
            return;
        }
        let is_first = self.words.is_empty();
        if !(is_first && (is_assignment(&word) || RESERVED.contains(&word.as_str()))) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty()
            && name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
    })
}

#[test]
fn blocks_and_commands_are_found() {
    let blocks = blocks_of("a.md", "x\n```sh\na\n\nb\n```\n  ```json\n{}\n  ```\n");
    let found: Vec<_> =
        blocks.iter().map(|block| (block.place(), &*block.language, &*block.text)).collect();
    assert_eq!(
        found,
        [("a.md:2".to_owned(), "sh", "a\n\nb\n"), ("a.md:7".to_owned(), "json", "{}\n")]
    );

    let text = r#"# no
A=1 B='2 3' one 'two  words' "th\"ree $x" \
  four#five | six -d '{"a": 1}' > file # no
export T="$(seven "$(eight)" $(($(date) - 1)))0" && (nine; ten)
until eleven; do :; done"#;
    let words = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        "one/two  words/th\"ree $x/four#five",
        "six/-d/{\"a\": 1}",
        "eight",
        "seven/$(eight)/$(($(date) - 1))",
        "export/T=$(seven \"$(eight)\" $(($(date) - 1)))0",
        "nine",
        "ten",
        "eleven",
        ":",
    ];
    assert_eq!(commands(text), expected.map(words));
}
