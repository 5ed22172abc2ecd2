//! `roomtide health`: whether a server answers, as an exit code. Sends no token and repeats no request.

use std::time::Duration;

use anyhow::ensure;

use crate::client::{Ask, Client};
use crate::defaults::SERVER;

/// How long a server has to answer: less than the time after which Docker ends a health check.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The command line of `roomtide health`.
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// The server
    #[arg(long, default_value = SERVER)]
    url: String,
}

/// Fails unless the server answers that it is well. Prints nothing on success.
pub(crate) fn run(args: &HealthArgs) -> anyhow::Result<()> {
    let client = Client::new(&args.url, None)?.that_asks_once(TIME_LIMIT);
    let health = client.value(Ask::get("/health"), "status")?;
    let status = &health["status"];
    ensure!(status == "pass", "{}/health says that its status is {status}", client.url());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use runtime::clock::Stopwatch;

    use super::*;
    use crate::tests::fake_server;
    use crate::tests::parsed;

    fn health_of(url: &str) -> Result<(), String> {
        let args: HealthArgs = parsed(["health", "--url", url]).unwrap();
        run(&args).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn only_a_server_that_says_that_it_is_well_is_well() {
        let pass = r#"{"name": "influxdb", "status": "pass"}"#;
        for (status, body, why) in [
            (200, pass, None),
            (200, r#"{"status": "fail"}"#, Some(r#"its status is "fail""#)),
            (200, "<html>", Some("/health answers 200, but not as Roomtide does")),
            (503, r#"{"title": "busy"}"#, Some("/health answers 503")),
            (401, pass, Some("/health answers 401")),
        ] {
            let server = fake_server::always(status, body);
            let error = health_of(&server.url).err();
            let said = error.as_deref().unwrap_or_default();
            assert!(said.contains(why.unwrap_or_default()), "{body}: {said}");
            assert_eq!(error.is_some(), why.is_some(), "{body}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let watch = Stopwatch::start();
        let error = health_of(&url).unwrap_err();
        assert!(error.starts_with(&format!("{url} gives no answer in time")), "{error}");
        assert!(watch.elapsed() < TIME_LIMIT * 5);

        drop(silent);
        let error = health_of(&url).unwrap_err();
        assert!(error.starts_with(&format!("cannot reach {url}: ")), "{error}");
    }
}
