//! Checks of the workspace itself, run by `make lint`: `cargo xtask arrows`, `dupes`, `leaks` and `reference --check`.
//! Each one prints what it found, one line each, and fails if that is anything at all. `cargo xtask reference` writes
//! `docs/reference`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command for people")]

mod arrows;
mod dupes;
mod leaks;
mod reference;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// How many findings the named check has.
fn run() -> Result<usize> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let findings = match words[..] {
        ["arrows"] => arrows::check(&arrows::packages(&metadata(&["--no-deps"])?)?),
        ["dupes"] => dupes::check(&dupes::direct_versions(&metadata(&[])?)?),
        ["leaks"] => leaks::check()?,
        ["reference"] => reference::write()?,
        ["reference", "--check"] => reference::check()?,
        _ => bail!("usage: cargo xtask arrows | dupes | leaks | reference [--check]"),
    };
    for finding in &findings {
        println!("{finding}");
    }
    println!("xtask {}: {}", words.join(" "), verdict(findings.len()));
    Ok(findings.len())
}

fn verdict(n_findings: usize) -> String {
    if n_findings == 0 { "ok".to_owned() } else { format!("{n_findings} found") }
}

fn metadata(options: &[&str]) -> Result<Value> {
    let arguments = [&["metadata", "--format-version", "1"], options].concat();
    serde_json::from_str(&output_of(&cargo(), &arguments)?).context("cargo metadata did not print JSON")
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// What a program prints; an error if it fails.
fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("can't start {program}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{program} {} failed: {complaint}", arguments.join(" "));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} did not print UTF-8"))
}
