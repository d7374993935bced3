//! `ostler secret rotate`: another key, and everything sealed with it.

use std::time::Duration;

use ostler_client::SecretKeysView;

use crate::{app::App, error::CommandError, exit::Exit};

/// Turns to another key, seals every secret with it, and says when the old one may go
///
/// A server that made its own key, in the file secret-key of its data folder, makes another. One that was given a file reads
/// it anew: put the new key on the first line and leave the old one below it. The work goes on if this command is stopped, and
/// after a crash of the server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler secret rotate\n  ostler secret rotate --no-wait")]
pub struct Arguments {
    /// Don't wait until everything is sealed
    #[arg(long)]
    no_wait: bool,
}

const PAUSE: Duration = Duration::from_millis(200);

pub async fn run(arguments: &Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let mut found = client.rotate_secret_keys().await?;
    let first = found.keys.first().map(|key| key.id.clone()).unwrap_or_default();
    app.output.note(format!("{first} seals from now on; {}", left(found.left)));
    while found.left > 0 && !arguments.no_wait {
        app.runtime.sleep(PAUSE).await;
        found = client.secret_keys().await?;
        if found.keys.iter().any(|key| !key.known) {
            break;
        }
    }
    report(&found, app)
}

fn left(count: usize) -> String {
    match count {
        1 => "1 secret is left to be sealed".to_owned(),
        count => format!("{count} secrets are left to be sealed"),
    }
}

fn report(found: &SecretKeysView, app: &App) -> Result<Exit, CommandError> {
    let unknown = found.keys.iter().filter(|key| !key.known);
    let unknown: Vec<&str> = unknown.map(|key| key.id.as_str()).collect();
    if !unknown.is_empty() {
        return Err(CommandError::error(format!(
            "some secrets are sealed with a key that the server does not have: {}",
            unknown.join(", ")
        ))
        .with_remedy(
            "put that key back, on a line of its own, and rotate again; or set those secrets anew",
        ));
    }
    if found.left > 0 {
        app.output.data(left(found.left))?;
        return Ok(Exit::Ok);
    }
    let old = found.keys.iter().skip(1).map(|key| key.id.as_str()).collect::<Vec<_>>().join(", ");
    app.output.data("every secret is sealed with the first key")?;
    if !old.is_empty() {
        app.output.note(format!(
            "{old} may go from {}, once no backup of before is needed and every server that shares the store has the \
             first key",
            found.source
        ));
    }
    Ok(Exit::Ok)
}
