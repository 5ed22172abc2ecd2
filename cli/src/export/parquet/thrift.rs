//! The compact protocol of Thrift, as far as Parquet's headers need it. Only writes.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// The type codes of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The byte that ends a struct.
const STOP: u8 = 0;

/// Writes the fields of a struct, in the order of their ids.
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

/// Writes a struct; `write` writes the fields.
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

    /// Writes a list of `count` structs; `write` writes them one after the other.
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

/// Writes a number as a varint: groups of 7 bits, the lowest first; the highest bit says that more follow.
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
pub(super) mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Reads a struct and shows it as `{1:5 2:"text" 3:[{} {}]}`. Also returns the bytes after it.
    pub(in super::super) fn shown(bytes: &[u8]) -> (String, &[u8]) {
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
        let texts = ["\"x\""; 15].join(" ");
        let text = format!("{{1:-1 3:300 4:true 5:\"ab\" 6:{{1:false}} 7:[1 2] 8:[{texts}] 9:[]}}");
        assert_eq!(shown(&out), (text, &[][..]));
    }
}
