//! One entry of a list, and the cells of a row in CSV. Knows no list.

use std::collections::BTreeMap;
use std::{fmt, iter};

use domain::{Decimal, MetricName};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum size of what follows the rows of a page: the cursor and the members around it.
pub(crate) const TAIL: usize = 1_000;

/// One entry of a list.
pub(crate) trait Row: Serialize {
    /// The cells of a row in CSV, for the columns that all rows of its kind have.
    fn cells(&self, columns: &[&str]) -> Vec<CsvCell> {
        cells(self, columns)
    }

    /// The row's metrics. In CSV each metric has a column, which is empty for a row without it.
    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        iter::empty()
    }
}

/// The cells of a row in CSV: the members with the names of the columns. A column such as `from_value` or
/// `temperature.mean` names a member of a member.
pub(crate) fn cells(
    row: &(impl Serialize + ?Sized),
    columns: impl IntoIterator<Item = impl AsRef<str>>,
) -> Vec<CsvCell> {
    let text = serde_json::to_string(row).expect("our own types have string keys");
    let RowMembers(members) = serde_json::from_str(&text).expect("a row is an object");
    let mut objects = Objects::new();
    let mut cell = |column: &str| {
        find(&members, &mut objects, column).map_or_else(CsvCell::empty, CsvCell::of)
    };
    columns.into_iter().map(|column| cell(column.as_ref())).collect()
}

/// The nested objects of a row, each parsed once, because a metric may have many columns.
type Objects<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a RawValue>>;

/// The members of an object as they are written, so that no digit is lost. A metric may have the same name as a member
/// of the row itself. The row then has two members of this name, and the metric is the one with an object.
struct RowMembers<'a>(Vec<(&'a str, &'a RawValue)>);

fn find<'a>(
    row: &[(&'a str, &'a RawValue)],
    objects: &mut Objects<'a>,
    column: &str,
) -> Option<&'a RawValue> {
    let is_object = |value: &RawValue| value.get().starts_with('{');
    let own = row.iter().find(|(name, value)| *name == column && !is_object(value));
    let within = || {
        let (outer, inner) = column.split_once('.').or_else(|| column.split_once('_'))?;
        let (name, object) = row.iter().find(|(name, value)| *name == outer && is_object(value))?;
        let read = || serde_json::from_str(object.get()).unwrap_or_default();
        objects.entry(*name).or_insert_with(read).get(inner).copied()
    };
    own.map(|(_, value)| *value).or_else(within)
}

impl<'de> Deserialize<'de> for RowMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachMember)
    }
}

/// Collects members in their order, also two with the same name.
struct EachMember;

impl<'de> Visitor<'de> for EachMember {
    type Value = RowMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(RowMembers(members))
    }
}

/// Members with names that are known only at run time, such as metrics. They keep their order.
#[derive(Debug)]
pub(crate) struct Entries<K, V>(pub(crate) Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// One cell of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvCell(String);

impl CsvCell {
    /// A cell with a text. A text that a spreadsheet would run as a formula is escaped with a leading `'`.
    ///
    /// Source: <https://owasp.org/www-community/attacks/CSV_Injection>
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{text}")
        } else {
            text
        })
    }
}

impl AsRef<[u8]> for CsvCell {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl CsvCell {
    /// A cell with a JSON value. List entries are joined by spaces. Numbers are not escaped: no spreadsheet runs them.
    fn of(value: &RawValue) -> Self {
        let json = value.get();
        if json == "null" {
            Self::empty()
        } else if let Ok(text) = serde_json::from_str::<String>(json) {
            Self::text(text)
        } else if let Ok(words) = serde_json::from_str::<Vec<String>>(json) {
            Self::text(words.join(" "))
        } else {
            Self(json.to_owned())
        }
    }

    const fn empty() -> Self {
        Self(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_member_and_no_metric_takes_the_name_of_another() {
        let row: Box<RawValue> = serde_json::from_str(
            r#"{"from": "=1", "share": 0.50, "flags": ["a", "b"], "until": null, "end": {"value": 1.10},
                "from": {"min": -5}, "partial": {"mean": 2}, "value": {"mean": 3.0}, "value": 3.0}"#,
        )
        .expect("JSON");
        for (column, cell) in [
            ("from", "'=1"),
            ("from.min", "-5"),
            ("share", "0.50"),
            ("flags", "a b"),
            ("until", ""),
            ("end_value", "1.10"),
            ("partial", ""),
            ("partial.mean", "2"),
            ("value", "3.0"),
            ("value.mean", "3.0"),
            ("absent", ""),
            ("share_value", ""),
        ] {
            assert_eq!(cells(&row, [column]), [CsvCell(cell.to_owned())], "{column}");
        }
    }
}
