//! Columns of text: aligned, three blanks apart, no lines drawn.

use crate::{
    paint::{Paint, Tone},
    text,
};

const GAP: &str = "   ";

pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

pub struct Cell {
    text: String,
    tone: Tone,
}

impl Table {
    pub fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self { head: head.into_iter().collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn lines(&self, paint: Paint) -> Vec<String> {
        let widths = self.widths();
        let head: Vec<Cell> = self.head.iter().map(|title| Cell::toned(*title, Tone::Strong)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| line(row, &widths, paint)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|title| text::width(title)).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(text::width(&cell.text));
            }
        }
        widths
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

fn line(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut line = String::new();
    for (place, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.push_str(&paint.tone(cell.tone, &cell.text));
        if place + 1 < row.len() {
            line.push_str(&" ".repeat(width - text::width(&cell.text)));
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
        let lines = table.lines(Paint::new(false));
        assert_eq!(lines, ["NAME   STATE   AGE", "日本   ok      1s", "a b    -       200s"]);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::toned("x", Tone::Bad), "y".into()]);
        assert_eq!(table.lines(Paint::new(true))[1], "\u{1b}[31mx\u{1b}[0m   y");
    }
}
