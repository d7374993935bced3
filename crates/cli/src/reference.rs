//! The reference, written from the same tables and types that the program runs on: `cargo xtask reference` puts each
//! page into `docs/reference`, and `make lint` fails on one that is not this version's.

mod environment;
mod errors;
mod exit_codes;
mod flags;
mod kinds;
mod markdown;
mod metrics;

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Page {
    Kinds,
    Flags,
    Environment,
    Errors,
    ExitCodes,
    Metrics,
}

const ABOVE: &str = "<!-- Written by `cargo xtask reference`; what you change here is lost. -->";

impl Page {
    /// What its file is called, without its ending.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The whole page, in Markdown.
    pub fn text(self) -> String {
        let text = match self {
            Page::Kinds => kinds::page(),
            Page::Flags => flags::page(),
            Page::Environment => environment::page(),
            Page::Errors => errors::page(),
            Page::ExitCodes => exit_codes::page(),
            Page::Metrics => metrics::page(),
        };
        format!("{ABOVE}\n\n{}", text.trim_end())
    }
}
