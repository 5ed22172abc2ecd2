//! Begins and writes one page of a list over a time range. Reads nothing.

use api::{Params, Problem, Request, Response};
use domain::TimeRange;

use crate::answer::cursor::{self, CursorPosition};
use crate::answer::page::RowPage;
use crate::answer::row::Row;
use crate::answer::sheet::FixedColumns;
use crate::shared_state::Call;

/// The range of a page, and the position after which the page begins. The first page reads the range with `requested`;
/// further pages take it from the cursor, so that the range stays the same.
pub(crate) fn begin<P: CursorPosition>(
    request: &Request,
    params: &Params,
    requested: impl FnOnce() -> Result<TimeRange, Problem>,
) -> Result<(TimeRange, Option<P>), Problem> {
    let Some(cursor) = params.get("cursor") else { return Ok((requested()?, None)) };
    let (range, after) = cursor::decode_in(&params.query_fingerprint(request), cursor)?;
    Ok((range, Some(after)))
}

/// A page of a list, without its rows.
pub(crate) struct RangeListPage {
    pub(crate) range: TimeRange,
    /// The columns in CSV.
    pub(crate) own: &'static [&'static str],
    pub(crate) has_more: bool,
}

impl RangeListPage {
    /// Writes rows. `position` returns the position of a row, for a cursor.
    pub(crate) fn write<S, P: CursorPosition>(
        &self,
        call: &Call<'_, S>,
        rows: &[impl Row],
        position: impl Fn(usize) -> P,
    ) -> Response {
        let Call { request, params, .. } = call;
        let query_fingerprint = params.query_fingerprint(request);
        let cursor_after = |row| cursor::encode_in(&query_fingerprint, self.range, &position(row));
        let rest = rows.len().checked_sub(1).filter(|_| self.has_more).map(cursor_after);
        let columns = || FixedColumns { own: self.own, known: Vec::new() };
        let page = RowPage::of(params.format(request), request, params);
        page.write(rows, columns, rest, cursor_after)
    }
}
