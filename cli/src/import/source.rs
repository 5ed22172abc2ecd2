//! Opens the file of an import, with a bar that shows how much of it is read. Reads no line.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;
use history::input::{self, InputFile};
use history::kind::Format;
use indicatif::ProgressBar;

use crate::progress;

/// Opens the bytes of a file, with a bar that shows how much is read. `-` is standard input.
pub(crate) fn open_bytes(
    path: &Path,
) -> anyhow::Result<(BufReader<Box<dyn Read + Send>>, ProgressBar)> {
    let (raw, bar): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), progress::spinner())
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = file.metadata()?.len();
        let bar = progress::share(bytes)?;
        (Box::new(bar.wrap_read(file)), bar)
    };
    Ok((BufReader::new(raw), bar))
}

/// Opens a file. `-` is standard input.
pub(super) fn open(
    path: &Path,
    format: Option<Format>,
) -> anyhow::Result<(InputFile, ProgressBar)> {
    let (raw, bar) = open_bytes(path)?;
    Ok((input::open(raw, path, format)?, bar))
}
