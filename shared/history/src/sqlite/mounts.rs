//! Detects whether a file is on a network drive, where SQLite's locks do not work. Opens no database.
//!
//! Source: <https://sqlite.org/useovernet.html>

use std::path::{Path, PathBuf};

/// The types of network file systems.
const NETWORK: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "fuse.sshfs", "fuse.rclone", "davfs"];

/// Returns the type of the network drive that a file is on; `None` for other drives, and if the mounts are unknown.
pub(super) fn network_drive(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    network_drive_of(&path, &mounts)
}

fn network_drive_of(path: &Path, mounts: &str) -> Option<String> {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let place = PathBuf::from(words.next()?.replace("\\040", " "));
        Some((place, words.next()?.to_owned()))
    };

    let (_, kind) = mounts
        .lines()
        .filter_map(mount)
        .filter(|(place, _)| path.starts_with(place))
        .max_by_key(|(place, _)| place.components().count())?;
    NETWORK.contains(&kind.as_str()).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/sda / ext4 rw 0 0\nnas:/x /mnt/na\\040s nfs4 rw 0 0\n/dev/sdb /mnt/na\\040s/disk ext4 rw 0 0\n";
        let kind = |path| network_drive_of(Path::new(path), mounts);
        assert_eq!(kind("/mnt/na s/config/x.db").as_deref(), Some("nfs4"));
        assert_eq!(kind("/mnt/na s/disk/x.db"), None);
        assert_eq!(kind("/mnt/nas/x.db"), None);
    }
}
