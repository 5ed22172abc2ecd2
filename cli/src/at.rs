//! Which system a command works on: a server, the data of a directory, or a deployed table. Sends no request.

use std::error::Error;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use aws::{ServiceConfig, StoreConfig};
use dynamodb::DynamoStore;
use history::address::is_http;
use local::{Bulk, DataDirectory};
use table::layout::Layout;
use table::shards::Shards;
use table::{ReadShards as _, StoreError};
use tokio::runtime::Handle;

use crate::client::{self, Client, NotRoomtide, Unreached};
use crate::defaults::{DATA_DIR, SERVER};
use crate::kept_progress::{ProgressArgs, RunScope};
use crate::output::print;
use crate::patience::{keep_to, patiently};

/// The system that a command works on through the API.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SystemAt {
    /// The address of a server, as the server prints it at its start. Without --url, --data-dir and --table the
    /// commands ask `http://127.0.0.1:8080`; only export and status read the directory roomtide-data, and import takes
    /// the server or, if none answers, the directory
    #[arg(long, global = true, conflicts_with_all = ["data_dir", "table"])]
    pub(crate) url: Option<String>,
    /// An access token, if the server asks for one: scope read shows, scope admin changes, scope write imports readings
    /// only. @FILE reads the token from a file, because every user of the machine sees a command line
    #[arg(long, global = true, conflicts_with_all = ["data_dir", "table"])]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) place: TablePlace,
}

/// The table that a command uses directly: on this machine, or deployed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TablePlace {
    /// A directory of local data. Its server may be running, except for an import. Without --table, the commands token,
    /// rollups and reindex take roomtide-data
    // No default value here: `is_named` has to tell whether a person wrote the option, even with the default's value.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// A deployed table, reached with the AWS credentials and the region of the environment
    #[arg(long, value_name = "NAME", conflicts_with = "data_dir", global = true)]
    pub(crate) table: Option<String>,
}

/// The system of a command for which none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The server at [`SERVER`].
    Server,
    /// The data in [`DATA_DIR`].
    Data,
}

/// The hint if the environment has no AWS credentials: the files of the AWS CLI are not read.
const NO_CREDENTIALS: &str = "credentials are read from the environment only; put them there with \
    eval \"$(aws configure export-credentials --format env)\", or with version 1 of the AWS CLI, which lacks that command, \
    set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN yourself";

/// The layout that is assumed for a table whose layout is not read: no index.
pub(crate) const LAYOUT: Layout = Layout {
    room_index: false,
    attribute_index: false,
    conditions_index: false,
    shards: Shards::ONE,
};

/// The parts of a table that a command reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableParts {
    /// Tokens, which every layout has in the same place.
    Tokens,
    /// Devices, too, whose number of partitions differs.
    Devices,
    /// Indexes, too, which writes must keep up to date.
    Indexes,
}

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

impl SystemAt {
    /// Opens the system, lets `work` use it, and closes it.
    pub(crate) fn work<T>(
        &self,
        unnamed: Unnamed,
        work: impl FnOnce(&Client) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let client = self.open(unnamed)?;
        let done = work(&client);
        let closed = client.close();
        done.and_then(|done| closed.map(|()| done))
    }

    /// Opens the system that is named, or else the one that such a command means.
    pub(crate) fn open(&self, unnamed: Unnamed) -> anyhow::Result<Client> {
        self.ensure_one_place()?;
        if let Some(url) = &self.url {
            return self.server(url);
        }
        if let Some(config) = self.place.deployed()? {
            return Client::of_table(config);
        }
        if unnamed == Unnamed::Server && !self.place.is_named() {
            return self.server(SERVER);
        }
        ensure!(self.token.is_none(), "--token is for a server, and no --url names it");
        Client::of_data(self.place.data_dir())
    }

    /// One place may stand before a subcommand and the other after it, where the parser finds no conflict.
    fn ensure_one_place(&self) -> anyhow::Result<()> {
        ensure!(
            self.url.is_none() || !self.place.is_named(),
            "--url and --data-dir or --table name two places"
        );
        Ok(())
    }

    /// Opens the target of an import: the named server or directory, else a Roomtide at the default address, else the
    /// default directory.
    pub(crate) fn open_to_import(&self) -> anyhow::Result<Client> {
        self.ensure_one_place()?;
        if let Some(url) = &self.url {
            return self.server(url);
        }
        ensure!(
            self.place.table.is_none(),
            "--table: readings are imported with --url; only --rollups go into a table"
        );
        self.open_to_import_or(SERVER)
    }

    /// Opens the target of an import if no server is named. `default` is the address where one may run.
    fn open_to_import_or(&self, default: &str) -> anyhow::Result<Client> {
        let directory = self.place.data_dir();
        if self.place.is_named() {
            return Client::loading(directory);
        }

        // A program that is no Roomtide gets no token.
        let Err(error) = Client::new(default, None)?.ensure_roomtide() else {
            return self.server(default);
        };
        if self.token.is_some() {
            return Err(error.context("--token is for a server, and no --url names it"));
        }

        let said = absence(default, &error).ok_or_else(|| unclear(default, error))?;
        let hint = || format!("{said}; at another address Roomtide needs --url");
        let client = Client::loading(directory).with_context(hint)?;
        print(format_args!("{said}: storing into {}", client.identity()));
        Ok(client)
    }

    fn server(&self, url: &str) -> anyhow::Result<Client> {
        let token = self.token.as_deref().map(client::token).transpose()?;
        Client::new(url, token.as_deref())
    }
}

/// The remark if an address certainly has no Roomtide: nothing listens there, or another program answers. `None` if the
/// error does not prove that, for example for a busy server.
fn absence(url: &str, error: &anyhow::Error) -> Option<String> {
    if error.is::<NotRoomtide>() {
        return Some(format!("what answers at {url} is no Roomtide"));
    }
    let is_refused = error.downcast_ref().is_some_and(Unreached::is_refused);
    is_refused.then(|| format!("no Roomtide answers at {url}"))
}

/// The error of an import that would have to guess its target.
fn unclear(url: &str, error: anyhow::Error) -> anyhow::Error {
    error.context(format!(
        "{url} does not tell whether it is Roomtide, and nothing is imported; name a server with --url, or a directory \
         with --data-dir"
    ))
}

impl TablePlace {
    /// Opens the table, lets `work` use it, and closes it.
    pub(crate) fn work<T>(
        &self,
        reads: TableParts,
        work: impl AsyncFnOnce(&OpenTable) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        Handle::current().block_on(async {
            let mut table = self.open().await?;
            let done = async {
                table.read(reads).await?;
                Box::pin(work(&table)).await
            };
            let done = done.await;
            table.end(done).await
        })
    }

    async fn open(&self) -> anyhow::Result<OpenTable> {
        if let Some(config) = self.deployed()? {
            let name = format!("the table {} in {}", config.table, config.region);
            let address = config.endpoint.as_deref().unwrap_or("AWS");
            let identity = format!("{name} at {address}");
            let store = DynamoStore::connect(&config, LAYOUT);
            return Ok(OpenTable { store, name, identity, config, data: None });
        }

        let data_dir = self.data_dir();
        let name = data_dir.display().to_string();
        let data = client::open_data(data_dir).await?;
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
        // One may stand before a subcommand and the other after it, where the parser finds no conflict.
        ensure!(self.data_dir.is_none(), "--table and --data-dir name two places");
        let service = aws_service("AWS_ENDPOINT_URL_DYNAMODB", None)?;
        let ServiceConfig { region, endpoint, credentials, ca_bundle } = service;
        let attempt_timeout = aws::ATTEMPT_TIMEOUT;
        Ok(Some(StoreConfig { table, region, endpoint, credentials, ca_bundle, attempt_timeout }))
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
    if let Some(endpoint) = &endpoint {
        ensure!(
            is_http(endpoint),
            "the address of a service of AWS in the environment, {endpoint}, does not begin with http:// or https://"
        );
    }
    let ca_bundle = runtime::config::ca_bundle()?;
    Ok(ServiceConfig { region, endpoint, credentials, ca_bundle })
}

impl OpenTable {
    /// Reads from the table what its layout is, because no option gives it.
    async fn read(&mut self, parts: TableParts) -> anyhow::Result<()> {
        if parts == TableParts::Tokens {
            return Ok(());
        }

        if self.data.is_none() {
            let (read, write) = patiently(async |time| self.store.max_units(time).await).await?;
            keep_to(read, write);
        }

        let shards = patiently(async |time| self.store.stored_shards(time).await).await?;
        let shards = shards.unwrap_or_default();
        self.store = DynamoStore::connect(&self.config, Layout { shards, ..LAYOUT });
        if parts == TableParts::Indexes {
            self.store = patiently(async |time| self.store.clone().as_laid_out(time).await).await?;
        }
        Ok(())
    }

    /// A command on this table, which keeps its progress in a file.
    pub(crate) fn run_scope(
        &self,
        place: &TablePlace,
        command: &str,
        args: &ProgressArgs,
    ) -> RunScope {
        let path = args.state.clone().unwrap_or_else(|| match &place.table {
            Some(table) => format!("{table}.roomtide-{command}").into(),
            None => place.data_dir().join(format!("roomtide.{command}")),
        });
        RunScope { path, table: self.identity.clone(), again: args.again }
    }

    /// Returns the writer of many rollups at once, if this process has the data open.
    pub(crate) fn bulk(&self) -> Option<Bulk> {
        self.data.as_ref().and_then(DataDirectory::bulk)
    }

    /// Closes the data directory, if this process opened one. Returns `result`. If the table did not answer in time,
    /// the error names the table.
    async fn end<T>(self, result: anyhow::Result<T>) -> anyhow::Result<T> {
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

    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;

    #[test]
    fn the_indexes_are_those_that_the_table_has() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().to_owned();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        for is_on in [true, false] {
            let options = Options {
                data: Data::Dir(data_dir.clone()),
                conditions_index: Some(is_on),
                listens: false,
                ..Options::default()
            };
            runtime.block_on(async {
                Box::pin(System::start(options)).await.unwrap().shutdown().await.unwrap();
            });
            let place = TablePlace { data_dir: Some(data_dir.clone()), table: None };
            let late = place.work(TableParts::Indexes, async |table| {
                assert_eq!(table.store.layout().conditions_index, is_on);
                anyhow::Result::<()>::Err(StoreError::TimedOut.into())
            });
            let late = format!("{:#}", late.unwrap_err());
            let directory = std::fs::canonicalize(&data_dir).unwrap();
            let expected = format!("the data in {} did not answer", directory.display());
            assert!(
                late.starts_with(&expected) && late.contains("run the command again"),
                "{late}"
            );
        }
    }

    const ROOMTIDE: &str = r#"{"status":"ready","up":"0s"}"#;

    fn at(words: &[&str]) -> SystemAt {
        parsed([&["import"], words].concat()).unwrap()
    }

    #[test]
    fn what_is_named_wins_and_what_is_no_roomtide_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let named = ["--data-dir", path.to_str().unwrap()];
        for (words, ready, expected) in [
            (&[][..], ROOMTIDE, "a server"),
            (&["--token", "t"], ROOMTIDE, "a server"),
            (&named, ROOMTIDE, "a directory"),
            (&[], "hello", "a directory"),
            (&["--token", "t"], "hello", "an error"),
        ] {
            let server = fake_server::always(200, ready);
            let found = match at(words).open_to_import_or(&server.url) {
                Ok(client) if client.here().is_some() => "a directory",
                Ok(_) => "a server",
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(error.contains("--token") && error.contains("no Roomtide"), "{error}");
                    "an error"
                }
            };
            assert_eq!(found, expected, "{words:?} {ready}");
        }
        assert!(!path.exists(), "nothing is made before a reading is sent");
    }

    #[test]
    fn a_server_that_does_not_say_what_it_is_ends_the_import() {
        let busy = fake_server::serve(|_, _| Reply::with(503, "retry-after: 0\r\n", "busy"));
        let mute = fake_server::serve(|_, _| Reply::NONE);
        // What it points to refuses connections, which says nothing of the server itself.
        let away = "location: http://127.0.0.1:1/ready\r\n";
        let redirecting = fake_server::serve(move |_, _| Reply::with(302, away, ""));
        for (server, expected) in [
            (busy, "/ready answers 503"),
            (mute, "cannot reach"),
            (redirecting, "/ready answers 302 and points to http://127.0.0.1:1/ready"),
        ] {
            let chosen = at(&[]).open_to_import_or(&server.url);
            let error = format!("{:#}", chosen.unwrap_err());
            for expected in [&*server.url, "--url", "--data-dir", expected] {
                assert!(error.contains(expected), "{expected:?} is not in {error}");
            }
        }
    }

    #[test]
    fn where_nothing_listens_the_directory_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _entered = runtime.enter();
        let chosen = at(&[]).open_to_import_or(&url).unwrap();
        assert!(chosen.here().is_some(), "{chosen:?}");
    }

    #[test]
    fn a_token_is_for_a_server() {
        for place in [["--data-dir", "never"], ["--table", "never"]] {
            let words = ["status", "--token", "t"].into_iter().chain(place);
            let error = parsed::<SystemAt>(words).unwrap_err().to_string();
            assert!(error.contains("--token"), "{error}");
        }
        let error = at(&["--token", "t"]).open(Unnamed::Data).unwrap_err().to_string();
        assert!(error.contains("--url"), "{error}");
    }
}
