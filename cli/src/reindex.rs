//! `roomtide reindex`: puts every device into the index of attributes, and notes that the index is complete. Searches
//! nothing.

use anyhow::{Context as _, bail};
use domain::{Device, Timestamp};
use dynamodb::DynamoStore;
use futures_util::future::try_join_all;
use runtime::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use table::IndexDevices as _;

use crate::at::{TableParts, TablePlace};
use crate::interrupted::until_ctrl_c;
use crate::kept_progress::{ProgressArgs, ProgressFile, RunScope};
use crate::output::{counted, print};
use crate::patience::{all_devices, patiently};
use crate::progress;

/// The command line of `roomtide reindex`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: TablePlace,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// The number of devices that are compared at once.
const CONCURRENCY: usize = 16;

/// The findings of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    /// Identifies the run.
    run: String,
    /// The number of index values that were missing or wrong.
    wrong: usize,
}

/// Runs the command. Ctrl-C ends it; then the same command continues.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { place, progress } = args;
    let said = place.work(TableParts::Indexes, async |table| {
        let store = &table.store;
        if !store.layout().attribute_index {
            bail!(
                "{} has no index of attributes; deploy it with AttributeIndex=on, or start the server with \
                 --attribute-index on",
                table.name
            )
        }
        let run = table.run_scope(place, "reindex", progress);
        until_ctrl_c(reindex(store, &run, SystemClock.now())).await
    })?;
    print(said);
    Ok(())
}

async fn reindex(store: &DynamoStore, run: &RunScope, now: Timestamp) -> anyhow::Result<String> {
    let mut progress = ProgressFile::<Found>::open("reindex", run, "all", now)?;
    if progress.found().run.is_empty() {
        progress.found().run = new_run()?;
    }
    let run = progress.found().run.clone();
    patiently(async |invocation| store.begin_index(&run, invocation).await).await?;

    let devices = all_devices(store).await?;
    let count = devices.len() as u64;
    let bar = progress::bar(count, "  {bar:40} {percent:>3} %  {pos} of {len} devices  {left}")?;
    let is_done = |device: &&Device| progress.done_until(device.id()).is_some();
    let first = devices.iter().take_while(is_done).count();
    bar.inc(first as u64);
    for some in devices[first..].chunks(CONCURRENCY) {
        let each = some.iter().map(async |device| {
            patiently(async |invocation| store.index_device(device, invocation).await)
                .await
                .with_context(|| format!("the device {}", device.id()))
        });
        progress.found().wrong += try_join_all(each).await?.into_iter().sum::<usize>();
        some.last().map_or(Ok(()), |device| progress.save(device.id(), Timestamp::MAX))?;
        bar.inc(some.len() as u64);
    }

    bar.finish_and_clear();

    let is_complete =
        patiently(async |invocation| store.end_index(&run, now, invocation).await).await?;
    let wrong = progress.finish().wrong;
    if !is_complete {
        bail!(
            "meanwhile a function without the index edited a device, or another run began; wait until the \
             deployment is complete, and run the command again"
        );
    }

    let (count, wrong) = (counted(count, "device"), counted(wrong as u64, "value"));
    Ok(format!("{count}, {wrong} stored or deleted; devices are now found by the index"))
}

fn new_run() -> anyhow::Result<String> {
    let mut bits = [0; 8];
    getrandom::fill(&mut bits).context("the operating system has no randomness")?;
    Ok(u64::from_le_bytes(bits).to_string())
}

#[cfg(test)]
mod tests {
    use domain::given::{self, metric, number};
    use domain::{DeviceObservation, DevicePatch, Edit, Reading};
    use local::{Options, System};
    use table::given::invocation;
    use table::{EditRegistry as _, RegisterDevices as _, SearchDevices as _, SearchQuery};

    use super::*;

    async fn named(store: &DynamoStore, range: std::ops::Range<usize>) {
        for n in range {
            let id: domain::DeviceId = given::device(&format!("d{n:02}"));
            let metrics = [(metric("t"), number("1"))];
            let reading = Reading::new(id.clone(), Timestamp::MIN, None, metrics.into()).unwrap();
            let device = DeviceObservation::of(&reading).new_device(id.clone(), |_| true);
            store.register_device(&device, &invocation()).await.unwrap();
            let name = Edit::Set(format!("Name {n}").parse().unwrap());
            let patch = DevicePatch { name, ..DevicePatch::default() };
            store.edit_device(&id, &patch, Timestamp::MIN, &invocation()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_run_completes_the_index_and_an_interrupted_one_continues() {
        let options = Options { attribute_index: Some(true), listens: false, ..Options::default() };
        let system = System::start(options).await.unwrap();
        let config = system.store_config();
        let without = DynamoStore::connect(config, table::layout::Layout::default());
        named(&without, 0..40).await;
        let store = without.clone().as_laid_out(&invocation()).await.unwrap();
        let is_indexed = async || store.is_indexed(&invocation()).await.unwrap();
        assert!(store.layout().attribute_index && !is_indexed().await);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("reindex");
        let run = async |again| {
            let (path, table) = (path.clone(), "this one".to_owned());
            reindex(&store, &RunScope { path, table, again }, Timestamp::MIN).await
        };

        let interrupt = |table: &str| {
            let (path, table) = (path.clone(), table.to_owned());
            let scope = RunScope { path, table, again: true };
            let mut progress =
                ProgressFile::<Found>::open("reindex", &scope, "all", Timestamp::MIN).unwrap();
            *progress.found() = Found { run: "7".to_owned(), wrong: 20 };
            progress.save(&given::device("d19"), Timestamp::MAX).unwrap();
        };
        interrupt("this one");
        let said = run(false).await.unwrap();
        assert!(said.starts_with("40 devices, 40 values stored or deleted"), "{said}");
        assert!(is_indexed().await && !path.exists());
        let query = SearchQuery {
            subject: &domain::Subject::Name,
            range: &domain::SearchRange::All,
            after: None,
            limit: 100,
        };
        let found = async || store.search(&query, &invocation()).await.unwrap().items.len();
        assert_eq!(found().await, 20, "what the interrupted run had done is not looked at");
        interrupt("another one");
        let refused = run(false).await.unwrap_err().to_string();
        let expected = format!("{} keeps how far reindex of another one came", path.display());
        assert!(refused.starts_with(&expected) && refused.contains("--again"), "{refused}");
        assert!(run(true).await.unwrap().starts_with("40 devices, 20 values"));
        assert!(found().await == 40 && !path.exists());
        assert!(run(true).await.unwrap().starts_with("40 devices, 0 values"));

        named(&without, 40..41).await;
        assert!(!is_indexed().await);
        assert!(run(false).await.unwrap().starts_with("41 devices, 1 value stored"));
        assert!(is_indexed().await);
        system.shutdown().await.unwrap();
    }
}
