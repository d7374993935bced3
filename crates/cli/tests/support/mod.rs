//! The real binary: `ostler up` in a folder of its own, and commands run there.

#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "test support")]

pub mod fake;

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Nothing here takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server and its worker, killed when dropped.
pub struct Up {
    child: Child,
    lines: mpsc::Receiver<String>,
    folder: PathBuf,
    _temporary: Option<TempDir>,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Up {
    pub fn start() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut up = Self::start_in(temporary.path(), &[]);
        up._temporary = Some(temporary);
        up
    }

    /// With an agent `hello` on the mock model.
    pub fn with_hello() -> Self {
        let up = Self::start();
        up.ostler(["apply", "-f", &example("hello/agent.yaml")]).ok();
        up
    }

    /// In a folder that is there already, with more arguments.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Self {
        let up = Self::spawn(folder, &["up", "--listen", "127.0.0.1:0"], arguments);
        up.wait_for_line("ostler is up at");
        up
    }

    /// The same at an address, so that it can come back there.
    pub fn start_at(folder: &Path, address: &str) -> Self {
        let up = Self::spawn(folder, &["up", "--listen", address], &[]);
        up.wait_for_line("ostler is up at");
        up
    }

    /// A server alone, at an address.
    pub fn server(folder: &Path, address: &str) -> Self {
        let server = Self::spawn(folder, &["server", "--listen", address], &[]);
        server.wait_for_line("ready");
        server
    }

    /// A worker alone, for the server of the folder.
    pub fn worker(folder: &Path, arguments: &[&str]) -> Self {
        let worker = Self::dialling(folder, arguments);
        worker.wait_for_line("ready");
        worker
    }

    /// The same, whether it reaches a server or not.
    pub fn dialling(folder: &Path, arguments: &[&str]) -> Self {
        Self::spawn(folder, &["worker"], arguments)
    }

    fn spawn(folder: &Path, command: &[&str], arguments: &[&str]) -> Self {
        let mut child = ostler(folder);
        child.args(command).args(arguments);
        let mut child = child.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stderr.take().unwrap());
        Self { child, lines, folder: folder.to_owned(), _temporary: None }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it printed to stderr, up to the line that holds `words`.
    pub fn wait_for_line(&self, words: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("no line with {words:?}: {seen:#?}")
            };
            let found = line.contains(words);
            seen.push(line);
            if found {
                return seen;
            }
        }
    }

    pub fn url(&self) -> String {
        let text = fs::read_to_string(self.folder.join(".ostler/server.json")).unwrap();
        let server: serde_json::Value = serde_json::from_str(&text).unwrap();
        server["url"].as_str().unwrap().to_owned()
    }

    pub fn ostler<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        run(ostler(&self.folder).args(arguments))
    }

    /// The same, with something on its stdin.
    pub fn ostler_with<S: AsRef<OsStr>>(&self, stdin: &str, arguments: impl IntoIterator<Item = S>) -> Ran {
        run_with(ostler(&self.folder).args(arguments), stdin)
    }

    /// Applies a manifest given as text.
    pub fn apply(&self, manifest: &str) -> Ran {
        self.ostler_with(manifest, ["apply", "-f", "-"])
    }

    /// Waits until `ostler get tasks NAME` says so.
    pub fn wait_for_state(&self, task: &str, state: &str) {
        let seen = self.ostler(["events", task, "-f", "-o", "json"]);
        assert!(seen.stdout.contains(state), "{seen:?}");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// SIGTERM, and waits for the end of it.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// Its stdout, if all went well.
    #[track_caller]
    pub fn ok(&self) -> &str {
        self.ended(0)
    }

    #[track_caller]
    pub fn ended(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:#?}");
        &self.stdout
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.ok()).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// That it ended so, and told this on stderr.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {}", self.stderr);
        }
    }
}

/// The command in a folder, with nothing of this machine's settings.
pub fn ostler(folder: &Path) -> Command {
    plain(Command::new(env!("CARGO_BIN_EXE_ostler")), folder)
}

/// A shell that knows the command, and stops at the first one that fails.
pub fn shell(folder: &Path, commands: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_ostler")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = plain(Command::new("sh"), folder);
    shell.args(["-ec", commands]).env("PATH", path);
    shell
}

fn plain(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("LC_CTYPE");
    for name in ["SERVER", "DATA", "NAMESPACE", "TOKEN", "LOG", "PROFILE", "CA"] {
        command.env_remove(format!("OSTLER_{name}"));
    }
    for name in
        ["ORLOJ_SERVER", "ORLOJCTL_SERVER", "ORLOJ_API_TOKEN", "ORLOJCTL_API_TOKEN", "EDITOR", "VISUAL"]
    {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", folder.join(".config"));
    command.env_remove("NO_COLOR").env_remove("COLUMNS");
    command
}

pub fn run(command: &mut Command) -> Ran {
    run_with(command, "")
}

pub fn run_with(command: &mut Command, stdin: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    // Who doesn't read its stdin has closed it.
    let writer = thread::spawn(move || input.write_all(stdin.as_bytes()).unwrap_or(()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "colour in a pipe: {ran:?}");
    ran
}

pub fn example(path: &str) -> String {
    let examples = std::env::current_dir().unwrap().join("../../examples");
    examples.join(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// The lines of a pipe as they come.
pub fn lines_of(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Reading on keeps the pipe from filling up when nobody listens any more.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// A model endpoint and an agent on it, both called `name`.
pub fn agent(name: &str, endpoint: &str) -> String {
    format!(
        "kind: ModelEndpoint\nmetadata: {{name: {name}}}\nspec: {{{endpoint}}}\n---\n\
         kind: Agent\nmetadata: {{name: {name}}}\nspec: {{model_ref: {name}, prompt: Be brief.}}\n"
    )
}

/// One that takes an hour to answer.
pub fn slow_agent() -> String {
    agent("slow", "provider: mock, default_model: mock-1, options: {latency_ms: \"3600000\"}")
}
