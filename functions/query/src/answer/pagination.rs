//! Pages of lists: where a page begins, how much fits, and the cursor after it. Reads nothing.

use std::str::FromStr;

use api::response::MAX_CARRIED;
use api::{Format, Params, Problem, ProblemKind, Request};
use domain::{Device, MetricName};
use runtime::registry::Snapshot;
use table::MAX_CACHED_ENTRIES;

use crate::answer::cursor;

/// The page of a list that a request asks for.
pub(crate) struct ListRequest {
    pub(crate) format: Format,
    limit: usize,
    query_fingerprint: String,
    /// The last entry of the page before.
    after: Option<String>,
}

impl ListRequest {
    /// Reads the parameters, before anything is read of the table.
    pub(crate) fn of(request: &Request, params: &Params) -> Result<Self, Problem> {
        let query_fingerprint = params.query_fingerprint(request);
        let cursor = params.get("cursor");
        let after = cursor.map(|cursor| cursor::decode(&query_fingerprint, cursor)).transpose()?;
        let (format, limit) = (params.format(request), params.limit());
        Ok(Self { format, limit, query_fingerprint, after })
    }

    /// The place after which the page begins.
    pub(crate) fn place(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The cursor after an entry.
    pub(crate) fn cursor_after(&self, id: &str) -> String {
        cursor::encode(&self.query_fingerprint, id)
    }

    /// The last entry of the page before.
    pub(crate) fn after<T: FromStr>(&self) -> Option<T> {
        // A cursor carries an id that this program has written.
        self.after.as_ref().and_then(|id| id.parse().ok())
    }

    /// The number of entries that the request asks for.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The entries of the page, and the cursor after them where there are more.
    pub(crate) fn paginate<'a, T>(
        &self,
        mut all: Vec<&'a T>,
        has_more: bool,
        id: impl Fn(&T) -> &str,
    ) -> (Vec<&'a T>, Option<String>) {
        if let Some(after) = &self.after {
            all.retain(|entry| id(entry) > after.as_str());
        }
        let has_more = has_more || all.len() > self.limit;
        all.truncate(self.limit);
        let last = all.last().filter(|_| has_more);
        let cursor = last.map(|last| self.cursor_after(id(last)));
        (all, cursor)
    }
}

/// The number of the devices whose newest values fit into one answer.
pub(crate) fn fitting<'a>(devices: impl Iterator<Item = &'a Device>) -> usize {
    let mut sum = 0;
    let fits = |device: &&Device| {
        sum += latest_bytes(device);
        sum <= MAX_CARRIED
    };
    devices.take_while(fits).count()
}

/// The largest size of a device's newest values: of a metric its name, 46 characters of number, a timestamp,
/// punctuation.
fn latest_bytes(device: &Device) -> usize {
    device.metrics().keys().map(|name: &MetricName| name.as_str().len() + 110).sum()
}

/// Refuses what is answered from all rooms where memory does not hold them.
pub(crate) fn ensure_all_rooms(snapshot: &Snapshot) -> Result<(), Problem> {
    if snapshot.has_all_rooms {
        return Ok(());
    }
    let detail = format!(
        "Homes are found among the rooms in memory, and there are more than {MAX_CACHED_ENTRIES} rooms. Ask \
         room by room."
    );
    Err(Problem::new(ProblemKind::Unanswerable, detail))
}
