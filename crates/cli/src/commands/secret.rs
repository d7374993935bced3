//! `ostler secret`: values that endpoints and tools name, and nobody reads back.

mod check;
mod rotate;
mod values;

use std::path::PathBuf;

use clap::Subcommand;
use ostler_client::{Client, ClientError};
use ostler_spec::{DEFAULT_NAMESPACE, KEPT, Kind};
use serde_json::{Map, Value, json};

use super::{
    listing::{self, name_of},
    missing, role,
};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    format::Format,
    table::{Cell, Table},
};

/// Keeps secrets: sets, lists and deletes them, says where one is found, turns to another key
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Set(SetArguments),
    List(ListArguments),
    Delete(DeleteArguments),
    Check(check::Arguments),
    Rotate(rotate::Arguments),
}

/// Puts values of a secret in place; its other values stay
///
/// Asked for on the terminal without being shown, or read from stdin or a file. The server seals it before it is stored,
/// and never shows it again. What an agent does next uses it.
#[derive(Debug, clap::Args)]
#[command(after_help = SET_EXAMPLES)]
pub struct SetArguments {
    /// What endpoints and tools call it
    #[arg(value_parser = super::name)]
    name: String,

    /// Values as they are; others on this machine may see them here, and your shell remembers them
    #[arg(value_name = "KEY=VALUE")]
    values: Vec<String>,

    /// Read a value from a file
    #[arg(long, value_name = "KEY=PATH")]
    from_file: Vec<String>,

    /// Read the value from stdin
    #[arg(long)]
    from_stdin: bool,

    /// The key of what is typed or comes from stdin
    #[arg(long, default_value = "value")]
    key: String,
}

const SET_EXAMPLES: &str = "\
Examples:
  ostler secret set openai-key                              # asks for it
  pass show openai | ostler secret set openai-key --from-stdin
  ostler secret set github --key token --from-stdin < token.txt
  ostler secret set db --from-file ca=ca.pem --from-file password=pw.txt";

/// Lists secrets: their names and keys, never a value
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler secret list\n  ostler secret list -o name")]
pub struct ListArguments {
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Deletes secrets; what names one fails at its next call
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler secret delete openai-key\n  ostler secret delete old older")]
pub struct DeleteArguments {
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Set(arguments) => set(arguments, app).await,
        Command::List(arguments) => list(&arguments, app).await,
        Command::Delete(arguments) => delete(&arguments.names, app).await,
        Command::Check(arguments) => check::run(&arguments, app).await,
        Command::Rotate(arguments) => rotate::run(&arguments, app).await,
    }
}

async fn set(arguments: SetArguments, app: &App) -> Result<Exit, CommandError> {
    let values = values::gather(&arguments, app)?;
    let client = app.client()?;
    let name = &arguments.name;
    for _ in 0..TRIES {
        match put(&client, name, &values).await {
            Ok(()) => {
                let keys = values.keys().cloned().collect::<Vec<_>>().join(", ");
                app.output.data(format!("secret/{name} set: {keys}"))?;
                return Ok(Exit::Ok);
            }
            // Somebody else has set another value of it meanwhile.
            Err(error) if error.code() == Some("conflict") => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(CommandError::error(format!("others keep changing secret/{name}; try again")))
}

const TRIES: usize = 5;

async fn put(client: &Client, name: &str, values: &values::Values) -> Result<(), ClientError> {
    let mut data: Map<String, Value> =
        values.iter().map(|(key, value)| (key.clone(), json!(&**value))).collect();
    match client.get(Kind::Secret, name).await {
        Ok(mut stored) => {
            let version = text_at(&stored, "/metadata/resourceVersion").to_owned();
            if let Some(kept) = stored.pointer_mut("/spec/data").and_then(Value::as_object_mut) {
                for key in kept.keys().filter(|key| !values.contains_key(*key)) {
                    data.insert(key.clone(), json!(KEPT));
                }
                *kept = data;
            }
            if let Some(parts) = stored.as_object_mut() {
                parts.remove("status");
            }
            client.replace(Kind::Secret, name, &stored, &version).await.map(drop)
        }
        Err(error) if error.code() == Some("not_found") => {
            let namespace =
                if client.namespace().is_empty() { DEFAULT_NAMESPACE } else { client.namespace() };
            let metadata = json!({"name": name, "namespace": namespace});
            let manifest = json!({"kind": "Secret", "metadata": metadata, "spec": {"data": data}});
            client.apply(&manifest).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

async fn list(arguments: &ListArguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    let secrets = listing::all(&client, Kind::Secret).await?;
    if secrets.is_empty() && arguments.output.is_table() {
        app.output.note(format!(
            "no secrets in namespace {}; `ostler secret set NAME` keeps one",
            client.namespace()
        ));
        return Ok(Exit::Ok);
    }
    let name = |secret: &Value| format!("secret/{}", name_of(secret));
    arguments.output.print(app.output, &secrets, name, |_| table(&secrets, app))?;
    Ok(Exit::Ok)
}

fn table(secrets: &[Value], app: &App) -> Table {
    let mut table = Table::new(["NAME", "KEYS", "AGE"]);
    for secret in secrets {
        let data = secret.pointer("/spec/data").and_then(Value::as_object);
        let keys = data.into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>().join(",");
        let made = text_at(secret, "/metadata/createdAt");
        table.row([
            Cell::new(name_of(secret)),
            Cell::new(keys),
            Cell::new(role::age(Some(made).filter(|made| !made.is_empty()), app.now_ms())),
        ]);
    }
    table
}

async fn delete(names: &[String], app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    for name in names {
        match client.delete(Kind::Secret, name).await {
            Ok(()) => app.output.done(format!("secret/{name} deleted"))?,
            Err(error) => return Err(missing::explain(&client, Kind::Secret, name, error).await),
        }
    }
    Ok(Exit::Ok)
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A key and where its value is.
fn pair(text: &str) -> Result<(String, PathBuf), CommandError> {
    match text.split_once('=') {
        Some((key, path)) if !key.is_empty() && !path.is_empty() => Ok((key.to_owned(), PathBuf::from(path))),
        _ => Err(CommandError::new(Exit::Usage, format!("{text:?} is no KEY=PATH"))
            .with_remedy("such as --from-file token=token.txt")),
    }
}
