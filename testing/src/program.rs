//! The `ostler` binary as a child process: started, known to be there, signalled, killed.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use ostler_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::loopback::{self, pause};

/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// One command line, started again and again. Its log is one file for all its lives.
pub struct Program {
    binary: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
    child: Option<Child>,
}

/// The binary to start: `OSTLER_BIN`, or else the one built beside this program.
pub fn find_binary() -> anyhow::Result<PathBuf> {
    let binary = match std::env::var_os("OSTLER_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let this = std::env::current_exe().context("where this program lies can't be told")?;
            let folder = this.parent().unwrap_or(Path::new("."));
            // Tests lie one folder below the binaries.
            let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
            folder.join("ostler")
        }
    };
    let missing = "there is no ostler binary; build it (cargo build --bin ostler) or name it in OSTLER_BIN";
    ensure!(binary.is_file(), missing);
    Ok(binary)
}

/// A free port, taken for a moment to learn of it: every life then listens on the same one.
pub async fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(loopback::bind(0).await?.local_addr()?)
}

impl Program {
    pub fn new(binary: &Path, log: PathBuf) -> Self {
        let binary = binary.to_owned();
        Self { binary, arguments: Vec::new(), environment: Vec::new(), log, child: None }
    }

    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs behind another command, such as one that enters a network namespace.
    #[must_use]
    pub fn behind<A: Into<OsString>>(
        mut self,
        command: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let inner = std::mem::replace(&mut self.binary, PathBuf::from(command));
        let mut all: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        all.push(inner.into_os_string());
        all.append(&mut self.arguments);
        self.arguments = all;
        self
    }

    /// Starts it, without the settings of whoever runs the test.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let log = self.log_file()?;
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("OSTLER_") {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        self.child = Some(command.spawn().context("the ostler binary can't be started")?);
        Ok(())
    }

    /// Waits until a server answers at the address.
    pub async fn wait_until_ready(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let log = self.log.clone();
        let probe = Client::new(&format!("http://{address}"), "none")?;
        let asking = async {
            while probe.health().await.is_err() {
                if let Some(status) = self.ended()? {
                    bail!("the server ended at its start ({status}); see {}", self.log.display());
                }
                pause(Duration::from_millis(2)).await;
            }
            Ok(())
        };
        tokio::time::timeout(READY_WITHIN, asking)
            .await
            .with_context(|| format!("not ready within {READY_WITHIN:?}; see {}", log.display()))?
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// How it ended, if it has ended by itself.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.as_mut().map(Child::try_wait).transpose()?.flatten())
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = self.id().context("it is not running")?;
        let id = i32::try_from(id).ok().and_then(Pid::from_raw).context("it is no process")?;
        Ok(kill_process(id, signal)?)
    }

    /// SIGKILL. When this returns, the process is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("nothing to kill")?;
        if let Some(status) = child.try_wait()? {
            bail!("it had ended by itself ({status}); see {}", self.log.display());
        }
        child.kill().await.context("it can't be killed")
    }

    /// SIGTERM, and then waits until it has ended.
    pub async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let mut child = self.child.take().context("nothing to stop")?;
        Ok(child.wait().await?)
    }

    fn log_file(&self) -> anyhow::Result<File> {
        let file = OpenOptions::new().create(true).append(true).open(&self.log);
        file.context("the log can't be opened")
    }
}
