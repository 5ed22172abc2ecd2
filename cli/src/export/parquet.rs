//! A Parquet file in the long form: each row is one value of a metric. Cannot read Parquet.
//!
//! Written by hand, because the crate `parquet` costs 20 seconds in a first build and brings a second `num-bigint`.
//! Pages are compressed with gzip, which every reader supports. Only one row group is in memory.

mod column;
mod thrift;

use std::io::{self, Write};

use column::{Column, Type};
use thrift::{Fields, structure};

/// The maximum number of rows in a row group: some MB in memory.
const MAX_ROWS: usize = 128 << 10;
/// The magic bytes at the beginning and the end of each file.
const MAGIC: &[u8; 4] = b"PAR1";
/// The version of the format that all readers support.
const VERSION: i32 = 1;

/// Repetition types: a column with a value in each row, and a column whose values may be missing.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
/// The converted types, which tell older readers what a column's values mean.
const UTF8: i32 = 0;
const TIMESTAMP_MILLIS: i32 = 9;

/// The columns: name, physical type, repetition type, and converted type.
const COLUMNS: [(&str, Type, i32, Option<i32>); 5] = [
    ("device", Type::ByteArray, REQUIRED, Some(UTF8)),
    ("time", Type::Int64, REQUIRED, Some(TIMESTAMP_MILLIS)),
    ("room", Type::ByteArray, OPTIONAL, Some(UTF8)),
    ("metric", Type::ByteArray, REQUIRED, Some(UTF8)),
    ("value", Type::Double, REQUIRED, None),
];

/// The rows of a row group. They are sorted by device and time.
#[derive(Debug, Default)]
pub(super) struct Rows {
    device: Column<String>,
    time: Column<u64>,
    room: Column<String>,
    metric: Column<String>,
    value: Column<u64>,
    count: usize,
}

impl Rows {
    /// Adds a row: a value at a time in milliseconds since 1970.
    pub(super) fn push(
        &mut self,
        device: &str,
        millis: i64,
        room: Option<&str>,
        metric: &str,
        value: f64,
    ) {
        self.device.push(device);
        self.time.push(&millis.cast_unsigned());
        self.room.push_optional(room);
        self.metric.push(metric);
        self.value.push(&value.to_bits());
        self.count += 1;
    }

    /// Returns whether the row group is full.
    pub(super) const fn is_full(&self) -> bool {
        self.count >= MAX_ROWS
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn clear(&mut self) {
        let Self { device, time, room, metric, value, count } = self;
        [device, room, metric].into_iter().for_each(Column::clear);
        [time, value].into_iter().for_each(Column::clear);
        *count = 0;
    }
}

/// A Parquet file that is being written.
#[derive(Debug)]
pub(super) struct ParquetFile<W> {
    out: W,
    /// The number of bytes written so far.
    length: u64,
    /// The metadata, the number and the rows of the row groups so far.
    described: Vec<u8>,
    groups: usize,
    rows: usize,
}

impl<W: Write> ParquetFile<W> {
    /// Writes the beginning of a file.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let length = MAGIC.len() as u64;
        Ok(Self { out, length, described: Vec::new(), groups: 0, rows: 0 })
    }

    /// Writes rows as one row group, with one call of the writer, and clears them.
    pub(super) fn group(&mut self, rows: &mut Rows) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut written = Vec::with_capacity(COLUMNS.len());
        for (n, (_, of, ..)) in COLUMNS.into_iter().enumerate() {
            let from = self.length + bytes.len() as u64;
            let column = match n {
                0 => rows.device.write(of, &mut bytes)?,
                1 => rows.time.write(of, &mut bytes)?,
                2 => rows.room.write(of, &mut bytes)?,
                3 => rows.metric.write(of, &mut bytes)?,
                _ => rows.value.write(of, &mut bytes)?,
            };
            written.push((from, column));
        }
        self.out.write_all(&bytes)?;
        self.length += bytes.len() as u64;
        let uncompressed: usize = written.iter().map(|(_, column)| column.bytes().1).sum();
        structure(&mut self.described, |group| {
            group.structures(1, written.len(), |out| {
                for ((name, ..), (from, column)) in COLUMNS.iter().zip(&written) {
                    structure(out, |it| column.describe(it, name, *from));
                }
            });
            group.i64(2, whole(uncompressed));
            group.i64(3, whole(rows.count));
            // The sorting columns: by device, then by time.
            group.structures(4, 2, |out| {
                for column in [0, 1] {
                    structure(out, |it| {
                        it.i32(1, column);
                        it.boolean(2, false);
                        it.boolean(3, false);
                    });
                }
            });
        });
        self.groups += 1;
        self.rows += rows.count;
        rows.clear();
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
        file.structures(2, COLUMNS.len() + 1, |out| {
            structure(out, |root| {
                root.bytes(4, b"readings");
                root.i32(5, i32::try_from(COLUMNS.len()).expect("few"));
            });
            for (name, of, repetition, meaning) in COLUMNS {
                structure(out, |it| {
                    it.i32(1, of as i32);
                    it.i32(3, repetition);
                    it.bytes(4, name.as_bytes());
                    let Some(meaning) = meaning else { return };
                    it.i32(6, meaning);
                    it.structure(10, |logical| match meaning {
                        // An instant in UTC, in milliseconds.
                        TIMESTAMP_MILLIS => logical.structure(8, |it| {
                            it.boolean(1, true);
                            it.structure(2, |unit| unit.structure(1, |_| {}));
                        }),
                        _ => logical.structure(1, |_| {}),
                    });
                });
            }
        });
        file.i64(3, whole(self.rows));
        file.structures(4, self.groups, |out| out.extend(&self.described));
        file.bytes(6, concat!("roomtide version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // The order of columns' statistics: smallest and largest by the type's own order.
        file.structures(7, COLUMNS.len(), |out| {
            for _ in COLUMNS {
                structure(out, |order| order.structure(1, |_| {}));
            }
        });
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).expect("a file is smaller")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::thrift::tests::shown;
    use super::*;

    /// A file of two row groups: rows of two rooms, and of none.
    fn file() -> Vec<u8> {
        let mut file = ParquetFile::begin(Vec::new()).unwrap();
        let mut rows = Rows::default();
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

    #[test]
    fn pages_are_where_their_headers_say() {
        let file = file();
        let mut rest = &file[MAGIC.len()..];
        let mut pages = Vec::new();
        // Device and metric of the first row group have a dictionary too.
        for _ in 0..2 * COLUMNS.len() + 2 {
            let (header, behind) = shown(rest);
            let number = |id: &str| -> usize {
                let behind = header.split(id).nth(1).unwrap();
                behind.split([' ', '}']).next().unwrap().parse().unwrap()
            };
            let (page, behind) = behind.split_at(number(" 3:"));
            let mut bytes = Vec::new();
            GzDecoder::new(page).read_to_end(&mut bytes).unwrap();
            assert_eq!(number(" 2:"), bytes.len(), "{header}");
            pages.push((number("{1:"), bytes));
            rest = behind;
        }
        let texts = |texts: &[&str]| -> Vec<u8> {
            texts.iter().flat_map(|it| [&[1, 0, 0, 0], it.as_bytes()].concat()).collect()
        };
        let (data, dictionary) = (0, 2);
        let expected = [
            (dictionary, texts(&["a", "b"])),
            // The width of a place, and a packed group.
            (data, vec![1, 3, 0b100]),
            (data, [5_u64, 6, 1].map(u64::to_le_bytes).concat()),
            // The levels 1, 0, 1, behind their length; then the two rooms.
            (data, [&[2, 0, 0, 0, 3, 0b101][..], &texts(&["r", "q"])].concat()),
            (dictionary, texts(&["t"])),
            (data, vec![1, 3, 0]),
            (data, [21.5_f64, -0.5, 3.0].map(f64::to_le_bytes).concat()),
            (data, texts(&["c"])),
            (data, 2_u64.to_le_bytes().to_vec()),
            (data, vec![2, 0, 0, 0, 3, 0]),
            (data, texts(&["u"])),
            (data, 4.0_f64.to_le_bytes().to_vec()),
        ];
        assert_eq!(pages, expected);
    }
}
