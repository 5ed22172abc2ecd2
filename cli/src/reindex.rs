//! `roomtide reindex`: puts every device into the index of attributes, and notes that the index is complete. Searches
//! nothing.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use domain::{Device, Timestamp};
use dynamodb::DynamoStore;
use futures_util::future::try_join_all;
use runtime::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use table::{IndexDevices as _, ListDevices as _};

use crate::interrupted::Interrupted;
use crate::output::{counted, print};
use crate::patience::patiently;
use crate::place::{Place, ProgressFile};
use crate::progress;
use crate::progress_file::{self, HeldProgress};

/// The command line of `roomtide reindex`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The file that keeps the progress, instead of one in the data directory or, for a deployed table, in the
    /// current directory
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Start at the first device even if the command was interrupted
    #[arg(long)]
    again: bool,
}

/// The number of devices that are compared at once.
const CONCURRENCY: usize = 16;

/// The progress of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    /// Identifies the run.
    run: String,
    /// The table of the run. A file of an earlier version names none.
    #[serde(default)]
    table: String,
    /// The last completed device.
    after: Option<String>,
    /// The number of index values that were missing or wrong.
    wrong: usize,
}

/// Runs the command. Ctrl-C ends it; then the same command continues.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args { place, state, again } = args;
    let path = state.unwrap_or_else(|| place.progress_path("reindex"));
    let table = place.open().await?.with_indexes().await?;
    let file = table.progress_in(path);
    let work = async {
        let store = &table.store;
        if !store.layout().attribute_index {
            bail!(
                "{} has no index of attributes; deploy it with AttributeIndex=on, or start the server with \
                 --attribute-index on",
                table.name
            )
        }
        reindex(store, &file, again, SystemClock.now()).await
    };
    let result = tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => {
            Err(anyhow::Error::new(Interrupted).context("the same command continues where it stopped"))
        }
    };
    print(table.end(result).await?);
    Ok(())
}

async fn reindex(
    store: &DynamoStore,
    ProgressFile { path: file, table }: &ProgressFile,
    again: bool,
    now: Timestamp,
) -> anyhow::Result<String> {
    progress_file::ensure_ours::<Progress>(file)?;
    let _lock = HeldProgress::take(file)?;
    let read = || -> Option<Progress> { serde_json::from_slice(&fs::read(file).ok()?).ok() };
    let earlier = (!again).then(read).flatten().filter(|earlier| !earlier.table.is_empty());
    let kept = earlier.as_ref().map(|earlier| format!("reindex of {}", earlier.table));
    progress_file::ensure_same(file, kept.as_deref(), &format!("reindex of {table}"))?;

    let mut progress = match earlier {
        Some(progress) => progress,
        None => Progress { run: new_run()?, table: table.clone(), after: None, wrong: 0 },
    };
    patiently(async |it| store.begin_index(&progress.run, it).await).await?;
    let listing = patiently(async |it| store.all_devices(it).await).await?;
    if let Some(unreadable) = listing.unreadable.first() {
        bail!("a device of the registry cannot be read: {unreadable}");
    }
    let mut devices = listing.found;
    devices.sort_by(|a, b| a.id().cmp(b.id()));
    let count = u64::try_from(devices.len())?;
    let bar = progress::bar(count, "  {bar:40} {percent:>3} %  {pos} of {len} devices  {left}")?;
    let done =
        |device: &&Device| progress.after.as_deref().is_some_and(|it| device.id().as_str() <= it);
    let first = devices.iter().take_while(done).count();
    bar.inc(u64::try_from(first)?);
    for some in devices[first..].chunks(CONCURRENCY) {
        let each = some.iter().map(async |device| {
            patiently(async |it| store.index_device(device, it).await)
                .await
                .with_context(|| format!("the device {}", device.id()))
        });
        progress.wrong += try_join_all(each).await?.into_iter().sum::<usize>();
        progress.after = some.last().map(|device| device.id().to_string());
        progress_file::replace(file, &serde_json::to_vec(&progress)?)
            .with_context(|| progress_file::cannot_write(file))?;
        bar.inc(u64::try_from(some.len())?);
    }
    bar.finish_and_clear();
    let is_complete = patiently(async |it| store.end_index(&progress.run, now, it).await).await?;
    drop(fs::remove_file(file));
    if !is_complete {
        bail!(
            "meanwhile a function without the index edited a device, or another run began; wait until the \
             deployment is complete, and run the command again"
        );
    }
    let wrong = counted(u64::try_from(progress.wrong)?, "value");
    Ok(format!(
        "{}, {wrong} stored or deleted; devices are now found by the index",
        counted(count, "device")
    ))
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
        let file = ProgressFile { path: path.clone(), table: "this one".to_owned() };
        let run = async |again| reindex(&store, &file, again, Timestamp::MIN).await;
        let held = HeldProgress::take(&path).unwrap();
        assert!(run(false).await.unwrap_err().to_string().contains("under way"));
        drop(held);

        let interrupt = |table: &str| {
            let (run, table) = ("7".to_owned(), table.to_owned());
            let progress = Progress { run, table, after: Some("d19".to_owned()), wrong: 20 };
            progress_file::replace(&path, &serde_json::to_vec(&progress).unwrap()).unwrap();
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
