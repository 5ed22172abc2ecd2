//! Tests of what is read of Emoncms' files, written as its engines write them.

use std::io::Write as _;

use super::*;

/// A meta file, as `create_meta` writes it.
fn meta(interval: u32, start: u32) -> Vec<u8> {
    [0, 0, interval, start].iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
}

fn values(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn rows(rows: &[(u32, f32)]) -> Vec<u8> {
    let row =
        |(at, value): &(u32, f32)| [&[249][..], &at.to_le_bytes(), &value.to_le_bytes()].concat();
    rows.iter().flat_map(row).collect()
}

const LIST: &str = r#"[{"id":"1","userid":"1","name":"use, all","tag":"Haus 1","public":"","size":"16","engine":"5","unit":"W"},
    {"id":2,"name":"use_kwh","tag":"Haus 1","engine":5,"unit":"kWh"},
    {"id":"3","name":"Küche","tag":"","engine":"2","unit":"°C","time":1,"value":2},
    {"id":"4","name":"use_kwhd","tag":"Haus 1","engine":"5","unit":"kWh"},
    {"id":"9","name":"virtual","tag":"Haus 1","engine":"7","unit":""}]"#;

const DUMP: &str = "CREATE TABLE `feeds` (\n  `id` int(11),\n  `name` text,\n  `userid` int,\n  `tag` text,\n  `engine` int,\n  `unit` varchar(10)\n);\n\
    INSERT INTO `feeds` VALUES (1,'use, all',1,'Haus 1',5,'W'),(2,'use_kwh',1,'Haus 1',5,'kWh'),(3,'Küche',1,'',2,'°C'),\
    (4,'use_kwhd',1,'Haus 1',5,'kWh'),(9,'virtual',1,'Haus 1',7,NULL);\n";

type Written = Vec<(&'static str, Vec<u8>)>;

fn feeds() -> Written {
    vec![
        ("phpfina/1.meta", meta(10, 1_500_000_000)),
        ("phpfina/1.dat", values(&[0.1, f32::NAN, 250.3, f32::INFINITY])),
        ("phpfina/2.dat", values(&[7_000.55, 7_001.5])),
        ("phpfina/2.meta", meta(10, 1_500_000_000)),
        ("phptimeseries/feed_3.MYD", rows(&[(1_500_000_005, 21.7), (1_500_000_065, -3.0)])),
        ("phpfina/4.meta", meta(86_400, 1_500_000_000)),
        ("phpfina/4.dat", values(&[8.5])),
        ("phpfina/5.meta", meta(10, 0)),
        ("phpfina/5.dat", Vec::new()),
        ("phpfiwa/6.meta", meta(10, 1)),
        ("phpfiwa/6.dat", values(&[1.0])),
    ]
}

fn directory(files: &Written) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    directory
}

/// The lines, what is noted, and what is refused.
fn told(source: Source) -> (Vec<String>, String, Vec<String>) {
    let points: Vec<Point> = source.points.collect::<anyhow::Result<_>>().unwrap();
    let line = |point: &Point| {
        let (key, value) = &point.fields[0];
        format!("{} {key}={value} {}", point.series(), point.nanos / SECOND)
    };
    let lines = points.iter().map(line).collect();
    (lines, source.notes.to_string(), source.notes.take_refusals().shown())
}

fn read(files: &Written) -> (Vec<String>, String, Vec<String>) {
    told(open_directory(directory(files).path()).unwrap())
}

fn expected() -> Vec<&'static str> {
    vec![
        "use\\,\\ all,node=Haus\\ 1 value=0.1 1500000000",
        "use\\,\\ all,node=Haus\\ 1 value=250.3 1500000020",
        "use_kwh,node=Haus\\ 1 value=7000.55 1500000000",
        "use_kwh,node=Haus\\ 1 value=7001.5 1500000010",
        "Küche value=21.7 1500000005",
        "Küche value=-3 1500000065",
        "use_kwhd,node=Haus\\ 1 value=8.5 1500000000",
    ]
}

#[test]
fn feeds_are_read_with_their_names_nodes_and_shortest_digits() {
    for (name, text) in [("feed/list.json", LIST), ("emoncms.sql", DUMP)] {
        let mut files = feeds();
        files.push((name, text.as_bytes().to_vec()));
        let directory = directory(&files);
        let source = open_directory(directory.path()).unwrap();
        let units = source.units.clone();
        let (lines, notes, refused) = told(source);
        assert_eq!(lines, expected());
        let left_out = [
            "feeds        5 of Emoncms",
            "left out     1 feeds without a file here, virtual",
            "left out     1 feeds without a value",
            "left out     1 gaps of feeds",
            "left out     1 values of feeds that are not finite",
        ];
        assert_eq!((notes, refused), (left_out.join("\n"), vec![]));
        let mut point =
            Feed::new(2, &Described::default(), &mut BTreeSet::new()).at(0, String::new());
        let mut known = |series: &str| {
            point.measurement = series.to_owned();
            units.see(series, &point);
            units.seen().pop().map(|(_, known)| (known.unit, known.is_counter))
        };
        let is = |unit: &str, is_counter| Some((unit.to_owned(), is_counter));
        assert_eq!(known("Küche"), is("°C", false));
        assert_eq!(known("use_kwh,node=Haus\\ 1"), is("kWh", true));
        assert_eq!(known("use_kwhd,node=Haus\\ 1"), is("kWh", false), "one value a day");
    }
}

#[test]
fn without_a_list_a_feed_is_called_by_its_number() {
    let (lines, notes, _) = read(&feeds());
    assert_eq!(lines[0], "feed_1 value=0.1 1500000000");
    assert!(notes.contains("names        there is no feed/list.json"), "{notes}");
}

#[test]
fn feeds_of_two_users_with_the_same_name_stay_apart() {
    let mut files = feeds();
    files.push((
        "list.json",
        br#"[{"id":1,"name":"a","tag":"n"},{"id":2,"name":"a","tag":"n"}]"#.to_vec(),
    ));
    let (lines, ..) = read(&files);
    assert!(
        lines[0].starts_with("a,node=n ") && lines[2].starts_with("a,feed=2,node=n "),
        "{lines:?}"
    );
}

#[test]
fn an_archive_is_read_in_any_order_and_a_cut_one_is_not() {
    let mut files = feeds();
    files.reverse();
    files.push(("emoncms.sql", DUMP.as_bytes().to_vec()));
    files.push(("emonhub.conf", b"[hub]".to_vec()));
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, &**bytes).unwrap();
    }
    let bytes = builder.into_inner().unwrap();
    assert_eq!(crate::import::kind::of_archive(&*bytes), crate::import::kind::Format::Emoncms);
    let (lines, ..) = told(open_archive(&*bytes, Path::new("b.tar")).unwrap());
    assert_eq!(lines, expected());
    let error = format!("{:#}", open_archive(&bytes[..3_000], Path::new("b.tar")).err().unwrap());
    assert!(
        error.starts_with("b.tar cannot be unpacked") && error.contains("is it whole"),
        "{error}"
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let cut = flate2::read::GzDecoder::new(&gzip[..gzip.len() / 2]);
    assert!(open_archive(cut, Path::new("b.tar.gz")).is_err());
}

#[test]
fn of_a_feed_in_two_engines_its_own_is_read_and_the_other_counted() {
    let both = |engine: &str| {
        let mut files = feeds();
        files.push(("phpfina/3.meta", meta(10, 1_500_000_000)));
        files.push(("phpfina/3.dat", values(&[5.5])));
        let list = format!(r#"[{{"id":"3","name":"t","engine":"{engine}"}}]"#);
        files.push(("list.json", list.into_bytes()));
        let (lines, notes, _) = read(&files);
        let of_feed = lines.into_iter().filter(|line| line.starts_with("t value"));
        (of_feed.collect::<Vec<_>>(), notes)
    };
    let rows = ["t value=21.7 1500000005", "t value=-3 1500000065"];
    for (engine, expected, left_out) in [
        ("5", &["t value=5.5 1500000000"][..], "PHPTimeSeries of feed 3, whose engine is PHPFina"),
        ("2", &rows, "PHPFina of feed 3, whose engine is PHPTimeSeries"),
        ("", &rows, "PHPFina of feed 3, which is in PHPTimeSeries, too, and nothing tells"),
    ] {
        let (lines, notes) = both(engine);
        assert_eq!(lines, expected, "{engine}");
        assert!(notes.contains(&format!("left out     1 files of {left_out}")), "{notes}");
    }
}

/// What is read of an archive with these entries beside a feed's meta file: the lines and what is refused, or the error.
fn read_entries(
    entries: impl FnOnce(&mut tar::Builder<Vec<u8>>),
) -> Result<(Vec<String>, Vec<String>), String> {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "phpfina/1.meta", &meta(10, 1_500_000_000));
    entries(&mut builder);
    let bytes = builder.into_inner().unwrap();
    let source = open_archive(&*bytes, Path::new("b.tar")).map_err(|error| format!("{error:#}"))?;
    let (lines, _, refused) = told(source);
    Ok((lines, refused))
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    builder.append_data(&mut header, name, bytes).unwrap();
}

fn append_link(
    builder: &mut tar::Builder<Vec<u8>>,
    kind: tar::EntryType,
    name: &str,
    target: &str,
) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    builder.append_link(&mut header, name, target).unwrap();
}

/// As tar --sparse packs it: a hole of a block, and a value behind it.
#[test]
fn a_sparse_file_has_its_holes() {
    let bytes = values(&[2.5]);
    let read = read_entries(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_path("phpfina/1.dat").unwrap();
        header.set_entry_type(tar::EntryType::GNUSparse);
        header.set_size(bytes.len() as u64);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.sparse[0].offset.copy_from_slice(b"00000001000\0");
        gnu.sparse[0].numbytes.copy_from_slice(b"00000000004\0");
        gnu.realsize.copy_from_slice(b"00000001004\0");
        header.set_cksum();
        builder.append(&header, &*bytes).unwrap();
    });
    let (lines, refused) = read.unwrap();
    assert_eq!(refused, Vec::<String>::new());
    assert_eq!(lines.len(), 129);
    assert_eq!(lines[128], "feed_1 value=2.5 1500001280");
}

#[test]
fn a_link_is_its_file_or_says_that_it_is_none() {
    let (hard, symbolic) = (tar::EntryType::Link, tar::EntryType::Symlink);
    let read = read_entries(|builder| {
        append(builder, "phpfina/2.dat", &values(&[2.5]));
        append(builder, "phpfina/2.meta", &meta(10, 1_500_000_000));
        append_link(builder, hard, "phpfina/1.dat", "phpfina/2.dat");
    });
    let (lines, refused) = read.unwrap();
    assert_eq!(refused, Vec::<String>::new());
    assert_eq!(lines, ["feed_1 value=2.5 1500000000", "feed_2 value=2.5 1500000000"]);

    for (kind, target) in [(hard, "phpfina/9.dat"), (hard, "notes.txt"), (symbolic, "2.dat")] {
        let error = read_entries(|builder| {
            append(builder, "phpfina/2.dat", &values(&[2.5]));
            append_link(builder, kind, "phpfina/1.dat", target);
        });
        let expected = format!("b.tar: phpfina/1.dat is a link to {target}, whose bytes are not");
        let error = error.unwrap_err();
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn of_two_entries_of_a_name_the_later_counts_and_two_names_are_refused() {
    let read = read_entries(|builder| {
        append(builder, "phpfina/1.dat", &values(&[1.0, 1.0]));
        append(builder, "phpfina/1.dat", &values(&[2.5]));
    });
    assert_eq!(read.unwrap().0, ["feed_1 value=2.5 1500000000"]);

    for (name, expected) in [
        (
            "old/phpfina/1.meta",
            "b.tar: there are two files of feed 1: phpfina/1.meta and old/phpfina/1.meta;",
        ),
        ("phpfina/GNUSparseFile.7/1.dat", "b.tar: phpfina/GNUSparseFile.7/1.dat is a sparse file"),
    ] {
        let error = read_entries(|builder| append(builder, name, b"0")).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_damaged_feed_is_named_and_the_others_are_read() {
    for (name, bytes, expected) in [
        (
            "phpfina/1.dat",
            values(&[1.0, 2.0])[..7].to_vec(),
            "feed 1 (feed_1): the file ends with 3 bytes of a value, which has 4",
        ),
        (
            "phptimeseries/feed_3.MYD",
            rows(&[(9, 1.0), (10, 2.0)])[..13].to_vec(),
            "feed 3 (feed_3): the file ends with 4 bytes of a row, which has 9",
        ),
        ("phpfina/1.meta", meta(0, 5), "feed 1 (feed_1): 1.meta: tells an interval of 0 seconds"),
        ("phpfina/1.meta", meta(10, 0), "feed 1 (feed_1): 1.meta: tells no beginning"),
        (
            "phpfina/1.meta",
            vec![0; 15],
            "feed 1 (feed_1): 1.meta: has 15 bytes, and a meta file has 16",
        ),
        (
            "phpfina/1.meta",
            Vec::new(),
            "feed 1 (feed_1): 1.meta: has 0 bytes, and a meta file has 16",
        ),
    ] {
        let mut files = feeds();
        let file = files.iter_mut().find(|(it, _)| *it == name).unwrap();
        file.1 = bytes;
        let (lines, _, refused) = read(&files);
        assert_eq!(refused, [expected]);
        assert!(lines.contains(&"feed_2 value=7000.55 1500000000".to_owned()), "{lines:?}");
    }
    for (missing, expected) in [
        ("phpfina/1.meta", "feed 1 (feed_1): 1.meta is missing, which tells the times of 1.dat"),
        ("phpfina/1.dat", "feed 1 (feed_1): 1.dat is missing; there is 1.meta only"),
    ] {
        let mut files = feeds();
        files.retain(|(name, _)| *name != missing);
        assert_eq!(read(&files).2, [expected]);
    }
}

#[test]
fn a_directory_that_cannot_be_read_as_feeds_says_why() {
    let error =
        |files: &Written| format!("{:#}", open_directory(directory(files).path()).err().unwrap());
    assert!(error(&vec![("x/notes.txt", Vec::new())]).contains("has no feed of Emoncms"));
    let mut twice = feeds();
    twice.push(("old/phpfina/1.dat", Vec::new()));
    assert!(error(&twice).starts_with("there are two files of feed 1: "), "{}", error(&twice));
    for (text, expected) in [
        ("{\"success\":false}", "expected a list, found {\"success\":false}"),
        ("[{\"name\":\"a\"}]", "a feed has no id"),
        ("[", "list.json"),
    ] {
        let mut files = feeds();
        files.push(("list.json", text.as_bytes().to_vec()));
        assert!(error(&files).contains(expected), "{}", error(&files));
    }
    let mut files = feeds();
    files.push(("emoncms.sql", b"INSERT INTO `feeds` VALUES (1,'a".to_vec()));
    assert!(
        error(&files).contains("emoncms.sql cannot be read: a text does not end"),
        "{}",
        error(&files)
    );
}

#[test]
fn a_meta_file_whose_times_cannot_be_counted_is_refused() {
    let files = vec![
        ("phpfina/1.meta", meta(u32::MAX, u32::MAX)),
        ("phpfina/1.dat", values(&[1.0, 2.0, 3.0])),
        ("phpfina/2.meta", meta(10, u32::MAX)),
        ("phpfina/2.dat", values(&[1.0])),
    ];
    let source = open_directory(directory(&files).path()).unwrap();
    let refused = source.notes.take_refusals().shown();
    let expected = "1.meta tells times behind the year 2262: its interval is 4294967295 seconds";
    assert!(refused.len() == 1 && refused[0].ends_with(expected), "{refused:?}");
    assert_eq!(source.points.count(), 1);
}
