//! The data in a directory, whether or not a server has it open. Listens on no port for HTTP requests.

use std::path::Path;
use std::time::Duration;

use aws::StoreConfig;
use dynamodb::DynamoStore;
use http::{Request, StatusCode};
use runtime::auth::Auth;
use runtime::clock::Deadline;
use table::Invocation;
use table::layout::Layout;

use crate::event_source_mapping::EventSourceMapping;
use crate::functions::{self, Functions};
use crate::system::shards_of;
use crate::template::Template;
use crate::{Data, Options, System, engine, gateway};

/// The time for reading how the table is laid out.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The data in a directory, for a command that reads or changes it.
///
/// The user who can open the directory owns the data, so no request needs an access token.
#[derive(Debug)]
pub struct DataDirectory(Inner);

enum Inner {
    /// Another process of this user runs the engine.
    Running { store: StoreConfig, functions: Functions },
    /// No other process has the directory open.
    Opened(Box<System>),
}

impl DataDirectory {
    /// Opens existing data; `None` if the directory has no data.
    ///
    /// The functions cache nothing, so that each answer is what the table holds.
    pub async fn open(directory: &Path) -> anyhow::Result<Option<Self>> {
        let options = Options { registry_max_age: Duration::ZERO, ..Options::default() };
        if let Some(store) = engine::running(directory) {
            let mut layout = Layout::default();
            layout.shards = shards_of(&store, layout).await?.unwrap_or_default();
            let table = DynamoStore::connect(&store, layout);
            let table = table.as_laid_out(&Invocation::until(Deadline::after(TIMEOUT))).await?;
            let mappings = EventSourceMapping::from_template(&Template::own()?)?;
            let following = functions::following(&mappings)?;
            let functions = Functions::start(&table, &options, following, Auth::Owner, None);
            let functions = Box::pin(functions).await;
            return Ok(Some(Self(Inner::Running { store, functions })));
        }
        if !engine::database_file(directory).exists() {
            return Ok(None);
        }
        let data = Data::Dir(directory.to_owned());
        let system = Box::pin(System::start(Options { data, listens: false, ..options })).await?;
        Ok(Some(Self(Inner::Opened(Box::new(system)))))
    }

    /// The settings with which a store reaches the table.
    #[must_use]
    pub const fn store_config(&self) -> &StoreConfig {
        match &self.0 {
            Inner::Running { store, .. } => store,
            Inner::Opened(system) => system.store_config(),
        }
    }

    /// Waits until the stream is delivered, if it is not another process that delivers it.
    pub async fn settle(&self) -> anyhow::Result<()> {
        match &self.0 {
            Inner::Running { .. } => Ok(()),
            Inner::Opened(system) => system.settle().await,
        }
    }

    /// Sends a request to the API. Returns the status and the body.
    pub async fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<(StatusCode, Vec<u8>)> {
        match &self.0 {
            Inner::Running { functions, .. } => Box::pin(gateway::send(functions, request)).await,
            Inner::Opened(system) => system.send(request).await,
        }
    }

    /// Closes the data if this process opened it.
    pub async fn close(self) -> anyhow::Result<()> {
        match self.0 {
            Inner::Running { .. } => Ok(()),
            Inner::Opened(system) => system.shutdown().await,
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Running { .. } => "Running",
            Self::Opened(_) => "Opened",
        })
    }
}
