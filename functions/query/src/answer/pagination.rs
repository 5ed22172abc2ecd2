//! Pages of lists: where a page begins, how much fits, and the cursor after it. Reads nothing.

use std::str::FromStr;

use api::response::MAX_CARRIED;
use api::{Format, Params, Problem, ProblemKind, Request};
use domain::{Device, MetricName};
use runtime::registry::RegistrySnapshot;
use table::MAX_CACHED_ENTRIES;

use crate::answer::cursor;

/// The page of a list that a request asks for.
pub(crate) struct ListRequest {
    pub(crate) format: Format,
    limit: usize,
    query_fingerprint: String,
    /// The position of the previous page's last entry.
    after: Option<String>,
}

impl ListRequest {
    /// Parses the parameters.
    pub(crate) fn of(request: &Request, params: &Params) -> Result<Self, Problem> {
        let query_fingerprint = params.query_fingerprint(request);
        let cursor = params.get("cursor");
        let after = cursor.map(|cursor| cursor::decode(&query_fingerprint, cursor)).transpose()?;
        let (format, limit) = (params.format(request), params.limit());
        Ok(Self { format, limit, query_fingerprint, after })
    }

    /// The position after which the page begins.
    pub(crate) fn position(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The cursor after an entry.
    pub(crate) fn cursor_after(&self, id: &str) -> String {
        cursor::encode(&self.query_fingerprint, id)
    }

    /// The id of the previous page's last entry.
    pub(crate) fn after<T: FromStr>(&self) -> Option<T> {
        // This program wrote the id into the cursor, so it parses.
        self.after.as_ref().and_then(|id| id.parse().ok())
    }

    /// The number of entries that the request asks for.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The entries of the page, and the cursor to the next page if there is one.
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

/// The number of devices that fit into one answer, each with its newest values.
pub(crate) fn fitting<'a>(devices: impl Iterator<Item = &'a Device>) -> usize {
    let mut sum = 0;
    let fits = |device: &&Device| {
        sum += latest_bytes(device);
        sum <= MAX_CARRIED
    };
    devices.take_while(fits).count()
}

/// The maximum size of a device's newest values: for each metric a name, a number of 46 characters, a timestamp and
/// punctuation.
fn latest_bytes(device: &Device) -> usize {
    device.metrics().keys().map(|name: &MetricName| name.as_str().len() + 110).sum()
}

/// Refuses a question about homes if memory does not hold all rooms.
pub(crate) fn ensure_all_rooms(snapshot: &RegistrySnapshot) -> Result<(), Problem> {
    if snapshot.has_all_rooms {
        return Ok(());
    }
    let detail = format!(
        "Homes are found among the rooms in memory, and there are more than {MAX_CACHED_ENTRIES} rooms. Ask \
         room by room."
    );
    Err(Problem::new(ProblemKind::Unanswerable, detail))
}
