//! The counters that an import makes of amounts, and whether they fit the table's values before and after them. Adds up
//! nothing.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Timestamp;
use rust_decimal::Decimal;

/// The counters that a table has already.
pub trait StoredCounters: Debug {
    /// Returns whether the counters can be asked for.
    fn may_read(&self) -> anyhow::Result<bool>;

    /// Returns the last value of a metric before a time in milliseconds, and its time.
    fn last_before(
        &self,
        device: &str,
        metric: &str,
        to: i64,
    ) -> anyhow::Result<Option<(i64, Decimal)>>;

    /// Returns the first value of a metric from a time in milliseconds on, and its time.
    fn first_from(
        &self,
        device: &str,
        metric: &str,
        from: i64,
    ) -> anyhow::Result<Option<(i64, Decimal)>>;
}

/// The begin of a counter.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// The time of the first value, in milliseconds.
    pub at: i64,
    /// The table's last value before that time, when the import asked for it; with its time.
    pub before: Option<(i64, Decimal)>,
}

/// A counter that an import makes.
#[derive(Debug)]
pub struct MadeCounter {
    /// The device.
    pub device: String,
    /// The metric.
    pub metric: String,
    /// The begin.
    pub begin: Begin,
    /// The time of the last value.
    pub end: Timestamp,
    /// The last value.
    pub value: Decimal,
    /// What a person does if later values of the table do not go on from it.
    pub mend: String,
}

/// The counters that are made so far, shared by a source and the import.
#[derive(Debug, Clone, Default)]
pub struct MadeCounters(Arc<Mutex<Vec<MadeCounter>>>);

impl MadeCounters {
    /// Adds counters.
    pub fn add_all(&self, made: impl IntoIterator<Item = MadeCounter>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(made);
    }

    /// Asks again, when all is stored, whether the counters fit the table's values before and after them: another
    /// import of the same counter may have run at the same time. Returns what does not fit.
    pub fn misfits(&self, table: &dyn StoredCounters) -> anyhow::Result<Vec<String>> {
        let mut misfits = Vec::new();
        for made in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            misfits.extend(made.misfit_before(table)?);
            misfits.extend(made.misfit_after(table)?);
        }
        Ok(misfits)
    }
}

impl MadeCounter {
    fn misfit_before(&self, table: &dyn StoredCounters) -> anyhow::Result<Option<String>> {
        let Self { device, metric, begin, .. } = self;
        let before = table.last_before(device, metric, begin.at)?;
        if before == begin.before {
            return Ok(None);
        }

        let at = Timestamp::from_millis(begin.at)?;
        Ok(Some(format!(
            "{metric} of {device} begins at {at}, and the table has got other values before it since this import began, as \
             of another import: the energy at the seam is wrong. Take this import back, and import the file again"
        )))
    }

    /// Says why the table's later values of the counter do not go on from its end.
    pub fn misfit_after(&self, table: &dyn StoredCounters) -> anyhow::Result<Option<String>> {
        let Self { device, metric, end, value, mend, .. } = self;
        let millis = end.as_millis();
        let Some((_, later)) = table.first_from(device, metric, millis + 1)? else {
            return Ok(None);
        };

        let stored = table.first_from(device, metric, millis)?.filter(|(at, _)| *at == millis);
        let is_own = stored.is_none_or(|(_, stored)| stored == *value);
        let fits = is_own && *value <= later;
        Ok((!fits).then(|| {
            format!(
                "{metric} of {device} ends at {end} with {value}, and the table has later values, as of a later file, that \
                 do not go on from there: the energy at the seam would be wrong. {mend}"
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The values of a counter by time.
    #[derive(Debug)]
    struct Table(BTreeMap<i64, Decimal>);

    impl StoredCounters for Table {
        fn may_read(&self) -> anyhow::Result<bool> {
            Ok(true)
        }

        fn last_before(&self, _: &str, _: &str, to: i64) -> anyhow::Result<Option<(i64, Decimal)>> {
            Ok(self.0.range(..to).next_back().map(|(at, value)| (*at, *value)))
        }

        fn first_from(
            &self,
            _: &str,
            _: &str,
            from: i64,
        ) -> anyhow::Result<Option<(i64, Decimal)>> {
            Ok(self.0.range(from..).next().map(|(at, value)| (*at, *value)))
        }
    }

    /// What does not fit a counter of 5 at 1000 to 9 at 2000, which was begun when the table had 5 at 500.
    fn misfits(table: &[(i64, i64)]) -> Vec<String> {
        let made = MadeCounters::default();
        made.add_all([MadeCounter {
            device: "m".to_owned(),
            metric: "k".to_owned(),
            begin: Begin { at: 1_000, before: Some((500, 5.into())) },
            end: Timestamp::from_millis(2_000).unwrap(),
            value: 9.into(),
            mend: "Mend it.".to_owned(),
        }]);
        let values = table.iter().map(|(at, value)| (*at, (*value).into()));
        made.misfits(&Table(values.collect())).unwrap()
    }

    #[test]
    fn what_another_import_stored_at_the_same_time_is_found() {
        let own = [(500, 5), (1_000, 5), (2_000, 9)];
        assert_eq!(misfits(&own), [""; 0]);
        assert_eq!(misfits(&[&own[..], &[(3_000, 9)]].concat()), [""; 0]);

        let found = misfits(&[&own[..], &[(900, 7)]].concat());
        assert!(found[0].contains("got other values before it"), "{found:?}");
        let found = misfits(&[&own[..], &[(3_000, 8)]].concat());
        assert!(found[0].contains("ends at 1970-01-01T00:00:02.000Z with 9"), "{found:?}");
        assert!(found[0].ends_with("Mend it."), "{found:?}");
        let found = misfits(&[(500, 5), (1_000, 5), (2_000, 1), (3_000, 10)]);
        assert_eq!(found.len(), 1, "its last value was overwritten");
    }
}
