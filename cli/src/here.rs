//! The data of a directory, opened by this process for an import. Past days are stored together with their rollups.
//! Reads no file of readings.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{fs, io};

use domain::Zone;
use http::{Request, Response};
use local::{Data, Loader, NewDirectory, Options, System};
use tokio::runtime::Handle;

use crate::output::{print, print_error};

/// The data of a directory, which this process opens for an import. No other process can open them meanwhile.
///
/// New data are made only when the first reading is about to be sent. So an unreadable source leaves no directory, and
/// neither does an import that stores no reading.
#[derive(Debug)]
pub(crate) struct Here {
    path: PathBuf,
    runtime: Handle,
    /// Locked while the data are being opened.
    opening: Mutex<()>,
    opened: OnceLock<Opened>,
    /// Files elsewhere that are removed when the data are closed.
    kept_beside: Mutex<Vec<PathBuf>>,
}

#[derive(Debug)]
struct Opened {
    system: System,
    loader: Loader,
    /// The directory, if this process created the data.
    made: Option<NewDirectory>,
}

impl Here {
    /// The data of a directory. If the directory exists, they are opened at once.
    pub(crate) fn of(directory: &Path) -> anyhow::Result<Self> {
        let here = Self {
            path: directory.to_owned(),
            runtime: Handle::current(),
            opening: Mutex::default(),
            opened: OnceLock::new(),
            kept_beside: Mutex::default(),
        };
        if directory.exists() {
            here.opened()?;
        }
        Ok(here)
    }

    /// The absolute path without links. The progress of an import stores it, because a relative path names another
    /// directory elsewhere.
    pub(crate) fn identity(&self) -> String {
        let absolute = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        canonical(&absolute).unwrap_or(absolute).display().to_string()
    }

    /// Opens the data, if they are not open.
    fn opened(&self) -> anyhow::Result<&Opened> {
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = self.runtime.block_on(Box::pin(Opened::open(&self.path)))?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// Sends a request to the API.
    pub(crate) fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>> {
        self.runtime.block_on(self.opened()?.loader.send(request))
    }

    /// Stores the held readings.
    pub(crate) fn store(&self) -> anyhow::Result<()> {
        self.runtime.block_on(self.opened()?.loader.store())
    }

    /// Returns the number of stored readings.
    pub(crate) fn stored(&self) -> u64 {
        self.opened.get().map_or(0, |opened| opened.loader.stored())
    }

    /// Returns whether this process created the data and they have no reading.
    pub(crate) fn is_unused(&self) -> bool {
        self.opened.get().is_some_and(Opened::is_unused)
    }

    /// Removes a file when the data are closed.
    pub(crate) fn remove_at_close(&self, file: PathBuf) {
        self.kept_beside.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// Closes the data. New data without readings are removed: devices and rooms are not worth keeping without
    /// readings.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        let Self { path, runtime, opened, kept_beside, .. } = self;
        let Some(opened) = opened.into_inner() else { return Ok(()) };

        let is_useless = opened.is_unused();
        let Opened { system, loader, made } = opened;
        drop(loader);
        let closed = runtime.block_on(system.shutdown_when_unused());
        if is_useless {
            remove(made, &path);
        }

        for file in kept_beside.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // If the file cannot be removed, the next import overwrites it.
            drop(fs::remove_file(file));
        }
        closed
    }
}

impl Opened {
    /// Opens the data in a directory, and creates them if they are missing. A failed creation leaves nothing behind.
    async fn open(directory: &Path) -> anyhow::Result<Self> {
        let made = NewDirectory::of(directory);
        match Box::pin(Self::start(directory, made.is_some())).await {
            Ok((system, loader)) => Ok(Self { system, loader, made }),
            Err(error) => {
                remove(made, directory);
                Err(error)
            }
        }
    }

    async fn start(directory: &Path, is_new: bool) -> anyhow::Result<(System, Loader)> {
        let options = Options {
            data: Data::Dir(directory.to_owned()),
            listens: false,
            time_zone: machine_zone(),
            ..Options::default()
        };
        let system = Box::pin(System::start(options)).await?;
        if is_new {
            let (name, zone) = (directory.display(), system.time_zone());
            print(format_args!(
                "{name} is new, and its days are those of {zone}, the zone of TZ or of this machine, until \
                 `roomtide rollups rebuild --time-zone ZONE --data-dir {name}` changes it"
            ));
        }

        let loader = Box::pin(system.loader()).await?;
        Ok((system, loader))
    }

    fn is_unused(&self) -> bool {
        // If the readings cannot be counted, there may be some.
        self.made.is_some() && !self.system.has_readings().unwrap_or(true)
    }
}

/// The absolute path of a directory without links; the directory may be new.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Err(_), Some(parent), Some(name)) => Ok(canonical(parent)?.join(name)),
        (found, ..) => found,
    }
}

/// Removes the new data and directories, and says so.
fn remove(made: Option<NewDirectory>, directory: &Path) {
    let name = directory.display();
    match made.map_or(Ok(false), NewDirectory::remove) {
        Ok(true) => print(format_args!(
            "what this command made in {name} is removed again: it has no reading"
        )),
        Ok(false) => {}
        Err(error) => print(format_args!(
            "what this command made in {name} has no reading, and can be removed; this failed: {error:#}"
        )),
    }
}

/// The time zone in `TZ`, or else of this machine; UTC if the machine has no known zone.
pub(crate) fn machine_zone() -> Zone {
    let set = iana_time_zone::get_timezone().ok();
    let set = set.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC);
    let Some(name) = runtime::config::time_zone() else { return set };

    name.parse().unwrap_or_else(|_| {
        print_error(format_args!(
            "TZ={name} names no zone of the IANA database, such as Europe/Berlin, and is not used; without it the zone is {set}"
        ));
        set
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_beside_new_data_stays_until_they_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let (data, kept) = (place.path().join("data"), place.path().join("kept"));
        fs::write(&kept, "x").unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let here = Here::of(&data).unwrap();
        assert!(!data.exists(), "nothing is made before the first request");
        here.send(Request::get("/devices").body(Vec::new()).unwrap()).unwrap();
        here.remove_at_close(kept.clone());
        assert!(kept.exists() && data.exists());

        here.close().unwrap();
        assert!(!kept.exists() && !data.exists());
    }

    /// Another name would be another target, into which an import that was interrupted does not go on.
    #[test]
    fn a_directory_is_called_the_same_wherever_it_is_named() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let expected = here.join("no-data").display().to_string();
        let climbing = format!("{}/src/../no-data", here.display());
        for path in ["no-data", "./no-data", "src/../no-data", &climbing] {
            assert_eq!(Here::of(Path::new(path)).unwrap().identity(), expected, "{path}");
        }
    }
}
