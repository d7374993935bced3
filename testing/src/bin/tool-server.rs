//! The tool server as a program, for tests that outlive kills of what they test. It prints its base URL on
//! one line once it is ready.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use ostler_testing::loopback;
use ostler_testing::tool_server::Tools;

/// Tools that remember every call by its request id.
#[derive(Parser)]
struct Arguments {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let listener = loopback::bind(arguments.port).await.context("can't listen")?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    loopback::serve(listener, Arc::new(Tools::default())).await;
    Ok(())
}
