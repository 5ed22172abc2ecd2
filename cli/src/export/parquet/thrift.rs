//! The compact protocol of Thrift, as far as Parquet's headers need it: written, never read.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// The types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The end of a struct.
const STOP: u8 = 0;

/// The fields of a struct that is being written, in the order of their ids.
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

/// Writes a struct.
pub(super) fn structure(out: &mut Vec<u8>, write: impl FnOnce(&mut Fields<'_>)) {
    write(&mut Fields { out, last: 0 });
    out.push(STOP);
}

impl Fields<'_> {
    pub(super) fn i32(&mut self, id: u8, value: i32) {
        self.begin(id, I32);
        zigzag(self.out, value.into());
    }

    pub(super) fn i64(&mut self, id: u8, value: i64) {
        self.begin(id, I64);
        zigzag(self.out, value);
    }

    pub(super) fn boolean(&mut self, id: u8, value: bool) {
        self.begin(id, if value { TRUE } else { FALSE });
    }

    pub(super) fn bytes(&mut self, id: u8, value: &[u8]) {
        self.begin(id, BINARY);
        binary(self.out, value);
    }

    pub(super) fn structure(&mut self, id: u8, write: impl FnOnce(&mut Fields<'_>)) {
        self.begin(id, STRUCT);
        structure(self.out, write);
    }

    /// A list of `count` structs, which `write` writes one after the other.
    pub(super) fn structures(&mut self, id: u8, count: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.list(id, STRUCT, count);
        write(self.out);
    }

    pub(super) fn numbers(&mut self, id: u8, values: &[i32]) {
        self.list(id, I32, values.len());
        values.iter().for_each(|value| zigzag(self.out, (*value).into()));
    }

    pub(super) fn texts(&mut self, id: u8, values: &[&str]) {
        self.list(id, BINARY, values.len());
        values.iter().for_each(|value| binary(self.out, value.as_bytes()));
    }

    fn list(&mut self, id: u8, of: u8, count: usize) {
        self.begin(id, LIST);
        match u8::try_from(count) {
            Ok(count @ 0..15) => self.out.push(count << 4 | of),
            _ => {
                self.out.push(0xf0 | of);
                varint(self.out, count as u64);
            }
        }
    }

    fn begin(&mut self, id: u8, of: u8) {
        let step = id - self.last;
        debug_assert!((1..=15).contains(&step), "the ids rise by small steps");
        self.out.push(step << 4 | of);
        self.last = id;
    }
}

fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Writes a number by 7 bits, the lowest first; the highest bit says that more follow.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
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
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let mut out = Vec::new();
        structure(&mut out, |it| {
            it.i32(1, -1);
            it.i64(3, 300);
            it.boolean(4, true);
            it.bytes(5, b"ab");
            it.structure(6, |it| it.boolean(1, false));
            it.numbers(7, &[1, 2]);
            it.texts(8, &["x"; 15]);
            it.structures(9, 0, |_| {});
        });
        let expected = [
            &[0x15, 1, 0x26, 0xd8, 0x04, 0x11, 0x18, 2, b'a', b'b', 0x1c, 0x12, 0][..],
            &[0x19, 0x25, 2, 4, 0x19, 0xf8, 15],
            &[1, b'x'].repeat(15),
            &[0x19, 0x0c, 0],
        ];
        assert_eq!(out, expected.concat());
    }
}
