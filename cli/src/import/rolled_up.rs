//! Waits until the imported readings are rolled up. Sends no reading.
//!
//! The server says up to which instant all late changes are folded, and the time of its clock. The wait is over when
//! that instant reaches the clock's time at the end of the import.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use domain::Timestamp;
use indicatif::ProgressBar;
use runtime::clock::Stopwatch;
use serde::Deserialize;

use crate::client::Client;

/// The path of the answer that says how far rollups are.
const PATH: &str = "/health?details=1";
/// The first pause between requests; each further pause is twice as long, up to a maximum. Without progress for a
/// longer time, the wait is given up.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(300);

/// The result of the wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Everything is rolled up.
    RolledUp,
    /// The server does not tell: it has no rollups yet, or is an older version.
    Untold,
    /// The rollups lag, and made no progress for a long time.
    Behind,
}

#[derive(Deserialize)]
struct Health {
    rollups: Option<RollupsHealth>,
}

#[derive(Deserialize)]
struct RollupsHealth {
    folded_until: Option<String>,
    at: Option<String>,
}

/// Waits until the server has folded everything stored so far. Fails with [`crate::interrupted::Interrupted`] when a
/// person interrupts.
pub(super) fn wait(client: &Client, bar: &ProgressBar) -> anyhow::Result<Waited> {
    let (mut stored, mut before) = (None, None);
    let mut quiet = Stopwatch::start();
    let mut pause = FIRST_PAUSE;
    loop {
        let Some((folded, at)) = look(client)? else { return Ok(Waited::Untold) };
        // The server's clock counts, because this machine's clock may differ.
        let stored = *stored.get_or_insert(at);
        if folded >= stored {
            return Ok(Waited::RolledUp);
        }

        if before.replace(folded) != Some(folded) {
            quiet = Stopwatch::start();
        }
        if quiet.elapsed() > PATIENCE {
            return Ok(Waited::Behind);
        }

        let left = stored.since(folded).num_seconds();
        bar.set_message(format!("rolling up: {left} seconds of changes are left"));
        thread::sleep(pause);
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// The instant until which everything is folded, and the server's time; `None` if the server does not tell.
fn look(client: &Client) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let answer = client.get(PATH)?;
    if answer.status != 200 {
        return Ok(None);
    }

    let strange = || client.strange(PATH, &answer);
    let health: Health = client.parsed(PATH, &answer)?;
    let Some(RollupsHealth { folded_until: Some(folded), at: Some(at) }) = health.rollups else {
        return Ok(None);
    };
    let read = |text: &str| Timestamp::parse_absolute(text).with_context(strange);
    Ok(Some((read(&folded)?, read(&at)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server::{self, Reply};

    /// Waits for a server that answers so, and returns how often it was asked.
    fn wait_for(answers: &'static [(u16, &'static str)]) -> (Waited, usize) {
        let (asked, all) = std::sync::mpsc::channel();
        let server = fake_server::serve(move |n, request| {
            asked.send(request.path).unwrap();
            let (status, body) = answers[n];
            Reply::of(status, body)
        });
        let client = server.client();
        let waited = wait(&client, &ProgressBar::hidden()).unwrap();
        let asked: Vec<String> = all.try_iter().collect();
        assert!(asked.iter().all(|path| path == PATH), "{asked:?}");
        (waited, asked.len())
    }

    #[test]
    fn a_wait_ends_when_all_before_it_is_folded_whatever_others_write() {
        let waited = wait_for(&[
            (
                200,
                r#"{"rollups":{"folded_until":"2026-01-11T16:00:00Z","at":"2026-01-11T16:00:09Z"}}"#,
            ),
            (
                200,
                r#"{"rollups":{"folded_until":"2026-01-11T16:00:08Z","at":"2026-01-11T16:00:17Z"}}"#,
            ),
            (
                200,
                r#"{"rollups":{"folded_until":"2026-01-11T16:00:09Z","at":"2026-01-11T16:00:18Z"}}"#,
            ),
        ]);
        assert_eq!(waited, (Waited::RolledUp, 3));
        let idle = wait_for(&[(
            200,
            r#"{"rollups":{"folded_until":"2026-01-11T16:00:09Z","at":"2026-01-11T16:00:09Z"}}"#,
        )]);
        assert_eq!(idle, (Waited::RolledUp, 1));
    }

    #[test]
    fn a_server_that_does_not_tell_is_not_waited_for() {
        for answer in [
            &[(403, "{}")],
            &[(200, r#"{"status":"pass"}"#)],
            &[(200, r#"{"rollups":null}"#)],
            &[(200, r#"{"rollups":{"tz":"UTC","sealed":"2026-01-11T16:00:00Z"}}"#)],
        ] {
            assert_eq!(wait_for(answer), (Waited::Untold, 1), "{answer:?}");
        }
    }
}
