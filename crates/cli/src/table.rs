//! Columns of text: aligned, three blanks apart, no lines drawn. On a terminal they fit its width.

use crate::{
    paint::{Paint, Tone},
    text,
};

const GAP: &str = "   ";

/// No column is made narrower than this to let the others have their room.
const NARROWEST: usize = 12;

pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

pub struct Cell {
    text: String,
    tone: Tone,
}

/// How wide lines may be, and what stands for what is left out.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub columns: usize,
    pub ellipsis: &'static str,
}

impl Table {
    pub fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self { head: head.into_iter().collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// All lines, the head first. Without room, every cell is shown whole.
    pub fn lines(&self, paint: Paint, room: Option<Room>) -> Vec<String> {
        let widths = self.widths(room);
        let head: Vec<Cell> = self.head.iter().map(|title| Cell::toned(*title, Tone::Strong)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| line(row, &widths, paint, room)).collect()
    }

    /// The last row alone, in columns that an earlier table had; they grow where they have to.
    pub fn next_line(&self, widths: &mut [usize], paint: Paint, room: Option<Room>) -> Option<String> {
        let row = self.rows.last()?;
        if room.is_none() {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(text::width(&cell.text));
            }
        }
        Some(line(row, widths, paint, room))
    }

    pub fn widths(&self, room: Option<Room>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|title| text::width(title)).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(text::width(&cell.text));
            }
        }
        if let Some(room) = room {
            squeeze(&mut widths, room.columns);
        }
        widths
    }
}

/// The widest column gives way first, the name and what is narrow anyway never.
fn squeeze(widths: &mut [usize], columns: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        let others = widths.iter_mut().skip(1).filter(|width| **width > NARROWEST);
        match others.max() {
            Some(widest) => *widest -= 1,
            None => return,
        }
    }
}

impl Cell {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        let text = text::one_line(text.as_ref());
        Self { text: if text.is_empty() { "-".to_owned() } else { text }, tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text)
    }
}

fn line(row: &[Cell], widths: &[usize], paint: Paint, room: Option<Room>) -> String {
    let mut line = String::new();
    for (place, (cell, width)) in row.iter().zip(widths).enumerate() {
        let shown = match room {
            Some(room) if place > 0 => text::cut(&cell.text, *width, room.ellipsis),
            _ => cell.text.clone(),
        };
        line.push_str(&paint.tone(cell.tone, &shown));
        if place + 1 < row.len() {
            line.push_str(&" ".repeat(width.saturating_sub(text::width(&shown))));
            line.push_str(GAP);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["NAME", "STATE", "AGE"]);
        table.row(["日本".into(), Cell::toned("ok", Tone::Good), "1s".into()]);
        table.row(["a\u{1b}b".into(), "".into(), "200s".into()]);
        let lines = table.lines(Paint::new(false), None);
        assert_eq!(lines, ["NAME   STATE   AGE", "日本   ok      1s", "a b    -       200s"]);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::toned("x", Tone::Bad), "y".into()]);
        assert_eq!(table.lines(Paint::new(true), None)[1], "\u{1b}[31mx\u{1b}[0m   y");
    }

    #[test]
    fn on_a_terminal_the_widest_column_gives_way() {
        let mut table = Table::new(["NAME", "DESCRIPTION", "AGE"]);
        table.row(["a-long-name-of-its-own".into(), "w".repeat(200).into(), "1s".into()]);
        for columns in [50, 80, 200] {
            let room = Some(Room { columns, ellipsis: "…" });
            let lines = table.lines(Paint::new(false), room);
            assert!(lines.iter().all(|line| text::width(line) <= columns), "{columns}: {lines:?}");
            assert!(lines[1].starts_with("a-long-name-of-its-own   w") && lines[1].ends_with("…   1s"));
        }
    }
}
