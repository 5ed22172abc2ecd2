//! The files of feeds in a directory or an archive. Reads no value.
//!
//! Source: <https://github.com/emoncms/backup/blob/master/emoncms-export.sh>, which packs `emoncms.sql`, `phpfina` and
//! `phptimeseries`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use tar::{Archive, Entry, EntryType};
use tempfile::TempDir;

use crate::import::temporary::with_room;

/// The folders of unsupported engines. Their files have the same names, but another format.
const OTHER_ENGINES: [&str; 3] = ["phpfiwa", "phptimestore", "timestore"];
/// The prefix of the folder in which PAX stores a sparse file, as a map and the parts that are not holes.
const PAX_SPARSE: &str = "GNUSparseFile.";
/// The maximum depth of folders that are searched.
const MAX_DEPTH: usize = 4;

/// The role of a file.
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

    /// The error for two files where one is expected.
    fn twice(self, earlier: &Path, later: &Path) -> anyhow::Error {
        let kind = match self {
            Self::Meta(id) | Self::Values(id) | Self::Rows(id) => format!("of feed {id}"),
            Self::List => "that list the feeds".to_owned(),
            Self::Dump => "emoncms.sql".to_owned(),
        };
        anyhow!(
            "there are two files {kind}: {} and {}; import a directory with one of them",
            earlier.display(),
            later.display()
        )
    }
}

impl Unpacked {
    /// Unpacks an entry, if it is a file of feeds. A repeated entry replaces the first one, as with `tar`. The inner
    /// result is the error of the entry alone.
    fn take(&mut self, entry: &mut Entry<'_, impl Read>) -> anyhow::Result<anyhow::Result<()>> {
        let path = entry.path()?.into_owned();
        let Some(role) = Role::of(&path) else { return Ok(Ok(())) };
        let link = entry.link_name()?.map(Cow::into_owned);
        let checked = self.check(role, &path, entry.header().entry_type(), link.as_deref());
        if !matches!(checked, Ok(true)) {
            return Ok(checked.map(drop));
        }

        let linked = link.and_then(|link| Some(self.place(Role::of(&link)?)));
        let place = self.place(role);
        match linked {
            Some(linked) => drop(std::fs::copy(linked, &place)?),
            None => drop(std::io::copy(entry, &mut File::create(&place)?)?),
        }
        self.by_role.insert(role, path);
        Ok(Ok(()))
    }

    /// Returns whether an entry contains the bytes of a file. Fails if the bytes are stored elsewhere.
    fn check(
        &self,
        role: Role,
        path: &Path,
        kind: EntryType,
        link: Option<&Path>,
    ) -> anyhow::Result<bool> {
        let is_link = kind.is_hard_link() || kind.is_symlink();
        if !(kind.is_file() || kind.is_gnu_sparse() || kind.is_contiguous() || is_link) {
            return Ok(false);
        }
        if let Some(earlier) = self.by_role.get(&role).filter(|earlier| **earlier != path) {
            return Err(role.twice(earlier, path));
        }

        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let is_pax_sparse = folder.is_some_and(|name| name.starts_with(PAX_SPARSE));
        ensure!(
            !is_pax_sparse,
            "{} is a sparse file in the form of PAX, which is not read; pack it without --sparse",
            path.display()
        );
        let target = link.unwrap_or(path);
        let is_unpacked = || {
            let role = Role::of(target)?;
            Some(target != path && self.by_role.get(&role)? == target)
        };
        ensure!(
            !is_link || kind.is_hard_link() && is_unpacked() == Some(true),
            "{} is a link to {}, whose bytes are not in the archive before it; pack the files themselves, with \
             --dereference",
            path.display(),
            target.display()
        );
        Ok(true)
    }

    /// The path to which a file with this role is unpacked.
    fn place(&self, role: Role) -> PathBuf {
        let name = match role {
            Role::Meta(id) => format!("{id}.meta"),
            Role::Values(id) => format!("{id}.dat"),
            Role::Rows(id) => format!("{id}.MYD"),
            Role::List => "list.json".to_owned(),
            Role::Dump => "emoncms.sql".to_owned(),
        };
        self.directory.path().join(name)
    }
}

/// Whether a file of this name shows that an archive is from Emoncms.
pub(in crate::import) fn is_of(path: &Path) -> bool {
    Role::of(path).is_some_and(|role| role != Role::List)
}

/// The files of feeds, and the directory into which an archive is unpacked.
pub(super) struct Files {
    by_role: BTreeMap<Role, PathBuf>,
    _unpacked: Option<TempDir>,
}

/// The files that were unpacked from an archive.
struct Unpacked {
    directory: TempDir,
    /// The name in the archive of each unpacked file.
    by_role: BTreeMap<Role, PathBuf>,
}

impl Files {
    /// Searches a directory and its folders.
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

    /// Unpacks the files of feeds from an archive.
    pub(super) fn in_archive(reader: impl Read, shown: &Path) -> anyhow::Result<Self> {
        let mut unpacked = Unpacked { directory: tempfile::tempdir()?, by_role: BTreeMap::new() };
        let unpack = || {
            let mut archive = Archive::new(reader);
            for entry in archive.entries()? {
                let taken = unpacked.take(&mut entry?)?;
                if taken.is_err() {
                    return Ok(taken);
                }
            }
            Ok(Ok(()))
        };
        let cannot =
            || format!("{} cannot be unpacked; is it whole, and does it fit", shown.display());
        with_room(unpack(), cannot)?.with_context(|| shown.display().to_string())?;

        let roles: Vec<Role> = unpacked.by_role.keys().copied().collect();
        let by_role = roles.into_iter().map(|role| (role, unpacked.place(role))).collect();
        Ok(Self { by_role, _unpacked: Some(unpacked.directory) })
    }

    fn add(&mut self, role: Role, path: PathBuf) -> anyhow::Result<()> {
        if let Some(earlier) = self.by_role.get(&role) {
            return Err(role.twice(earlier, &path));
        }
        self.by_role.insert(role, path);
        Ok(())
    }

    /// Returns the feeds with files of both engines.
    pub(super) fn of_two_engines(&self) -> Vec<u64> {
        let has_both = |id: &u64| self.series(*id).is_some() && self.fina(*id).1.is_some();
        self.ids().into_iter().filter(has_both).collect()
    }

    /// Forgets a feed's files of `PHPFina`, or of `PHPTimeSeries`.
    pub(super) fn forget(&mut self, id: u64, is_of_fina: bool) {
        let forgotten: &[Role] =
            if is_of_fina { &[Role::Meta(id), Role::Values(id)] } else { &[Role::Rows(id)] };
        self.by_role.retain(|role, _| !forgotten.contains(role));
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

    /// Returns the meta file and the file of values of a `PHPFina` feed.
    pub(super) fn fina(&self, id: u64) -> (Option<&Path>, Option<&Path>) {
        (self.get(Role::Meta(id)), self.get(Role::Values(id)))
    }

    /// Returns the file of rows of a `PHPTimeSeries` feed.
    pub(super) fn series(&self, id: u64) -> Option<&Path> {
        self.get(Role::Rows(id))
    }

    /// Returns the file with the answer to `feed/list.json`.
    pub(super) fn list(&self) -> Option<&Path> {
        self.get(Role::List)
    }

    /// Returns the file with the dump of the database.
    pub(super) fn dump(&self) -> Option<&Path> {
        self.get(Role::Dump)
    }

    fn get(&self, role: Role) -> Option<&Path> {
        self.by_role.get(&role).map(PathBuf::as_path)
    }
}
