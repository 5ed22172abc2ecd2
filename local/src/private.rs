//! Creates files and directories that only their owner can read. Reads no file and writes none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a directory, and those above it, for its owner alone. Leaves an existing one as it is.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Returns options that open a file for writing. A new file belongs to its owner alone, whatever the process's umask
/// is; an existing file keeps its mode.
pub fn options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true);
    options
}

/// Removes all permissions on a file or directory except the owner's. Returns whether anybody else had any. Fails if
/// the file belongs to another user.
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

/// On other systems the directory of a user protects the files in it.
#[cfg(not(unix))]
pub(crate) fn tighten(_: &Path) -> io::Result<bool> {
    Ok(false)
}
