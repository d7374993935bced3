//! Plays the address tricks: `ssrf`. Ends with one line of figures.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a command of the testing ground")]

use std::{process::ExitCode, time::Instant};

use clap::Parser;
use ostler_testing::ssrf;

#[derive(Parser)]
#[command(
    about = "Tries every address trick on the model, tool and redirect paths, in namespaces without a way out"
)]
struct Args {
    /// Be the world, on these ports: for the program itself.
    #[arg(long, hide = true)]
    world: Option<String>,
}

/// `1` lets the command end well where no namespace can be made.
const MAY_SKIP: &str = "OSTLER_SSRF_MAY_SKIP";

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(ports) = args.world {
        ssrf::serve_world(&ports).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if ssrf::is_inside() {
        return play().await;
    }
    match ssrf::enter()? {
        Some(status) if status.success() => Ok(ExitCode::SUCCESS),
        Some(_) => Ok(ExitCode::FAILURE),
        None => {
            println!(
                "ssrf: SKIPPED, no network namespace can be made here: neither as root nor with user namespaces"
            );
            if may_skip(std::env::var(MAY_SKIP).ok().as_deref()) {
                return Ok(ExitCode::SUCCESS);
            }
            println!("ssrf: that counts as failed; {MAY_SKIP}=1 lets it pass where it can't be played");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What was not played proves nothing, unless somebody says that this is known.
fn may_skip(said: Option<&str>) -> bool {
    said == Some("1")
}

async fn play() -> anyhow::Result<ExitCode> {
    // The client that checks nothing brings none of its own.
    drop(rustls::crypto::ring::default_provider().install_default());
    let started = Instant::now();
    let findings = ssrf::play().await?;
    findings.violations.iter().for_each(|line| println!("must not be: {line}"));
    findings.dead.iter().for_each(|line| println!("proves nothing: {line}"));
    println!(
        "ssrf: {} tricks, on models and tools and by their redirects, {} calls, {} connections that must not be; {} that may be were made; without the \
         check {} would have been; {} tricks prove nothing, {:.1} s",
        findings.n_tricks,
        findings.n_calls,
        findings.violations.len(),
        findings.n_allowed,
        findings.n_unchecked,
        findings.dead.len(),
        started.elapsed().as_secs_f64()
    );
    let good = findings.violations.is_empty() && findings.dead.is_empty() && findings.n_unchecked > 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_has_failed_unless_somebody_allows_it() {
        assert!(!may_skip(None) && !may_skip(Some("")) && !may_skip(Some("0")) && may_skip(Some("1")));
    }
}
