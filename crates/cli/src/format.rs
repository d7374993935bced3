//! How lists are printed: `-o table|wide|json|yaml|name`, the same for every command.

use clap::ValueEnum;
use serde::Serialize;

use crate::{error::CommandError, output::Output, table::Table};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns
    Table,
    /// More columns
    Wide,
    /// One object, or an array of them
    Json,
    /// One document each
    Yaml,
    /// kind/name, one per line
    Name,
}

/// A table, or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plain {
    Table,
    Json,
}

impl Format {
    pub fn is_table(self) -> bool {
        matches!(self, Format::Table | Format::Wide)
    }

    /// Prints a list of anything: `name` gives what stands for one of them, `table` is asked for wide columns or not.
    pub fn print<T: Serialize>(
        self,
        output: Output,
        items: &[T],
        name: impl Fn(&T) -> String,
        table: impl FnOnce(bool) -> Table,
    ) -> Result<(), CommandError> {
        match self {
            Format::Table => output.table(&table(false)),
            Format::Wide => output.table(&table(true)),
            Format::Json => output.json(&items),
            Format::Yaml => documents(output, items),
            Format::Name => items.iter().try_for_each(|item| output.data(name(item))),
        }
    }
}

fn documents<T: Serialize>(output: Output, items: &[T]) -> Result<(), CommandError> {
    items.iter().enumerate().try_for_each(|(place, item)| {
        if place > 0 {
            output.data("---")?;
        }
        output.yaml(item)
    })
}
