//! `ostler user`: the people who sign in.

use clap::{ArgGroup, Subcommand};
use ostler_client::{Client, NewUser, UserChange, UserView};

use super::{
    missing::explain_among,
    role::{self, Role},
};
use crate::{
    app::App,
    error::CommandError,
    exit::Exit,
    format::Format,
    password,
    table::{Cell, Table},
};

/// Adds, lists, changes and deletes users; they sign in with a password
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(AddArguments),
    List(ListArguments),
    Set(SetArguments),
    Delete(DeleteArguments),
    Password(PasswordArguments),
}

/// Adds a user
///
/// The password is asked for on the terminal, twice, and not shown. It is never taken from the command line, where
/// others on the machine would see it.
#[derive(Debug, clap::Args)]
#[command(after_help = ADD_EXAMPLES)]
struct AddArguments {
    name: String,

    #[arg(long, value_enum, default_value_t = Role::Reader)]
    role: Role,

    /// The namespaces the user may work in, with commas between them (without it, all)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// Read the password from stdin
    #[arg(long)]
    password_stdin: bool,
}

const ADD_EXAMPLES: &str = "\
Examples:
  ostler user add ada --role admin
  pass show ostler/ada | ostler user add ada --role writer \\
      --namespaces staging --password-stdin";

/// Lists users: their names and what they may do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler user list\n  ostler user list -o name")]
struct ListArguments {
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Changes what a user may do
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler user set ada --role writer\n  ostler user set ada --namespaces staging,test\n  ostler user set ada --namespaces '*'",
    group = ArgGroup::new("change").args(["role", "namespaces"]).required(true).multiple(true)
)]
struct SetArguments {
    name: String,

    #[arg(long, value_enum)]
    role: Option<Role>,

    /// The namespaces the user may work in, with commas between them; * is all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespaces: Option<Vec<String>>,
}

/// Deletes users; whoever is signed in as one is signed out
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ostler user delete ada")]
struct DeleteArguments {
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Gives a user another password
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ostler user password ada\n  pass show ostler/ada | ostler user password ada --password-stdin"
)]
struct PasswordArguments {
    name: String,

    /// Read the password from stdin
    #[arg(long)]
    password_stdin: bool,
}

pub async fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    let client = app.client()?;
    match arguments.command {
        Command::Add(arguments) => add(arguments, &client, app).await?,
        Command::List(arguments) => {
            let users = client.users().await?;
            if users.is_empty() && arguments.output.is_table() {
                app.output.note("no users; `ostler user add NAME` adds one");
                return Ok(Exit::Ok);
            }
            let name = |user: &UserView| format!("user/{}", user.name);
            arguments.output.print(app.output, &users, name, |_| table(&users, app))?;
        }
        Command::Set(SetArguments { name, role, namespaces }) => {
            let change = UserChange { role: role.map(|role| role.to_string()), namespaces };
            let changed = client.change_user(&name, &change).await?;
            let spaces = role::spaces(&changed.namespaces);
            app.output.data(format!("user/{} is {} in {spaces}", changed.name, changed.role))?;
        }
        Command::Delete(arguments) => {
            for name in &arguments.names {
                if let Err(error) = client.delete_user(name).await {
                    let known = client.users().await.unwrap_or_default();
                    let names: Vec<String> = known.into_iter().map(|user| user.name).collect();
                    return Err(explain_among(error, name, &names));
                }
                app.output.done(format!("user/{name} deleted"))?;
            }
        }
        Command::Password(PasswordArguments { name, password_stdin }) => {
            client.reset_password(&name, &password::new(app, &name, password_stdin)?).await?;
            app.output.data(format!("user/{name} has another password"))?;
        }
    }
    Ok(Exit::Ok)
}

async fn add(arguments: AddArguments, client: &Client, app: &App) -> Result<(), CommandError> {
    let AddArguments { name, role, namespaces, password_stdin } = arguments;
    let password = password::new(app, &name, password_stdin)?;
    let made = client.create_user(&NewUser { name, password, role: role.to_string(), namespaces }).await?;
    app.output.data(format!("user/{} added, {} in {}", made.name, made.role, role::spaces(&made.namespaces)))
}

fn table(users: &[UserView], app: &App) -> Table {
    let mut table = Table::new(["NAME", "ROLE", "NAMESPACES", "SIGNED IN", "AGE"]);
    for user in users {
        let age = |time: &Option<String>| role::age(time.as_deref(), app.now_ms());
        table.row([
            Cell::new(&user.name),
            Cell::new(&user.role),
            Cell::new(role::spaces(&user.namespaces)),
            Cell::new(age(&user.last_login_at)),
            Cell::new(age(&user.created_at)),
        ]);
    }
    table
}
