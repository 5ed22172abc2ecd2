//! Fills an empty table with the sample home, through the API. The requests themselves are in `data`.

mod data;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use local::{System, private};

use crate::output::print;
use crate::request::request;

/// Returns whether to store the sample home: the table is empty, or the last start stored only a part.
pub(crate) fn is_wanted(system: &System, directory: Option<&Path>) -> anyhow::Result<bool> {
    Ok(system.is_empty()? || unfinished(directory).is_some_and(|marker| marker.exists()))
}

/// Returns the path of a file that exists while the sample home is incomplete. Storing it twice changes nothing.
fn unfinished(directory: Option<&Path>) -> Option<PathBuf> {
    directory.map(|directory| directory.join("roomtide.sample-unfinished"))
}

/// Stores the sample home through the API.
pub(crate) async fn fill(system: &System, directory: Option<&Path>) -> anyhow::Result<()> {
    let unfinished = unfinished(directory);
    if let Some(marker) = &unfinished {
        let created = private::options().create(true).truncate(true).open(marker);
        created.with_context(|| format!("cannot write {}", marker.display()))?;
    }
    let requests: Vec<_> = data::requests()?.collect();
    print("The table is empty: storing the sample home.");
    let style = ProgressStyle::with_template("  {bar:40} {percent:>3} %  {eta} left")?;
    let bar = ProgressBar::new(requests.len() as u64).with_style(style);
    for body in requests {
        request(system, "POST", "/readings", "application/x-ndjson", body).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    print("Rolling up its readings.");
    let spinner = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("  {spinner} rolling up  {elapsed}")?);
    spinner.enable_steady_tick(Duration::from_millis(250));
    let settled = system.settle().await;
    spinner.finish_and_clear();
    settled?;
    for (path, body) in data::names() {
        request(system, "PATCH", &path, "application/json", body).await?;
    }
    if let Some(marker) = unfinished {
        fs::remove_file(&marker).with_context(|| format!("cannot remove {}", marker.display()))?;
    }
    Ok(())
}
