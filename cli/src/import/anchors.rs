//! The state of a meter's counters in the table: since when the meter sends itself, and which values it sent. Reads no
//! file.

use crate::client::Client;
use history::made_counters::StoredCounters as _;
use history::shelly::{Anchors, Log};

/// Asks the server for the counters of a log that the table has.
///
/// Only rows from the time `from` on count, in milliseconds, so that a gap in the meter's own readings can be filled.
///
/// A reading at the end of a log row may come from an earlier import of that row; any other reading was sent by the
/// meter. The imported readings precede the meter's own, so a binary search finds the border.
pub(super) fn of(client: &Client, log: &Log, from: i64) -> anyhow::Result<Anchors> {
    let (mut ends, counters) = (log.ends(), log.counters());
    ends.retain(|end| *end >= from);
    let mut anchors = Anchors { from, ..Anchors::default() };
    let Some(((device, metric), first)) = counters.first().zip(ends.first()) else {
        return Ok(anchors);
    };

    let is_of_log = |at: i64| ends.binary_search(&at).is_ok();
    let mut failed = None;
    let imported = ends.partition_point(|end| match client.first_from(device, metric, *end) {
        Ok(found) => found.is_some_and(|(at, _)| is_of_log(at)),
        Err(error) => {
            failed.get_or_insert(error);
            false
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }

    let after_imported = ends.get(imported).copied().unwrap_or_else(|| ends[ends.len() - 1] + 1);
    anchors.live = client.first_from(device, metric, after_imported)?.map(|(at, _)| at);

    let begin = log.first_from(from).unwrap_or(*first);
    for (device, metric) in counters {
        let mut found = client.first_from(&device, &metric, anchors.live.unwrap_or(*first))?;
        if found.is_none() {
            found = client.last_before(&device, &metric, *first)?;
        }
        let before = client.last_before(&device, &metric, begin)?;

        let counter = (device, metric);
        anchors.before.extend(before.map(|before| (counter.clone(), before)));
        anchors.counters.extend(found.map(|found| (counter, found)));
    }

    Ok(anchors)
}

#[cfg(test)]
mod tests {

    use domain::Timestamp;
    use domain::given::{self, device};

    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use history::text_lines::TextLines;

    /// The beginning of the log's first minute, in seconds.
    const BEGIN: i64 = 1_771_180_620;

    /// The log of an hour.
    fn log() -> Log {
        let rows = (0..60).map(|n| format!("{},1\n", BEGIN + 60 * n));
        let text = format!("timestamp,total_act_energy\n{}", rows.collect::<String>());
        Log::read(TextLines::new(text.as_bytes()), device("m")).unwrap()
    }

    /// A server with readings at these milliseconds behind the beginning, each with its place as its value.
    fn server(times: &[i64]) -> fake_server::FakeRoomtide {
        let times: Vec<i64> = times.iter().map(|at| BEGIN * 1_000 + at).collect();
        fake_server::serve(move |_, request| {
            let (path, query) = request.path.split_once('?').unwrap();
            assert_eq!(path, "/devices/m/readings");
            let find = |name: &str| {
                let mut pairs = form_urlencoded::parse(query.as_bytes());
                pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
            };
            let millis = |text: String| given::at(&text).as_millis();
            let to = millis(find("to").unwrap());
            // Without it a server looks a day back.
            let (from, is_last) = (millis(find("from").unwrap()), find("order").is_some());
            let mut found = times.iter().enumerate().filter(|(_, at)| (from..to).contains(*at));
            let found = if is_last { found.next_back() } else { found.next() };
            let row = found.map(|(n, at)| {
                let at = Timestamp::from_millis(*at).unwrap();
                format!(r#"{{"timestamp": "{at}", "cumulative_kwh_p": {n}.50}}"#)
            });
            Reply::of(200, &format!(r#"{{"data": [{}]}}"#, row.unwrap_or_default()))
        })
    }

    /// Since when the meter sends, and where its counter is known; in milliseconds behind the beginning.
    fn found(times: &[i64], from: i64) -> (Option<i64>, Option<(i64, String)>) {
        let server = server(times);
        let client = server.client();
        let anchors = of(&client, &log(), BEGIN * 1_000 + from).unwrap();
        let counter = anchors.counters.values().next();
        let counter = counter.map(|(at, value)| (at - BEGIN * 1_000, value.to_string()));
        (anchors.live.map(|live| live - BEGIN * 1_000), counter)
    }

    #[test]
    fn the_meter_s_own_readings_are_told_from_those_of_an_earlier_import() {
        let minute = |n: i64| n * 60_000;
        let is = |at: i64, value: &str| Some((at, value.to_owned()));
        assert_eq!(found(&[], 0), (None, None));
        // The beginning of the log, and the ends of some rows.
        let mut earlier: Vec<i64> = (0..=20).map(minute).collect();
        assert_eq!(found(&earlier, 0), (None, is(minute(1), "1.50")));
        earlier.extend([minute(30) + 250, minute(31) + 250]);
        assert_eq!(found(&earlier, 0), (Some(minute(30) + 250), is(minute(30) + 250, "21.50")));
        // It has sent before the log, with a gap.
        let gap = [minute(-5) + 1, minute(2) + 1, minute(40) + 1];
        assert_eq!(found(&gap, 0), (Some(minute(2) + 1), is(minute(2) + 1, "1.50")));
        assert_eq!(found(&gap, minute(3)), (Some(minute(40) + 1), is(minute(40) + 1, "2.50")));
        // Another log ended before.
        assert_eq!(found(&[minute(-7)], 0), (None, is(minute(-7), "0.50")));
    }

    #[test]
    fn a_token_that_may_not_read_says_so() {
        let client = fake_server::always(403, "{}").client();
        let error = of(&client, &log(), 0).unwrap_err().to_string();
        assert!(error.contains("the token has to read, too"), "{error}");
    }
}
