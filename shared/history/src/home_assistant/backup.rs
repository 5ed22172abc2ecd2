//! Home Assistant's backup: an archive that contains an archive with the database and `.storage`. Reads no table.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use tar::Archive;
use tempfile::TempDir;

use super::storage::{REGISTRIES, Storage};
use crate::sqlite::Database;
use crate::temporary::with_room;

/// The signature of an archive, and its offset in the first block:
/// <https://www.gnu.org/software/tar/manual/html_node/Standard.html>.
const MAGIC: (usize, &[u8]) = (257, b"ustar");
/// The database file. Its write-ahead log is beside it.
const DATABASE: &str = "home-assistant_v2.db";
const LOG: &str = "home-assistant_v2.db-wal";
/// The maximum size of a backup's description, and of a registry of `.storage`.
const MAX_JSON: u64 = 256 << 20;

/// Whether a file with these first bytes is an archive.
pub fn is_archive(bytes: &[u8]) -> bool {
    let (place, magic) = MAGIC;
    bytes.get(place..).is_some_and(|bytes| bytes.starts_with(magic))
}

/// The description of a backup, `backup.json`.
#[derive(Debug, Default, Deserialize)]
struct Description {
    #[serde(default)]
    protected: bool,
    homeassistant: Option<OfHomeAssistant>,
}

#[derive(Debug, Deserialize)]
struct OfHomeAssistant {
    #[serde(default)]
    exclude_database: bool,
}

/// The level of an archive. The inner archive must not contain another one, so that nesting ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArchiveLevel {
    Backup,
    HomeAssistant,
}

/// The parts that were found in a backup.
struct BackupParts {
    directory: TempDir,
    has_database: bool,
    registries: HashMap<&'static str, Vec<u8>>,
    description: Option<Description>,
}

/// Opens the database of a backup, unpacked into the directory, and reads its `.storage`.
pub fn open(
    reader: impl Read,
    shown: &Path,
    directory: TempDir,
) -> anyhow::Result<(Database, Storage)> {
    let (path, shown) = (shown, shown.display());
    let mut found = BackupParts {
        directory,
        has_database: false,
        registries: HashMap::new(),
        description: None,
    };

    let cannot = || format!("{shown} cannot be unpacked; is it whole, and does it fit");
    let read = with_room(found.read(reader, ArchiveLevel::Backup), cannot);
    let is_described = found.description.is_some();
    let description = found.description.unwrap_or_default();
    if description.protected {
        bail!(
            "{shown} is encrypted. Home Assistant decrypts a backup when its own page downloads it: Settings, System, \
             Backups, the backup, Download"
        );
    }

    read?;
    if !found.has_database {
        let why = match description.homeassistant {
            _ if !is_described => {
                "is an archive, but no backup of Home Assistant: it has no backup.json and no home-assistant_v2.db; \
                 unpack it and import what is in it"
            }
            None => {
                "has no database: it is not a backup of Home Assistant itself, but of its apps or folders"
            }
            Some(it) if it.exclude_database => "has no database: it was made without history",
            Some(_) => {
                "has no database of SQLite; the recorder may write to another one, such as MariaDB"
            }
        };
        bail!("{shown} {why}");
    }

    let mut registries = found.registries;
    let texts = REGISTRIES.map(|name| registries.remove(name));
    Ok((Database::in_directory(found.directory, DATABASE, path)?, Storage::of(&texts)?))
}

impl BackupParts {
    /// Reads an archive, including Home Assistant's inner one.
    fn read(&mut self, reader: impl Read, level: ArchiveLevel) -> anyhow::Result<()> {
        let mut archive = Archive::new(reader);
        let mut encrypted = None;

        for entry in archive.entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match name {
                "backup.json" | "snapshot.json" if self.description.is_none() => {
                    self.description = Some(
                        serde_json::from_reader(entry.take(MAX_JSON))
                            .context("backup.json cannot be read")?,
                    );
                }
                "homeassistant.tar" | "homeassistant.tar.gz" if level == ArchiveLevel::Backup => {
                    // The description, which tells whether the backup is encrypted, may come later.
                    encrypted = self.read_inner(BufReader::new(entry)).err();
                }
                DATABASE | LOG if is_of_the_configuration(&path) => {
                    let mut entry = entry;
                    let mut file = std::fs::File::create(self.directory.path().join(name))?;
                    std::io::copy(&mut entry, &mut file)?;
                    self.has_database |= name == DATABASE;
                }
                _ => {
                    if let Some(known) = REGISTRIES.into_iter().find(|known| *known == name) {
                        let mut text = Vec::new();
                        entry.take(MAX_JSON).read_to_end(&mut text)?;
                        self.registries.insert(known, text);
                    }
                }
            }
        }

        encrypted.map_or(Ok(()), Err)
    }

    fn read_inner(&mut self, mut reader: impl BufRead) -> anyhow::Result<()> {
        let is_gzip = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn Read> =
            if is_gzip { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
        let mut reader = BufReader::new(reader);
        ensure!(
            is_archive(reader.fill_buf()?),
            "what Home Assistant packed is not an archive: it may be encrypted"
        );
        let archive: Box<dyn Read> = Box::new(reader);
        self.read(archive, ArchiveLevel::HomeAssistant)
    }
}

/// Whether a file is Home Assistant's own, not a copy in a folder of the user.
fn is_of_the_configuration(path: &Path) -> bool {
    let parents = path.parent().into_iter().flat_map(Path::components);
    let names = parents.filter(|part| matches!(part, std::path::Component::Normal(_)));
    names.eq([std::path::Component::Normal("data".as_ref())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    use rusqlite::Connection;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            builder.append_data(&mut header, path, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    fn database() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE states (a); INSERT INTO states VALUES (7)")
            .unwrap();
        std::fs::read(path).unwrap()
    }

    fn opened(bytes: &[u8]) -> Result<(i64, bool), String> {
        assert!(is_archive(bytes));
        let (database, storage) = open(bytes, Path::new("b.tar"), tempfile::tempdir().unwrap())
            .map_err(|error| format!("{error:#}"))?;
        let value =
            database.connection.query_row("SELECT a FROM states", [], |row| row.get(0)).unwrap();
        Ok((value, storage.has_areas()))
    }

    const WITH: &[u8] = br#"{"protected": false, "homeassistant": {"version": "2025.1.0", "exclude_database": false}}"#;

    #[test]
    fn the_database_and_the_areas_are_found_in_the_inner_archive() {
        let entities: &[u8] =
            br#"{"data": {"entities": [{"entity_id": "sensor.a", "area_id": "g"}]}}"#;
        let areas: &[u8] = br#"{"data": {"areas": [{"id": "g", "name": "Garden"}]}}"#;
        let inner = archive(&[
            ("data/old/home-assistant_v2.db", b"another"),
            ("data/home-assistant_v2.db", &database()),
            ("data/.storage/core.entity_registry", entities),
            ("data/.storage/core.area_registry", areas),
        ]);
        let packed = archive(&[("./homeassistant.tar.gz", &gzip(&inner)), ("./backup.json", WITH)]);
        assert_eq!(opened(&packed), Ok((7, true)));
        let plain = archive(&[("backup.json", WITH), ("homeassistant.tar", &inner)]);
        assert_eq!(opened(&plain), Ok((7, true)));
        assert_eq!(opened(&inner), Ok((7, true)), "the inner one by itself");
    }

    #[test]
    fn an_archive_in_the_archive_of_home_assistant_is_not_opened() {
        let mut packed = archive(&[("data/home-assistant_v2.db", &database())]);
        for _ in 0..1_000 {
            packed = archive(&[("homeassistant.tar", &packed)]);
        }
        let error = opened(&packed).unwrap_err();
        assert!(error.contains("no backup of Home Assistant"), "{error}");
    }

    #[test]
    fn a_backup_that_cannot_be_read_says_what_it_is() {
        let protected: &[u8] =
            br#"{"protected": true, "crypto": "aes128", "homeassistant": {"version": "2025.1.0"}}"#;
        let without: &[u8] =
            br#"{"homeassistant": {"version": "2025.1.0", "exclude_database": true}}"#;
        let inner = archive(&[("data/configuration.yaml", b"")]);
        for (files, expected) in [
            (
                archive(&[("homeassistant.tar.gz", b"SecureTar\x02"), ("backup.json", protected)]),
                "is encrypted. Home Assistant decrypts",
            ),
            (
                archive(&[("homeassistant.tar.gz", &gzip(&inner)), ("backup.json", without)]),
                "it was made without history",
            ),
            (archive(&[("x.tsm", b"x")]), "no backup of Home Assistant: it has no backup.json"),
            (archive(&[("backup.json", br#"{"homeassistant": null}"#)]), "of its apps or folders"),
            (
                archive(&[("backup.json", WITH), ("homeassistant.tar.gz", &gzip(&inner))]),
                "such as MariaDB",
            ),
            (archive(&[("homeassistant.tar.gz", b"SecureTar\x02")]), "it may be encrypted"),
        ] {
            let error = opened(&files).unwrap_err();
            assert!(error.starts_with("b.tar") && error.contains(expected), "{error}");
        }
        let whole = archive(&[(
            "homeassistant.tar.gz",
            &gzip(&archive(&[("data/home-assistant_v2.db", &database())])),
        )]);
        assert!(opened(&whole[..1_000]).is_err());
    }
}
