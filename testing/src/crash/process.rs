//! The server as a child process: started, known to be ready, killed.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use ostler_client::Client;

use super::Settings;
use crate::program::{Program, free_address};

const LEASE: &str = "2s";
const SLOTS: &str = "256";

/// `ostler up` on one data folder and one port, life after life.
pub(super) struct Ostler {
    program: Program,
    data: PathBuf,
    address: SocketAddr,
    ready_at: Instant,
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
        let address = free_address().await?;
        let program = Program::new(&settings.binary, settings.folder.join("server.log"))
            .args(["up", "--quiet", "--lease", LEASE, "--slots", SLOTS])
            .args(["--listen", &address.to_string(), "--data"])
            .args([&data]);
        let program = match store {
            Some(store) => program.env("OSTLER_STORE", store),
            None => program,
        };
        Ok(Self { program, data, address, ready_at: Instant::now() })
    }

    /// Starts it and waits until it answers.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        self.program.start()?;
        self.program.wait_until_ready(self.address).await?;
        self.ready_at = Instant::now();
        Ok(())
    }

    /// When it was ready last.
    pub fn ready_at(&self) -> Instant {
        self.ready_at
    }

    /// SIGKILL. When this returns, the process is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.program.kill().await
    }

    /// With the token that the first start made.
    pub fn client(&self) -> anyhow::Result<Client> {
        let token = fs::read_to_string(self.data.join("token")).context("the server left no token")?;
        Ok(Client::new(&format!("http://{}", self.address), token.trim())?)
    }

    pub fn store(&self) -> PathBuf {
        self.data.join("store.db")
    }
}
