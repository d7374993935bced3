//! Columns of text: aligned, three blanks apart, no lines drawn. On a terminal they fit its width: the widest give way,
//! and where that is not enough, the last are left out.

use crate::{
    paint::{Paint, Tone},
    text,
};

const GAP: &str = "   ";

/// No column is made narrower than this to let the others have their room.
const NARROWEST: usize = 12;

/// Where no column is left that could be left out.
const LAST_RESORT: usize = 4;

/// What people copy from a table, and cut off would be good for nothing.
const WHOLE: [&str; 3] = ["NAMESPACE", "NAME", "UID"];

/// So many columns are shown however narrow it is: a name, and one thing about it.
const FEWEST: usize = 2;

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

    /// The last row alone, in columns that an earlier table had; they grow where they have to, as far as there is room.
    pub fn next_line(&self, widths: &mut Vec<usize>, paint: Paint, room: Option<Room>) -> Option<String> {
        let row = self.rows.last()?;
        grow(widths, row);
        if let Some(room) = room {
            *widths = self.fitted(widths, room.columns);
        }
        Some(line(row, widths, paint, room))
    }

    /// Of the columns that are shown: there may be fewer than the table has.
    pub fn widths(&self, room: Option<Room>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|title| text::width(title)).collect();
        self.rows.iter().for_each(|row| grow(&mut widths, row));
        match room {
            Some(room) => self.fitted(&widths, room.columns),
            None => widths,
        }
    }

    /// The titles of those that found no room.
    pub fn left_out(&self, room: Option<Room>) -> &[&'static str] {
        self.head.get(self.widths(room).len()..).unwrap_or_default()
    }

    /// As many columns as there is room for, from the first on.
    fn fitted(&self, wanted: &[usize], columns: usize) -> Vec<usize> {
        let mut shown = wanted.len();
        loop {
            let mut widths = wanted.iter().take(shown).copied().collect::<Vec<_>>();
            if self.squeeze(&mut widths, columns, NARROWEST) {
                return widths;
            }
            if shown <= FEWEST {
                self.squeeze(&mut widths, columns, LAST_RESORT);
                return widths;
            }
            shown -= 1;
        }
    }

    /// The widest column gives way first; what is copied and what is narrow anyway never. Whether it was enough.
    fn squeeze(&self, widths: &mut [usize], columns: usize, narrowest: usize) -> bool {
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > columns {
            let titled = widths.iter_mut().zip(&self.head);
            let others = titled.filter(|(width, title)| **width > narrowest && !WHOLE.contains(title));
            match others.map(|(width, _)| width).max() {
                Some(widest) => *widest -= 1,
                None => return false,
            }
        }
        true
    }
}

fn grow(widths: &mut [usize], row: &[Cell]) {
    for (widest, cell) in widths.iter_mut().zip(row) {
        *widest = (*widest).max(text::width(&cell.text));
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
            Some(room) => text::cut(&cell.text, *width, room.ellipsis),
            None => cell.text.clone(),
        };
        line.push_str(&paint.tone(cell.tone, &shown));
        if place + 1 < row.len().min(widths.len()) {
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
    #[test]
    fn where_there_is_no_room_the_last_columns_are_left_out_and_names_stay_whole() {
        let mut table = Table::new(["NAMESPACE", "NAME", "STATE", "UID", "LABELS"]);
        let (name, uid) =
            ("a-name-of-forty-letters-and-some-more-xx", "0196b0a2-9a6d-7bd4-8f0e-6a1c2d3e4f50");
        table.row(["default".into(), name.into(), "running".into(), uid.into(), "team=a".into()]);
        let at = |columns| Some(Room { columns, ellipsis: "…" });
        let lines = table.lines(Paint::new(false), at(80));
        assert!(lines[1].ends_with("running") && lines[1].contains(name), "{lines:?}");
        assert_eq!(table.left_out(at(80)), ["UID", "LABELS"]);
        assert_eq!(table.left_out(at(105)), ["LABELS"]);
        assert!(table.lines(Paint::new(false), at(105))[1].ends_with(uid));
        assert!(table.left_out(at(200)).is_empty() && table.left_out(None).is_empty());
        assert_eq!(table.left_out(at(20)).len(), 3, "a name and one thing about it are always shown");
    }

    #[test]
    fn rows_that_come_later_have_room_to_grow() {
        let mut table = Table::new(["NAME", "STATE", "AGE"]);
        let room = Some(Room { columns: 80, ellipsis: "…" });
        let mut widths = table.widths(room);
        table.row(["a-long-name".into(), "succeeded".into(), "1s".into()]);
        let line = table.next_line(&mut widths, Paint::new(false), room);
        assert_eq!(line.as_deref(), Some("a-long-name   succeeded   1s"));
    }
}
