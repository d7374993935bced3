//! The `ostler` binary: every command; starts server and worker. Reaches the system only through the client
//! and the HTTP API; `ostler up` starts a server and a worker in this process.

mod app;
mod args;
mod commands;

mod config;
mod error;
mod exit;
mod logging;
mod profiles;
mod settings;

mod follow;
mod graph;
mod reference;
mod trace;
mod words;

mod document;
mod manifests;
mod unified;

mod clock;
mod format;
mod input;
mod kind_words;
mod output;
mod paint;
mod password;
mod suggest;
mod table;
mod terminal;
mod text;

use std::{process::ExitCode, sync::Arc};

use ostler_worker::{Redactor, TokioRuntime};
use tokio::runtime::Builder;

use crate::{
    app::App,
    args::{Arguments, Command},
    error::CommandError,
    exit::Exit,
    output::Output,
    terminal::Terminal,
};

/// A task makes some hundred small allocations, and many threads make them: the system's allocator took a fifth
/// of a busy server's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let output = Output { terminal: Terminal::look(arguments.written.color) };
    let exit = start(arguments, output).unwrap_or_else(|error| {
        output.tell(&error);
        error.exit()
    });
    exit.into()
}

fn start(arguments: Arguments, output: Output) -> Result<Exit, CommandError> {
    // Two threads carry a server; a client needs none but this one.
    let mut builder = match arguments.command {
        Command::Up(_) | Command::Server(_) | Command::Worker(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    let tokio = builder
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| CommandError::error(format!("can't start: {error}")))?;
    let runtime = Arc::new(TokioRuntime::new(tokio.handle().clone()));
    let app = App { written: arguments.written, output, runtime, redactor: Redactor::default() };
    let done = tokio.block_on(commands::perform(arguments.command, &app));
    // Nothing that still waits for input or a lookup may hold us up.
    tokio.shutdown_background();
    done
}
