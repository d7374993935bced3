//! `ostler profile`: servers by name.

use std::path::Path;

use clap::{Subcommand, builder::NonEmptyStringValueParser};
use ostler_client::Client;
use serde::Serialize;

use crate::{
    app::App,
    config::Written,
    error::{CommandError, with_causes},
    exit::Exit,
    format::Format,
    input,
    profiles::{self, Profile, Profiles},
    table::{Cell, Table},
};

/// Keeps servers by name: address, token, namespace and who vouches for them
///
/// They lie in ~/.config/ostler/profiles.yaml. --profile or OSTLER_PROFILE names one, otherwise the one that is in use
/// counts. A flag counts before a variable, a variable before a profile, a profile before the server of this folder;
/// `ostler config show` tells what comes of it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ostler token create laptop --role writer | ostler profile set prod \\
      --server https://ostler.example --token-stdin
  ostler profile set ci --server https://ostler.example --token-env CI_TOKEN \\
      --namespace staging
  ostler profile use prod
  ostler get tasks --profile ci";

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArguments),
    Set(SetArguments),
    Use(UseArguments),
    Delete(DeleteArguments),
}

/// Lists profiles
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler profile list")]
struct ListArguments {
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Makes a profile, or changes what is said of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct SetArguments {
    #[arg(value_name = "PROFILE")]
    name: String,

    /// Read its token from stdin; it is kept in the file, which only you may read
    #[arg(long, conflicts_with = "token_env")]
    token_stdin: bool,

    /// The variable that holds its token
    #[arg(long, value_name = "VARIABLE", value_parser = NonEmptyStringValueParser::new())]
    token_env: Option<String>,

    /// A file with who vouches for the server, in PEM
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    ca: Option<String>,
}

/// Makes a profile the one that counts; without a name, none
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler profile use prod\n  ostler profile use           # none: back to the server of this folder"
)]
struct UseArguments {
    #[arg(value_name = "PROFILE")]
    name: Option<String>,
}

/// Forgets profiles
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler profile delete prod")]
struct DeleteArguments {
    #[arg(required = true, value_name = "PROFILE")]
    names: Vec<String>,
}

/// A profile as it is listed: whether there is a token, not which.
#[derive(Serialize)]
struct Row {
    name: String,
    current: bool,
    server: Option<String>,
    token: Option<String>,
    namespace: Option<String>,
    ca: Option<String>,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let path = profiles::file(&|name| std::env::var(name).ok()).ok_or_else(|| {
        CommandError::error("there is no place for profiles").with_remedy("set HOME or XDG_CONFIG_HOME")
    })?;
    let mut profiles = Profiles::read(&path)?;
    match arguments.command {
        Command::List(arguments) => {
            list(app, &profiles, arguments.output)?;
            return Ok(Exit::Ok);
        }
        Command::Set(arguments) => {
            let done = set(app, &mut profiles, arguments)?;
            profiles.write(&path)?;
            app.output.done(done.line)?;
            done.note.iter().for_each(|note| app.output.note(note));
        }
        Command::Use(UseArguments { name }) => {
            if let Some(name) = &name {
                profiles.get(name)?;
            }
            let word = name
                .as_deref()
                .map_or("no profile is in use".to_owned(), |name| format!("profile/{name} in use"));
            profiles.current = name;
            profiles.write(&path)?;
            app.output.done(word)?;
        }
        Command::Delete(DeleteArguments { names }) => {
            profiles.forget(&names)?;
            profiles.write(&path)?;
            names.iter().try_for_each(|name| app.output.done(format!("profile/{name} deleted")))?;
        }
    }
    Ok(Exit::Ok)
}

/// What to say once it is kept.
struct Done {
    line: String,
    note: Option<String>,
}

fn set(app: &App, profiles: &mut Profiles, arguments: SetArguments) -> Result<Done, CommandError> {
    check(&arguments, &app.written)?;
    let SetArguments { name, token_stdin, token_env, ca } = arguments;
    let is_new = !profiles.profiles.contains_key(&name);
    let profile = profiles.profiles.entry(name.clone()).or_default();
    // Where to look and what to say of a profile are the same flags.
    let said = [(&mut profile.server, &app.written.server), (&mut profile.namespace, &app.written.namespace)];
    for (slot, flag) in said {
        if flag.is_some() {
            slot.clone_from(flag);
        }
    }
    if token_stdin {
        let token = input::read_stdin()?.trim().to_owned();
        if token.is_empty() {
            return Err(CommandError::new(Exit::Usage, "there is no token on stdin").with_remedy(
                "pipe one in, as `ostler token create` prints it, or name the variable that holds it with --token-env",
            ));
        }
        (profile.token, profile.token_env) = (Some(token), None);
    }
    if token_env.is_some() {
        (profile.token, profile.token_env) = (None, token_env);
    }
    if ca.is_some() {
        profile.ca = ca;
    }
    let line = format!("profile/{name} {}", if is_new { "created" } else { "configured" });
    let note = || format!("`ostler profile use {name}` lets it count where none is named");
    Ok(Done { line, note: profiles.current.is_none().then(note) })
}

/// Nothing is kept that no command could use.
fn check(arguments: &SetArguments, written: &Written) -> Result<(), CommandError> {
    let SetArguments { name, token_stdin, token_env, ca } = arguments;
    let odd = |why| CommandError::new(Exit::Usage, format!("{name:?} can't be the name of a profile: {why}"));
    ostler_spec::check_namespace(name).map_err(odd)?;
    let says_nothing = written.server.is_none() && written.namespace.is_none() && ca.is_none();
    if says_nothing && !token_stdin && token_env.is_none() {
        let message = format!("nothing is said of profile {name:?}");
        return Err(CommandError::new(Exit::Usage, message)
            .with_remedy("give --server, --namespace, --token-stdin, --token-env or --ca"));
    }
    written.check()?;
    if let Some(ca) = ca {
        let unfit = |why| CommandError::new(Exit::Usage, format!("--ca {ca}: {why}"));
        let certificates = input::text_of(Path::new(ca));
        let certificates = certificates.map_err(|why| unfit(format!("can't be read: {why}")))?;
        // Over http nobody would look at them.
        let vouched = Client::trusting("https://localhost", "", Some(certificates.as_bytes()));
        vouched.map_err(|error| unfit(with_causes(&error)))?;
    }
    Ok(())
}

fn list(app: &App, profiles: &Profiles, format: Format) -> Result<(), CommandError> {
    let row = |(name, profile): (&String, &Profile)| Row {
        name: name.clone(),
        current: profiles.current.as_ref() == Some(name),
        server: profile.server.clone(),
        token: profile.token_env.clone().or_else(|| profile.token.as_ref().map(|_| "kept here".to_owned())),
        namespace: profile.namespace.clone(),
        ca: profile.ca.clone(),
    };
    let rows: Vec<Row> = profiles.profiles.iter().map(row).collect();
    if rows.is_empty() && format.is_table() {
        app.output.note("no profiles; `ostler profile set NAME --server URL` makes one");
        return Ok(());
    }
    format.print(
        app.output,
        &rows,
        |row| format!("profile/{}", row.name),
        |_| {
            let mut table = Table::new(["NAME", "SERVER", "TOKEN", "NAMESPACE", "CA", "IN USE"]);
            for row in &rows {
                let cell = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default());
                let in_use = Cell::new(if row.current { "yes" } else { "" });
                table.row([
                    Cell::new(&row.name),
                    cell(&row.server),
                    cell(&row.token),
                    cell(&row.namespace),
                    cell(&row.ca),
                    in_use,
                ]);
            }
            table
        },
    )
}
