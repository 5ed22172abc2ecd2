//! Fills an empty table with the sample home and keeps it up to date, through the API. The readings themselves
//! are in `data`.

mod data;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use data::SampleHome;
use domain::Timestamp;
use http::{Request, Response, StatusCode};
use indicatif::{ProgressBar, ProgressStyle};
use local::{System, private};
use runtime::clock::{Clock as _, SystemClock};
use serde_json::Value;

use crate::output::{print, print_error};
use crate::progress;
use crate::request::request;

/// The longest sleep before the clock is read again, because the clock goes on while a laptop is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The state of the sample home in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleState {
    /// It is to be stored: the table is empty, or the last start stored only a part.
    Wanted,
    /// An earlier start stored it.
    Stored,
    Absent,
}

impl SampleState {
    /// Looks at a table whose data are in this directory.
    pub(crate) fn of(system: &System, directory: Option<&Path>) -> anyhow::Result<Self> {
        let is_there = |marker: Option<PathBuf>| marker.is_some_and(|marker| marker.exists());
        if system.is_empty()? || is_there(unfinished(directory)) {
            return Ok(Self::Wanted);
        }
        Ok(if is_there(stored(directory)) { Self::Stored } else { Self::Absent })
    }
}

/// Says which devices of a table belong to the sample home, and how to begin without them; `None` if no device does.
/// `name_of` returns the name of a device.
pub(crate) fn said_of(name_of: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_stored = |(id, name): &(String, String)| name_of(id).as_ref() == Some(name);
    let found: Vec<String> = data::devices().filter(is_stored).map(|(id, _)| id).collect();
    // A meter proves nothing, because the meters of many homes have such ids and names.
    let has_thermometer = found.iter().any(|id| data::is_thermometer(id));
    has_thermometer.then(|| {
        format!(
            "sample home  is in this table; its devices stay beside what is imported: {}\n             \
             an empty directory has none: `roomtide --empty --data-dir DIR` serves one, and without a server \
             `import --data-dir DIR` makes one",
            found.join(", ")
        )
    })
}

/// Returns the path of a file that exists while the sample home is incomplete. The next start then stores it again,
/// which does no harm.
fn unfinished(directory: Option<&Path>) -> Option<PathBuf> {
    directory.map(|directory| directory.join("roomtide.sample-unfinished"))
}

/// Returns the path of a file that exists once the sample home is stored.
fn stored(directory: Option<&Path>) -> Option<PathBuf> {
    directory.map(|directory| directory.join("roomtide.sample"))
}

/// Stores the sample home through the API: its last weeks until now. Past days are stored together with their rollups.
pub(crate) async fn fill(system: &System, directory: Option<&Path>) -> anyhow::Result<()> {
    let unfinished = unfinished(directory);
    if let Some(marker) = &unfinished {
        let created = private::options().create(true).truncate(true).open(marker);
        created.with_context(|| format!("cannot write {}", marker.display()))?;
    }

    let home = SampleHome::read()?;
    let now = SystemClock.now();
    let from = now.saturating_add(-data::LAP);
    print("The table is empty: storing the sample home.");
    let devices = home.devices().len() as u64;
    let bar = progress::bar(devices, "  {bar:40} {percent:>3} %  {left}")?;
    let loader = Box::pin(system.loader()).await?;
    for device in home.devices() {
        for body in device.requests(from, now) {
            post(async |request| loader.send(request).await, body).await?;
        }
        Box::pin(loader.store()).await?;
        bar.inc(1);
    }

    drop(loader);
    bar.finish_and_clear();
    print("Rolling up today's readings.");
    let spinner = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("  {spinner} rolling up  {elapsed}")?);
    spinner.enable_steady_tick(Duration::from_millis(250));
    let settled = system.settle().await;
    spinner.finish_and_clear();
    settled?;
    for (path, body) in data::names() {
        let send = async |request| system.send(request).await;
        request(send, "PATCH", &path, "application/json", body).await?;
    }

    if let Some((unfinished, stored)) = unfinished.zip(stored(directory)) {
        fs::rename(&unfinished, &stored)
            .with_context(|| format!("cannot rename {}", unfinished.display()))?;
    }
    Ok(())
}

/// Posts readings.
async fn post(
    send: impl AsyncFnOnce(Request<Vec<u8>>) -> anyhow::Result<Response<Vec<u8>>>,
    body: Vec<u8>,
) -> anyhow::Result<()> {
    request(send, "POST", "/readings", "application/x-ndjson", body).await.map(drop)
}

/// Stores further readings as time passes, for ever. After a failure, prints the error and sends the missing readings
/// again.
pub(crate) async fn go_on(system: &System) -> anyhow::Result<()> {
    let home = SampleHome::read()?;
    loop {
        let now = SystemClock.now();
        if let Err(error) = catch_up(system, &home, now).await {
            print_error(format_args!("the sample home does not go on: {error:#}"));
        }
        let next = now.saturating_add(data::until_next(now));
        loop {
            let rest = next.since(SystemClock.now()).to_std().unwrap_or_default();
            if rest.is_zero() {
                break;
            }
            tokio::time::sleep(rest.min(LONGEST_SLEEP)).await;
        }
    }
}

/// Stores the readings between the newest one of each device and `now`. A device that was deleted stays deleted.
async fn catch_up(system: &System, home: &SampleHome, now: Timestamp) -> anyhow::Result<()> {
    for device in home.devices() {
        let path = format!("/devices/{}/latest", device.id);
        let ask = Request::builder().uri(&path).body(Vec::new())?;
        let (parts, answer) = system.send(ask).await?.into_parts();
        match parts.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => continue,
            status => bail!("GET {path} answers {status}: {}", String::from_utf8_lossy(&answer)),
        }
        let latest: Value = serde_json::from_slice(&answer)?;
        let newest = latest["timestamp"].as_str().map(Timestamp::parse_absolute).transpose()?;
        let earliest = now.saturating_add(-data::LAP);
        let from = newest.map_or(earliest, |newest| newest.max(earliest));
        for body in device.requests(from, now) {
            post(async |request| system.send(request).await, body).await?;
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::given;
    use local::{Data, Options};

    use super::*;

    async fn newest(system: &System, device: &str) -> Option<String> {
        let path = format!("/devices/{device}/latest");
        let ask = Request::builder().uri(path).body(Vec::new()).unwrap();
        let answer = system.send(ask).await.unwrap().into_body();
        let latest: Value = serde_json::from_slice(&answer).unwrap();
        latest["timestamp"].as_str().map(str::to_owned)
    }

    #[test]
    fn devices_of_the_sample_home_are_known_by_their_names_and_a_meter_alone_is_none() {
        const METER: (&str, &str) = ("meter", "Smart meter");
        let named = |known: &'static [(&'static str, &'static str)]| {
            said_of(|id| known.iter().find(|it| it.0 == id).map(|it| it.1.to_owned()))
        };
        let said = named(&[METER, ("thermo-office", "Office thermometer")]).unwrap();
        assert!(said.contains("is imported: meter, thermo-office\n"), "{said}");
        assert_eq!(named(&[METER]), None);
        assert_eq!(named(&[("thermo-office", "Mine")]), None);
    }

    #[tokio::test]
    async fn what_time_has_passed_is_stored_once_and_a_device_that_is_gone_stays_away() {
        let options = Options { data: Data::Memory, port: 0, ..Options::default() };
        let system = System::start(options).await.unwrap();
        let home = SampleHome::read().unwrap();
        let now = SystemClock.now();
        let hour_ago = now.saturating_add(TimeDelta::hours(-1));
        let meter = home.devices().iter().find(|it| it.id == "meter").unwrap();
        let earlier = hour_ago.saturating_add(TimeDelta::minutes(-30));
        for body in meter.requests(earlier, hour_ago) {
            post(async |request| system.send(request).await, body).await.unwrap();
        }
        system.settle().await.unwrap();
        catch_up(&system, &home, now).await.unwrap();
        system.settle().await.unwrap();
        let at = newest(&system, "meter").await.unwrap();
        let age = now.since(given::at(&at));
        assert!(age < TimeDelta::minutes(10), "{at}");
        assert_eq!(newest(&system, "thermo-kitchen").await, None);
        catch_up(&system, &home, now).await.unwrap();
        assert_eq!(newest(&system, "meter").await.unwrap(), at);
        system.shutdown().await.unwrap();
    }
}
