//! `roomtide status`: whether a system answers, its devices, and how far its rollups are. Changes nothing.

use domain::Timestamp;
use runtime::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};

use crate::at::{SystemAt, Unnamed};
use crate::client::{Ask, Client};
use crate::output::{counted, print};
use crate::pages::ListPages;

/// The maximum number of devices that are counted one by one.
const MAX_COUNTED: usize = 10_000;

/// The command line of `roomtide status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    at: SystemAt,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// The answer for the person; its members are those of --json.
#[derive(Serialize)]
struct Status {
    system: String,
    devices: usize,
    more_devices: bool,
    /// The timestamp of the newest reading.
    newest_reading: Option<String>,
    /// The end of the time that is rolled up; `None` if nothing is rolled up yet.
    folded_until: Option<String>,
    time_zone: Option<String>,
    command_version: &'static str,
}

/// A device of the list.
#[derive(Deserialize)]
struct ReportingDevice {
    latest: Option<NewestReading>,
}

/// The newest reading of a device.
#[derive(Deserialize)]
struct NewestReading {
    timestamp: Option<String>,
}

/// Asks the system, and prints the answer.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let status = args.at.work(Unnamed::Data, ask)?;
    if args.json {
        print(serde_json::to_string(&status)?);
    } else {
        print(status.as_text(SystemClock.now()));
    }
    Ok(())
}

fn ask(client: &Client) -> anyhow::Result<Status> {
    let health = client.value(Ask::get("/health?details=1"), "rollups")?;
    let text = |name: &str| health["rollups"][name].as_str().map(str::to_owned);
    let mut status = Status {
        system: client.url().to_owned(),
        devices: 0,
        more_devices: false,
        newest_reading: None,
        folded_until: text("folded_until"),
        time_zone: text("tz"),
        command_version: env!("ROOMTIDE_VERSION"),
    };

    for page in ListPages::<ReportingDevice>::of(client, "/devices?latest=true", 1_000) {
        let page = page?;
        status.more_devices = status.devices >= MAX_COUNTED;
        if status.more_devices {
            break;
        }
        status.devices += page.len();
        let newest = page.into_iter().filter_map(|device| device.latest?.timestamp).max();
        status.newest_reading = status.newest_reading.max(newest);
    }

    Ok(status)
}

impl Status {
    fn as_text(&self, now: Timestamp) -> String {
        let more = if self.more_devices { " and more" } else { "" };
        let devices = format!("{}{more}", counted(self.devices as u64, "device"));
        let newest = self.newest_reading.as_deref().map_or("none".to_owned(), |at| since(at, now));
        let rollups = match (&self.folded_until, &self.time_zone) {
            (Some(until), Some(zone)) => format!("until {}, days of {zone}", since(until, now)),
            _ => "none yet".to_owned(),
        };
        format!(
            "{} answers\n  devices  {devices}\n  newest   {newest}\n  rollups  {rollups}\n  command  {}",
            self.system, self.command_version
        )
    }
}

/// A time, and its distance from now in words.
fn since(at: &str, now: Timestamp) -> String {
    let Ok(then) = Timestamp::parse_absolute(at) else { return at.to_owned() };
    let minutes = (now.as_millis() - then.as_millis()) / 60_000;
    let length = match minutes.unsigned_abs() {
        0 => return format!("{at} (now)"),
        minutes @ 1..120 => format!("{minutes} minutes"),
        minutes @ 120..2880 => format!("{} hours", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
    };
    if minutes > 0 { format!("{at} ({length} ago)") } else { format!("{at} (in {length})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;
    use domain::given;

    #[test]
    fn what_something_else_answers_is_no_status() {
        for (health, devices, path) in [
            ("{}", r#"{"data": []}"#, "/health"),
            ("<html>", r#"{"data": []}"#, "/health"),
            (r#"{"rollups": null}"#, "{}", "/devices"),
            (r#"{"rollups": null}"#, "[]", "/devices"),
        ] {
            let server = fake_server::serve(move |_, request| {
                let answer = match &*request.path {
                    client::READY => r#"{"status":"ready","up":"0s"}"#,
                    path if path.starts_with("/health") => health,
                    _ => devices,
                };
                Reply::of(200, answer)
            });
            let words = ["status", "--url", &server.url];
            let error = format!("{:#}", run(&parsed(words).unwrap()).unwrap_err());
            let expected = format!("{}{path} answers 200, but not as Roomtide does", server.url);
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_time_is_told_with_its_age() {
        let now = given::at("2026-01-11T16:00:00Z");
        for (at, ago) in [
            ("2026-01-11T15:59:30.000Z", "now"),
            ("2026-01-11T15:00:00.000Z", "60 minutes ago"),
            ("2026-01-11T10:00:00.000Z", "6 hours ago"),
            ("2026-01-01T10:00:00.000Z", "10 days ago"),
            ("2026-01-11T16:00:30.000Z", "now"),
            ("2026-01-11T19:00:00.000Z", "in 3 hours"),
            ("2026-01-19T17:00:00.000Z", "in 8 days"),
        ] {
            assert_eq!(since(at, now), format!("{at} ({ago})"));
        }
    }
}
