//! `roomtide serve`: runs the system until Ctrl-C. Stores nothing itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::Context as _;
use api::FrameAncestors;
use aws::StoreConfig;
use domain::{Timestamp, Zone};
use local::{Burst, Data, Options, System};
use outgoing::{Reach, Url};
use runtime::config::EARLIEST_TIMESTAMP;
use runtime::telemetry::Telemetry;
use table::shards::Shards;

use crate::at::DATA_DIR;
use crate::here::machine_zone;
use crate::interrupted::stop_signal;
use crate::output::print;
use crate::{greeting, sample_home};

/// The command line of `roomtide serve`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// The IP address to listen on, such as 0.0.0.0 for all; any but loopback needs --auth
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Ask for access tokens, as the deployed system does; see `roomtide token`
    #[arg(long)]
    auth: bool,
    /// An origin whose pages may show this one in a frame, such as `http://homeassistant.local:8123`; repeat it for several
    #[arg(long, value_name = "ORIGIN")]
    frame_ancestors: Vec<FrameAncestors>,
    /// The port
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// A second port, at which readings are stored and nothing is read: as on AWS, where each function has an address
    /// of its own. The first one then stores none
    #[arg(long, value_name = "PORT", hide = true)]
    ingest_port: Option<u16>,
    /// The directory of the data, by default roomtide-data
    // No default value: clap would use it in every command that has an option of this name.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep the data in memory until the process ends; not with --auth, whose tokens are in the data
    #[arg(long, conflicts_with_all = ["data_dir", "auth"])]
    pub(crate) memory: bool,
    /// Start with an empty table, without the sample home. A sample home that is stored gets no further readings
    #[arg(long)]
    pub(crate) empty: bool,
    /// Show the access key of the engine, with which any DynamoDB client reads and writes the data
    #[arg(long, hide = true)]
    print_engine_key: bool,
    /// Refuse readings before this time, because such clocks were never set
    #[arg(
        long,
        value_name = "TIMESTAMP",
        default_value = EARLIEST_TIMESTAMP,
        value_parser = Timestamp::parse_absolute,
        hide = true
    )]
    earliest_timestamp: Timestamp,
    /// The time zone of the days by which readings are summed up, such as Europe/Berlin; by default this
    /// machine's. It counts at the first start only
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<Zone>,
    /// Make or remove the index of attributes, which searches need beyond 10,000 devices; then run
    /// `roomtide reindex`. Without this option the table stays as it is
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    attribute_index: Option<String>,
    /// The number of partitions of the registry's devices, from 1 to 64; the first device fixes it
    #[arg(long, value_name = "N", hide = true)]
    device_shards: Option<Shards>,
    /// Make or remove the index by conditions; see PUT /conditions/schema. Without this option the table stays
    /// as it is
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    conditions_index: Option<String>,
    /// Refuse what the deployed table would have no provisioned units for: with a burst of 300 seconds (full), or
    /// without one (none)
    #[arg(long, value_name = "none|full", value_parser = burst, hide = true)]
    provisioned: Option<Burst>,
    /// The address at which others reach the page, for the links in messages of alerts; by default the one it listens on
    #[arg(long, value_name = "URL", value_parser = page_url)]
    page_url: Option<String>,
    /// An address that is asked every five minutes, such as a check at healthchecks.io that tells you when it is not
    #[arg(long, value_name = "URL", value_parser = heartbeat)]
    heartbeat: Option<Url>,
    /// Print one line of JSON for each invocation of a function
    #[arg(long)]
    log: bool,
}

/// Parses the address of the page: a host, perhaps with a path.
fn page_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text, Reach::Local).map_err(|why| why.to_string())?;
    match url.uri().query() {
        Some(_) => Err("has more than a host and a path".to_owned()),
        None => Ok(url.uri().to_string().trim_end_matches('/').to_owned()),
    }
}

/// Parses the address of a heartbeat.
fn heartbeat(text: &str) -> Result<Url, String> {
    Url::parse(text, Reach::Local).map_err(|why| why.to_string())
}

/// Parses the burst of a table with provisioned capacity.
fn burst(text: &str) -> Result<Burst, String> {
    match text {
        "none" => Ok(Burst::None),
        "full" => Ok(Burst::Full),
        _ => Err("expected none or full".to_owned()),
    }
}

/// Serves until the process gets a signal to stop.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let data_dir = args.data_dir.unwrap_or_else(|| DATA_DIR.into());
    let directory = (!args.memory).then_some(data_dir);
    let options = Options {
        data: directory.clone().map_or(Data::Memory, Data::Dir),
        host: args.host,
        port: args.port,
        ingest_port: args.ingest_port,
        auth: args.auth,
        frame_ancestors: args.frame_ancestors.into_iter().collect(),
        earliest_timestamp: args.earliest_timestamp,
        time_zone: args.time_zone.unwrap_or_else(machine_zone),
        attribute_index: args.attribute_index.map(|word| word == "on"),
        device_shards: args.device_shards,
        conditions_index: args.conditions_index.map(|word| word == "on"),
        provisioned: args.provisioned,
        page_url: args.page_url,
        heartbeat: args.heartbeat,
        telemetry: if args.log { Telemetry::stdout() } else { Telemetry::silent() },
        ..Options::default()
    };
    let signal = stop_signal()?;
    let system = System::start(options).await?;
    print(format_args!("Roomtide listens on {}", system.url()));
    if args.host.is_unspecified()
        && let (Ok(ip), Some((_, port))) =
            (outward_address(args.host), system.url().rsplit_once(':'))
    {
        let address = SocketAddr::new(ip, port.parse()?);
        print(format_args!("  others  http://{address}, from other machines"));
    }
    if let Some(url) = system.ingest_url() {
        print(format_args!("  ingest  {url}, where readings are stored"));
    }
    match &directory {
        Some(_) => print(format_args!("  data    {}", system.data_file().display())),
        None => print("  data    in memory, gone when this ends"),
    }
    let StoreConfig { table, credentials, .. } = system.store_config();
    let key = if args.print_engine_key {
        format!("access key {}", credentials.access_key_id)
    } else {
        "--print-engine-key shows its access key".to_owned()
    };
    let endpoint = system.engine_endpoint();
    print(format_args!("  engine  {endpoint} (DynamoDB API, table {table}; {key})"));
    let zone = system.time_zone();
    match args.time_zone {
        Some(asked) if asked.name() != zone => print(format_args!(
            "  zone    {zone}, since the first start; --time-zone {} is not used",
            asked.name()
        )),
        _ => print(format_args!("  zone    {zone}")),
    }
    let sample = if args.empty {
        Sample::Absent
    } else if sample_home::is_wanted(&system, directory.as_deref())? {
        Sample::Wanted
    } else if sample_home::is_stored(directory.as_deref()) {
        Sample::Stored
    } else {
        Sample::Absent
    };
    let result = tokio::select! {
        result = greet(&system, directory, sample, args.auth) => result,
        () = signal => Ok(()),
    };
    print("Stopping.");
    system.shutdown().await?;
    result
}

/// The address by which other machines reach this one. Sends nothing: a datagram socket only looks up the route.
fn outward_address(any: IpAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((any, 0))?;
    // An address reserved for documentation, which nobody uses.
    let elsewhere: IpAddr = match any {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    socket.connect((elsewhere, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The state of the sample home in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    /// The sample home is to be stored.
    Wanted,
    /// An earlier start stored the sample home.
    Stored,
    /// The table has no sample home.
    Absent,
}

/// Fills an empty table, shows the greeting, and then keeps the sample home up to date for ever.
async fn greet(
    system: &System,
    directory: Option<PathBuf>,
    sample: Sample,
    auth: bool,
) -> anyhow::Result<()> {
    if sample == Sample::Wanted {
        sample_home::fill(system, directory.as_deref())
            .await
            .context("the sample home cannot be stored")?;
    }
    print(greeting::what_to_try(system, directory.as_deref().filter(|_| auth)).await?);
    if sample == Sample::Absent {
        return std::future::pending().await;
    }
    sample_home::go_on(system).await
}
