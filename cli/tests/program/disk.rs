//! A full disk: the client gets an error, and the server's terminal shows it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::server::{PROGRAM, ServerProcess};

/// A shell's limit of the size of files, beyond which writing fails as on a bad disk. Large enough for an
/// empty table, in blocks of 512 or 1,024 bytes.
const LIMIT: &str = "trap '' XFSZ; ulimit -f 1000; exec \"$@\"";

#[test]
fn a_disk_that_takes_nothing_more_is_shown_once_on_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", LIMIT, "sh", PROGRAM, "--empty", "--port", "0", "--data-dir"]);
    let mut server = ServerProcess::run(command.arg(directory.path()).stderr(Stdio::piped()));
    let stderr = BufReader::new(server.process.stderr.take().unwrap());
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|l| tell.send(l)));

    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
    let agent = ureq::Agent::new_with_config(config.http_status_as_error(false).build());
    let url = format!("{}/readings", server.url);
    let mut refused = 0;
    for n in 0..200 {
        let body: Vec<String> = (0..100)
            .map(|m| {
                format!(
                    r#"{{"device_id": "d", "timestamp": {}, "t": 1}}"#,
                    1_768_147_200 + 100 * n + m
                )
            })
            .collect();
        let status = agent.post(&url).send(body.join("\n")).unwrap().status();
        if status != 201 {
            assert!(status.is_server_error(), "{status}");
            refused += 1;
            if refused == 3 {
                break;
            }
        }
    }
    assert_eq!(refused, 3, "the limit was not reached");
    let next = || lines.recv_timeout(Duration::from_secs(10)).expect("something is said");
    let first = std::iter::repeat_with(next).find(|line| line.contains("BatchWriteItem"));
    let first = first.expect("there is no end to it");
    assert!(first.contains("the engine cannot do "), "{first}");
    assert!(first.contains("disk"), "{first}");
    server.kill();
    let more: Vec<String> = lines.iter().filter(|line| line.contains("BatchWriteItem")).collect();
    assert!(more.is_empty(), "said once, though it happened again and again: {more:#?}");
}

/// As a token that is written to a file on a full disk: it is made, and nobody has seen it.
#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let mut command = Command::new(PROGRAM);
    let done = command.args(["completions", "bash"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output could not be written: No space left"), "{said}");
}
