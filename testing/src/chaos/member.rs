//! One process of the cluster: a server or a worker, with a clock of its own.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::Signal;

use crate::{loopback::pause, program::Program};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Worker,
}

pub struct Member {
    pub role: Role,
    pub name: String,
    /// Where a server listens.
    pub address: Option<SocketAddr>,
    program: Program,
    /// Says how far off its calendar is.
    clock: PathBuf,
    /// Ends that nobody asked for.
    complaints: Vec<String>,
    /// Starts that failed because the database was away.
    n_false_starts: u32,
    /// How often a worker had been let in by a server before it was started last.
    n_linked_before: usize,
}

/// What a worker says when a server has let it in.
const LINKED: &str = "linked";

/// A worker that was not let in by then never will be.
const LINKED_WITHIN: Duration = Duration::from_secs(30);

/// What a server says when it can't start because of its database.
const NO_STORE: &str = "can't open the store";

impl Member {
    pub fn new(role: Role, name: &str, folder: &Path, program: Program) -> anyhow::Result<Self> {
        let clock = folder.join(format!("{name}.clock"));
        fs::write(&clock, "+0")?;
        let program = match fake_time() {
            Some(library) => program
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", &clock)
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            None => program,
        };
        let name = name.to_owned();
        Ok(Self {
            role,
            name,
            address: None,
            program,
            clock,
            complaints: Vec::new(),
            n_false_starts: 0,
            n_linked_before: 0,
        })
    }

    pub fn start(&mut self) -> anyhow::Result<()> {
        self.n_linked_before = self.n_linked();
        self.program.start()
    }

    /// A server answers, a worker is let in.
    pub async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        if let Some(address) = self.address {
            return self.program.wait_until_ready(address).await;
        }
        let linking = async {
            while self.n_linked() == self.n_linked_before {
                pause(Duration::from_millis(5)).await;
            }
        };
        let linked = tokio::time::timeout(LINKED_WITHIN, linking).await;
        linked.with_context(|| format!("{} was not let in", self.name))
    }

    fn n_linked(&self) -> usize {
        let log = fs::read_to_string(self.program.log()).unwrap_or_default();
        log.lines().filter(|line| line.contains(LINKED)).count()
    }

    /// Starts it again if it has ended by itself, as whoever looks after services does.
    pub fn look_after(&mut self) -> anyhow::Result<()> {
        let Some(status) = self.program.ended()? else { return Ok(()) };
        self.sweep();
        let log = fs::read_to_string(self.program.log()).unwrap_or_default();
        let last = log.trim_end().lines().next_back().unwrap_or_default();
        if log.trim_end().lines().rev().take(3).any(|line| line.contains(NO_STORE)) {
            self.n_false_starts += 1;
        } else {
            self.complaints.push(format!("{} ended by itself ({status}): {last}", self.name));
        }
        self.program.start()
    }

    pub fn is_running(&mut self) -> bool {
        self.program.id().is_some() && matches!(self.program.ended(), Ok(None))
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.program.signal(signal)
    }

    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let id = self.program.id();
        self.program.kill().await?;
        id.into_iter().for_each(sweep_shared_memory);
        Ok(())
    }

    /// SIGTERM, and an end in good order.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        let id = self.program.id();
        let status = self.program.stop().await?;
        id.into_iter().for_each(sweep_shared_memory);
        if !status.success() {
            self.complaints.push(format!("{} was asked to stop and ended with {status}", self.name));
        }
        Ok(())
    }

    /// Puts its calendar this many seconds off.
    pub fn set_clock(&self, seconds: i64) -> anyhow::Result<()> {
        // In one piece: it may be read at any moment.
        let new = self.clock.with_extension("new");
        fs::write(&new, format!("{seconds:+}"))?;
        fs::rename(&new, &self.clock).context("the clock can't be set")
    }

    pub fn n_false_starts(&self) -> u32 {
        self.n_false_starts
    }

    /// What went wrong with the process itself.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = self.complaints.clone();
        let log = fs::read_to_string(self.program.log()).unwrap_or_default();
        let panics = log.lines().filter(|line| line.contains("panicked at"));
        complaints.extend(panics.map(|line| format!("{}: {line}", self.name)));
        complaints
    }

    fn sweep(&self) {
        self.program.id().into_iter().for_each(sweep_shared_memory);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// What a process leaves behind of its false clock.
fn sweep_shared_memory(id: u32) {
    for name in [format!("faketime_shm_{id}"), format!("sem.faketime_sem_{id}")] {
        let _ = fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

/// Debian's libfaketime, if it is installed.
pub fn fake_time() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|library| library.exists())
}
