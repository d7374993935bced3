//! `ostler token`: what programs show to come in.

use clap::Subcommand;
use ostler_client::{ClientError, NewToken, TokenView};
use ostler_spec::GoDuration;

use super::{
    missing::explain_among,
    role::{self, Role},
};
use crate::{
    app::App,
    clock,
    error::CommandError,
    exit::Exit,
    format::Format,
    paint::Tone,
    table::{Cell, Table},
};

/// Makes, lists and deletes tokens, with which programs come in
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(CreateArguments),
    List(ListArguments),
    Delete(DeleteArguments),
}

/// Makes a token and prints it: this is the only time it is told
///
/// The token alone goes to stdout. A role may do what those before it may: reader looks, writer declares and runs,
/// controller reports states, admin decides who comes in.
#[derive(Debug, clap::Args)]
#[command(after_help = CREATE_EXAMPLES)]
struct CreateArguments {
    /// What to call it
    name: String,

    #[arg(long, value_enum, default_value_t = Role::Reader)]
    role: Role,

    /// The namespaces it holds for, with commas between them (without it, all)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// How long it holds: 12h, 30d (without it, until it is deleted)
    #[arg(long, value_name = "DURATION", value_parser = role::lifetime)]
    expires: Option<GoDuration>,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  ostler token create dashboard
  ostler token create ci --role writer --namespaces staging \\
      --expires 30d > ci.token";

/// Lists tokens: their names and what they may do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler token list\n  ostler token list -o json | jq -r '.[].name'")]
struct ListArguments {
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Deletes tokens; whoever shows one is no longer let in
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler token delete ci laptop")]
struct DeleteArguments {
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    match arguments.command {
        Command::Create(arguments) => create(arguments, &client, app).await?,
        Command::List(arguments) => {
            let tokens = client.tokens().await?;
            if tokens.is_empty() && arguments.output.is_table() {
                app.output.note("no tokens but the server's own; `ostler token create NAME` makes one");
                return Ok(Exit::Ok);
            }
            let name = |token: &TokenView| format!("token/{}", token.name);
            arguments.output.print(app.output, &tokens, name, |_| table(&tokens, app))?;
        }
        Command::Delete(arguments) => {
            for name in &arguments.names {
                if let Err(error) = client.delete_token(name).await {
                    let known = client.tokens().await.unwrap_or_default();
                    let names: Vec<String> = known.into_iter().map(|token| token.name).collect();
                    return Err(explain_among(error, name, &names));
                }
                app.output.done(format!("token/{name} deleted"))?;
            }
        }
    }
    Ok(Exit::Ok)
}

async fn create(
    arguments: CreateArguments,
    client: &ostler_client::Client,
    app: &App,
) -> Result<(), CommandError> {
    let CreateArguments { name, role, namespaces, expires } = arguments;
    let expires_at = expires.map(|expires| {
        let ms = i64::try_from(expires.get().as_millis()).unwrap_or(i64::MAX);
        clock::print(app.now_ms().saturating_add(ms))
    });
    let wanted = NewToken { name, role: role.to_string(), namespaces, expires_at };
    let made = client.create_token(&wanted).await.map_err(|error| taken(error, &wanted.name))?;
    let Some(token) = &made.token else {
        return Err(CommandError::error("the server made a token and did not tell it"));
    };
    app.output.data(token)?;
    let spaces = role::spaces(&made.namespaces);
    app.output.note(format!("token {} made: {} in {spaces}; it is not shown again", made.name, made.role));
    Ok(())
}

/// A token is told once: of one that is there, nobody can be told it again.
fn taken(error: ClientError, name: &str) -> CommandError {
    let is_taken = error.code() == Some("conflict");
    let error = CommandError::from(error);
    if !is_taken {
        return error;
    }
    error.with_remedy(format!(
        "choose another name, or take that one away first: `ostler token delete {name}`; `ostler token list` shows what \
         it may do"
    ))
}

/// When it ends, or how long ago it did: then it opens nothing any more.
fn expires(token: &TokenView, now_ms: i64) -> Cell {
    let Some(at) = &token.expires_at else { return Cell::new("never") };
    match clock::parse(at).filter(|at| *at <= now_ms) {
        Some(past) => Cell::toned(format!("expired {} ago", clock::age(past, now_ms)), Tone::Pending),
        None => Cell::new(at),
    }
}

fn table(tokens: &[TokenView], app: &App) -> Table {
    let mut table = Table::new(["NAME", "ROLE", "NAMESPACES", "EXPIRES", "USED", "AGE"]);
    for token in tokens {
        let age = |time: &Option<String>| role::age(time.as_deref(), app.now_ms());
        table.row([
            Cell::new(&token.name),
            Cell::new(&token.role),
            Cell::new(role::spaces(&token.namespaces)),
            expires(token, app.now_ms()),
            Cell::new(age(&token.last_used_at)),
            Cell::new(age(&token.created_at)),
        ]);
    }
    table
}
