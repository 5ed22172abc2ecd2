//! A column of a row group: its values, and its pages. Knows no file.
//!
//! The constants are named as in the Thrift definition. Sources:
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/> and
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use std::collections::HashMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::thrift::{Fields, structure, varint};

/// The numbers of value encodings.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
/// The numbers of page types.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
/// The compression codec; every reader supports gzip.
const GZIP: i32 = 2;

/// The physical type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Int64 = 2,
    Double = 5,
    ByteArray = 6,
}

/// The values of a column: the distinct values, and for each row the index of its value.
#[derive(Debug)]
pub(super) struct Column<T> {
    distinct: Vec<T>,
    places: HashMap<T, u32>,
    rows: Vec<u32>,
    /// For each row, whether it has a value; empty for a column without missing values.
    present: Vec<bool>,
}

/// A value that can be written in the encoding PLAIN.
pub(super) trait Plain: Ord {
    fn write(&self, out: &mut Vec<u8>);
    fn bytes(&self) -> usize;
}

impl Plain for String {
    fn write(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.len()).expect("an id is short");
        out.extend(length.to_le_bytes());
        out.extend(self.as_bytes());
    }

    fn bytes(&self) -> usize {
        4 + self.len()
    }
}

/// Numbers, INT64 or DOUBLE, are written as their 64 bits.
impl Plain for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn bytes(&self) -> usize {
        8
    }
}

/// The sizes and offsets of a written column, for the metadata of the file.
#[derive(Debug)]
pub(super) struct Written {
    of: Type,
    encodings: [i32; 2],
    values: usize,
    uncompressed: usize,
    compressed: usize,
    /// The length of the dictionary page, which is before the first data page.
    dictionary: usize,
    nulls: usize,
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { distinct: Vec::new(), places: HashMap::new(), rows: Vec::new(), present: Vec::new() }
    }
}

impl<T: Plain + Clone + Eq + std::hash::Hash> Column<T> {
    pub(super) fn clear(&mut self) {
        self.distinct.clear();
        self.places.clear();
        self.rows.clear();
        self.present.clear();
    }

    pub(super) fn push<Q>(&mut self, value: &Q)
    where
        T: std::borrow::Borrow<Q>,
        Q: ToOwned<Owned = T> + Eq + std::hash::Hash + ?Sized,
    {
        if let Some(place) = self.places.get(value) {
            self.rows.push(*place);
            return;
        }
        let place = u32::try_from(self.distinct.len()).expect("a row group is small");
        self.distinct.push(value.to_owned());
        self.places.insert(value.to_owned(), place);
        self.rows.push(place);
    }

    /// Adds a value, or `None`, to a column in which values may be missing.
    pub(super) fn push_optional<Q>(&mut self, value: Option<&Q>)
    where
        T: std::borrow::Borrow<Q>,
        Q: ToOwned<Owned = T> + Eq + std::hash::Hash + ?Sized,
    {
        self.present.push(value.is_some());
        if let Some(value) = value {
            self.push(value);
        }
    }

    /// Writes the pages: a dictionary and indices if that is shorter, else the plain values.
    pub(super) fn write(&self, of: Type, out: &mut Vec<u8>) -> io::Result<Written> {
        let values = self.rows.len().max(self.present.len());
        let plain: usize =
            self.rows.iter().map(|place| self.distinct[*place as usize].bytes()).sum();
        let dictionary: usize = self.distinct.iter().map(Plain::bytes).sum();
        let width = width(self.distinct.len());
        let has_dictionary = dictionary + self.rows.len() * usize::from(width) / 8 < plain;
        let mut page = Vec::new();
        let mut written = Written {
            of,
            encodings: [RLE, if has_dictionary { RLE_DICTIONARY } else { PLAIN }],
            values,
            uncompressed: 0,
            compressed: 0,
            dictionary: 0,
            nulls: values - self.rows.len(),
            bounds: self.bounds(of),
        };
        if has_dictionary {
            self.distinct.iter().for_each(|value| value.write(&mut page));
            written.page(out, &page, DICTIONARY_PAGE, |header| {
                header.structure(7, |it| {
                    it.i32(1, small(self.distinct.len()));
                    it.i32(2, PLAIN);
                });
            })?;
            written.dictionary = written.compressed;
            page.clear();
        }
        if !self.present.is_empty() {
            // The definition levels: 1 for a row with a value. The length of all levels precedes them.
            let levels: Vec<u32> = self.present.iter().map(|it| u32::from(*it)).collect();
            let mut encoded = Vec::new();
            hybrid(&levels, 1, &mut encoded);
            page.extend(u32::try_from(encoded.len()).expect("a page is small").to_le_bytes());
            page.append(&mut encoded);
        }
        if has_dictionary {
            page.push(width);
            hybrid(&self.rows, width, &mut page);
        } else {
            self.rows.iter().for_each(|place| self.distinct[*place as usize].write(&mut page));
        }
        let encoding = written.encodings[1];
        written.page(out, &page, DATA_PAGE, |header| {
            header.structure(5, |it| {
                it.i32(1, small(values));
                it.i32(2, encoding);
                it.i32(3, RLE);
                it.i32(4, RLE);
            });
        })?;
        Ok(written)
    }

    /// The smallest and the largest value, in the encoding of statistics. `None` for DOUBLE, whose values are ordered
    /// by their bits here, which is not the numeric order.
    fn bounds(&self, of: Type) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = |value: &T| {
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            // Statistics hold text without its length prefix.
            bytes.split_off(if of == Type::ByteArray { 4 } else { 0 })
        };
        let is_ordered = of != Type::Double;
        let (least, most) = (self.distinct.iter().min()?, self.distinct.iter().max()?);
        is_ordered.then(|| (bytes(least), bytes(most)))
    }
}

impl Written {
    /// Returns the compressed and the uncompressed size.
    pub(super) const fn bytes(&self) -> (usize, usize) {
        (self.compressed, self.uncompressed)
    }

    /// Writes a page header and the compressed page.
    fn page(
        &mut self,
        out: &mut Vec<u8>,
        page: &[u8],
        kind: i32,
        further: impl FnOnce(&mut Fields<'_>),
    ) -> io::Result<()> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(page)?;
        let compressed = gzip.finish()?;
        let before = out.len();
        structure(out, |header| {
            header.i32(1, kind);
            header.i32(2, small(page.len()));
            header.i32(3, small(compressed.len()));
            further(header);
        });
        let header = out.len() - before;
        out.extend(&compressed);
        self.uncompressed += header + page.len();
        self.compressed += header + compressed.len();
        Ok(())
    }

    /// Writes the metadata of a column that begins at this offset in the file.
    pub(super) fn describe(&self, fields: &mut Fields<'_>, name: &str, at: u64) {
        let at = at.cast_signed();
        fields.i64(2, at);
        fields.structure(3, |it| {
            it.i32(1, self.of as i32);
            it.numbers(2, &self.encodings);
            it.texts(3, &[name]);
            it.i32(4, GZIP);
            it.i64(5, large(self.values));
            it.i64(6, large(self.uncompressed));
            it.i64(7, large(self.compressed));
            it.i64(9, at + large(self.dictionary));
            if self.dictionary > 0 {
                it.i64(11, at);
            }
            it.structure(12, |it| {
                it.i64(3, large(self.nulls));
                if let Some((least, most)) = &self.bounds {
                    it.bytes(5, most);
                    it.bytes(6, least);
                }
            });
        });
    }
}

/// The number of bits of an index into a dictionary with this number of values.
fn width(values: usize) -> u8 {
    let bits = usize::BITS - values.saturating_sub(1).leading_zeros();
    u8::try_from(bits.max(1)).expect("at most 64")
}

/// Writes numbers of this many bits in the hybrid encoding: eight or more equal numbers as a run, others bit-packed by
/// eight.
fn hybrid(values: &[u32], width: u8, out: &mut Vec<u8>) {
    const GROUP: usize = 8;
    let run = |from: usize| values[from..].iter().take_while(|it| **it == values[from]).count();
    let is_run = |from: usize| {
        let eight = values.get(from..from + GROUP);
        eight.is_some_and(|eight| eight.iter().all(|it| it == &eight[0]))
    };
    let mut at = 0;
    while at < values.len() {
        if is_run(at) {
            let length = run(at);
            varint(out, (length as u64) << 1);
            out.extend(&values[at].to_le_bytes()[..usize::from(width.div_ceil(8))]);
            at += length;
            continue;
        }
        let from = at;
        while at < values.len() && !is_run(at) {
            at += GROUP;
        }
        varint(out, ((at - from) / GROUP) as u64 * 2 + 1);
        let (mut bits, mut held) = (0_u64, 0);
        for n in from..at {
            // The last group is padded with zeros.
            bits |= u64::from(values.get(n).copied().unwrap_or_default()) << held;
            held += width;
            while held >= 8 {
                out.push((bits & 0xff) as u8);
                bits >>= 8;
                held -= 8;
            }
        }
        at = at.min(values.len());
    }
}

fn small(length: usize) -> i32 {
    i32::try_from(length).expect("a page is small")
}

fn large(length: usize) -> i64 {
    i64::try_from(length).expect("a file is smaller")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads what [`hybrid`] writes.
    fn unpacked(mut bytes: &[u8], width: u8, count: usize) -> Vec<u32> {
        let mut values = Vec::new();
        while values.len() < count {
            let (mut header, mut shift) = (0_usize, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let (value, rest) = bytes.split_at(usize::from(width.div_ceil(8)));
                let mut whole = [0; 4];
                whole[..value.len()].copy_from_slice(value);
                values.extend(std::iter::repeat_n(u32::from_le_bytes(whole), header >> 1));
                bytes = rest;
            } else {
                let bits = (header >> 1) * 8;
                let (packed, rest) = bytes.split_at(bits * usize::from(width) / 8);
                let bit = |at: usize| u32::from(packed[at / 8] >> (at % 8) & 1);
                for n in 0..bits {
                    let from = n * usize::from(width);
                    values.push((0..usize::from(width)).map(|it| bit(from + it) << it).sum());
                }
                bytes = rest;
            }
        }
        assert!(bytes.is_empty(), "nothing follows");
        values.truncate(count);
        values
    }

    proptest! {
        #[test]
        fn places_are_read_back(
            runs in proptest::collection::vec((0..u32::MAX, 1..40_usize), 0..20), bits in 1..18_u8
        ) {
            let values: Vec<u32> = runs
                .into_iter()
                .flat_map(|(value, times)| std::iter::repeat_n(value >> (32 - bits), times))
                .collect();
            let mut out = Vec::new();
            hybrid(&values, bits, &mut out);
            prop_assert_eq!(unpacked(&out, bits, values.len()), values);
        }
    }

    #[test]
    fn the_width_is_that_of_the_last_place() {
        for (values, bits) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (131_072, 17)] {
            assert_eq!(width(values), bits, "{values}");
        }
    }

    #[test]
    fn a_dictionary_is_written_where_it_is_shorter() {
        let mut few = Column::<u64>::default();
        (0..1_000).for_each(|n| few.push(&(n % 3)));
        let mut many = Column::<u64>::default();
        (0..1_000).for_each(|n| many.push(&n));
        let encoding = |column: &Column<u64>| {
            column.write(Type::Double, &mut Vec::new()).unwrap().encodings[1]
        };
        assert_eq!((encoding(&few), encoding(&many)), (RLE_DICTIONARY, PLAIN));
        let mut none = Column::<String>::default();
        (0..3).for_each(|_| none.push_optional(None::<&str>));
        let written = none.write(Type::ByteArray, &mut Vec::new()).unwrap();
        assert_eq!((written.values, written.nulls, written.dictionary), (3, 3, 0));
    }
}
