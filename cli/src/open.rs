//! `roomtide open`: opens the page of a server in the browser. Serves nothing.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::client::Client;
use crate::defaults::SERVER;
use crate::output::print;

/// The program that opens an address in the desktop's browser, and its arguments before the address.
const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    // `start` is built into the shell. It takes the first quoted text for a window title, hence the empty one.
    ("cmd", &["/C", "start", ""])
} else {
    ("xdg-open", &[])
};

/// The command line of `roomtide open`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server
    #[arg(long, default_value = SERVER)]
    url: String,
    /// Only print the address
    #[arg(long)]
    print: bool,
}

/// Opens the page, if Roomtide answers.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let client = Client::new(&args.url, None)?;
    client.ensure_roomtide()?;
    let page = format!("{}/", client.url());
    print(&page);
    if args.print {
        return Ok(());
    }

    let (program, words) = OPENER;
    let mut command = Command::new(program);
    let command = command.args(words).arg(&page).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("{program} opens no browser here; open the address yourself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake_server;
    use crate::tests::parsed;

    #[test]
    fn the_page_of_something_else_is_not_opened() {
        let server = fake_server::always(200, "{}");
        let args: Args = parsed(["open", "--print", "--url", &server.url]).unwrap();
        let error = run(&args).unwrap_err().to_string();
        assert!(error.contains("is no Roomtide"), "{error}");
    }
}
