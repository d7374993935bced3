//! The figures, as a table for people and as markdown for the record.

mod figure;

pub use figure::{Bar, Figure};

use crate::machine::Machine;

const COLUMNS: [&str; 6] = ["what", "measured", "beside its floor", "steal", "idle", "bar"];

pub struct Report {
    machine: Machine,
    date: String,
    figures: Vec<Figure>,
    summary: Vec<String>,
}

impl Report {
    pub fn new() -> anyhow::Result<Self> {
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
        Ok(Self { machine: Machine::read()?, date, figures: Vec::new(), summary: Vec::new() })
    }

    /// Shown at once as well: a run takes long, and one that is cut off has measured something nevertheless.
    pub fn add(&mut self, figure: Figure) {
        let [what, measured, .., bar] = figure.cells();
        eprintln!("  {what}: {measured}{}{bar}", if bar.is_empty() { "" } else { ", " });
        self.figures.push(figure);
    }

    /// A part of the last line.
    pub fn summarize(&mut self, part: String) {
        self.summary.push(part);
    }

    pub fn table(&self) -> String {
        let mut rows = vec![COLUMNS.map(str::to_owned)];
        rows.extend(self.figures.iter().map(Figure::cells));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let line = |row: &[String; COLUMNS.len()]| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The one line of figures that a run ends with.
    pub fn summary(&self) -> String {
        match self.summary.as_slice() {
            [] => "bench: floors only".to_owned(),
            parts => format!("bench: {}", parts.join(", ")),
        }
    }

    pub fn markdown(&self) -> String {
        let command = command(std::env::args().skip(1));
        let mut rows = vec![COLUMNS.map(str::to_owned), COLUMNS.map(|_| "---".to_owned())];
        rows.extend(self.figures.iter().map(Figure::cells));
        let rows: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        let Self { machine, date, .. } = self;
        format!(
            "# Results\n\nMade by `{command}`, {date}.\n\nMachine: {machine}. Steal and idle are shares of all \
             cores' time while the figure was taken: the model, the tools and the client run on the same \
             machine.\n\n{}\n\n`{}`\n",
            rows.join("\n"),
            self.summary()
        )
    }
}

/// That makes the same figures on another machine: folders and files of this one are nothing to it.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--data" | "--record" => drop(arguments.next()),
            other if other.starts_with("--data=") || other.starts_with("--record=") => {}
            _ => kept.push(argument),
        }
    }
    match kept.as_slice() {
        [] => "make bench".to_owned(),
        kept => format!("make bench ARGS=\"{}\"", kept.join(" ")),
    }
}

#[cfg(test)]
mod tests;
