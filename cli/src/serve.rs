//! `roomtide serve`: runs the system until Ctrl-C. Stores nothing itself.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::Context as _;
use api::FrameAncestors;
use aws::StoreConfig;
use domain::{Timestamp, Zone};
use dynamodb::DynamoStore;
use local::{Burst, Data, Options, System};
use outgoing::{Reach, Url};
use runtime::config::EARLIEST_TIMESTAMP;
use runtime::telemetry::Telemetry;
use table::shards::Shards;

use crate::at::LAYOUT;
use crate::defaults::DATA_DIR;
use crate::greeting::{ExampleToken, own_name, quoted};
use crate::here::machine_zone;
use crate::interrupted::stop_signal;
use crate::output::print;
use crate::sample_home::{self, SampleState};
use crate::{greeting, token};

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
    /// An origin whose pages may show Roomtide's page in a frame, such as `http://homeassistant.local:8123`; repeat it
    /// for several
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
    /// The time zone of the days by which readings are summed up, such as Europe/Berlin; by default the zone in the
    /// variable TZ, or else this machine's. It counts at the first start only
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
    /// The address of the page for others, in messages of alerts and in the link of the first start; by default the
    /// address of this server
    #[arg(long, value_name = "URL", value_parser = page_url)]
    page_url: Option<String>,
    /// An address to ask every five minutes, such as a check at healthchecks.io, which tells you when the requests stop
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

impl Args {
    /// The directory of the data; `None` in memory.
    fn directory(&self) -> Option<PathBuf> {
        let directory = self.data_dir.clone().unwrap_or_else(|| DATA_DIR.into());
        (!self.memory).then_some(directory)
    }

    /// The options of the system.
    fn options(&self) -> Options {
        Options {
            data: self.directory().map_or(Data::Memory, Data::Dir),
            host: self.host,
            port: self.port,
            ingest_port: self.ingest_port,
            auth: self.auth,
            frame_ancestors: self.frame_ancestors.iter().cloned().collect(),
            earliest_timestamp: self.earliest_timestamp,
            time_zone: self.time_zone.unwrap_or_else(machine_zone),
            attribute_index: self.attribute_index.as_ref().map(|index| index == "on"),
            device_shards: self.device_shards,
            conditions_index: self.conditions_index.as_ref().map(|index| index == "on"),
            provisioned: self.provisioned,
            page_url: self.page_url.clone(),
            command: Some(own_name()),
            data_option: self.data_dir.as_ref().map(|directory| {
                format!("--data-dir {}", quoted(&directory.display().to_string()))
            }),
            heartbeat: self.heartbeat.clone(),
            telemetry: if self.log { Telemetry::stdout() } else { Telemetry::silent() },
            ..Options::default()
        }
    }
}

/// Serves until the process gets a signal to stop.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let signal = stop_signal()?;
    let system = System::start(args.options()).await?;
    announce(&system, &args)?;
    let sample = if args.empty {
        SampleState::Absent
    } else {
        SampleState::of(&system, args.directory().as_deref())?
    };

    let result = tokio::select! {
        result = greet(&system, &args, sample) => result,
        () = signal => Ok(()),
    };

    print("Stopping.");
    system.shutdown().await?;
    result
}

/// Says where the system is reached, where its data are, and in which zone its days are.
fn announce(system: &System, args: &Args) -> anyhow::Result<()> {
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

    if args.memory {
        print("  data    in memory, gone when this ends");
    } else {
        print(format_args!("  data    {}", system.data_file().display()));
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

    Ok(())
}

/// The address of this machine in its network. Sends nothing: a datagram socket only looks up the route.
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

/// Fills an empty table, shows the greeting, and then keeps the sample home up to date for ever.
async fn greet(system: &System, args: &Args, sample: SampleState) -> anyhow::Result<()> {
    let directory = args.directory();
    let url = args.page_url.as_deref().unwrap_or(system.url());
    let secret = link(system, args, url).await?;

    if sample == SampleState::Wanted {
        sample_home::fill(system, directory.as_deref())
            .await
            .context("the sample home cannot be stored")?;
    }

    let token = match (&secret, &directory) {
        (Some(secret), _) => ExampleToken::Made(secret),
        (None, Some(directory)) if args.auth => ExampleToken::OfCommand(directory),
        _ => ExampleToken::NotNeeded,
    };
    print(greeting::what_to_try(system, url, token).await?);
    if sample == SampleState::Absent {
        return std::future::pending().await;
    }
    sample_home::go_on(system).await
}

/// Prints the link of the page with a new token, if the table has none and nobody sits before the terminal who could
/// make one: under systemd or in a container. Returns the token.
async fn link(system: &System, args: &Args, url: &str) -> anyhow::Result<Option<String>> {
    if !args.auth || io::stdout().is_terminal() {
        return Ok(None);
    }
    let store = DynamoStore::connect(system.store_config(), LAYOUT);
    let secret = token::first_link(&store).await?;
    if let Some(secret) = &secret {
        let link = format!("{url}/#") + "token=" + secret;
        print(format_args!(
            "\nThe page by a link that may do everything. It is shown only this once:\n\n  {link}"
        ));
    }
    Ok(secret)
}
