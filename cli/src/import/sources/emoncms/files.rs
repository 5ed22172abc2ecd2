//! The files of feeds in a directory or an archive. Reads no value.
//!
//! Source: <https://github.com/emoncms/backup/blob/master/emoncms-export.sh>, which packs `emoncms.sql`, `phpfina` and
//! `phptimeseries`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tar::Archive;
use tempfile::TempDir;

use crate::import::temporary::with_room;

/// The folders of engines whose files have the same names and another form.
const OTHER_ENGINES: [&str; 3] = ["phpfiwa", "phptimestore", "timestore"];
/// The folders within a directory.
const MAX_DEPTH: usize = 4;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Meta(u64),
    Values(u64),
    Rows(u64),
    /// The answer to `feed/list.json`.
    List,
    /// The dump of the database.
    Dump,
}

impl Role {
    fn of(path: &Path) -> Option<Self> {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        if folder.is_some_and(|name| OTHER_ENGINES.contains(&name)) {
            return None;
        }
        let name = path.file_name()?.to_str()?;
        match name {
            "list.json" | "feeds.json" => return Some(Self::List),
            "emoncms.sql" => return Some(Self::Dump),
            _ => {}
        }
        let (stem, end) = name.rsplit_once('.')?;
        match end {
            "meta" => stem.parse().ok().map(Self::Meta),
            "dat" => stem.parse().ok().map(Self::Values),
            "MYD" => stem.strip_prefix("feed_")?.parse().ok().map(Self::Rows),
            _ => None,
        }
    }
}

/// Whether an archive has a file of this name because it is Emoncms'.
pub(in crate::import) fn is_of(path: &Path) -> bool {
    Role::of(path).is_some_and(|role| role != Role::List)
}

/// The files, and the directory into which they may be unpacked.
pub(super) struct Files {
    by_role: BTreeMap<Role, PathBuf>,
    _unpacked: Option<TempDir>,
}

impl Files {
    /// Looks into a directory and its folders.
    pub(super) fn in_directory(path: &Path) -> anyhow::Result<Self> {
        let mut files = Self { by_role: BTreeMap::new(), _unpacked: None };
        files.look(path, MAX_DEPTH)?;
        Ok(files)
    }

    fn look(&mut self, directory: &Path, depth: usize) -> anyhow::Result<()> {
        let context = || format!("cannot read {}", directory.display());
        let entries = std::fs::read_dir(directory).with_context(context)?;
        for entry in entries {
            let path = entry.with_context(context)?.path();
            if path.is_dir() {
                if depth > 0 {
                    self.look(&path, depth - 1)?;
                }
            } else if let Some(role) = Role::of(&path) {
                self.add(role, path)?;
            }
        }
        Ok(())
    }

    /// Unpacks an archive's files of feeds.
    pub(super) fn in_archive(reader: impl Read, shown: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut files = Self { by_role: BTreeMap::new(), _unpacked: None };
        let unpack = || {
            let mut archive = Archive::new(reader);
            for entry in archive.entries()? {
                let mut entry = entry?;
                if !entry.header().entry_type().is_file() {
                    continue;
                }
                let path = entry.path()?.into_owned();
                let Some(role) = Role::of(&path) else { continue };
                let place = directory.path().join(files.by_role.len().to_string());
                std::io::copy(&mut entry, &mut File::create(&place)?)?;
                files.add(role, place)?;
            }
            anyhow::Ok(())
        };
        let cannot =
            || format!("{} cannot be unpacked; is it whole, and does it fit", shown.display());
        with_room(unpack(), cannot)?;
        Ok(Self { _unpacked: Some(directory), ..files })
    }

    fn add(&mut self, role: Role, path: PathBuf) -> anyhow::Result<()> {
        if let Some(earlier) = self.by_role.insert(role, path) {
            let kind = match role {
                Role::Meta(id) | Role::Values(id) | Role::Rows(id) => format!("of feed {id}"),
                Role::List => "that list the feeds".to_owned(),
                Role::Dump => "emoncms.sql".to_owned(),
            };
            let later = &self.by_role[&role];
            bail!(
                "there are two files {kind}: {} and {}; import a directory with one of them",
                earlier.display(),
                later.display()
            );
        }
        Ok(())
    }

    /// Returns whether there is no feed.
    pub(super) fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }

    /// Returns the numbers of the feeds.
    pub(super) fn ids(&self) -> BTreeSet<u64> {
        let id = |role: &Role| match role {
            Role::Meta(id) | Role::Values(id) | Role::Rows(id) => Some(*id),
            Role::List | Role::Dump => None,
        };
        self.by_role.keys().filter_map(id).collect()
    }

    /// Returns the meta file and the values of a feed of `PHPFina`.
    pub(super) fn fina(&self, id: u64) -> (Option<&Path>, Option<&Path>) {
        (self.get(Role::Meta(id)), self.get(Role::Values(id)))
    }

    /// Returns the rows of a feed of `PHPTimeSeries`.
    pub(super) fn series(&self, id: u64) -> Option<&Path> {
        self.get(Role::Rows(id))
    }

    /// Returns the answer to `feed/list.json`.
    pub(super) fn list(&self) -> Option<&Path> {
        self.get(Role::List)
    }

    /// Returns the dump of the database.
    pub(super) fn dump(&self) -> Option<&Path> {
        self.get(Role::Dump)
    }

    fn get(&self, role: Role) -> Option<&Path> {
        self.by_role.get(&role).map(PathBuf::as_path)
    }
}
