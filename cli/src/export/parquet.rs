//! A Parquet file in the long form: each row is one value of a metric. Cannot read Parquet.
//!
//! Written by hand, because the crate `parquet` costs 20 seconds in a first build and brings a second `num-bigint`.
//! Pages have plain values and are compressed with gzip, which every reader supports: gzip makes ids that repeat short.
//! Only one row group is in memory.
//!
//! The constants and the numbers of fields are those of the Thrift definition. Sources:
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift> and
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>

use std::cmp::Ordering;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The maximum number of rows in a row group: some MB in memory.
const MAX_ROWS: usize = 128 << 10;
/// The magic bytes at the beginning and the end of each file.
const MAGIC: &[u8; 4] = b"PAR1";
/// The version of the format that all readers support.
const VERSION: i32 = 1;

/// Physical types.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
/// Repetition types: a column with a value in each row, and a column whose values may be missing.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
/// Converted types, which tell older readers what a column's values mean.
const UTF8: i32 = 0;
const TIMESTAMP_MILLIS: i32 = 9;
/// The encodings of values, and of whether a row has one.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
/// The type of a page, and its compression.
const DATA_PAGE: i32 = 0;
const GZIP: i32 = 2;

/// The description of a column.
struct ColumnType {
    name: &'static str,
    physical: i32,
    repetition: i32,
    converted: Option<i32>,
}

const COLUMNS: [ColumnType; 5] = [
    ColumnType::required("device", BYTE_ARRAY, Some(UTF8)),
    ColumnType::required("time", INT64, Some(TIMESTAMP_MILLIS)),
    ColumnType { name: "room", physical: BYTE_ARRAY, repetition: OPTIONAL, converted: Some(UTF8) },
    ColumnType::required("metric", BYTE_ARRAY, Some(UTF8)),
    ColumnType::required("value", DOUBLE, None),
];

/// A column of a row group.
#[derive(Debug, Default)]
struct Column {
    /// The values, in the encoding PLAIN.
    values: Vec<u8>,
    /// For each row, whether it has a value; empty for a column without missing values.
    present: Vec<bool>,
    /// The smallest and the largest value, by which readers pass over row groups.
    bounds: Option<[Vec<u8>; 2]>,
}

/// A page with its header.
struct Page {
    bytes: Vec<u8>,
    uncompressed: usize,
    rows: usize,
}

/// The rows of a row group. They are sorted by device and time.
#[derive(Debug, Default)]
pub(super) struct ColumnRows {
    columns: [Column; COLUMNS.len()],
    count: usize,
}

/// A Parquet file that is being written.
#[derive(Debug)]
pub(super) struct ParquetFile<W> {
    out: W,
    /// The number of bytes written so far.
    length: usize,
    /// The metadata, the number and the rows of the row groups so far.
    described: Vec<u8>,
    groups: usize,
    rows: usize,
}

impl ColumnType {
    const fn required(name: &'static str, physical: i32, converted: Option<i32>) -> Self {
        Self { name, physical, repetition: REQUIRED, converted }
    }

    fn describe(&self, fields: &mut Fields<'_>) {
        fields.i32(1, self.physical);
        fields.i32(3, self.repetition);
        fields.bytes(4, self.name.as_bytes());
        let Some(converted) = self.converted else { return };
        fields.i32(6, converted);
        fields.structure(10, |logical| match converted {
            // An instant in UTC, in milliseconds.
            TIMESTAMP_MILLIS => logical.structure(8, |time| {
                time.boolean(1, true);
                time.structure(2, |unit| unit.structure(1, |_| {}));
            }),
            _ => logical.structure(1, |_| {}),
        });
    }
}

impl Column {
    fn push_text(&mut self, text: &str) {
        let length = u32::try_from(text.len()).expect("an id is short");
        self.values.extend(length.to_le_bytes());
        self.values.extend(text.as_bytes());
        self.widen(text.as_bytes(), Ord::cmp);
    }

    fn push_time(&mut self, millis: i64) {
        let millis_of = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_le_bytes);
        self.values.extend(millis.to_le_bytes());
        self.widen(&millis.to_le_bytes(), |a, b| millis_of(a).cmp(&millis_of(b)));
    }

    fn widen(&mut self, value: &[u8], order: impl Fn(&[u8], &[u8]) -> Ordering) {
        let [least, most] = self.bounds.get_or_insert_with(|| [value.to_owned(), value.to_owned()]);
        if order(value, least).is_lt() {
            value.clone_into(least);
        }
        if order(value, most).is_gt() {
            value.clone_into(most);
        }
    }

    /// Compresses the column into one page.
    fn page(&self, rows: usize) -> io::Result<Page> {
        let levels = levels(&self.present);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&levels)?;
        gzip.write_all(&self.values)?;
        let compressed = gzip.finish()?;

        let mut bytes = Vec::new();
        let length = levels.len() + self.values.len();

        structure(&mut bytes, |header| {
            header.i32(1, DATA_PAGE);
            header.i32(2, small(length));
            header.i32(3, small(compressed.len()));
            header.structure(5, |data| {
                data.i32(1, small(rows));
                data.i32(2, PLAIN);
                data.i32(3, RLE);
                data.i32(4, RLE);
            });
        });

        let uncompressed = bytes.len() + length;
        bytes.extend(compressed);
        Ok(Page { bytes, uncompressed, rows })
    }

    /// Writes the metadata of the column, whose page begins at this place in the file.
    fn describe(&self, fields: &mut Fields<'_>, of: &ColumnType, page: &Page, at: usize) {
        fields.i64(2, whole(at));
        fields.structure(3, |column| {
            column.i32(1, of.physical);
            let encodings = column.list(2, I32, 2);
            [PLAIN, RLE].into_iter().for_each(|encoding| zigzag(encodings, encoding.into()));
            binary(column.list(3, BINARY, 1), of.name.as_bytes());
            column.i32(4, GZIP);
            column.i64(5, whole(page.rows));
            column.i64(6, whole(page.uncompressed));
            column.i64(7, whole(page.bytes.len()));
            column.i64(9, whole(at));
            column.structure(12, |statistics| {
                let nulls = self.present.iter().filter(|is_present| !**is_present).count();
                statistics.i64(3, whole(nulls));
                if let Some([least, most]) = &self.bounds {
                    statistics.bytes(5, most);
                    statistics.bytes(6, least);
                }
            });
        });
    }
}

/// Encodes which rows have a value, as runs of equal numbers.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut runs = Vec::new();
    for run in present.chunk_by(PartialEq::eq) {
        varint(&mut runs, (run.len() as u64) << 1);
        runs.push(u8::from(run[0]));
    }
    if runs.is_empty() {
        return runs; // each row has a value
    }
    let length = u32::try_from(runs.len()).expect("a row group is small");
    [&length.to_le_bytes()[..], &runs].concat()
}

impl ColumnRows {
    /// Adds a row: a value at a time in milliseconds since 1970.
    pub(super) fn push(
        &mut self,
        device: &str,
        millis: i64,
        room: Option<&str>,
        metric: &str,
        value: f64,
    ) {
        let [devices, times, rooms, metrics, values] = &mut self.columns;
        devices.push_text(device);
        times.push_time(millis);
        rooms.present.push(room.is_some());
        room.into_iter().for_each(|room| rooms.push_text(room));
        metrics.push_text(metric);
        values.values.extend(value.to_le_bytes());
        self.count += 1;
    }

    /// Returns whether the row group is full.
    pub(super) const fn is_full(&self) -> bool {
        self.count >= MAX_ROWS
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<W: Write> ParquetFile<W> {
    /// Writes the beginning of a file.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self { out, length: MAGIC.len(), described: Vec::new(), groups: 0, rows: 0 })
    }

    /// Writes rows as one row group, with one call of the writer, and clears them.
    pub(super) fn group(&mut self, rows: &mut ColumnRows) -> io::Result<()> {
        let ColumnRows { columns, count } = std::mem::take(rows);
        let (mut bytes, mut uncompressed) = (Vec::new(), 0);
        let mut described = Vec::new();
        for (column, of) in columns.iter().zip(&COLUMNS) {
            let (page, at) = (column.page(count)?, self.length + bytes.len());
            structure(&mut described, |fields| column.describe(fields, of, &page, at));
            uncompressed += page.uncompressed;
            bytes.extend(page.bytes);
        }

        self.out.write_all(&bytes)?;
        self.length += bytes.len();

        structure(&mut self.described, |group| {
            group.list(1, STRUCT, columns.len()).extend(described);
            group.i64(2, whole(uncompressed));
            group.i64(3, whole(count));
            // The sorting columns: by device, then by time.
            let sorting = group.list(4, STRUCT, 2);
            for column in [0, 1] {
                structure(sorting, |sorted_by| {
                    sorted_by.i32(1, column);
                    sorted_by.boolean(2, false);
                    sorted_by.boolean(3, false);
                });
            }
        });
        self.groups += 1;
        self.rows += count;
        Ok(())
    }

    /// Returns the writer of the file's bytes.
    pub(super) const fn out(&self) -> &W {
        &self.out
    }

    /// Writes the footer, and returns the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let mut end = Vec::new();
        structure(&mut end, |file| self.describe(file));
        let length = u32::try_from(end.len()).map_err(io::Error::other)?;
        end.extend(length.to_le_bytes());
        end.extend(MAGIC);
        self.out.write_all(&end)?;
        Ok(self.out)
    }

    fn describe(&self, file: &mut Fields<'_>) {
        file.i32(1, VERSION);
        let schema = file.list(2, STRUCT, COLUMNS.len() + 1);
        structure(schema, |root| {
            root.bytes(4, b"readings");
            root.i32(5, small(COLUMNS.len()));
        });
        for of in &COLUMNS {
            structure(schema, |fields| of.describe(fields));
        }

        file.i64(3, whole(self.rows));
        file.list(4, STRUCT, self.groups).extend(&self.described);
        file.bytes(6, concat!("roomtide version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // The order of columns' statistics: smallest and largest by the type's own order.
        let orders = file.list(7, STRUCT, COLUMNS.len());
        for _ in COLUMNS {
            structure(orders, |order| order.structure(1, |_| {}));
        }
    }
}

fn small(length: usize) -> i32 {
    i32::try_from(length).expect("a page is small")
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).expect("a file is smaller")
}

/// The type codes of fields in the compact protocol of Thrift, as far as Parquet's headers need it:
/// <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// The byte that ends a struct.
const STOP: u8 = 0;

/// Writes the fields of a struct, in the order of their numbers.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

/// Writes a struct; `write` writes the fields.
fn structure(out: &mut Vec<u8>, write: impl FnOnce(&mut Fields<'_>)) {
    write(&mut Fields { out, last: 0 });
    out.push(STOP);
}

impl Fields<'_> {
    fn i32(&mut self, number: u8, value: i32) {
        self.begin(number, I32);
        zigzag(self.out, value.into());
    }

    fn i64(&mut self, number: u8, value: i64) {
        self.begin(number, I64);
        zigzag(self.out, value);
    }

    fn boolean(&mut self, number: u8, value: bool) {
        self.begin(number, if value { TRUE } else { FALSE });
    }

    fn bytes(&mut self, number: u8, value: &[u8]) {
        self.begin(number, BINARY);
        binary(self.out, value);
    }

    fn structure(&mut self, number: u8, write: impl FnOnce(&mut Fields<'_>)) {
        self.begin(number, STRUCT);
        structure(self.out, write);
    }

    /// Begins a list. Its items are to be written into the bytes that are returned.
    fn list(&mut self, number: u8, of: u8, count: usize) -> &mut Vec<u8> {
        self.begin(number, LIST);
        match u8::try_from(count) {
            Ok(count @ 0..15) => self.out.push(count << 4 | of),
            _ => {
                self.out.push(0xf0 | of);
                varint(self.out, count as u64);
            }
        }
        self.out
    }

    fn begin(&mut self, number: u8, of: u8) {
        let step = number - self.last;
        debug_assert!((1..=15).contains(&step), "the numbers rise by small steps");
        self.out.push(step << 4 | of);
        self.last = number;
    }
}

fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Writes a number as a varint: groups of 7 bits, the lowest first; the highest bit says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    /// A file of two row groups: rows of two rooms, and of none.
    fn file() -> Vec<u8> {
        let mut file = ParquetFile::begin(Vec::new()).unwrap();
        let mut rows = ColumnRows::default();
        rows.push("a", 5, Some("r"), "t", 21.5);
        rows.push("a", 6, None, "t", -0.5);
        rows.push("b", 1, Some("q"), "t", 3.0);
        file.group(&mut rows).unwrap();
        assert!(rows.is_empty());
        rows.push("c", 2, None, "u", 4.0);
        file.group(&mut rows).unwrap();
        file.finish().unwrap()
    }

    /// The end of a file, shown.
    fn described(file: &[u8]) -> String {
        let file = file.strip_suffix(MAGIC).unwrap();
        let (file, length) = file.split_at(file.len() - 4);
        let length = u32::from_le_bytes(length.try_into().unwrap());
        let (text, behind) = shown(&file[file.len() - length as usize..]);
        assert!(behind.is_empty());
        text
    }

    #[test]
    fn the_end_describes_the_columns_and_their_bounds() {
        let text = described(&file());
        let schema = "{1:1 2:[{4:\"readings\" 5:5} {1:6 3:0 4:\"device\" 6:0 10:{1:{}}} \
                      {1:2 3:0 4:\"time\" 6:9 10:{8:{1:true 2:{1:{}}}}} {1:6 3:1 4:\"room\" 6:0 10:{1:{}}} \
                      {1:6 3:0 4:\"metric\" 6:0 10:{1:{}}} {1:5 3:0 4:\"value\"}] 3:4 4:[{1:[";
        assert!(text.starts_with(schema), "{text}");
        for bounds in [
            "3:[\"device\"] 4:2 5:3 ",
            "12:{3:0 5:\"b\" 6:\"a\"}",
            "12:{3:1 5:\"r\" 6:\"q\"}",
            r#"12:{3:0 5:"\u{6}\0\0\0\0\0\0\0" 6:"\u{1}\0\0\0\0\0\0\0"}"#,
            // Rooms are absent, and doubles have no bounds.
            "12:{3:1}",
            "12:{3:0}",
        ] {
            assert!(text.contains(bounds), "{bounds}: {text}");
        }
        let sorted = "4:[{1:0 2:false 3:false} {1:1 2:false 3:false}]}";
        assert_eq!(text.matches(sorted).count(), 2, "{text}");
        let version = env!("CARGO_PKG_VERSION");
        let orders = ["{1:{}}"; 5].join(" ");
        assert!(
            text.ends_with(&format!("6:\"roomtide version {version}\" 7:[{orders}]}}")),
            "{text}"
        );
        let empty = ParquetFile::begin(Vec::new()).unwrap().finish().unwrap();
        assert!(described(&empty).contains(" 3:0 4:[] 6:"));
    }

    /// Reads a struct and shows it as `{1:5 2:"text" 3:[{} {}]}`. Also returns the bytes after it.
    fn shown(bytes: &[u8]) -> (String, &[u8]) {
        let mut rest = bytes;
        let mut text = String::new();
        value(STRUCT, &mut rest, &mut text);
        (text, rest)
    }

    fn byte(rest: &mut &[u8]) -> u8 {
        let byte = rest[0];
        *rest = &rest[1..];
        byte
    }

    fn number(rest: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = byte(rest);
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    fn value(of: u8, rest: &mut &[u8], text: &mut String) {
        match of {
            TRUE | FALSE => *text += if of == TRUE { "true" } else { "false" },
            I32 | I64 => {
                let number = number(rest);
                let half = (number >> 1).cast_signed();
                write!(text, "{}", if number & 1 == 1 { !half } else { half }).unwrap();
            }
            BINARY => {
                let length = usize::try_from(number(rest)).unwrap();
                write!(text, "{:?}", String::from_utf8_lossy(&rest[..length])).unwrap();
                *rest = &rest[length..];
            }
            LIST => {
                let head = byte(rest);
                let count = if head >> 4 == 15 { number(rest) } else { u64::from(head >> 4) };
                text.push('[');
                for n in 0..count {
                    *text += if n == 0 { "" } else { " " };
                    value(head & 15, rest, text);
                }
                text.push(']');
            }
            STRUCT => {
                let mut last = 0;
                text.push('{');
                loop {
                    let head = byte(rest);
                    if head == STOP {
                        break;
                    }
                    *text += if last == 0 { "" } else { " " };
                    last += head >> 4;
                    write!(text, "{last}:").unwrap();
                    value(head & 15, rest, text);
                }
                text.push('}');
            }
            other => panic!("the type {other}"),
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let mut out = Vec::new();
        structure(&mut out, |it| {
            it.i32(1, -1);
            it.i64(3, 300);
            it.boolean(4, true);
            it.bytes(5, b"ab");
            it.structure(6, |it| it.boolean(1, false));
            let numbers = it.list(7, I32, 2);
            [1, 2].into_iter().for_each(|number| zigzag(numbers, number));
            let texts = it.list(8, BINARY, 15);
            (0..15).for_each(|_| binary(texts, b"x"));
            it.list(9, STRUCT, 0);
        });
        let expected = [
            &[0x15, 1, 0x26, 0xd8, 0x04, 0x11, 0x18, 2, b'a', b'b', 0x1c, 0x12, 0][..],
            &[0x19, 0x25, 2, 4, 0x19, 0xf8, 15],
            &[1, b'x'].repeat(15),
            &[0x19, 0x0c, 0],
        ];
        assert_eq!(out, expected.concat());
        let texts = ["\"x\""; 15].join(" ");
        let text = format!("{{1:-1 3:300 4:true 5:\"ab\" 6:{{1:false}} 7:[1 2] 8:[{texts}] 9:[]}}");
        assert_eq!(shown(&out), (text, &[][..]));
    }

    #[test]
    fn pages_are_where_their_headers_say() {
        let file = file();
        let mut rest = &file[MAGIC.len()..];
        let mut pages = Vec::new();
        for _ in 0..2 * COLUMNS.len() {
            let (header, behind) = shown(rest);
            let number = |id: &str| -> usize {
                let behind = header.split(id).nth(1).unwrap();
                behind.split([' ', '}']).next().unwrap().parse().unwrap()
            };
            let (page, behind) = behind.split_at(number(" 3:"));
            let mut bytes = Vec::new();
            GzDecoder::new(page).read_to_end(&mut bytes).unwrap();
            assert_eq!(number(" 2:"), bytes.len(), "{header}");
            assert_eq!(number("{1:"), 0, "a page of data");
            pages.push(bytes);
            rest = behind;
        }
        let texts = |texts: &[&str]| -> Vec<u8> {
            texts.iter().flat_map(|it| [&[1, 0, 0, 0], it.as_bytes()].concat()).collect()
        };
        let times = |times: &[i64]| times.iter().flat_map(|time| time.to_le_bytes()).collect();
        let values = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let expected: [Vec<u8>; 10] = [
            texts(&["a", "a", "b"]),
            times(&[5, 6, 1]),
            // The levels 1, 0, 1 as runs, behind their length; then the two rooms.
            [&[6, 0, 0, 0, 2, 1, 2, 0, 2, 1][..], &texts(&["r", "q"])].concat(),
            texts(&["t", "t", "t"]),
            values(&[21.5, -0.5, 3.0]),
            texts(&["c"]),
            times(&[2]),
            vec![2, 0, 0, 0, 2, 0],
            texts(&["u"]),
            values(&[4.0]),
        ];
        assert_eq!(pages, expected);
    }
}
