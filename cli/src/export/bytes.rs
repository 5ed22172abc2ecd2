//! The bytes of an export: to standard output, or into a file that is complete or absent. Knows no format.

use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use runtime::clock::{Clock as _, SystemClock};
use tempfile::{Builder, NamedTempFile, TempDir};

use super::unfinished::{LOCK, PREFIX, SUFFIX, remove_abandoned};
use crate::progress_file::ensure_file;

/// Bytes to write, compressed or not.
#[derive(Debug)]
pub(super) enum Bytes {
    Stdout(BufWriter<Stdout>),
    Plain(BufWriter<NamedTempFile>),
    Gzip(GzEncoder<BufWriter<NamedTempFile>>),
}

impl Bytes {
    /// Writes to standard output.
    pub(super) fn stdout() -> Self {
        Self::Stdout(BufWriter::new(io::stdout()))
    }

    /// Creates a file beside `path` that only its owner can read. The file is removed if it is dropped before
    /// [`finish`](Self::finish).
    pub(super) fn beside(path: &Path, gzip: bool) -> anyhow::Result<Self> {
        ensure_file(path)?;
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        remove_abandoned(directory, SystemClock.now());
        let file = Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(directory);
        let file = file.with_context(|| cannot_write(path))?;
        // On a drive without locks no other export gets a lock either, so none removes this file.
        drop(file.as_file().try_lock());
        let file = BufWriter::new(file);
        Ok(if gzip {
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

    /// Renames the complete file to its path.
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

/// Files of a directory that are renamed together at the end. All are removed if this is dropped before.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    unfinished: TempDir,
    /// Locked while this process runs.
    lock: File,
}

impl Files {
    /// Creates the directory if it does not exist.
    pub(super) fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| cannot_write(directory))?;
        remove_abandoned(directory, SystemClock.now());
        let made = Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(directory);
        let unfinished = made.with_context(|| cannot_write(directory))?;
        let lock = File::create(unfinished.path().join(LOCK));
        let lock = lock.with_context(|| cannot_write(directory))?;
        drop(lock.try_lock());
        Ok(Self { directory: directory.to_owned(), unfinished, lock })
    }

    /// The temporary directory of the files before they are moved.
    pub(super) fn unfinished(&self) -> &Path {
        self.unfinished.path()
    }

    /// Returns an appendable file with this name in the directory.
    pub(super) fn named(&self, name: &str) -> Appended {
        Appended(self.unfinished.path().join(name))
    }

    /// Moves the complete files into the target directory.
    pub(super) fn finish(self, files: &[Appended]) -> anyhow::Result<()> {
        let place = |path: &Path| self.directory.join(path.file_name().expect("it has a name"));
        files.iter().try_for_each(|Appended(path)| ensure_file(&place(path)))?;
        for Appended(path) in files {
            let place = place(path);
            let moved = File::open(path).and_then(|file| file.sync_all());
            let moved = moved.and_then(|()| std::fs::rename(path, &place));
            moved.with_context(|| cannot_write(&place))?;
        }
        let directory = self.directory;
        drop(self.lock);
        self.unfinished.close().with_context(|| cannot_write(&directory))
    }
}

/// A file that is open only while it is written, because there are as many files as months.
#[derive(Debug)]
pub(super) struct Appended(PathBuf);

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.0)?.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
