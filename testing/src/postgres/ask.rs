//! Asks a database by PostgreSQL's own programs for clients.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context as _, ensure};

use super::{Postgres, bin};

impl Postgres {
    /// SQL that makes the same schema with its rows again.
    pub fn dump(&self, schema: &str) -> anyhow::Result<String> {
        let dump = self.run("pg_dump", &["--inserts", "--no-owner", &format!("--schema={schema}")], "")?;
        // Comments, and what only psql understands.
        let is_sql = |line: &&str| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\');
        Ok(dump.lines().filter(is_sql).map(|line| format!("{line}\n")).collect())
    }

    /// What psql answers, bare.
    pub fn ask(&self, sql: &str) -> anyhow::Result<String> {
        let answer =
            self.run("psql", &["--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"], sql)?;
        Ok(answer.trim().to_owned())
    }

    /// What PostgreSQL's own measure of itself says.
    pub fn pgbench(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.run("pgbench", arguments, "")
    }

    /// One of PostgreSQL's own programs for clients.
    fn run(&self, program: &str, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let mut command = Command::new(bin()?.join(program));
        command.args(arguments).arg(self.url());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("no way to tell it")?;
        let text = input.to_owned();
        // It may answer before it has read all.
        let telling = thread::spawn(move || stdin.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        let _ = telling.join();
        ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}
