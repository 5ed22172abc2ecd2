//! Checks output files, the server and the token's permissions before an import, because reading the source may take an
//! hour. Reads no source and stores nothing.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::args::ImportArgs;
use super::session;
use crate::client::{Ask, Client};

/// Why a token of scope `write` is not enough.
const NEEDS_ADMIN: &str =
    "this takes a token of scope admin, at an address that answers the whole API";

/// Fails if the import could not begin or could not complete.
pub(super) fn check(args: &ImportArgs) -> anyhow::Result<()> {
    let file = args.file.as_path();
    if args.address().is_none() && file != Path::new("-") {
        std::fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    }

    drop(session::state_of(args, "")?);

    // A new directory is made only when the first reading is about to be sent, so that an unreadable source leaves
    // none.
    let client = args.client()?;
    if client.is_server() {
        client.ensure_roomtide()?;
        ensure_may_write(client)?;
        if args.thin_before.is_some() {
            ensure_may_read(client)?;
        }
    }

    Ok(())
}

/// Sends an empty request to post readings. The server checks the permission before anything else.
fn ensure_may_write(client: &Client) -> anyhow::Result<()> {
    const PATH: &str = "/readings";
    let answer = client.send(Ask::json("POST", PATH, "[]"))?;
    match answer.status {
        401 | 403 | 404 => Err(client.error(PATH, &answer)),
        _ => Ok(()),
    }
}

/// Fails if the token may not edit. A file that restores devices, rooms and annotations needs edits, and so does a
/// take-back. Edits nothing, because the request's body is not a valid edit.
pub(super) fn ensure_may_edit(client: &Client) -> anyhow::Result<()> {
    const PATH: &str = "/devices/roomtide";
    let answer = client.send(Ask::json("PATCH", PATH, "[]"))?;
    let is_kept_out = matches!(answer.status, 401 | 403) || answer.problem().is_elsewhere();
    if is_kept_out {
        bail!("{}; {NEEDS_ADMIN}", client.error(PATH, &answer));
    }
    Ok(())
}

/// Fails if the token may not read the metrics of a device, which --thin-before needs to find the counters.
fn ensure_may_read(client: &Client) -> anyhow::Result<()> {
    const PATH: &str = "/devices?limit=1";
    let answer = client.get(PATH)?;
    if answer.status != 200 {
        bail!("{}; --thin-before asks which metrics are counters", client.error(PATH, &answer));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server::{self, Reply};
    use crate::tests::parsed;

    const READY: &str = r#"{"status":"ready","up":"0s"}"#;

    /// What is said before a file is read that is sent to a server which answers so.
    fn said(words: &[&str], ready: &'static str, post: u16, get: u16) -> String {
        let server = fake_server::serve(move |_, request| match &*request.path {
            "/ready" => Reply::of(200, ready),
            "/readings" => {
                assert_eq!((&*request.method, &*request.body), ("POST", "[]"), "nothing is stored");
                Reply::of(post, "{}")
            }
            _ => Reply::of(get, "{}"),
        });
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(place("a.lp"), "m v=1 1").unwrap();
        let words = words.iter().map(|word| match word.strip_prefix("in:") {
            Some(name) => place(name),
            None => (*word).to_owned(),
        });
        let words = ["import".to_owned()].into_iter().chain(words);
        let mut args: ImportArgs = parsed(words).unwrap();
        args.at.url = Some(server.url.clone());
        args.client = match args.at.open_to_import() {
            Ok(client) => Some(std::sync::Arc::new(client)),
            Err(error) => return format!("{error:#}"),
        };
        let said = check(&args).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left");
        said
    }

    #[test]
    fn what_would_end_an_import_is_found_before_its_source_is_read() {
        let thin = ["in:a.lp", "--thin-before", "2024-01-01T00:00:00Z"];
        for (words, ready, post, get, expected) in [
            (&["in:a.lp"][..], READY, 400, 403, ""),
            (&["in:a.lp", "--token", "t"], READY, 400, 403, ""),
            (&["in:a.lp", "--token", "t"], READY, 401, 200, "/readings answers 401"),
            (&["in:a.lp"], READY, 403, 200, "/readings answers 403"),
            (&["in:a.lp"], READY, 404, 200, "/readings answers 404"),
            (&["in:a.lp"], r#"{"up":"3h"}"#, 400, 200, "is no Roomtide"),
            (&["in:a.lp", "--token", "@in/no/file"], READY, 400, 200, "no file with one token"),
            (&["in:b.lp"], READY, 400, 200, "cannot read"),
            (&["in:a.lp", "--state", "in:no/such"], READY, 400, 200, "--state"),
            (&["in:a.lp", "--state", "in:a.lp"], READY, 400, 200, "--state"),
            (&thin, READY, 400, 200, ""),
            (&thin, READY, 400, 403, "--thin-before asks which metrics are counters"),
        ] {
            let said = said(words, ready, post, get);
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
        }
    }
}
