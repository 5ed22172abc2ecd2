//! The edits of devices in a CSV file, and the errors of its cells. Sends nothing.

use std::collections::HashMap;
use std::io::Read;

use anyhow::{Context as _, anyhow, bail, ensure};
use api::body;
use domain::{AttributeName, DeviceId, DevicePatch, excerpt};
use history::refusals::Refusal;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// The column that names the device.
const DEVICE: &str = "device_id";
/// The largest size of a file in bytes. A device or a pipe may have no end.
const MAX_LENGTH: u64 = 64 << 20;
/// The columns of members; every other column is an attribute.
const MEMBERS: [&str; 5] = ["name", "kind", "room", "tags", "in_room_means"];
/// The cell that removes a value.
const REMOVED: &str = "null";

/// The edit of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceEdit {
    /// The line of the file, from 1.
    pub(super) line: u64,
    pub(super) device: DeviceId,
    /// The body of the PATCH.
    pub(super) body: String,
    /// The number of values that it sets or removes.
    pub(super) members: usize,
}

/// The member or attribute that a column sets.
#[derive(Debug, PartialEq, Eq)]
enum Column {
    Device,
    Member(&'static str),
    Attribute(AttributeName),
}

/// Reads the edits, in the order of the file, and everything that is wrong.
pub(super) fn read(file: impl Read) -> anyhow::Result<(Vec<DeviceEdit>, Vec<Refusal>)> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    ensure!(read as u64 <= MAX_LENGTH, "has more than 64 MiB; several files set more devices");
    if let Some(line) = unclosed_quote(&bytes) {
        bail!("line {line}: a cell begins with a quote that nothing closes");
    }

    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&*bytes);
    let columns = columns(reader.headers()?)?;
    let (mut edits, mut wrong) = (Vec::new(), Vec::new());
    let mut lines = HashMap::new();

    for record in reader.records() {
        let record = record.context("the file is not CSV")?;
        let line = record.position().map_or(0, |position| line_of(position, &bytes));

        match edit(&columns, &record, line) {
            Err(reasons) => {
                wrong.extend(reasons.into_iter().map(|reason| Refusal { line, reason }));
            }
            Ok(edit) => {
                if let Some(first) = lines.insert(edit.device.clone(), line) {
                    let reason =
                        format!("the device {} stands in line {first} already", edit.device);
                    wrong.push(Refusal { line, reason });
                }
                // A line with empty cells changes nothing.
                edits.extend(Some(edit).filter(|edit| edit.members > 0));
            }
        }
    }

    Ok((edits, wrong))
}

/// The line on which a record begins. The reader's position may be before the rest of a two-character line end, and
/// before empty lines.
fn line_of(position: &csv::Position, file: &[u8]) -> u64 {
    let start = usize::try_from(position.byte()).unwrap_or(file.len()).min(file.len());
    let ends = file[start..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + ends.filter(|byte| **byte == b'\n').count() as u64
}

/// The line of a quote that is still open at the end of the file. The reader would take the rest of the file for one
/// cell.
fn unclosed_quote(file: &[u8]) -> Option<usize> {
    let (mut line, mut opened) = (1, None);
    let mut before = b'\n';
    for byte in file {
        line += usize::from(*byte == b'\n');
        match (byte, opened) {
            // A doubled quote within a cell closes and reopens it.
            (b'"', Some(_)) => (opened, before) = (None, b'"'),
            (b'"', None) if matches!(before, b',' | b'\n' | b'\r' | b'"') => opened = Some(line),
            (_, Some(_)) => {}
            (byte, None) => before = *byte,
        }
    }

    opened
}

fn columns(header: &csv::StringRecord) -> anyhow::Result<Vec<Column>> {
    let column = |name: &str| {
        let name = name.trim_start_matches('\u{feff}');
        if name == DEVICE {
            return Ok(Column::Device);
        }
        if let Some(member) = MEMBERS.into_iter().find(|member| *member == name) {
            return Ok(Column::Member(member));
        }
        let attribute = name.parse().map(Column::Attribute);
        attribute.map_err(|why| anyhow!("line 1, column {:?}: {why}", excerpt(name)))
    };

    let columns: Vec<Column> = header.iter().map(column).collect::<anyhow::Result<_>>()?;
    let devices = columns.iter().filter(|column| **column == Column::Device).count();
    ensure!(devices == 1, "line 1 needs one column {DEVICE}; it has {devices}");
    for (n, name) in header.iter().enumerate() {
        let is_twice = header.iter().take(n).any(|earlier| earlier == name);
        ensure!(!is_twice, "line 1: the column {name} stands there twice");
    }

    ensure!(columns.len() > 1, "line 1 has no column besides {DEVICE}: there is nothing to set");
    Ok(columns)
}

/// The edit of a line, or all errors of the line.
fn edit(
    columns: &[Column],
    record: &csv::StringRecord,
    line: u64,
) -> Result<DeviceEdit, Vec<String>> {
    let (mut device, mut wrong) = (None, Vec::new());
    let (mut body, mut members) = (json!({}), 0);
    for (column, cell) in columns.iter().zip(record) {
        if *column == Column::Device {
            match cell.parse() {
                Ok(id) => device = Some(id),
                Err(why) => wrong.push(format!("column {DEVICE}: {why}")),
            }
        } else if !cell.is_empty() {
            members += 1;
            let set = column.set(cell, &mut body);
            wrong.extend(set.err().map(|why| format!("column {}: {why}", column.name())));
        }
    }

    match device {
        Some(device) if wrong.is_empty() => {
            Ok(DeviceEdit { line, device, body: body.to_string(), members })
        }
        _ => Err(wrong),
    }
}

impl Column {
    fn name(&self) -> &str {
        match self {
            Self::Device => DEVICE,
            Self::Member(name) => name,
            Self::Attribute(name) => name.as_str(),
        }
    }

    /// Sets a cell's value in the body of an edit. Fails if the server would refuse an edit with this value alone.
    fn set(&self, cell: &str, body: &mut Value) -> Result<(), String> {
        let value = self.value(cell)?;
        let mut alone = json!({});
        for body in [&mut alone, body] {
            match self {
                Self::Attribute(name) => body["attributes"][name.as_str()] = value.clone(),
                Self::Device | Self::Member(_) => body[self.name()] = value.clone(),
            }
        }
        let alone = to_raw_value(&alone).map_err(|why| why.to_string())?;
        body::value::<DevicePatch>(&alone).map(drop).map_err(|wrong| wrong.why)
    }

    /// The JSON of a cell. A number is a text, which keeps the zero of a version 1.10. A search for the number finds the
    /// text too.
    fn value(&self, cell: &str) -> Result<Value, String> {
        Ok(match self {
            _ if cell == REMOVED => Value::Null,
            Self::Member("in_room_means") => {
                let flag = cell.parse::<bool>();
                flag.map_err(|_| format!("{:?} is neither true nor false", excerpt(cell)))?.into()
            }
            Self::Member("tags") => list(cell)?.unwrap_or_else(|| vec![cell.into()]).into(),
            Self::Attribute(_) => list(cell)?.map_or_else(|| cell.into(), Value::from),
            Self::Device | Self::Member(_) => cell.into(),
        })
    }
}

/// The elements of a JSON array in a cell; `None` if the cell is not an array.
fn list(cell: &str) -> Result<Option<Vec<Value>>, String> {
    if !cell.starts_with('[') {
        return Ok(None);
    }
    let elements = serde_json::from_str(cell);
    elements.map(Some).map_err(|_| format!("{:?} is not a JSON array", excerpt(cell)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_read_without_end() {
        let error = read(std::io::repeat(b'a')).unwrap_err().to_string();
        assert_eq!(error, "has more than 64 MiB; several files set more devices");
    }

    #[test]
    fn a_line_sets_what_its_cells_say() {
        let file = "\u{feff}device_id, name,kind,room,tags,firmware,serves,in_room_means\n\
                    a,Kitchen,sensor,r,\"[\"\"x\"\", \"\"y\"\"]\",1.10,\"[\"\"hall\"\", 4]\",false\n\
                    b,,,,window,,,\n\
                    c,null,,null,null,null,,null\n\
                    d,,,,,,,\n";
        let (edits, wrong) = read(file.as_bytes()).unwrap();
        assert_eq!(wrong, []);
        let edits: Vec<_> = edits
            .iter()
            .map(|it| (it.line, it.device.as_str(), it.body.as_str(), it.members))
            .collect();
        assert_eq!(
            edits,
            [
                (
                    2,
                    "a",
                    r#"{"attributes":{"firmware":"1.10","serves":["hall",4]},"in_room_means":false,"kind":"sensor","name":"Kitchen","room":"r","tags":["x","y"]}"#,
                    7
                ),
                (3, "b", r#"{"tags":["window"]}"#, 1),
                (
                    4,
                    "c",
                    r#"{"attributes":{"firmware":null},"in_room_means":null,"name":null,"room":null,"tags":null}"#,
                    5
                ),
            ]
        );
    }

    #[test]
    fn every_wrong_cell_is_named_by_line_and_column() {
        let file = "device_id,name,room,tags,model,in_room_means\n\
                    a b,,,,,\n\
                    a,\"x\ty\",no room,\"[1]\",[,no\n\
                    b,B,,,,\n\
                    b,C,,,,\n\
                    c,,,,[[1]],\n\
                    d,,,,[],\n\
                    e,,,,\"[1, 1]\",\n";
        let (_, wrong) = read(file.as_bytes()).unwrap();
        let wrong: Vec<String> = wrong.iter().map(Refusal::to_string).collect();
        assert_eq!(
            wrong,
            [
                "line 2: column device_id: contains ' '; only letters, digits and - _ . : are allowed",
                "line 3: column name: contains a control character",
                "line 3: column room: contains ' '; only letters, digits and - _ . : are allowed",
                "line 3: column tags: must be a string, not a number",
                "line 3: column model: \"[\" is not a JSON array",
                "line 3: column in_room_means: \"no\" is neither true nor false",
                "line 5: the device b stands in line 4 already",
                "line 6: column model: must be a string, a number, an array of these, or null",
                "line 7: column model: has no value; null removes it",
                "line 8: column model: has the value \"1\" twice",
            ]
        );
    }

    #[test]
    fn a_line_has_its_number_whatever_ends_the_lines() {
        for end in ["\n", "\r\n"] {
            let file = ["device_id,name", "a,A", "", "a b,B", "a,C", ""].join(end);
            let (edits, wrong) = read(file.as_bytes()).unwrap();
            assert_eq!(edits[0].line, 2, "{end:?}");
            let lines: Vec<u64> = wrong.iter().map(|refusal| refusal.line).collect();
            assert_eq!(lines, [4, 5], "{end:?}");
            assert!(wrong[1].to_string().contains("line 2 already"), "{}", wrong[1]);
        }
    }

    #[test]
    fn a_header_that_cannot_be_meant_is_refused() {
        for (header, why) in [
            ("name,room", "needs one column device_id; it has 0"),
            ("device_id", "no column besides device_id"),
            ("device_id,name,name", "the column name stands there twice"),
            ("device_id,Model", "column \"Model\": \"Model\" is not an attribute's name"),
            ("device_id,first_seen", "\"first_seen\" is a reserved name"),
        ] {
            let error = read(format!("{header}\n").as_bytes()).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{header}: {error:#}");
        }
        for (file, line) in [
            ("device_id,name\na,\"A\nb,B\n", Some(2)),
            ("device_id,name\na,\"A \"\"B\"\"\n", Some(2)),
            ("device_id,\"name", Some(1)),
            ("device_id,name\na,\"A\nB\"\nb,\"\"\n", None),
            ("device_id,name\na,5\" tube\n", None),
            ("device_id,name\na,\"say \"\"x\"\"\"\n", None),
        ] {
            assert_eq!(unclosed_quote(file.as_bytes()), line, "{file}");
            assert_eq!(read(file.as_bytes()).is_err(), line.is_some(), "{file}");
        }
        let error = read(&b"device_id,name\na\n"[..]).unwrap_err();
        assert!(format!("{error:#}").contains("not CSV"), "{error:#}");
    }
}
