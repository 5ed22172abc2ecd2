//! Properties of line protocol that hold for any bytes, for the property tests and for the fuzz target, which compiles
//! this file too. Compares with no other parser.

use super::line_protocol::mapping::{self, MappingRules};
use super::line_protocol::{LineError, Numbered, ProtocolLine, lines};

/// A valid line, without strings.
const GOOD: &[u8] = b"m,t=a v=1i 5";

/// Panics unless the lines of a body are read by the rules in the documents `influxdb-clients.md` and `invariants.md`.
pub(crate) fn hold(body: &[u8]) {
    let read: Vec<_> = lines(body).collect();
    are_in_their_places(body, &read);
    for Numbered { text, line, .. } in &read {
        if let Ok(line) = line {
            stands_alone(text, line);
            is_mapped(line);
        }
    }
    loses_no_line_behind(body, &read);
    if !body.contains(&b'"') {
        are_those_of_each_line(body, &read);
    }
}

/// Each line is a part of the body, begins where its number says, and comes after the line before.
fn are_in_their_places(body: &[u8], read: &[Numbered<'_>]) {
    let mut end = 0;
    for Numbered { number, text, .. } in read {
        let at = text.as_ptr().addr() - body.as_ptr().addr();
        assert!(at >= end && !text.is_empty());
        assert_eq!(&body[at..at + text.len()], *text);
        assert_eq!(*number, body[..at].split(|byte| *byte == b'\n').count());
        end = at + text.len();
    }
}

fn stands_alone(text: &[u8], line: &ProtocolLine<'_>) {
    let alone: Vec<_> = lines(text).map(|line| line.line).collect();
    assert_eq!(alone, [Ok(line.clone())]);
}

fn is_mapped(line: &ProtocolLine<'_>) {
    let Ok(mapped) = mapping::map(line, &MappingRules::default()) else { return };
    assert!(mapped.points.len() <= 2);
    for point in &mapped.points {
        assert!(!point.metrics.is_empty());
        for (n, metric) in point.metrics.iter().enumerate() {
            assert!(point.metrics[..n].iter().all(|other| other.name != metric.name));
        }
        assert!(mapped.about(point).metrics.len() == point.metrics.len());
    }
}

/// A valid line after the body is read, even if the body ends within a string, or before a field.
fn loses_no_line_behind(body: &[u8], read: &[Numbered<'_>]) {
    let longer = [body, b"\n", GOOD].concat();
    let mut all = shown(lines(&longer));
    let last = all.pop();
    assert_eq!(last.map(|(_, text, why)| (text, why)), Some((GOOD, None)));
    assert_eq!(all, shown(read.iter().cloned()));
}

/// In a body without strings, each line is read as if it were alone. Strings may contain line feeds.
fn are_those_of_each_line(body: &[u8], read: &[Numbered<'_>]) {
    let alone = body.split(|byte| *byte == b'\n').enumerate();
    let alone = alone.flat_map(|(before, line)| {
        lines(line).map(move |numbered| Numbered { number: numbered.number + before, ..numbered })
    });
    assert_eq!(shown(alone), shown(read.iter().cloned()));
}

type Shown<'a> = (usize, &'a [u8], Option<LineError>);

fn shown<'a>(read: impl Iterator<Item = Numbered<'a>>) -> Vec<Shown<'a>> {
    read.map(|Numbered { number, text, line }| (number, text, line.err())).collect()
}
