//! Pages of lists: where a page begins, how much fits, and the cursor behind it. Reads nothing.

use api::response::MAX_CARRIED;
use api::{Format, Params, Problem, ProblemKind, Request};
use domain::{Device, MetricName};
use table::MAX_CACHED_ENTRIES;

use crate::cursor;

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

    /// The place behind which the page begins.
    pub(crate) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The largest number of entries of the page.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The cursor behind an entry.
    pub(crate) fn cursor_behind(&self, id: &str) -> String {
        cursor::encode(&self.query_fingerprint, id)
    }

    /// The devices of the page, and the cursor behind them where there are more.
    ///
    /// Newest values are paid for, so none are asked for that would not fit into the answer.
    pub(crate) fn devices<'a>(
        &self,
        all: Vec<&'a Device>,
        with_latest: bool,
    ) -> (Vec<&'a Device>, Option<String>) {
        let bytes = |device: &Device| if with_latest { latest_bytes(device) } else { 0 };
        self.paginate(all, |device| device.id.as_str(), bytes)
    }

    /// The entries of the page, and the cursor behind them where there are more.
    pub(crate) fn paginate<'a, T>(
        &self,
        mut all: Vec<&'a T>,
        id: impl Fn(&T) -> &str,
        bytes: impl Fn(&T) -> usize,
    ) -> (Vec<&'a T>, Option<String>) {
        if let Some(after) = &self.after {
            all.retain(|entry| id(entry) > after.as_str());
        }
        let mut sum = 0;
        let fits = |entry: &&&T| {
            sum += bytes(entry);
            sum <= MAX_CARRIED
        };
        let fitting = all.iter().take(self.limit).take_while(fits).count();
        let has_more = all.len() > fitting;
        all.truncate(fitting);
        let last = all.last().filter(|_| has_more);
        let cursor = last.map(|last| self.cursor_behind(id(last)));
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
    device.metrics.keys().map(|name: &MetricName| name.as_str().len() + 110).sum()
}

/// Refuses a list that would omit entries: a client would take them for absent.
pub(crate) fn ensure_complete(is_complete: bool, what: &str) -> Result<(), Problem> {
    if is_complete {
        return Ok(());
    }
    let detail =
        format!("The registry holds more than {MAX_CACHED_ENTRIES} {what}, too many to list.");
    Err(Problem::new(ProblemKind::Internal, detail))
}
