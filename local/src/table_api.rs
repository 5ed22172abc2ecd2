//! The functions that answer requests, in this process, on a table that another program runs. Has no engine.

use std::time::Duration;

use aws::StoreConfig;
use dynamodb::DynamoStore;
use http::{Request, Response};
use runtime::auth::Auth;
use runtime::clock::Deadline;
use table::Invocation;
use table::layout::Layout;

use crate::functions::{self, Functions};
use crate::system::shards_of;
use crate::{Options, gateway};

/// The time limit for reading the layout of the table.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The API of a table that is deployed, restored from a backup, or run by another process of this machine.
///
/// Whoever has the table's keys owns the data, so no request needs an access token.
pub struct TableApi {
    store: StoreConfig,
    functions: Functions,
    max_read_units: Option<u32>,
}

impl TableApi {
    /// Connects to a table and reads its layout.
    ///
    /// The functions cache nothing, so every answer is from the table.
    pub async fn connect(store: StoreConfig) -> anyhow::Result<Self> {
        let options = Options { registry_max_age: Duration::ZERO, ..Options::default() };
        let mut layout = Layout::default();
        layout.shards = shards_of(&store, layout).await?.unwrap_or_default();
        let table = DynamoStore::connect(&store, layout);
        let table = table.as_laid_out(&Invocation::until(Deadline::after(TIMEOUT))).await?;

        let (max_read_units, _) =
            table.max_units(&Invocation::until(Deadline::after(TIMEOUT))).await?;

        let rollup_delay = functions::rollup_delay(&options);
        let functions = Functions::start(&table, &options, rollup_delay, Auth::Owner, None);
        let functions = Box::pin(functions).await;
        Ok(Self { store, functions, max_read_units })
    }

    /// Returns the settings with which a store reaches the table.
    pub const fn store_config(&self) -> &StoreConfig {
        &self.store
    }

    /// Returns the table's read units per second, if they are limited.
    pub const fn max_read_units(&self) -> Option<u32> {
        self.max_read_units
    }

    /// Sends a request to the API.
    pub async fn send(&self, request: Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>> {
        Box::pin(gateway::send(&self.functions, request)).await
    }
}
