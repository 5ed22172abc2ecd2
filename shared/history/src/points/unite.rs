//! Unites sorted points: the fields of one series and millisecond become one line. Sorts nothing.
//!
//! A timestamp is a millisecond, as everywhere in Roomtide. If points of a series fall into one millisecond, the last
//! value of each field wins: by time, then by the order in the source. An export of InfluxDB has its write-ahead log
//! last.

use std::iter::Peekable;

use domain::MAX_FIELDS;

use super::device_point::DevicePoint;
use crate::notes::Notes;
use crate::point::{MILLISECOND, Point, Way};

/// A line to decode: all fields of a series in a millisecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentLine {
    /// The line number in the source, from 1; 0 if the source has no lines.
    pub line: u64,
    /// The device to which the server maps the line.
    pub device: String,
    /// The series: measurement and tags.
    pub series: String,
    /// The time in milliseconds.
    pub millis: i64,
    /// The text in line protocol, without a line end.
    pub text: String,
    /// The tags that identify the device.
    pub way: Way,
    /// For hourly statistics, the beginning of their hour in nanoseconds.
    pub hour: Option<i64>,
}

/// Lines of one device and millisecond. They become one reading, and one for each part of the device.
pub type Group = Vec<SentLine>;

/// The reasons why a point or a value is no line of its own, as the report names them.
const SAME_MILLISECOND: &str =
    "points that are united with a later one of their series and millisecond";
const REPLACED: &str = "values that a later line of the same series and time replaces";
const TEXTS: &str = "points that have texts only";

/// An iterator of groups, made from sorted points.
pub struct United<I: Iterator<Item = anyhow::Result<DevicePoint>>> {
    points: Peekable<I>,
    notes: Notes,
}

impl<I: Iterator<Item = anyhow::Result<DevicePoint>>> United<I> {
    /// Unites sorted points.
    pub fn new(points: I, notes: Notes) -> Self {
        Self { points: points.peekable(), notes }
    }

    /// Takes all points of the device and millisecond of the first one.
    fn group(&mut self, first: DevicePoint) -> anyhow::Result<(String, Vec<Point>)> {
        let DevicePoint { device, point: first } = first;
        let millis = first.nanos.div_euclid(MILLISECOND);
        let mut points = vec![first];

        let is_same = |next: &anyhow::Result<DevicePoint>| {
            next.as_ref().map_or(true, |next| {
                next.device == device && next.point.nanos.div_euclid(MILLISECOND) == millis
            })
        };

        while let Some(next) = self.points.next_if(is_same) {
            points.push(next?.point);
        }
        Ok((device, points))
    }

    /// Unites the points of each series. Leaves out series that have only texts.
    fn unite(&mut self, device: &str, points: Vec<Point>) -> Group {
        let mut united: Vec<Point> = Vec::with_capacity(1);
        for point in points {
            let same_series = united.iter_mut().find(|other| {
                other.measurement == point.measurement
                    && other.tags == point.tags
                    && has_room_for(other, &point)
            });
            let Some(earlier) = same_series else {
                united.push(point);
                continue;
            };

            if earlier.nanos != point.nanos {
                self.notes.leave_out(SAME_MILLISECOND);
            }
            earlier.nanos = point.nanos;
            for (key, value) in point.fields {
                match earlier.fields.iter_mut().find(|(name, _)| *name == key) {
                    Some((_, old)) => {
                        if *old != value {
                            self.notes.leave_out(REPLACED);
                        }
                        *old = value;
                    }
                    None => earlier.fields.push((key, value)),
                }
            }
        }

        let before = united.len();
        united.retain(|point| point.fields.iter().any(|(_, value)| !value.starts_with('"')));
        self.notes.leave_out_many(TEXTS, (before - united.len()) as u64);
        united.iter().map(|point| sent(device, point)).collect()
    }
}

impl<I: Iterator<Item = anyhow::Result<DevicePoint>>> Iterator for United<I> {
    type Item = anyhow::Result<Group>;

    fn next(&mut self) -> Option<anyhow::Result<Group>> {
        loop {
            let points = match self.points.next()? {
                Ok(first) => self.group(first),
                Err(error) => Err(error),
            };
            match points.map(|(device, points)| self.unite(&device, points)) {
                Ok(group) if group.is_empty() => {}
                group => return Some(group),
            }
        }
    }
}

/// Whether the fields of two points fit into one line. The server refuses a line with too many fields as a whole.
fn has_room_for(earlier: &Point, later: &Point) -> bool {
    earlier.fields.len() + later.fields.len() <= MAX_FIELDS
        || later.fields.iter().all(|(key, _)| earlier.fields.iter().any(|(name, _)| name == key))
}

fn sent(device: &str, point: &Point) -> SentLine {
    SentLine {
        line: point.line,
        device: device.to_owned(),
        series: point.series(),
        millis: point.nanos.div_euclid(MILLISECOND),
        text: point.text(),
        way: point.way,
        hour: point.hour.map(|hour| hour.start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line: u64, measurement: &str, field: (&str, &str), nanos: i64) -> Point {
        Point {
            measurement: measurement.to_owned(),
            tags: "host=a".to_owned(),
            fields: vec![(field.0.to_owned(), field.1.to_owned())],
            nanos,
            line,
            way: Way::Plain,
            hour: None,
        }
    }

    fn united(points: Vec<Point>) -> (Vec<Vec<String>>, String) {
        let points =
            points.into_iter().map(|point| DevicePoint { device: point.owner().to_owned(), point });
        let mut points: Vec<DevicePoint> = points.collect();
        points.sort_by_key(|point| (point.device.clone(), point.point.nanos));
        let notes = Notes::default();
        let united = United::new(points.into_iter().map(Ok), notes.clone());
        let groups = united.map(|group| {
            group.unwrap().into_iter().map(|line| format!("{}: {}", line.line, line.text)).collect()
        });
        (groups.collect(), notes.to_string())
    }

    #[test]
    fn ten_fields_of_a_point_are_one_line_and_the_log_wins() {
        let second = 1_000_000_000;
        let mut points: Vec<Point> = (0..10)
            .flat_map(|field| {
                (1..3)
                    .map(move |n| point(1, "m", (&format!("f{field}"), &n.to_string()), n * second))
            })
            .collect();
        points.push(point(2, "m", ("f0", "7"), second));
        let (groups, notes) = united(points);
        let fields = |value| (1..10).map(|n| format!("f{n}={value}")).collect::<Vec<_>>().join(",");
        assert_eq!(
            groups,
            [
                [format!("1: m,host=a f0=7,{} 1000000000", fields(1))],
                [format!("1: m,host=a f0=2,{} 2000000000", fields(2))],
            ]
        );
        assert_eq!(notes, format!("left out     1 {REPLACED}"));
    }

    #[test]
    fn of_points_within_a_millisecond_the_last_wins_and_they_are_counted() {
        let points = vec![
            point(1, "m", ("v", "9"), 1_900_000),
            point(2, "m", ("v", "1"), 1_000_000),
            point(3, "m", ("w", "5"), 1_000_001),
            point(4, "n", ("v", "4"), 1_000_000),
            point(5, "m", ("v", "6"), 2_000_000),
            point(6, "m", ("v", "3"), -1),
        ];
        let (groups, notes) = united(points);
        assert_eq!(
            groups,
            [
                vec!["6: m,host=a v=3 -1"],
                vec!["2: m,host=a v=9,w=5 1900000", "4: n,host=a v=4 1000000"],
                vec!["5: m,host=a v=6 2000000"],
            ]
        );
        assert_eq!(notes, format!("left out     2 {SAME_MILLISECOND}\nleft out     1 {REPLACED}"));
    }

    #[test]
    fn fields_that_one_line_cannot_hold_are_a_further_line() {
        let mut points: Vec<Point> =
            (0..300).map(|n| point(n + 1, "m", (&format!("f{n}"), "1"), 1_000_000)).collect();
        points.extend([3, 280].map(|n| point(n, "m", (&format!("f{n}"), "2"), 1_000_000)));
        let (groups, notes) = united(points);
        let [lines] = &groups[..] else { panic!("{groups:?}") };
        let fields = |line: &str| line.matches(",f").count() + 1;
        assert_eq!(lines.iter().map(|line| fields(line)).collect::<Vec<_>>(), [256, 44]);
        assert!(lines[0].contains(",f3=2,") && lines[1].contains(",f280=2,"), "the last wins");
        assert_eq!(notes, format!("left out     2 {REPLACED}"));
    }

    #[test]
    fn points_of_texts_only_are_counted_and_not_sent() {
        let points = vec![
            point(1, "m", ("s", "\"text\""), 1_000_000),
            point(2, "m", ("s", "\"text\""), 2_000_000),
            point(3, "m", ("v", "t"), 2_000_000),
        ];
        let (groups, notes) = united(points);
        assert_eq!(groups, [["2: m,host=a s=\"text\",v=t 2000000"]]);
        assert_eq!(notes, format!("left out     1 {TEXTS}"));
    }
}
