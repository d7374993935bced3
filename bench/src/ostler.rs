//! `ostler up` or `ostler server` as a child process: started, known to be ready, asked what it used, stopped.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http::{Connection, Request};

/// A start that takes longer has failed; the full store may take a while.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How often a starting server is looked for: far less than a start takes.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// In which Linux tells programs what they used, whatever its own clock does.
const TICK: Duration = Duration::from_millis(10);

pub struct Ostler {
    child: Child,
    data: PathBuf,
    address: SocketAddr,
    token: String,
    ready_after: Duration,
}

/// What a process used since it started.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    pub cpu: Duration,
    /// Bytes it made the disk write.
    pub written: u64,
}

impl Ostler {
    /// Starts it on a free port and returns when it answers.
    pub async fn start(binary: &Path, data: &Path) -> anyhow::Result<Self> {
        Self::start_as(binary, data, &["up"]).await
    }

    /// With another command than `up`, or with more arguments.
    pub async fn start_as(binary: &Path, data: &Path, command: &[&str]) -> anyhow::Result<Self> {
        fs::create_dir_all(data)?;
        let announcement = data.join("server.json");
        if announcement.exists() {
            // Left by one that was killed; it would be taken for this one's.
            fs::remove_file(&announcement)?;
        }
        let began = Instant::now();
        let mut child = spawn(binary, data, command)?;
        let address = match wait_for(&mut child, &announcement, began) {
            Ok(address) => address,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let token = fs::read_to_string(data.join("token")).context("the server left no token")?;
        let token = token.trim().to_owned();
        let mut ostler = Self { child, data: data.to_owned(), address, token, ready_after: Duration::ZERO };
        let health = Request { method: "GET", path: "/healthz", accept: "*/*", body: "" };
        let answer = ostler.connect().await?.call(&health).await?;
        ensure!(answer.status == 200, "the server announced itself and is not well: {}", answer.status);
        ostler.ready_after = began.elapsed();
        Ok(ostler)
    }

    /// From its start to its first answer.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn store_file(&self) -> PathBuf {
        self.data.join("store.db")
    }

    /// What workers show, if it takes any that dial.
    pub fn worker_token_file(&self) -> PathBuf {
        self.data.join("worker-token")
    }

    pub async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.address, Some(&self.token)).await
    }

    pub fn used(&self) -> anyhow::Result<Used> {
        Ok(Used { cpu: self.cpu()?, written: self.written()? })
    }

    /// In bytes.
    pub fn resident(&self) -> anyhow::Result<u64> {
        let line = self.proc_line("status", "VmRSS:")?;
        let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
        Ok(kilobytes.context("VmRSS is no number")? * 1024)
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("the server can't be stopped")?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    /// User and system time of all threads, those included that have ended.
    fn cpu(&self) -> anyhow::Result<Duration> {
        cpu_of(self.child.id()).context("the server is gone")
    }

    fn written(&self) -> anyhow::Result<u64> {
        self.proc_line("io", "write_bytes:")?.trim().parse().context("write_bytes is no number")
    }

    fn proc_line(&self, file: &str, key: &str) -> anyhow::Result<String> {
        let text = fs::read_to_string(self.proc_file(file)).context("the server is gone")?;
        let value = text.lines().find_map(|line| line.strip_prefix(key));
        value.map(str::to_owned).with_context(|| format!("no {key} in {file}"))
    }

    fn proc_file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.child.id()))
    }
}

impl Drop for Ostler {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Used {
    pub fn plus(self, other: Used) -> Used {
        Used { cpu: self.cpu + other.cpu, written: self.written + other.written }
    }

    pub fn since(self, before: Used) -> Used {
        Used {
            cpu: self.cpu.saturating_sub(before.cpu),
            written: self.written.saturating_sub(before.written),
        }
    }
}

fn spawn(binary: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<Child> {
    let mut command = quiet(binary, arguments);
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.spawn().context("the ostler binary can't be started")
}

/// The binary with these arguments, that says nothing and hears nothing of this shell's settings.
pub fn quiet(binary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    unset(&mut command);
    command.args(arguments).arg("--quiet").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Lets it hear nothing of this shell's settings.
pub fn unset(command: &mut Command) {
    let is_setting = |name: &OsString| name.to_string_lossy().starts_with("OSTLER_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
}

/// What a process used so far.
pub fn cpu_of(process: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in brackets may hold anything; behind it utime and stime stand 12th and 13th.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).context("a stat without a name")?;
    let times = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks = times.sum::<Result<u64, _>>().context("a stat without times")?;
    Ok(TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)))
}

fn wait_for(child: &mut Child, announcement: &Path, began: Instant) -> anyhow::Result<SocketAddr> {
    loop {
        if let Ok(text) = fs::read_to_string(announcement) {
            let announced: Value = serde_json::from_str(&text)?;
            let address = announced["url"].as_str().and_then(|url| url.strip_prefix("http://"));
            return address.context("the server announced no address")?.parse().context("not an address");
        }
        if let Some(status) = child.try_wait()? {
            bail!("the server ended at its start: {status}");
        }
        ensure!(began.elapsed() < READY_WITHIN, "the server was not ready within {READY_WITHIN:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}
