//! The data in a directory, whether or not a server has it open. Listens on no port for HTTP requests.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use aws::StoreConfig;
use http::{Request, Response};

use crate::engine::{self, RunningEngine};
use crate::{Bulk, Data, Options, System, TableApi};

/// The data in a directory, for a command that reads or changes it.
///
/// The user who can open the directory owns the data, so no request needs an access token.
pub enum DataDirectory {
    /// Another process of this user runs the engine; requests go to its table. While the file is open, that process
    /// waits with its end.
    Running(Box<TableApi>, File),
    /// No other process uses the directory, so this process runs the engine.
    Opened(Box<System>),
}

impl DataDirectory {
    /// Opens existing data; `None` if the directory has no data.
    ///
    /// The functions cache nothing, so every answer is from the table.
    pub async fn open(directory: &Path) -> anyhow::Result<Option<Self>> {
        if let Some(engine) = engine::running(directory) {
            return Self::of_running(engine).await.map(Some);
        }

        let file = engine::database_file(directory);
        if !file.try_exists().with_context(|| file.display().to_string())? {
            return Ok(None);
        }

        let options = Options {
            data: Data::Dir(directory.to_owned()),
            listens: false,
            registry_max_age: Duration::ZERO,
            ..Options::default()
        };

        match Box::pin(System::start(options)).await {
            Ok(system) => Ok(Some(Self::Opened(Box::new(system)))),
            // Another process was quicker.
            Err(error) => {
                let engine = engine::running(directory).ok_or(error)?;
                Self::of_running(engine).await.map(Some)
            }
        }
    }

    async fn of_running(engine: RunningEngine) -> anyhow::Result<Self> {
        let RunningEngine { store, in_use } = engine;
        let api = Box::pin(TableApi::connect(store)).await?;
        Ok(Self::Running(Box::new(api), in_use))
    }

    /// Whether a path is a file of existing data, which must not be overwritten by another file.
    pub fn has_file(path: &Path) -> bool {
        engine::is_own_file(path)
    }

    /// The settings with which a store reaches the table.
    pub const fn store_config(&self) -> &StoreConfig {
        match self {
            Self::Running(api, _) => api.store_config(),
            Self::Opened(system) => system.store_config(),
        }
    }

    /// Returns the writer of many rollups at once; `None` if another process has the data open.
    pub fn bulk(&self) -> Option<Bulk> {
        match self {
            Self::Running(..) => None,
            Self::Opened(system) => Some(system.bulk()),
        }
    }

    /// Waits until the stream is delivered. If another process runs the engine, returns at once.
    pub async fn settle(&self) -> anyhow::Result<()> {
        match self {
            Self::Running(..) => Ok(()),
            Self::Opened(system) => system.settle().await,
        }
    }

    /// Sends a request to the API.
    pub async fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>> {
        match self {
            Self::Running(api, _) => api.send(request).await,
            Self::Opened(system) => system.send(request).await,
        }
    }

    /// Closes the data that this process opened, as soon as no other process uses the data.
    pub async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Running(..) => Ok(()),
            Self::Opened(system) => system.shutdown_when_unused().await,
        }
    }
}
