//! One verb, one file: its arguments and what it does.

pub mod apply;
pub mod archive;
pub mod backup;
pub mod cancel;
pub mod completion;
pub mod config;
pub mod cordon;
pub mod delete;
pub mod describe;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod events;
pub mod get;
pub mod graph;
pub mod help;
pub mod init;
pub mod logs;
pub mod profile;
pub mod ps;
pub mod reference;
pub mod release;
pub mod retry;
pub mod run;
pub mod secret;
pub mod server;
pub mod token;
pub mod top;
pub mod trace;
pub mod up;
pub mod user;
pub mod validate;
pub mod version;
pub mod wait;
pub mod worker;
pub mod workers;

mod each_task;
mod listing;
mod missing;
mod role;
mod serving;
mod target;

use ostler_kernel::Selector;
use ostler_spec::GoDuration;

use crate::{app::App, args::Command, error::CommandError, exit::Exit};

/// Does what was asked for.
pub async fn perform(command: Command, app: &App) -> Result<Exit, CommandError> {
    match command {
        Command::Up(arguments) => up::run(arguments, app).await,
        Command::Server(arguments) => server::run(arguments, app).await,
        Command::Worker(arguments) => worker::run(arguments, app).await,
        Command::Apply(arguments) => apply::run(arguments, app).await,
        Command::Get(arguments) => get::run(arguments, app).await,
        Command::Describe(arguments) => describe::run(arguments, app).await,
        Command::Delete(arguments) => delete::run(arguments, app).await,
        Command::Run(arguments) => run::run(arguments, app).await,
        Command::Ps(arguments) => ps::run(arguments, app).await,
        Command::Logs(arguments) => logs::run(arguments, app).await,
        Command::Events(arguments) => events::run(arguments, app).await,
        Command::Trace(arguments) => trace::run(arguments, app).await,
        Command::Cancel(arguments) => cancel::run(arguments, app).await,
        Command::Release(arguments) => release::run(arguments, app).await,
        Command::Retry(arguments) => retry::run(arguments, app).await,
        Command::Archive(arguments) => archive::run(arguments, app).await,
        Command::Workers(arguments) => workers::run(arguments, app).await,
        Command::Cordon(arguments) => cordon::cordon(arguments, app).await,
        Command::Uncordon(arguments) => cordon::uncordon(arguments, app).await,
        Command::Drain(arguments) => cordon::drain(arguments, app).await,
        Command::Backup(arguments) => backup::run(arguments, app).await,
        Command::Config(arguments) => config::run(arguments, app).await,
        Command::Init(arguments) => init::run(arguments, app).await,
        Command::Validate(arguments) => validate::run(arguments, app).await,
        Command::Diff(arguments) => diff::run(arguments, app).await,
        Command::Edit(arguments) => edit::run(arguments, app).await,
        Command::Wait(arguments) => wait::run(arguments, app).await,
        Command::Graph(arguments) => graph::run(arguments, app).await,
        Command::Top(arguments) => top::run(arguments, app).await,
        Command::Secret(arguments) => secret::run(arguments, app).await,
        Command::Token(arguments) => token::run(arguments, app).await,
        Command::User(arguments) => user::run(arguments, app).await,
        Command::Profile(arguments) => profile::run(arguments, app).await,
        Command::Doctor(arguments) => doctor::run(arguments, app).await,
        Command::Completion(arguments) => completion::run(arguments, app).await,
        Command::Version(arguments) => version::run(arguments, app).await,
        Command::Help(arguments) => help::run(&arguments, app),
        Command::Reference(arguments) => reference::run(arguments, app),
    }
}

/// For what is to be called so. A server would refuse it by the field in which it sends it.
fn name(text: &str) -> Result<String, String> {
    ostler_spec::check_name(text).map(|()| text.to_owned())
}

/// For labels that something must have.
fn selector(text: &str) -> Result<String, String> {
    text.parse::<Selector>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// For times within which something has to happen.
fn some_time(text: &str) -> Result<GoDuration, String> {
    match text.parse::<GoDuration>() {
        Ok(time) if time.is_zero() => Err("expected a duration longer than 0s".to_owned()),
        time => time.map_err(|error| error.to_string()),
    }
}

/// For counts of which none makes no sense.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number from 1 on".to_owned()),
        Ok(count) => Ok(count),
    }
}
