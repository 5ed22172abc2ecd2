//! The bytes of an export: to standard output, or into a file that is complete or absent. Knows no format.

use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use runtime::clock::{Clock as _, SystemClock};
use tempfile::{Builder, NamedTempFile};

use super::format::FileFormat;
use super::unfinished::{PREFIX, SUFFIX, remove_abandoned};
use crate::progress_file::ensure_file;

/// Bytes to write, compressed or not.
#[derive(Debug)]
pub(super) enum Bytes {
    Stdout(BufWriter<Stdout>),
    Plain(BufWriter<NamedTempFile>),
    Gzip(GzEncoder<BufWriter<NamedTempFile>>),
}

impl Bytes {
    /// Writes to standard output, or creates a file beside `path` that only its owner can read. The file is removed if it
    /// is dropped before [`finish`](Self::finish).
    pub(super) fn create(path: &Path, format: FileFormat) -> anyhow::Result<Self> {
        if format.is_stdout {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        }

        ensure_file(path)?;
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        remove_abandoned(directory, SystemClock.now());
        let file = Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(directory);
        let file = file.with_context(|| cannot_write(path))?;
        // On a drive without locks no other export gets a lock either, so none removes this file.
        drop(file.as_file().try_lock());
        let file = BufWriter::new(file);
        Ok(if format.gzip {
            Self::Gzip(GzEncoder::new(file, Compression::default()))
        } else {
            Self::Plain(file)
        })
    }

    /// The temporary file before it is renamed, if there is one.
    pub(super) fn unfinished(&self) -> Option<&Path> {
        match self {
            Self::Stdout(_) => None,
            Self::Plain(file) => Some(file.get_ref().path()),
            Self::Gzip(file) => Some(file.get_ref().get_ref().path()),
        }
    }

    /// Completes the file, stores it on the disk and renames it to its path. Standard output is only flushed.
    pub(super) fn finish(self, path: &Path) -> anyhow::Result<()> {
        let file = match self {
            Self::Stdout(mut stdout) => return stdout.flush().context("standard output"),
            Self::Plain(file) => file,
            Self::Gzip(gzip) => gzip.finish().with_context(|| cannot_write(path))?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let file = file.with_context(|| cannot_write(path))?;
        file.as_file().sync_all().with_context(|| cannot_write(path))?;
        file.persist(path).map_err(|error| error.error).with_context(|| cannot_write(path))?;
        Ok(())
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(gzip) => gzip.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Plain(file) => file.flush(),
            Self::Gzip(gzip) => gzip.flush(),
        }
    }
}

/// The start of an error message about a file that cannot be written.
pub(super) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
