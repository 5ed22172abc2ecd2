//! A check for all commands that read answers of the API: those of another program are no success.

use std::process::ExitCode;

use crate::tests::fake_server::{self, Reply};

/// Checks that a command rejects answers of another program, and does not report success for them. A case is the
/// words of an action and the requested path.
pub(crate) fn ensure_others_are_refused(
    command: &str,
    cases: &[(&[&str], &str)],
    act: impl Fn(&[&str]) -> anyhow::Result<ExitCode>,
) {
    for body in ["{}", "[]", "", "<html>"] {
        let server = fake_server::serve(move |_, request| match request.path.as_str() {
            "/ready" => Reply::of(200, r#"{"status":"ready","up":"0s"}"#),
            _ => Reply::of(200, body),
        });
        for (words, path) in cases {
            let words = [&[command, "--url", &server.url], *words].concat();
            let error = act(&words).unwrap_err().to_string();
            let expected = format!("{}{path} answers 200, but not as Roomtide does", server.url);
            assert!(error.starts_with(&expected), "{words:?}: {error}");
        }
    }
}
