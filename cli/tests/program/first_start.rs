//! What a server says at its first start where nobody sits before it: its time zone, and how it is reached.

use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::server::{PROGRAM, ServerProcess, run_process};

/// All that a server prints until its greeting ends, and on standard error until it is ended.
fn said(command: &mut Command) -> (String, String) {
    let mut server = ServerProcess::run(command.stderr(Stdio::piped()));
    let mut said = String::new();
    while !said.contains("Ctrl-C stops") {
        assert!(server.output.read_line(&mut said).unwrap() > 0, "{said}");
    }

    server.process.kill().unwrap();
    let mut errors = String::new();
    server.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (said, errors)
}

fn serve(data: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--empty", "--port", "0", "--data-dir"]).arg(data).env_remove("TZ");
    command
}

#[test]
fn the_zone_is_that_of_tz_where_it_names_one() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let zone = |said: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix("  zone    "));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let machine = zone(&said(&mut serve(&at("machine"))).0);

    for (name, tz, expected) in [
        ("named", "Pacific/Auckland", "Pacific/Auckland"),
        ("colon", ":Pacific/Auckland", "Pacific/Auckland"),
        ("empty", "", &*machine),
        ("path", ":/etc/localtime", &machine),
    ] {
        let (said, errors) = said(serve(&at(name)).env("TZ", tz));
        assert_eq!((&*zone(&said), &*errors), (expected, ""), "{tz}");
    }

    let (said, errors) = said(serve(&at("rule")).env("TZ", "CET-1CEST"));
    assert_eq!(zone(&said), machine);
    assert!(errors.contains("TZ=CET-1CEST names no zone of the IANA database"), "{errors}");
    assert!(errors.ends_with(&format!("without it the zone is {machine}\n")), "{errors}");
}

/// The addresses of links in what a server says.
fn links(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("/#token=")).map(str::trim).collect()
}

fn status(url: &str, token: &str) -> u16 {
    let request = ureq::get(format!("{url}/devices"));
    let request = request.header("authorization", format!("Bearer {token}"));
    request.config().http_status_as_error(false).build().call().unwrap().status().as_u16()
}

#[test]
fn the_first_start_that_nobody_sees_prints_a_link_and_a_later_one_none() {
    let directory = tempfile::tempdir().unwrap();
    let page = "https://home.example.org/roomtide";
    let (first, _) = said(serve(directory.path()).args(["--auth", "--page-url", page]));
    let [link] = links(&first)[..] else { panic!("{first}") };
    let token = link.strip_prefix(&format!("{page}/#token=")).unwrap();
    assert!(first.contains(&format!("Open {page}/ in a browser")), "{first}");
    // What is pasted works at once: no command can be run in a container.
    assert!(first.contains(&format!("\n  TOKEN={token}\n")), "{first}");
    assert!(!first.contains("token create"), "{first}");

    let (second, _) = said(serve(directory.path()).arg("--auth"));
    assert!(links(&second).is_empty() && !second.contains(token), "{second}");
    assert!(second.contains("token create --scope admin --quiet"), "{second}");
    let server = ServerProcess::start(directory.path(), &["--auth"]);
    assert_eq!((status(&server.url, token), status(&server.url, "rt_other")), (200, 401));
    drop(server);

    let mut list = Command::new(PROGRAM);
    let (_, listed) = run_process(list.args(["token", "list", "--data-dir"]).arg(directory.path()));
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("admin  first link") && !listed.contains(token), "{listed}");
}

#[test]
fn a_server_without_tokens_makes_none_and_older_data_get_their_link() {
    let directory = tempfile::tempdir().unwrap();
    let (open, _) = said(&mut serve(directory.path()));
    assert!(links(&open).is_empty() && !open.contains("TOKEN"), "{open}");

    let (guarded, _) = said(serve(directory.path()).arg("--auth"));
    assert_eq!(links(&guarded).len(), 1, "{guarded}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_start_on_a_terminal_prints_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let words =
        format!("'{PROGRAM}' --empty --auth --port 0 --data-dir '{}'", directory.path().display());
    // It gives the program a terminal, and passes on what that shows.
    let mut server = ServerProcess::run(Command::new("script").args(["-qec", &words, "/dev/null"]));
    let mut said = String::new();
    while !said.contains("Ctrl-C stops") {
        assert!(server.output.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(links(&said).is_empty() && said.contains("token create --scope admin"), "{said}");
}

#[test]
fn health_is_told_by_the_exit_code_alone_and_needs_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(directory.path(), &["--auth"]);
    let url = server.url.clone();
    let health = || run_process(Command::new(PROGRAM).args(["health", "--url", &url]));
    assert_eq!(health(), (Some(0), String::new()));

    drop(server);
    let (code, said) = health();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with(&format!("roomtide: cannot reach {url}: ")), "{said}");
}
