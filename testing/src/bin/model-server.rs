//! The scripted model as a program, for tests that outlive kills of what they test, and for the vendors' own
//! SDKs. It prints its base URL on one line once it is ready, and plays the plan in the user's message (see
//! `ostler_testing::model_server::plan`).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use ostler_testing::loopback;
use ostler_testing::model_server::{Model, Script, Settings};

/// A scripted model that speaks every vendor's wire.
#[derive(Parser)]
struct Arguments {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Milliseconds to wait before every answer.
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Append a line of JSON per request to this file.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Neither validate requests nor count them by id.
    #[arg(long)]
    fast: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let log = arguments.log.map(|path| {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.with_context(|| format!("can't open {}", path.display()))
    });
    let settings = Settings {
        latency: Duration::from_millis(arguments.latency_ms),
        forget_bodies: true,
        fast: arguments.fast,
        log: log.transpose()?,
    };
    let listener = loopback::bind(arguments.port).await.context("can't listen")?;
    writeln!(std::io::stdout(), "http://{}/v1", listener.local_addr()?)?;
    loopback::serve(listener, Arc::new(Model::new(Script::Plan, settings))).await;
    Ok(())
}
