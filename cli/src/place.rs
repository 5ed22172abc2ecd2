//! The table that a command reads or changes: the one of a data directory, or a deployed one. Changes nothing.

use std::error::Error;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use aws::{ServiceConfig, StoreConfig};
use dynamodb::DynamoStore;
use local::{Bulk, DataDirectory};
use table::layout::Layout;
use table::shards::Shards;
use table::{ReadShards as _, StoreError};

use crate::patience::{keep_to, patiently};

/// The table that a command works on: the one on this machine, or a deployed one.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Place {
    /// The directory of the local data, by default roomtide-data; the server may be running, but not for an import
    // No default value here: `is_named` has to tell whether a person wrote the option, even with the default's value.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// A deployed table, reached with the AWS credentials and the region of the environment
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir", global = true)]
    pub(crate) table: Option<String>,
}

/// The default directory of the local data.
pub(crate) const DATA_DIR: &str = "roomtide-data";

/// The hint if the environment has no AWS credentials: the files of the AWS CLI are not read.
const NO_CREDENTIALS: &str = "credentials are read from the environment only; put them there with \
    eval \"$(aws configure export-credentials --format env)\", or with version 1 of the AWS CLI, which lacks that command, \
    set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN yourself";

/// The layout that is assumed for a table whose layout is not read: no index.
const LAYOUT: Layout = Layout {
    room_index: false,
    attribute_index: false,
    conditions_index: false,
    shards: Shards::ONE,
};

/// A table that is open for requests.
pub(crate) struct OpenTable {
    pub(crate) store: DynamoStore,
    /// The table's name, for people.
    pub(crate) name: String,
    /// A text that identifies the table among all tables.
    identity: String,
    config: StoreConfig,
    data: Option<DataDirectory>,
}

/// The progress file of a command, and the table that the command works on. Progress on another table does not count.
#[derive(Debug)]
pub(crate) struct ProgressFile {
    pub(crate) path: PathBuf,
    pub(crate) table: String,
}

impl Place {
    pub(crate) async fn open(self) -> anyhow::Result<OpenTable> {
        if let Some(config) = self.deployed()? {
            let name = format!("the table {} in {}", config.table, config.region);
            let address = config.endpoint.as_deref().unwrap_or("AWS");
            let identity = format!("{name} at {address}");
            let store = DynamoStore::connect(&config, LAYOUT);
            return Ok(OpenTable { store, name, identity, config, data: None });
        }
        let data_dir = self.data_dir();
        let name = data_dir.display().to_string();
        let Some(data) = DataDirectory::open(data_dir).await? else {
            bail!(
                "there is no data in {name}; start the server once, or name another --data-dir or a --table"
            )
        };
        let directory = std::fs::canonicalize(data_dir);
        let directory = directory.with_context(|| format!("cannot find {name}"))?;
        let identity = format!("the data in {}", directory.display());
        let config = data.store_config().clone();
        let store = DynamoStore::connect(&config, LAYOUT);
        Ok(OpenTable { store, name, identity, config, data: Some(data) })
    }

    /// The directory of the local data.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data_dir.as_deref().unwrap_or(Path::new(DATA_DIR))
    }

    /// Returns whether a person named a place, even if it is the default directory.
    pub(crate) const fn is_named(&self) -> bool {
        self.data_dir.is_some() || self.table.is_some()
    }

    /// The settings to reach the deployed table, if one is named.
    pub(crate) fn deployed(&self) -> anyhow::Result<Option<StoreConfig>> {
        let Some(table) = self.table.clone() else { return Ok(None) };
        // One may stand before a subcommand and the other behind it, where the parser finds no conflict.
        ensure!(self.data_dir.is_none(), "--table and --data-dir name two places");
        let service = aws_service("AWS_ENDPOINT_URL_DYNAMODB", None)?;
        let ServiceConfig { region, endpoint, credentials, ca_bundle } = service;
        let attempt_timeout = aws::ATTEMPT_TIMEOUT;
        Ok(Some(StoreConfig { table, region, endpoint, credentials, ca_bundle, attempt_timeout }))
    }

    /// The default progress file of a command.
    pub(crate) fn progress_path(&self, command: &str) -> PathBuf {
        match &self.table {
            Some(table) => format!("{table}.roomtide-{command}").into(),
            None => self.data_dir().join(format!("roomtide.{command}")),
        }
    }
}

/// The settings to reach a service of AWS, from the environment: `endpoint` names the variable of its address. A region
/// that is known otherwise comes first.
pub(crate) fn aws_service(
    endpoint: &'static str,
    region: Option<String>,
) -> anyhow::Result<ServiceConfig> {
    let (credentials, of_environment) = runtime::config::credentials().context(NO_CREDENTIALS)?;
    let region = region.or(of_environment);
    let region = region.context("no region; set AWS_REGION, such as eu-west-1")?;
    let endpoint = runtime::config::endpoint(endpoint);
    let ca_bundle = runtime::config::ca_bundle()?;
    Ok(ServiceConfig { region, endpoint, credentials, ca_bundle })
}

impl OpenTable {
    /// Reads the number of partitions of the devices from the table, because no option gives this number.
    pub(crate) async fn with_devices(mut self) -> anyhow::Result<Self> {
        if self.data.is_none() {
            let (read, write) = patiently(async |it| self.store.max_units(it).await).await?;
            keep_to(read, write);
        }
        let shards = patiently(async |it| self.store.stored_shards(it).await).await?;
        let shards = shards.unwrap_or_default();
        self.store = DynamoStore::connect(&self.config, Layout { shards, ..LAYOUT });
        Ok(self)
    }

    /// Reads from the table which indexes it has, because the command's writes must keep them up to date.
    pub(crate) async fn with_indexes(self) -> anyhow::Result<Self> {
        let mut table = self.with_devices().await?;
        table.store = patiently(async |it| table.store.clone().as_laid_out(it).await).await?;
        Ok(table)
    }

    /// The progress file of a command on this table.
    pub(crate) fn progress_in(&self, path: PathBuf) -> ProgressFile {
        ProgressFile { path, table: self.identity.clone() }
    }

    /// Returns the writer of many rollups at once, if this process has the data open.
    pub(crate) fn bulk(&self) -> Option<Bulk> {
        self.data.as_ref().and_then(DataDirectory::bulk)
    }

    /// Closes the data directory, if this process opened one. Returns `result`. If the table did not answer in time,
    /// the error names the table.
    pub(crate) async fn end<T>(self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        if let Some(data) = self.data {
            data.close().await?;
        }
        result.map_err(|error| {
            if !error.chain().any(is_late) {
                return error;
            }
            let what = "did not answer in time; run the command again when less is going on there";
            error.context(format!("{} {what}", self.identity))
        })
    }
}

fn is_late(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref::<StoreError>(), Some(StoreError::TimedOut))
}

#[cfg(test)]
mod tests {
    use local::{Data, Options, System};
    use table::ReadConditionsSchema as _;

    use super::*;

    #[tokio::test]
    async fn the_indexes_are_those_that_the_table_has() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().to_owned();
        for is_on in [true, false] {
            let options = Options {
                data: Data::Dir(data_dir.clone()),
                conditions_index: Some(is_on),
                listens: false,
                ..Options::default()
            };
            Box::pin(System::start(options)).await.unwrap().shutdown().await.unwrap();
            let place = Place { data_dir: Some(data_dir.clone()), table: None };
            let table = Box::pin(place.open()).await.unwrap().with_indexes().await.unwrap();
            assert_eq!(table.store.has_conditions_index(), is_on);

            let nothing: anyhow::Result<()> = Err(StoreError::TimedOut.into());
            let late = format!("{:#}", table.end(nothing).await.unwrap_err());
            let directory = std::fs::canonicalize(&data_dir).unwrap();
            let expected = format!("the data in {} did not answer", directory.display());
            assert!(
                late.starts_with(&expected) && late.contains("run the command again"),
                "{late}"
            );
        }
    }
}
