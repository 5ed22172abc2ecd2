//! Notable steps of counters as rows of CSV. Finds none.

use domain::Exact;
use series::Event;

use super::write::Line;
use crate::answer::row::Cell;

/// The columns of an event in CSV.
pub(crate) const EVENT_COLUMNS: [&str; 14] = [
    "timestamp",
    "device_id",
    "metric",
    "events",
    "amount",
    "size",
    "from_timestamp",
    "from_value",
    "to_timestamp",
    "to_value",
    "until",
    "amount_if_wrapped",
    "verdict",
    "verdicts",
];

impl Line for Event {
    fn cells(&self) -> Vec<Cell> {
        let number = |it: Option<&Exact>| it.map_or_else(Cell::empty, Cell::number);
        let mut cells = vec![
            Cell::text(self.timestamp.to_string()),
            Cell::text(self.device_id.as_str()),
            Cell::text(self.metric.as_str()),
            Cell::text(self.events.join(" ")),
            number(self.amount.as_ref()),
            number(self.size.as_ref()),
        ];
        for side in [&self.from, &self.to] {
            let at = side.as_ref().map_or_else(String::new, |it| it.timestamp.to_string());
            cells.push(Cell::text(at));
            cells.push(side.as_ref().map_or_else(Cell::empty, |it| Cell::number(&it.value)));
        }
        cells.push(Cell::text(self.until.map_or_else(String::new, |it| it.to_string())));
        cells.push(number(self.amount_if_wrapped.as_ref()));
        cells.push(Cell::text(self.verdict.unwrap_or_default()));
        cells.push(Cell::text(self.verdicts.join(" ")));
        cells
    }
}
