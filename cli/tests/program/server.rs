//! A server in this process, as `roomtide serve` starts it but for the time that it takes; and one as a process, for
//! what is about processes: kills, output, modes of files. Asserts nothing.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use domain::given::zone;
use local::{Data, Options, System};
use rollups::RollupDelay;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The program's file.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_roomtide");

/// The lines of a round of an import that has [`ROUNDS`]: by default it is ten times as long.
pub(crate) const ROUND: i64 = 1_600;
/// Options of an import that keeps its progress after [`ROUND`] lines.
pub(crate) const ROUNDS: [&str; 4] = ["--round", "1600", "--batch", "100"];

/// A server of this process that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    front: Arc<Front>,
    runtime: Runtime,
}

/// What is before a server: before it asks how far the rollups are, all of them are folded. So whoever waits for them
/// waits as long as folding takes, and no longer, on a busy machine too.
struct Front {
    /// Present until the server is dropped.
    system: Mutex<Option<System>>,
    /// The server's own host and port.
    address: String,
}

impl Server {
    /// Serves `data`, empty at first, on any port.
    pub(crate) fn start(data: &Path) -> Self {
        Self::with(data, Options::default())
    }

    /// Serves `data` as told. Days are those of `Etc/UTC`, rollups follow at once, and lists are never old.
    pub(crate) fn with(data: &Path, options: Options) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = tokio::net::TcpListener::bind((options.host, options.port));
        let listener = runtime.block_on(listener).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let options = Options {
            data: Data::Dir(data.to_owned()),
            time_zone: zone("Etc/UTC"),
            rollup_delay: Some(RollupDelay::at_once(Duration::ZERO)),
            registry_max_age: Duration::ZERO,
            port: 0,
            ..options
        };
        let system = runtime.block_on(Box::pin(System::start(options))).unwrap();
        let address = system.url().strip_prefix("http://").unwrap().to_owned();
        let front = Arc::new(Front { system: Mutex::new(Some(system)), address });
        runtime.spawn(Arc::clone(&front).serve(listener));
        Self { url, front, runtime }
    }

    /// The body of what it answers, which is no error.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> String {
        let (status, text) = self.request(method, path, body);
        assert!((200..300).contains(&status), "{path}: {text}");
        text
    }

    /// The status and the body of what it answers.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        let agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
        let agent = ureq::Agent::from(agent.http_status_as_error(false).build());
        let answer = match method {
            "GET" | "DELETE" => agent.run(request.body(()).unwrap()),
            _ => agent.run(request.body(body.to_owned()).unwrap()),
        };
        let mut answer = answer.unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), text)
    }

    /// What an import of a file says that ends with this code.
    pub(crate) fn import(&self, file: &Path, words: &[&str], code: i32) -> String {
        let mut import = Command::new(PROGRAM);
        let (found, said) = run(import.args(["import", "--url", &self.url]).args(words).arg(file));
        assert_eq!(found, Some(code), "{said}");
        said
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.send("GET", path, "")).unwrap()
    }

    /// Waits until it answers as expected: until the registry knows what the stream tells, for example.
    pub(crate) fn wait_for(&self, path: &str, expected: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..3_000 {
            let found = self.get(path);
            if expected(&found) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{path}: {}", self.get(path));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let system = self.runtime.block_on(self.front.system.lock()).take();
        let stopped = system.map(|system| self.runtime.block_on(system.shutdown()));
        // A test that fails says why itself.
        assert!(stopped.is_none_or(|stopped| stopped.is_ok()) || std::thread::panicking());
    }
}

impl Front {
    async fn serve(self: Arc<Self>, listener: tokio::net::TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            let front = Arc::clone(&self);
            tokio::spawn(async move { front.pass_on(client).await });
        }
    }

    /// Passes a connection's request on, and the answer back. Another request needs another connection.
    async fn pass_on(&self, client: tokio::net::TcpStream) -> io::Result<()> {
        let mut client = tokio::io::BufReader::new(client);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if client.read_until(b'\n', &mut head).await? == 0 {
                return Ok(());
            }
        }
        if head.starts_with(b"GET /health") {
            self.settle().await?;
        }

        let mut server = tokio::net::TcpStream::connect(&self.address).await?;
        let first = head.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for part in [&head[..first], b"Connection: close\r\n", &head[first..]] {
            server.write_all(part).await?;
        }
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    }

    async fn settle(&self) -> io::Result<()> {
        match &*self.system.lock().await {
            Some(system) => Box::pin(system.settle()).await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

/// A server as a process, that runs until it is killed or dropped.
pub(crate) struct ServerProcess {
    pub(crate) process: Child,
    pub(crate) url: String,
    // Held, so that what the server says goes somewhere.
    pub(crate) output: BufReader<ChildStdout>,
}

impl ServerProcess {
    /// Serves `data`, empty at first, on any port.
    pub(crate) fn start(data: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        Self::run(command.args(["--empty", "--port", "0", "--data-dir"]).arg(data).args(words))
    }

    /// Runs a command that becomes a server.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let url = first.trim_end().rsplit(' ').next().unwrap().to_owned();
        Self { process, url, output }
    }

    /// Ends it without a chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command of the program to its end in this process, by its words alone; its exit code, and what it said.
pub(crate) fn run(command: &Command) -> (Option<i32>, String) {
    assert!(command.get_program() == PROGRAM && command.get_envs().count() == 0, "{command:?}");
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let (code, said) = roomtide_cli::run_here(words);
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code);
    (number.map(i32::from), said)
}

/// Runs a command to its end as a process; its exit code, and what it said.
pub(crate) fn run_process(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Whatever answers `GET /devices` at `address`; nothing where nobody listens.
pub(crate) fn devices(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /devices HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// What the file of an import's progress says of the lines that are stored. `None` before the first round is stored.
pub(crate) fn stored_lines(progress: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(progress).ok()?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut stored = lines.filter_map(|mut line| Some(line.get_mut("stored")?.take()));
    stored.next_back().filter(|stored| stored["lines"].as_u64() > Some(0))
}

/// Waits until an import has stored its first round.
pub(crate) fn wait_for_stored_lines(progress: &Path) {
    assert!((0..30_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        stored_lines(progress).is_some()
    }));
}
