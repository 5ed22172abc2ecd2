//! Reads a text line by line, in bounded memory. Refuses a last line that may be incomplete. Parses no line.

use std::io::{self, BufRead, Read as _};

use anyhow::Context as _;

use crate::growing::{CUT, Growing};
use crate::refusals::Refusal;

/// The maximum length of a line: longer than any reading of the table, and any header row of the API.
pub const MAX_LINE: usize = 8 << 20;

/// An iterator-like reader of lines, each of at most [`MAX_LINE`] bytes.
pub struct TextLines<R> {
    reader: R,
    /// The number of the last line read, from 1.
    pub line: u64,
    /// The bytes of the last line read, including the line end.
    pub text: Vec<u8>,
    growing: Growing,
}

impl<R: BufRead> TextLines<R> {
    /// Reads a text that no other program writes meanwhile.
    pub fn new(reader: R) -> Self {
        Self::growing(reader, Growing::default())
    }

    /// Reads the text of a file that may grow.
    pub const fn growing(reader: R, growing: Growing) -> Self {
        Self { reader, line: 0, text: Vec::new(), growing }
    }

    /// Reads the next line. Returns `None` at the end. Refuses a line that is too long. Refuses the last line too if it
    /// has no line end and the file was written since the import began.
    pub fn read(&mut self) -> anyhow::Result<Option<Result<(), Refusal>>> {
        self.line += 1;
        let read = self.read_line();
        read.with_context(|| format!("{}line {} cannot be read", self.growing.named(), self.line))
    }

    fn read_line(&mut self) -> io::Result<Option<Result<(), Refusal>>> {
        self.text.clear();
        let read = (&mut self.reader).take(MAX_LINE as u64).read_until(b'\n', &mut self.text)?;
        if read == MAX_LINE && self.text.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n')?;
            return Ok(Some(Err(self.refusal(format!("is longer than {MAX_LINE} bytes")))));
        }

        let is_open_ended = self.text.last() != Some(&b'\n') && !self.text.trim_ascii().is_empty();
        if is_open_ended && !self.growing.takes_open_end() {
            return Ok(Some(Err(self.refusal(CUT.to_owned()))));
        }

        Ok((read > 0).then_some(Ok(())))
    }

    /// Makes the refusal of the last line read.
    pub const fn refusal(&self, reason: String) -> Refusal {
        Refusal { line: self.line, reason }
    }
}
