//! Puts the lines of a device and millisecond together, decoded into readings by the code of the function ingest. Sends
//! nothing.

use std::collections::BTreeMap;

use domain::Timestamp;
use history::line::Line;
use history::line_protocol::{PRECISION_HINT, TimePrecision};
use history::notes::Notes;
use history::point::Way;
use history::points::line_reader::LineReader;
use history::points::unite::{Group, SentLine};
use history::reading::{self, HistoryReading};
use history::refusals::Refusal;
use history::taught::Taught;

use super::patterns::NamePatterns;

/// All lines of a device and millisecond.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// The number of lines.
    pub(super) lines: u64,
    /// The text of the lines, from which an import that continues recognizes them.
    pub(super) text: String,
    /// The lines of points, each with its series.
    pub(super) points: Group,
    pub(super) readings: Vec<HistoryReading>,
    pub(super) refusals: Vec<Refusal>,
}

/// An iterator of decoded lines. An error is its last element.
pub(super) type DecodedLines<'a> = Box<dyn Iterator<Item = anyhow::Result<Decoded>> + 'a>;

/// Puts sorted lines of readings together, without the devices and metrics that are left out.
pub(super) fn lines<'a>(
    lines: impl Iterator<Item = anyhow::Result<Line>> + 'a,
    except: NamePatterns,
    notes: Notes,
) -> DecodedLines<'a> {
    let mut lines = lines.peekable();
    Box::new(std::iter::from_fn(move || {
        let first = match lines.next()? {
            Ok(first) => first,
            Err(error) => return Some(Err(error)),
        };

        let owner = first.owner();
        let mut decoded = Decoded::default();
        decoded.add(first, &except, &notes);
        let is_same =
            |next: &anyhow::Result<Line>| next.as_ref().is_ok_and(|next| next.owner() == owner);
        while let Some(Ok(next)) = lines.next_if(is_same) {
            decoded.add(next, &except, &notes);
        }

        Some(Ok(decoded))
    }))
}

impl Decoded {
    fn add(&mut self, line: Line, except: &NamePatterns, notes: &Notes) {
        self.lines += 1;
        match line {
            Line::Reading(HistoryReading { line, reading }) => {
                self.text += &reading::json(&reading);
                let reading = except.leave_out_of(reading, notes);
                self.readings.extend(reading.map(|reading| HistoryReading { line, reading }));
            }
            Line::Refused(refusal) => {
                self.text += &refusal.reason;
                self.refusals.push(refusal);
            }
            Line::Row(_) | Line::Registry(_) => {}
        }
    }
}

/// How points are decoded.
#[derive(Debug, Clone)]
pub(super) struct PointRules {
    pub(super) reader: LineReader,
    /// The unit of the times in the file.
    pub(super) precision: TimePrecision,
    /// Facts about metrics that the source has apart from its lines.
    pub(super) taught: Taught,
}

/// Decodes the points of a source.
pub(super) fn points<'a>(
    groups: impl Iterator<Item = anyhow::Result<Group>> + 'a,
    rules: PointRules,
) -> DecodedLines<'a> {
    Box::new(groups.map(move |group| Ok(rules.decode(group?))))
}

impl PointRules {
    /// Decodes the lines of each [`Way`] together. A line is refused if an earlier line of its way has the same metric
    /// of the same device.
    pub(super) fn decode(&self, group: Group) -> Decoded {
        let texts: Vec<&str> = group.iter().map(|line| &*line.text).collect();
        let (lines, text) = (group.len() as u64, texts.join("\n"));
        let mut decoded = Decoded { lines, text, ..Decoded::default() };

        let mut by_way: BTreeMap<Way, Vec<&SentLine>> = BTreeMap::new();
        for line in &group {
            by_way.entry(line.way).or_default().push(line);
        }

        for (way, lines) in by_way {
            let body: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
            let body = body.join("\n");
            let read = match self.reader.read(&body, way) {
                Ok(read) => read,
                Err(error) => {
                    let why = error.to_string();
                    decoded.refusals.extend(lines.iter().map(|line| self.refusal(line, &why)));
                    continue;
                }
            };
            let refused = read
                .refused
                .iter()
                .filter_map(|(number, why)| Some(self.refusal(line_at(&lines, *number)?, why)));
            decoded.refusals.extend(refused);
            decoded.readings.extend(read.readings.into_iter().map(|mut reading| {
                self.taught.add_to(&mut reading);
                HistoryReading { line: lines[0].line, reading }
            }));
        }

        Decoded { points: group, ..decoded }
    }

    /// Makes the refusal of a line. Only the lines of a file keep the advice about --precision, because no other source
    /// has this option.
    fn refusal(&self, line: &SentLine, why: &str) -> Refusal {
        let reason = if line.line == 0 {
            let why = why.split(PRECISION_HINT).next().unwrap_or_default();
            format!("{} at {}: {why}", line.series, shown(line.millis))
        } else {
            self.precision.explain(why)
        };
        Refusal { line: line.line, reason }
    }
}

/// The line of a body with this number. A string may contain line feeds, so a line may have several numbers.
fn line_at<'a>(lines: &[&'a SentLine], number: usize) -> Option<&'a SentLine> {
    let mut next = 1;
    lines.iter().copied().find(|line| {
        next += line.text.matches('\n').count() + 1;
        number < next
    })
}

fn shown(millis: i64) -> String {
    Timestamp::from_millis(millis).map_or_else(|_| format!("{millis} ms"), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use domain::given::device;

    use super::*;

    const AT: i64 = 1_768_147_200_000;

    fn line(number: u64, text: &str, way: Way) -> SentLine {
        SentLine {
            line: number,
            device: "a".to_owned(),
            series: text.split(' ').next().unwrap().to_owned(),
            millis: AT,
            text: format!("{text} {AT}000000"),
            way,
            hour: None,
        }
    }

    fn decode(group: &Group, precision: &str) -> Decoded {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let precision = precision.parse().unwrap();
        let reader = LineReader { now, rules: history::LineRules::default() };
        PointRules { reader, precision, taught: Taught::default() }.decode(group.clone())
    }

    fn refusals(group: &Group, precision: &str) -> Vec<String> {
        decode(group, precision).refusals.iter().map(Refusal::to_string).collect()
    }

    #[test]
    fn lines_of_a_device_and_millisecond_are_one_reading_with_what_they_say_of_it() {
        let texts = [
            "°C,domain=sensor,entity_id=warm value=20.5",
            "°C,domain=sensor,entity_id=warm battery=90",
        ];
        let group: Group = (3..).zip(texts).map(|(n, text)| line(n, text, Way::Plain)).collect();
        let decoded = decode(&group, "ns");
        assert_eq!((decoded.lines, decoded.refusals.len()), (2, 0));
        let [HistoryReading { line: 3, reading }] = &decoded.readings[..] else {
            panic!("{decoded:?}")
        };
        assert_eq!(reading.device, device("sensor.warm"));
        assert_eq!(reading.metrics().len(), 2);
        let about = reading.about.as_ref().unwrap();
        assert_eq!(about.tags["entity_id"], "warm");
    }

    #[test]
    fn refused_lines_are_named_by_their_place_in_the_file() {
        let group = vec![
            line(5, "m,host=a s=\"two\nlines\",v=1", Way::Plain),
            line(6, "m,host=a,zone= v=2", Way::Plain),
            line(0, "m,zone= v=2", Way::Plain),
        ];
        let said = refusals(&group, "ns");
        assert!(said[0].starts_with("line 6: "), "{said:?}");
        assert!(said[1].starts_with("m,zone= at 2026-01-11T16:00:00.000Z: "), "{said:?}");
        assert_eq!(decode(&group, "ns").readings.len(), 1, "the other is taken");
    }

    #[test]
    fn the_unit_of_times_is_an_option_of_line_protocol_only() {
        let second = |number| SentLine {
            text: "m,host=a v=1 1735689600000".to_owned(),
            ..line(number, "m,host=a v=1", Way::Plain)
        };
        let why = "1735689600000 is 1970-01-01T00:28:55.689Z in ns";
        let expected = format!("m,host=a at 2026-01-11T16:00:00.000Z: {why}");
        assert_eq!(refusals(&vec![second(0)], "us"), [expected]);
        let expected = "line 7: 1735689600 is 1970-01-01T00:28:55.689Z in us; --precision s fits";
        assert_eq!(refusals(&vec![second(7)], "us"), [expected]);
    }

    #[test]
    fn of_two_series_that_are_one_here_the_later_line_is_refused() {
        let group = vec![
            line(1, "m,roomtide_device=d,host=a v=1", Way::Device),
            line(2, "m,roomtide_device=d,host=b v=2", Way::Device),
        ];
        let said = refusals(&group, "ns");
        let expected = "line 2: v of d::m at this time comes from another line too, with other tags or another field";
        assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    }
}
