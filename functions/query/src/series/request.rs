//! The parameters of a request for a series. Reads no table.

use api::{Format, Params, Problem, Request};
use domain::{CalendarUnit, MetricName, TimeRange, Timestamp, Zone};
use series::{Function, Grid, MAX_ROWS};

use crate::readings::ranges::time_range;

/// The parameters of `series` and `energy`.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the request, by itself")]
pub(crate) struct SeriesRequest {
    pub(crate) format: Format,
    /// The metrics asked for; `None` are all.
    pub(crate) metrics: Option<Vec<MetricName>>,
    /// The functions asked for; `None` are the usual ones of each metric.
    pub(crate) functions: Option<Vec<Function>>,
    /// The unit of the rows; `None` asks for one total.
    pub(crate) unit: Option<CalendarUnit>,
    zone: Option<Zone>,
    range: TimeRange,
    /// Whether the rows of each device are asked for, apart.
    pub(crate) is_apart: bool,
    /// Whether the rows of each room are asked for.
    pub(crate) is_by_room: bool,
    pub(crate) has_events: bool,
}

impl SeriesRequest {
    /// Reads the parameters.
    pub(crate) fn of(request: &Request, params: &Params, now: Timestamp) -> Result<Self, Problem> {
        let functions = params.words("fn")?;
        let functions =
            functions.map(|words| words.into_iter().filter_map(Function::parse).collect());
        let (is_apart, is_by_room) = (params.flag("devices"), params.flag("rooms"));
        if is_apart && is_by_room {
            let message =
                "asks for rows of rooms, and devices for rows of devices; give one of them";
            return Err(Problem::field("rooms", message));
        }
        Ok(Self {
            format: params.format(request),
            metrics: params.metrics("metric")?,
            functions,
            unit: params.parse("every")?,
            zone: params.parse("tz")?,
            range: time_range(params, now)?,
            is_apart,
            is_by_room,
            has_events: params.flag("events"),
        })
    }

    /// The time zone of the rows: the home's, unless another one is asked for.
    pub(crate) fn zone(&self, home: Zone) -> Zone {
        self.zone.unwrap_or(home)
    }

    /// The rows: the range is widened to the unit's edges.
    pub(crate) fn grid(&self, zone: Zone) -> Result<Grid, Problem> {
        let Some(unit) = self.unit else { return Ok(Grid::total(self.range)) };
        Grid::of(unit, self.range, zone).ok_or_else(|| {
            let message = format!(
                "makes more than {MAX_ROWS} rows; narrow from and to, or choose a longer unit"
            );
            Problem::field("every", message)
        })
    }
}

#[cfg(test)]
mod tests {
    use api::endpoints::{FUNCTIONS, UNITS};

    use super::*;

    #[test]
    fn the_endpoints_know_the_functions_and_the_units() {
        assert_eq!(Function::ALL.map(Function::as_str), FUNCTIONS);
        assert!(FUNCTIONS.iter().all(|name| Function::parse(name).is_some()));
        assert_eq!(CalendarUnit::ALL.map(CalendarUnit::as_str), UNITS);
    }
}
