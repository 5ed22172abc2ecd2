//! The command line of `roomtide import`. Opens no file.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use domain::{DeviceId, Timestamp};
use history::LineRules;
use history::address::is_http;

use super::upload::UploadOptions;
use crate::at::SystemAt;
use crate::client::Client;
use history::csv::columns::{Columns, Shape, TimestampColumn};
use history::csv::timestamp::{self, RowInterval, Zone};
use history::kind::{Format, NAMED};
use history::line_protocol::{Database, TimePrecision};

/// The end of the help: what is stored, and how an interrupted import continues.
const AFTER_HELP: &str = "\
Lines of one device and timestamp are one reading; for each metric the last line wins. A reading that the \
table already has is replaced; --merge keeps its other metrics, for files with one metric each.

A line or a cell that cannot be read is refused, and the import goes on. The exit code is 0 \
if everything is stored, 3 if something was refused, 4 if the table lacks something of the source, 2 if the command \
line cannot be parsed, 1 if the import stopped or could not begin, as where an option does not fit the file.

Each device's readings are sent in order of time, which keeps the cost of rollups low. So the import is \
sorted first; beyond 64 MB, in temporary files of the size of the inflated file (the environment variable \
TMPDIR names their directory).

Stored readings are read back and compared, value by value. A value that differs or is missing in the table is named.

When everything is stored, the import waits until series and energy include it, and says so; Ctrl-C ends \
the wait and loses nothing.

Run an interrupted import again and it continues where it stopped: its progress is kept beside the \
file, in FILE.roomtide-import, until it is complete. Then it is FILE.roomtide-report, with which \
--take-back takes the import back. If the table lacks readings that were stored, the import starts over. Importing twice changes nothing: the same reading is stored once.";

/// Post the readings of a file to a server, or store them into a directory.
///
/// Without --url and --data-dir they go to http://127.0.0.1:8080, if Roomtide answers there; else into the directory
/// roomtide-data, which is faster. A file with settings of devices or rooms, as a backup is, needs an admin's
/// token.
///
/// NDJSON has one reading a line, as `POST /readings` takes it, and may describe devices and rooms, as
/// `roomtide export` writes them. CSV has a header row, which shows the separator, and by default the
/// columns that Roomtide itself writes: timestamp, device_id, room, and one for each metric. Empty cells
/// and unavailable, unknown, none, null and nan hold no value. Line protocol, as influx_inspect export and influxd
/// inspect export-lp write it, and the states and hourly statistics of Home Assistant's database become what their
/// sender would have written. gzip is recognised by its first bytes. Every
/// reading needs a timestamp. Importing twice changes nothing.
#[derive(Debug, Clone, Args)]
#[expect(clippy::doc_markdown, reason = "help is shown as it stands")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ImportArgs {
    /// CSV (.csv, .tsv), NDJSON (.ndjson, .jsonl), line protocol (.lp) or Home Assistant's database, gzip or not, its
    /// backup, or the address of a running InfluxDB, such as http://NAME:PASSWORD@HOST:8086; - is standard input
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) at: SystemAt,
    /// The client of the target. `run` sets it.
    #[arg(skip)]
    pub(super) client: Option<Arc<Client>>,
    /// Check the whole file and estimate the cost, but send nothing
    #[arg(long, conflicts_with_all = ["url", "token", "data_dir", "again", "state"])]
    pub(super) dry_run: bool,
    /// Restore the rollups and stays of a file that `export --rollups` wrote, where the table of --data-dir or --table
    /// has none. The whole file is restored: no other option fits it
    #[arg(long, conflicts_with_all = [
        "url", "token", "dry_run", "take_back", "yes", "merge", "again", "state", "pace", "thin_before", "batch",
        "round", "format", "timestamp", "timestamp_format", "time_zone", "interval", "decimal_comma", "device", "device_id",
        "room", "metric", "map", "from", "to", "only", "except", "database", "source_token", "storage", "precision", "device_tags", "room_tag", "prefix",
    ])]
    pub(super) rollups: bool,
    /// Keep the other metrics of a reading that the table already has
    #[arg(long)]
    pub(super) merge: bool,
    /// Start at the first line even if an import of this file was interrupted
    #[arg(long)]
    pub(super) again: bool,
    /// The file that keeps the progress of the import, instead of one beside the imported file
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Take an import back. FILE is the report of the import, or its progress if it stopped. Deletes the readings that
    /// it stored, and new devices and rooms that have nothing else. The server is the one of the import, unless --url
    /// names a server
    #[arg(long, conflicts_with_all = [
        "data_dir", "table", "dry_run", "rollups", "merge", "again", "state", "pace", "thin_before", "batch", "round", "format",
        "timestamp", "timestamp_format", "time_zone", "interval", "decimal_comma", "device", "device_id", "room", "metric",
        "map", "from", "to", "only", "except", "database", "source_token", "storage", "precision", "device_tags", "room_tag",
        "prefix",
    ])]
    pub(super) take_back: bool,
    /// Take back without a question
    #[arg(long, requires = "take_back")]
    pub(super) yes: bool,
    /// The write units a second that the import and its rollups take from a table with bounded capacity; by default
    /// half of the table's units
    #[arg(long, value_name = "UNITS")]
    pub(super) pace: Option<NonZeroU32>,
    /// Before this time, such as 2024-01-01T00:00:00Z, keep only a few readings of a series for each 15 minutes.
    /// Counters keep the values by which energy is counted, powers become their mean by energy, other numbers their
    /// mean
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Sources")]
    pub(super) thin_before: Option<String>,
    /// The number of readings in a request, at most 10000
    #[arg(long, default_value = "500")]
    pub(super) batch: NonZeroUsize,
    /// The lines after which the progress is kept, if that is more than a few requests: fewer make a test short
    #[arg(long, default_value = "16000", hide = true)]
    pub(super) round: NonZeroUsize,
    /// The format of the file; by default from its content, or else from its name
    #[arg(long, value_parser = formats())]
    pub(super) format: Option<Format>,
    #[command(flatten)]
    pub(super) csv: CsvArgs,
    /// The time from which points of a database or of line protocol are imported, such as 2024-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Sources")]
    pub(super) from: Option<String>,
    /// The time before which points of a database or of line protocol are imported
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Sources")]
    pub(super) to: Option<String>,
    /// The series that are imported, by a pattern for an entity, a measurement or the value of a tag, such as
    /// 'sensor.living_*'; may be given several times
    #[arg(long, value_name = "GLOB", help_heading = "Sources")]
    pub(super) only: Vec<String>,
    /// The series, or the devices of CSV and NDJSON, and the metrics that are left out, by a pattern such as
    /// '*_linkquality'; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(super) except: Vec<String>,
    /// A database, or DATABASE.POLICY, to import; may be given several times. By default the only one, or an export's with
    /// the retention policy autogen: the output names it. A bucket of InfluxDB 2 is a database, too
    #[arg(long, value_name = "DATABASE", help_heading = "InfluxDB")]
    pub(super) database: Vec<Database>,
    /// The token of a running InfluxDB 2; @FILE reads it from a file
    #[arg(long, value_name = "TOKEN", help_heading = "InfluxDB")]
    pub(super) source_token: Option<String>,
    /// Home Assistant's directory .storage, or its parent: the names and areas of entities, which no database has. An area
    /// becomes the room of all its history
    #[arg(long, value_name = "DIR", help_heading = "Home Assistant")]
    pub(super) storage: Option<PathBuf>,
    /// The tags that identify a device, in this order, as the token of a live sender has them; by default all tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', help_heading = "InfluxDB")]
    pub(super) device_tags: Vec<String>,
    /// The tag that names a room; by default room, area or location
    #[arg(long, value_name = "TAG", help_heading = "InfluxDB")]
    pub(super) room_tag: Option<String>,
    /// The beginning of all ids, as the token of a live sender has it
    #[arg(long, value_name = "ID", help_heading = "InfluxDB")]
    pub(super) prefix: Option<DeviceId>,
    /// The unit of the timestamps: ns, us, ms or s
    #[arg(long, default_value = "ns", help_heading = "InfluxDB")]
    pub(super) precision: TimePrecision,
}

impl ImportArgs {
    /// Returns the address of the source, if the source is a running server.
    pub(super) fn address(&self) -> Option<&str> {
        let text = self.file.to_str()?;
        is_http(text).then_some(text)
    }

    /// The client of the target; a dry run has none.
    pub(super) fn client(&self) -> anyhow::Result<&Arc<Client>> {
        self.client.as_ref().context("a dry run asks no table")
    }

    /// Returns the format in which the file is read. With options for columns, a Shelly log is read as ordinary CSV.
    pub(super) fn read_as(&self, format: Format) -> Format {
        let is_mapped = self.csv.map.iter().any(|map| map.contains('='));
        let has_columns = self.csv.is_any_given(false, false) || is_mapped;
        if format == Format::Shelly && has_columns { Format::Csv } else { format }
    }

    /// Returns the options of an upload. Points are always merged, and the registry decides their rooms.
    pub(super) fn upload_options(&self, is_of_points: bool) -> UploadOptions {
        UploadOptions {
            batch: self.batch.get(),
            pace: self.pace.map(|units| f64::from(units.get())),
            keeps_rooms: !is_of_points,
            merge: is_of_points || self.merge,
        }
    }

    /// Returns the file of the map of series. For CSV, --map is not a file.
    pub(super) fn map_file(&self) -> Option<&Path> {
        self.csv.map.first().filter(|map| !map.contains('=')).map(Path::new)
    }

    /// Returns how lines become devices and rooms.
    pub(super) fn line_rules(&self) -> LineRules {
        let Self { device_tags, room_tag, prefix, .. } = self;
        LineRules {
            device_tags: device_tags.clone(),
            room_tag: room_tag.clone(),
            prefix: prefix.clone(),
        }
    }

    /// Returns the time before which points are thinned.
    pub(super) fn thin_before(&self, now: Timestamp) -> anyhow::Result<Option<Timestamp>> {
        let Some(text) = &self.thin_before else { return Ok(None) };
        let at = Timestamp::parse(text, now);
        Ok(Some(at.map_err(|why| anyhow::anyhow!("--thin-before: {why}"))?))
    }

    /// Refuses options that do not fit the kind of the file.
    pub(super) fn ensure_fit(&self, format: Format) -> anyhow::Result<()> {
        let file = self.file.display();
        if let Some(asked) = self.format.filter(|asked| !asked.is_also(format)) {
            bail!("{file} is {}; --format says that it is {}", format.name(), asked.name());
        }

        let has_points = format.has_points();
        let is_lines = format == Format::LineProtocol;
        let has_databases = is_lines || format == Format::InfluxDb;
        let is_csv_given = if has_points {
            self.csv.is_any_given(false, format != Format::Shelly)
        } else {
            matches!(format, Format::Ndjson | Format::ExportedLines)
                && self.csv.is_any_given(true, true)
        };

        let is_selected = self.from.is_some() || self.to.is_some() || !self.only.is_empty();
        let is_precise = self.precision != TimePrecision::default();
        let has_rules = self.line_rules() != LineRules::default();

        let unfit = [
            (is_csv_given, "the options for CSV do"),
            (!has_points && is_selected, "--from, --to and --only do"),
            (!has_databases && !self.database.is_empty(), "--database and --precision do"),
            (!is_lines && is_precise, "--database and --precision do"),
            (!has_databases && has_rules, "--device-tags, --room-tag and --prefix do"),
            (format != Format::InfluxDb && self.source_token.is_some(), "--source-token does"),
            (format != Format::HomeAssistant && self.storage.is_some(), "--storage does"),
            (!has_points && self.thin_before.is_some(), "--thin-before does"),
        ];

        if let Some((_, options)) = unfit.into_iter().find(|(is_unfit, _)| *is_unfit) {
            bail!("{file} is {}; {options} not fit it", format.name());
        }

        if has_points && self.csv.map.len() > 1 {
            bail!("--map: one file maps all series of {file}");
        }

        if has_points && self.merge {
            bail!("--merge: points are always merged with what the table has");
        }
        Ok(())
    }
}

/// Parses the name of a format.
fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(NAMED.map(|(name, _)| name)).map(|name| {
        let found = NAMED.into_iter().find(|(known, _)| *known == name);
        found.expect("clap has compared the name").1
    })
}

/// The columns of timestamps and of devices, if no option names them.
const TIMESTAMP: &str = "timestamp";
const DEVICE: &str = "device_id";

/// The columns of a CSV.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[expect(clippy::doc_markdown, reason = "help is shown as it stands")]
#[command(next_help_heading = "CSV")]
pub(super) struct CsvArgs {
    /// The column of the timestamps
    #[arg(long, value_name = "COLUMN", default_value = TIMESTAMP)]
    pub(super) timestamp: String,
    /// The format of the timestamps, such as '%Y/%m/%d %H:%M'; by default RFC 3339 or epoch
    #[arg(long, value_name = "FORMAT", value_parser = timestamp::format)]
    pub(super) timestamp_format: Option<String>,
    /// The time zone of times without an offset, such as Europe/Berlin or +01:00. A date alone is its
    /// midnight. The hour that a clock shows twice is resolved by the order of a device's lines, if they
    /// increase; otherwise its lines are refused
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(super) time_zone: Option<Zone>,
    /// The time of each row is the start of an interval of this length, such as 15m; its values are stored at the end
    /// of the interval
    #[arg(long, value_name = "LENGTH")]
    pub(super) interval: Option<RowInterval>,
    /// The decimal mark is a comma. By default it is one only if semicolons separate the columns and the
    /// first number with a mark has a comma
    #[arg(long)]
    pub(super) decimal_comma: bool,
    /// The column of the device ids
    #[arg(long, value_name = "COLUMN", default_value = DEVICE)]
    pub(super) device: String,
    /// The device of the whole file, instead of a column
    #[arg(long, value_name = "ID", conflicts_with = "device")]
    pub(super) device_id: Option<String>,
    /// The column of the room ids; by default `room`, if the file has it
    #[arg(long, value_name = "COLUMN")]
    pub(super) room: Option<String>,
    /// A metric and its column; by default every other column is a metric of its own name
    #[arg(long, value_name = "NAME=COLUMN")]
    pub(super) metric: Vec<String>,
    /// A device of a wide file, whose rows hold several devices:
    /// 'DEVICE@ROOM:temperature=T1,current_w=A+B*6,cumulative_kwh_p=total(A+B)*0.001'. Columns are added up, then multiplied;
    /// total() adds up the rows in order of time. For a database or line protocol, MAP is a file, which --dry-run writes
    /// with all series. In the file you choose series, and name the device and the room of each
    #[arg(long, value_name = "MAP", conflicts_with_all = ["device", "device_id", "room", "metric"])]
    pub(super) map: Vec<String>,
}

impl CsvArgs {
    /// Reads the columns that the options describe.
    pub(super) fn columns(&self) -> anyhow::Result<Columns> {
        let timestamp = TimestampColumn {
            name: self.timestamp.clone(),
            format: self.timestamp_format.clone(),
            zone: self.time_zone,
            interval: self.interval.unwrap_or_default(),
        };
        let shape = if self.map.is_empty() {
            let room = self.room.as_deref();
            Shape::long(self.device_id.as_deref(), &self.device, room, &self.metric)?
        } else {
            Shape::wide(&self.map)?
        };
        Ok(Columns { timestamp, shape, decimal_comma: self.decimal_comma })
    }

    /// Returns whether an option for columns differs from its default. The flags say whether --map and --device-id
    /// count.
    fn is_any_given(&self, with_map: bool, with_device_id: bool) -> bool {
        let default = Self {
            timestamp: TIMESTAMP.to_owned(),
            device: DEVICE.to_owned(),
            map: if with_map { Vec::new() } else { self.map.clone() },
            device_id: self.device_id.clone().filter(|_| !with_device_id),
            ..Self::default()
        };
        *self != default
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::parsed;

    #[test]
    fn no_option_is_ignored_that_does_not_fit() {
        let mut command = ImportArgs::augment_args(clap::Command::new("import"));
        command.build();
        let of = |id: &str| command.get_arguments().find(|it| it.get_id() == id).unwrap();
        for (option, fitting) in [
            ("rollups", ["data_dir", "table"].as_slice()),
            ("take_back", ["url", "token", "yes"].as_slice()),
        ] {
            let refused = command.get_arg_conflicts_with(of(option));
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let is_refused = refused.iter().any(|it| it.get_id() == id);
                let fits = fitting.contains(&id) || ["file", "help", option].contains(&id);
                assert_ne!(is_refused, fits, "{option} {id}");
            }
        }
    }

    #[test]
    fn a_time_may_be_relative() {
        let words = ["--from", "-24h", "--to", "-1h", "--thin-before", "-7d"];
        let words = ["import", "file"].iter().chain(&words);
        let args: ImportArgs = parsed(words).unwrap();
        let times = [args.from, args.to, args.thin_before].map(Option::unwrap);
        assert_eq!(times, ["-24h", "-1h", "-7d"]);
    }

    #[test]
    fn what_is_named_is_not_ignored() {
        let parse = |words: &[&str]| {
            let words = ["import", "file"].iter().chain(words);
            parsed::<ImportArgs>(words).map_err(|why| why.kind())
        };
        let conflict = clap::error::ErrorKind::ArgumentConflict;
        for other in [["--url", "http://127.0.0.1:8080"], ["--token", "t"]] {
            let words = [&["--data-dir", "roomtide-data"], &other[..]].concat();
            assert_eq!(parse(&words).unwrap_err(), conflict, "{words:?}");
        }
        for unused in ["--url http://a", "--token t", "--data-dir a", "--again", "--state a"] {
            let words: Vec<&str> = ["--dry-run"].into_iter().chain(unused.split(' ')).collect();
            assert_eq!(parse(&words).unwrap_err(), conflict, "{words:?}");
        }
        let wrong = parse(&["--timestamp-format", "%Q"]).unwrap_err();
        assert_eq!(wrong, clap::error::ErrorKind::ValueValidation);
        assert!(parse(&["--data-dir", "roomtide-data"]).unwrap().at.place.is_named());
        assert!(!parse(&[]).unwrap().at.place.is_named());
    }

    #[test]
    fn a_format_is_that_of_the_source() {
        for (file, format, is) in [
            ("http://pi:8086", "csv", Format::InfluxDb),
            ("x.tar", "home-assistant", Format::HomeAssistantBackup),
            ("x.db", "csv", Format::HomeAssistant),
            ("x.lp", "home-assistant", Format::ExportedLines),
            ("x.tar", "csv", Format::HomeAssistantBackup),
        ] {
            let args: ImportArgs = parsed(["import", file, "--format", format]).unwrap();
            let fits = args.ensure_fit(is).map_err(|why| why.to_string());
            let is_backup = (file, format) == ("x.tar", "home-assistant");
            assert_eq!(fits.is_ok(), is_backup, "{fits:?}");
            assert!(fits.err().is_none_or(|why| why.contains("--format says that it is ")));
        }
    }
}
