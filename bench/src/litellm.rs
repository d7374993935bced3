//! LiteLLM's proxy as a child process, in front of the same scripted model: what is measured beside our gateway.
//! `scripts/bench.sh` installs it into an environment of its own; where that is not possible it is left out.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use ostler_testing::program::{Program, free_address};

use crate::http::{Connection, Request};

/// It imports much before it listens.
const READY_WITHIN: Duration = Duration::from_secs(180);

pub struct LiteLlm {
    program: Program,
    address: SocketAddr,
}

/// `LITELLM_BIN`, or else what lies beside the build of this program.
pub fn find() -> Option<PathBuf> {
    let named = std::env::var_os("LITELLM_BIN").map(PathBuf::from);
    let beside = || {
        let this = std::env::current_exe().ok()?;
        Some(this.parent()?.parent()?.join("litellm/bin/litellm"))
    };
    named.or_else(beside).filter(|path| path.is_file())
}

impl LiteLlm {
    pub async fn start(binary: &Path, folder: &Path, model_url: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let config = folder.join("config.yaml");
        fs::write(&config, config_text(model_url))?;
        let address = free_address().await?;
        let program = Program::new(binary, folder.join("log.txt"))
            .args(["--config".into(), config.into_os_string()])
            .args(["--host", "127.0.0.1", "--num_workers", "1", "--port"])
            .args([address.port().to_string()])
            // It would ask others for the prices of models, and tell them that it is used.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("LITELLM_TELEMETRY", "False")
            .env("LITELLM_LOG", "ERROR")
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1");
        let mut litellm = Self { program, address };
        litellm.program.start()?;
        litellm.wait_until_ready().await?;
        Ok(litellm)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.program.kill().await
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let since = Instant::now();
        while !self.is_ready().await {
            let log = self.program.log().display().to_string();
            if let Some(status) = self.program.ended()? {
                bail!("LiteLLM ended at its start ({status}); see {log}");
            }
            ensure!(since.elapsed() < READY_WITHIN, "LiteLLM is not ready; see {log}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    async fn is_ready(&self) -> bool {
        let asked = async {
            let mut connection = Connection::open(self.address, None).await?;
            let request = Request { method: "GET", path: "/health/liveliness", accept: "*/*", body: "" };
            connection.call(&request).await.context("no answer")
        };
        asked.await.is_ok_and(|answer| answer.status == 200)
    }
}

fn config_text(model_url: &str) -> String {
    format!(
        "model_list:\n  - model_name: scripted\n    litellm_params:\n      model: openai/scripted\n      \
         api_base: {model_url}\n      api_key: none\nlitellm_settings:\n  num_retries: 0\n  telemetry: false\n"
    )
}
