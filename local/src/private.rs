//! Files and directories that only their owner can read. Knows nothing of what they hold.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a directory where it is missing, for its owner alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Options that open a file for writing. A file that they create is its owner's alone, whatever the
/// process's umask; one that is there keeps its mode.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true);
    options
}

/// Takes all permissions on a file or directory from everybody but its owner. Returns whether anybody
/// had any. Fails if it belongs to another user.
#[cfg(unix)]
pub(crate) fn tighten(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = fs::metadata(path)?.permissions();
    let (mode, own) = (permissions.mode() & 0o777, permissions.mode() & 0o700);
    if mode == own {
        return Ok(false);
    }
    permissions.set_mode(own);
    fs::set_permissions(path, permissions)?;
    Ok(true)
}

/// Elsewhere a file is its owner's by the directory that it is in.
#[cfg(not(unix))]
pub(crate) fn tighten(_: &Path) -> io::Result<bool> {
    Ok(false)
}
