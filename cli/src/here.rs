//! The data of a directory, opened by this process for an import. Past days are stored together with their rollups.
//! Reads no file of readings.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::Zone;
use http::Request;
use local::{Data, Loader, NewDirectory, Options, System};
use tokio::runtime::Handle;

use crate::ask::{Answer, Ask, Units};
use crate::output::print;

/// The open data. No other process can open them meanwhile.
#[derive(Debug)]
pub(crate) struct Here {
    system: System,
    loader: Loader,
    runtime: Handle,
    name: String,
    /// The directory, if this process created the data.
    made: Option<NewDirectory>,
    /// Files elsewhere that are useful only until the directory is removed.
    kept_beside: Mutex<Vec<PathBuf>>,
}

impl Here {
    /// Opens the data in a directory, and creates them if they are missing. A failed creation leaves nothing behind.
    pub(crate) async fn open(directory: &Path) -> anyhow::Result<Arc<Self>> {
        let made = NewDirectory::of(directory);
        let name = directory.display().to_string();
        match Box::pin(Self::start(directory, made.is_some())).await {
            Ok((system, loader)) => {
                let (runtime, kept_beside) = (Handle::current(), Mutex::default());
                Ok(Arc::new(Self { system, loader, runtime, name, made, kept_beside }))
            }
            Err(error) => {
                remove(made, &name);
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
            let other = "another: `roomtide --empty --time-zone ZONE` once, before";
            print(format_args!(
                "{name} is new; its days are those of {zone}, as this machine is set and whatever TZ says, for ever \
                 ({other})"
            ));
        }
        let loader = Box::pin(system.loader()).await?;
        Ok((system, loader))
    }

    /// Returns the directory's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request to the API. Blocks, so it must not run on a thread of the runtime.
    pub(crate) fn send(&self, ask: Ask<'_>) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(ask.method).uri(ask.path);
        for (name, value) in ask.headers {
            request = request.header(*name, value);
        }
        let body = ask.body.map(|(content_type, body)| (content_type, body.as_bytes().to_vec()));
        if let Some((content_type, _)) = &body {
            request = request.header("content-type", *content_type);
        }
        let request = request.body(body.map(|(_, body)| body).unwrap_or_default())?;
        let (parts, body) = self.runtime.block_on(self.loader.send(request))?.into_parts();
        let text = String::from_utf8(body)?;
        let (status, units) = (parts.status.as_u16(), Units::of(&parts.headers));
        Ok(Answer { status, text, units, retry_after: None })
    }

    /// Stores the held readings. Blocks.
    pub(crate) fn store(&self) -> anyhow::Result<()> {
        self.runtime.block_on(self.loader.store())
    }

    /// Returns the number of stored readings.
    pub(crate) fn stored(&self) -> u64 {
        self.loader.stored()
    }

    /// Returns whether this process created the data and they have no reading.
    pub(crate) fn is_unused(&self) -> bool {
        // If the readings cannot be counted, there may be some.
        self.made.is_some() && !self.system.has_readings().unwrap_or(true)
    }

    /// Removes a file when the data are closed.
    pub(crate) fn remove_at_close(&self, file: PathBuf) {
        self.kept_beside.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// Closes the data, if nobody else uses them. New data without readings are removed: devices and rooms are not
    /// worth keeping without readings.
    pub(crate) async fn close(here: Arc<Self>) -> anyhow::Result<()> {
        let Some(here) = Arc::into_inner(here) else { return Ok(()) };
        let is_useless = here.is_unused();
        let Self { system, loader, name, made, kept_beside, .. } = here;
        drop(loader);
        let closed = system.shutdown().await;
        if is_useless {
            remove(made, &name);
        }
        for file in kept_beside.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // If the file cannot be removed, the next import overwrites it.
            drop(fs::remove_file(file));
        }
        closed
    }
}

/// Removes the new data and directories, and says so.
fn remove(made: Option<NewDirectory>, name: &str) {
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

/// The time zone of this machine; UTC if the machine has no known one.
pub(crate) fn machine_zone() -> Zone {
    let name = iana_time_zone::get_timezone().ok();
    name.and_then(|name| name.parse().ok()).unwrap_or(Zone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_kept_beside_new_data_stays_until_they_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let (data, kept) = (place.path().join("data"), place.path().join("kept"));
        fs::write(&kept, "x").unwrap();
        let here = Box::pin(Here::open(&data)).await.unwrap();
        here.remove_at_close(kept.clone());
        assert!(kept.exists() && data.exists());

        Box::pin(Here::close(here)).await.unwrap();
        assert!(!kept.exists() && !data.exists());
    }
}
