//! `ostler reference`: the pages of the reference, for whoever writes them down.

use clap::ValueEnum;

use crate::{app::App, error::CommandError, exit::Exit, reference::Page};

/// Prints a page of the reference in Markdown; without one, which there are
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Arguments {
    /// The page
    page: Option<Page>,
}

pub fn run(arguments: Arguments, app: &App) -> Result<Exit, CommandError> {
    match arguments.page {
        Some(page) => app.output.data(page.text())?,
        None => Page::value_variants().iter().try_for_each(|page| app.output.data(page.name()))?,
    }
    Ok(Exit::Ok)
}
