//! `roomtide status`: whether a system answers, its devices, and how far its rollups are. Changes nothing.

use domain::Timestamp;
use runtime::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::client::without_login;
use crate::output::{counted, print};
use crate::place::Place;
use crate::source_api::{SourceApi, cursor_after};

/// The maximum number of devices that are counted one by one.
const MAX_COUNTED: usize = 10_000;

/// The command line of `roomtide status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// A server, instead of the local data
    #[arg(long, conflicts_with_all = ["data_dir", "table"])]
    url: Option<String>,
    /// An access token for that server; @FILE reads it from a file
    // A conflict declared on `url` itself would cancel this requirement.
    #[arg(long, requires = "url", conflicts_with_all = ["data_dir", "table"])]
    token: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// The answer for the person.
struct Status {
    system: String,
    devices: usize,
    has_more: bool,
    /// The timestamp of the newest reading.
    newest: Option<String>,
    /// The end of the time that is rolled up; `None` if nothing is rolled up yet.
    folded_until: Option<String>,
    time_zone: Option<String>,
}

/// Asks the system, and prints the answer.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let deployed = args.place.deployed()?;
    let system = match (&args.url, &deployed) {
        (Some(url), _) => without_login(url),
        (None, Some(config)) => format!("table {} in {}", config.table, config.region),
        (None, None) => format!("data in {}", args.place.data_dir().display()),
    };
    let api = SourceApi::of(args.url.as_deref(), args.token.as_deref(), &args.place).await?;
    let asked = ask(system, &api).await;
    api.close().await?;
    let status = asked?;
    if args.json {
        print(status.as_json());
    } else {
        print(status.as_text(SystemClock.now()));
    }
    Ok(())
}

async fn ask(system: String, api: &SourceApi) -> anyhow::Result<Status> {
    let health = api.get("/health?details=1", "rollups").await?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (mut devices, mut newest) = (0, None);
    let mut has_more = false;
    let all = "/devices?limit=1000&latest=true";
    let (mut path, mut before) = (all.to_owned(), None);
    loop {
        let page = api.get(&path, "data").await?;
        let rows = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        devices += rows.len();
        let of_page = rows.iter().filter_map(|row| row["latest"]["timestamp"].as_str()).max();
        newest = newest.max(of_page.map(str::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        if devices >= MAX_COUNTED {
            has_more = true;
            break;
        }
        path = format!("{all}&cursor={}", cursor_after(before.as_deref(), cursor, all)?);
        before = Some(cursor.to_owned());
    }
    Ok(Status {
        system,
        devices,
        has_more,
        newest,
        folded_until: text(&health["rollups"]["folded_until"]),
        time_zone: text(&health["rollups"]["tz"]),
    })
}

impl Status {
    fn as_text(&self, now: Timestamp) -> String {
        let more = if self.has_more { " and more" } else { "" };
        let devices = format!("{}{more}", counted(self.devices as u64, "device"));
        let newest = self.newest.as_deref().map_or("none".to_owned(), |at| since(at, now));
        let rollups = match (&self.folded_until, &self.time_zone) {
            (Some(until), Some(zone)) => format!("until {}, days of {zone}", since(until, now)),
            _ => "none yet".to_owned(),
        };
        format!(
            "{} answers\n  devices  {devices}\n  newest   {newest}\n  rollups  {rollups}\n  command  {}",
            self.system,
            env!("ROOMTIDE_VERSION")
        )
    }

    fn as_json(&self) -> Value {
        json!({
            "system": self.system,
            "devices": self.devices,
            "more_devices": self.has_more,
            "newest_reading": self.newest,
            "folded_until": self.folded_until,
            "time_zone": self.time_zone,
            "command_version": env!("ROOMTIDE_VERSION"),
        })
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
    use crate::fake_server::{self, Reply};
    use crate::tests::parsed;
    use domain::given;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_something_else_answers_is_no_status() {
        for (health, devices, path) in [
            ("{}", r#"{"data": []}"#, "/health"),
            ("<html>", r#"{"data": []}"#, "/health"),
            (r#"{"rollups": null}"#, "{}", "/devices"),
            (r#"{"rollups": null}"#, "[]", "/devices"),
        ] {
            let server = fake_server::serve(move |_, request| {
                let is_health = request.path.starts_with("/health");
                Reply::of(200, if is_health { health } else { devices })
            });
            let words = ["status", "--url", &server.url];
            let error = format!("{:#}", run(parsed(words).unwrap()).await.unwrap_err());
            let expected = format!("{}{path} answers 200, but not as Roomtide does", server.url);
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_list_whose_pages_never_end_is_left() {
        let server = fake_server::serve(|n, request| {
            assert!(n < 20, "for ever");
            let is_health = request.path.starts_with("/health");
            let page = r#"{"data": [], "next_cursor": "c"}"#;
            Reply::of(200, if is_health { r#"{"rollups": null}"# } else { page })
        });
        let words = ["status", "--url", &server.url];
        let error = run(parsed(words).unwrap()).await.unwrap_err().to_string();
        assert!(error.contains("its pages would never end"), "{error}");
    }

    #[test]
    fn a_token_is_for_a_server() {
        for place in [["--data-dir", "never"], ["--table", "never"]] {
            let words = ["status", "--token", "t"].into_iter().chain(place);
            let error = parsed::<Args>(words).unwrap_err().to_string();
            assert!(error.contains("--token"), "{error}");
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
