//! Workers as processes of their own.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use ostler_client::Client;
use rustix::process::{Pid, Signal, kill_process};

use crate::measure::Bench;
use crate::ostler::{Ostler, quiet};

const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub struct Workers(Vec<Child>);

impl Workers {
    /// Starts so many, and returns when the server knows of all.
    pub async fn start(bench: &Bench, server: &Ostler, count: usize) -> anyhow::Result<Self> {
        let mut workers = Self(Vec::new());
        let name = |number: usize| format!("bench-{count}-{number}");
        for number in 0..count {
            let data = bench.settings.data.join(name(number));
            fs::create_dir_all(&data)?;
            let mut command = quiet(&bench.binary, &["worker", "--server", &server.url()]);
            command.args(["--worker-name", &name(number)]).arg("--data").arg(&data);
            command.arg("--worker-token-file").arg(server.worker_token_file());
            workers.0.push(command.spawn().context("a worker can't be started")?);
        }
        let client = Client::new(&server.url(), server.token())?;
        let began = Instant::now();
        loop {
            let known = client.workers().await?;
            let is_ready = |name: &String| {
                known.iter().any(|worker| worker.metadata.name == *name && worker.status.phase == "Ready")
            };
            if (0..count).map(name).all(|name| is_ready(&name)) {
                return Ok(workers);
            }
            ensure!(began.elapsed() < READY_WITHIN, "the workers were not ready within {READY_WITHIN:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub fn stop(mut self) -> anyhow::Result<()> {
        for worker in &mut self.0 {
            kill_process(Pid::from_child(worker), Signal::TERM).context("a worker can't be stopped")?;
            let status = worker.wait()?;
            ensure!(status.success(), "a worker ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // An error means that it has ended already.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
