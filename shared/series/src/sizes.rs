//! About how large rollups and readings are, for what depends on what they cost. Reads none.

/// The size of a rollup's keys and own attributes, about.
const ROLLUP_BYTES: usize = 150;
/// The size of one metric of a rollup, about.
const METRIC_BYTES: usize = 70;
/// The size of a reading's keys and own attributes, about.
const READING_BYTES: usize = 80;
/// The size of one metric of a reading, about.
const VALUE_BYTES: usize = 18;

/// The bytes of a rollup with so many metrics.
pub(crate) const fn of_rollup(metrics: usize) -> usize {
    ROLLUP_BYTES.saturating_add(METRIC_BYTES.saturating_mul(metrics))
}

/// The bytes of a reading with so many metrics.
pub(crate) const fn of_reading(metrics: usize) -> usize {
    READING_BYTES.saturating_add(VALUE_BYTES.saturating_mul(metrics))
}
