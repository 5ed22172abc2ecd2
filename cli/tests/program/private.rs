//! What other users of the machine can reach of a person's data: no file, no port, no key.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use domain::{Scope, Timestamp, Token, TokenHash};
use dynamodb::DynamoStore;
use runtime::clock::Deadline;
use table::layout::Layout;
use table::{AddToken as _, Invocation};

use crate::server::{self, PROGRAM, Server, ServerProcess, devices};

const READING: &str = r#"{"device_id": "d", "timestamp": "2026-01-11T16:00:00Z", "t": 1}"#;

/// Runs the program where whatever it creates is everybody's unless it says otherwise.
fn careless() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$@\"", "sh", PROGRAM]);
    command
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything in a directory and below, with what others than the owner may do with it.
fn open_to_others(directory: &Path, found: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if mode(&path) != mode(&path) & 0o700 {
            open.push(path.clone());
        }
        if path.is_dir() {
            open.extend(open_to_others(&path, found));
        }
        found.push(path);
    }
    open
}

fn post(server: &ServerProcess) {
    let answer = ureq::post(format!("{}/readings", server.url)).send(READING).unwrap();
    assert_eq!(answer.status(), 201);
}

#[test]
fn no_file_is_readable_by_others_while_the_server_runs_nor_after_a_kill() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("new/data");
    let words: [(&str, &[&str]); 2] =
        [("kept", &["--data-dir", data.to_str().unwrap()]), ("memory", &["--memory"])];
    for (name, words) in words {
        let temporary = place.path().join(name);
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, Permissions::from_mode(0o700)).unwrap();
        let server = ServerProcess::run(
            careless().args(["--empty", "--port", "0"]).args(words).env("TMPDIR", &temporary),
        );
        post(&server);
        for killed in [false, true] {
            let mut found = Vec::new();
            assert_eq!(open_to_others(place.path(), &mut found), Vec::<PathBuf>::new());
            for ending in ["roomtide.db", "roomtide.db-wal", "roomtide.db-shm", "engine-address"] {
                let found = found.iter().any(|path| path.ends_with(ending));
                assert!(found, "{name}: {ending} is not looked at, killed: {killed}");
            }
            if !killed {
                kill(server.process.id());
            }
        }
    }
}

/// At a proxy, an address of this machine means the proxy's machine.
#[test]
fn a_server_on_this_machine_is_asked_without_a_proxy() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(place.path());
    let mut status = Command::new(PROGRAM);
    status.args(["status", "--url", &server.url]).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["ALL_PROXY", "HTTP_PROXY", "http_proxy"] {
        status.env(name, "http://127.0.0.1:1");
    }
    let (code, said) = server::run_process(&mut status);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn an_address_of_aws_that_is_none_is_named() {
    let mut status = Command::new(PROGRAM);
    status.args(["status", "--table", "t"]);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"] {
        status.env(name, "garbage");
    }
    let (code, said) = server::run_process(&mut status);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("garbage, does not begin with http:// or https://"), "{said}");
}

/// Ends a process without a chance to tidy up.
fn kill(id: u32) {
    let killed = Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
    assert!(killed.success());
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn data_that_others_could_read_is_closed_to_them_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    ServerProcess::start(&data, &[]).kill();
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let reopen = || {
        open(&data, 0o755);
        for entry in fs::read_dir(&data).unwrap() {
            open(&entry.unwrap().path(), 0o644);
        }
    };

    reopen();
    let mut command = Command::new(PROGRAM);
    command.args(["--empty", "--port", "0", "--data-dir"]).arg(&data).stderr(Stdio::piped());
    let mut server = ServerProcess::run(&mut command);
    post(&server);
    assert_eq!(mode(&data), 0o700);
    assert_eq!(open_to_others(&data, &mut Vec::new()), Vec::<PathBuf>::new());
    let stderr = server.process.stderr.take().unwrap();
    let mut said = std::io::BufReader::new(stderr).lines();
    assert!(said.next().unwrap().unwrap().contains("other users are kept out"));
    server.kill();

    // A directory that is not ours alone may be shared on purpose; the data in it is private all the same.
    reopen();
    let notes = data.join("notes.txt");
    fs::write(&notes, "x").unwrap();
    open(&notes, 0o644);
    let server = ServerProcess::start(&data, &[]);
    post(&server);
    assert_eq!(mode(&data), 0o755);
    assert_eq!(open_to_others(&data, &mut Vec::new()), [notes]);
}

#[test]
fn the_engine_s_key_is_shown_to_whoever_asks_for_it_only() {
    let directory = tempfile::tempdir().unwrap();
    for (words, is_shown) in [(&[][..], false), (&["--print-engine-key"], true)] {
        let mut server = ServerProcess::start(directory.path(), words);
        let address = fs::read_to_string(directory.path().join("engine-address")).unwrap();
        let key = address.lines().nth(1).unwrap();
        let mut said = String::new();
        while !said.contains("Ctrl-C stops") {
            assert!(server.output.read_line(&mut said).unwrap() > 0, "{said}");
        }
        assert!(said.contains("--print-engine-key") != is_shown, "{said}");
        assert_eq!(said.contains(key), is_shown, "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn token_and_replay_open_no_port_that_answers_without_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(directory.path(), &["--auth"]);
    // So many that the list of them waits for somebody to read it.
    fill_with_tokens(directory.path());
    drop(server);

    let mut listing = Command::new(PROGRAM)
        .args(["token", "list", "--data-dir"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    no_port_answers(&mut listing);

    let event = directory.path().join("event");
    assert!(Command::new("mkfifo").arg(&event).status().unwrap().success());
    let mut replaying = Command::new(PROGRAM)
        .arg("replay")
        .arg(&event)
        .arg("--data-dir")
        .arg(directory.path())
        .spawn()
        .unwrap();
    no_port_answers(&mut replaying);
}

#[test]
fn token_works_beside_a_server_and_replay_says_that_the_data_is_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(directory.path(), &["--auth"]);
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).arg("--data-dir").arg(directory.path()).output().unwrap()
    };
    let made = run(&["token", "create", "--scope", "admin", "--quiet"]);
    let token = String::from_utf8(made.stdout).unwrap();
    let event = directory.path().join("event.json");
    fs::write(&event, r#"{"Records": []}"#).unwrap();
    let replayed = run(&["replay", event.to_str().unwrap()]);
    let error = String::from_utf8(replayed.stderr).unwrap();
    assert!(!replayed.status.success() && error.contains("in use by another roomtide"), "{error}");
    let asked = ureq::get(format!("{}/devices", server.url))
        .header("authorization", format!("Bearer {}", token.trim()))
        .call();
    assert_eq!(asked.unwrap().status(), 200);
}

/// Looks at a process that waits with the data open, then ends it.
fn no_port_answers(process: &mut Child) {
    let mut ports = BTreeSet::new();
    for _ in 0..100 {
        ports = listening(process.id());
        if !ports.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_millis(500));
    ports.extend(listening(process.id()));
    assert!(process.try_wait().unwrap().is_none(), "it has ended before it was looked at");
    assert!(!ports.is_empty(), "the engine's port was not seen");
    for port in ports {
        let answer = devices(&format!("127.0.0.1:{port}")).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "port {port}: {answer}");
        assert!(answer.contains("UnrecognizedClientException"), "port {port}: {answer}");
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The ports on which a process listens, as Linux tells.
fn listening(process: u32) -> BTreeSet<u16> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
    let inodes: BTreeSet<String> = descriptors
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| {
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let sockets = fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap_or_default();
    let listening = sockets.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 0A is LISTEN.
        (fields[3] == "0A" && inodes.contains(fields[9]))
            .then(|| u16::from_str_radix(fields[1].rsplit(':').next()?, 16).ok())
            .flatten()
    });
    listening.collect()
}

/// Returns the settings with which a client reaches the engine of a running server.
pub(crate) fn engine_of(directory: &Path) -> aws::StoreConfig {
    let address = fs::read_to_string(directory.join("engine-address")).unwrap();
    let [endpoint, key, _process] = address.lines().collect::<Vec<_>>()[..] else { panic!() };
    aws::StoreConfig {
        table: "roomtide".to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        credentials: aws::Credentials {
            access_key_id: key.to_owned(),
            secret_access_key: "local".to_owned(),
            session_token: None,
        },
        ca_bundle: None,
        attempt_timeout: aws::ATTEMPT_TIMEOUT,
    }
}

fn fill_with_tokens(directory: &Path) {
    let config = engine_of(directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = DynamoStore::connect(&config, Layout::default());
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(60)));
        for n in 0..500 {
            let token = Token {
                hash: TokenHash::of(&n.to_string()),
                scope: Scope::Read,
                name: Some("x".repeat(100).try_into().expect("a label")),
                created: Timestamp::MIN,
                revoked: None,
                expires: None,
                issued_by: None,
            };
            store.add_token(&token, &invocation).await.unwrap();
        }
    });
}
