//! The server as a child process: started, known to be ready, killed.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use ostler_client::Client;
use tokio::process::{Child, Command};

use super::Settings;
use crate::loopback;

const LEASE: &str = "2s";
const SLOTS: &str = "256";

/// A start that takes longer has failed.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// `ostler up` on one data folder and one port, life after life.
pub(super) struct Ostler {
    binary: PathBuf,
    data: PathBuf,
    store: Option<String>,
    log: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
    ready_at: Instant,
}

/// The binary to kill: `OSTLER_BIN`, or else the one built beside this program.
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

impl Ostler {
    /// On a store of its own, or on the one at the address.
    pub async fn prepare(settings: &Settings, store: Option<String>) -> anyhow::Result<Self> {
        fs::create_dir_all(&settings.folder).context("the data folder can't be made")?;
        let data = settings.folder.join("data");
        ensure!(
            !data.exists(),
            "there is data of an earlier crash test in the folder; remove it or name another"
        );
        // Taken for a moment to learn of a free port; every life listens on the same one.
        let address = loopback::bind(0).await?.local_addr()?;
        let (binary, log) = (settings.binary.clone(), settings.folder.join("server.log"));
        Ok(Self { binary, data, store, log, address, child: None, ready_at: Instant::now() })
    }

    /// Starts it and waits until it answers.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        let log = self.log_file()?;
        let mut command = Command::new(&self.binary);
        command.args(["up", "--quiet", "--lease", LEASE, "--slots", SLOTS]);
        command.args(["--listen", &self.address.to_string()]).arg("--data").arg(&self.data);
        for name in ["SERVER", "DATA", "NAMESPACE", "TOKEN", "LOG", "STORE"] {
            command.env_remove(format!("OSTLER_{name}"));
        }
        command.envs(self.store.iter().map(|store| ("OSTLER_STORE", store)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        self.child = Some(command.spawn().context("the ostler binary can't be started")?);
        tokio::time::timeout(READY_WITHIN, self.wait_until_ready())
            .await
            .with_context(|| format!("not ready within {READY_WITHIN:?}; see server.log"))??;
        self.ready_at = Instant::now();
        Ok(())
    }

    /// When it was ready last.
    pub fn ready_at(&self) -> Instant {
        self.ready_at
    }

    /// SIGKILL. When this returns, the process is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("nothing to kill")?;
        if let Some(status) = child.try_wait()? {
            bail!("the server had ended by itself ({status}); see server.log");
        }
        child.kill().await.context("the server can't be killed")
    }

    /// With the token that the first start made.
    pub fn client(&self) -> anyhow::Result<Client> {
        let token = fs::read_to_string(self.data.join("token")).context("the server left no token")?;
        Ok(Client::new(&format!("http://{}", self.address), token.trim())?)
    }

    pub fn store(&self) -> PathBuf {
        self.data.join("store.db")
    }

    fn log_file(&self) -> anyhow::Result<File> {
        let file = OpenOptions::new().create(true).append(true).open(&self.log);
        file.context("the server's log can't be opened")
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let probe = Client::new(&format!("http://{}", self.address), "none")?;
        while probe.health().await.is_err() {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("the server ended at its start ({status}); see server.log");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}
