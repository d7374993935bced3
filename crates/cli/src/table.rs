//! Columns of text: aligned, three blanks apart, no lines drawn. On a terminal they fit its width: the widest give way,
//! then long names are cut, then the last columns are left out; how something stands is the last to go.

use crate::{
    paint::{Paint, Tone},
    text,
};

const GAP: &str = "   ";

/// No column is made narrower than this to let the others have their room.
const NARROWEST: usize = 12;

/// Where no column is left that could be left out.
const LAST_RESORT: usize = 4;

/// What people copy from a table: they give way after everything else.
const NAMES: [&str; 2] = ["NAMESPACE", "NAME"];

/// So much of a long name is left before a column is left out for it.
const NAME_AT_LEAST: usize = 32;

/// Cut off they would be good for nothing.
const WHOLE: [&str; 2] = ["UID", "TIME"];

/// How something stands: what people look at a table for.
const STANDING: [&str; 3] = ["STATE", "STATUS", "PHASE"];

/// So many columns are shown however narrow it is: a name, and one thing about it.
const FEWEST: usize = 2;

pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

pub struct Cell {
    text: String,
    tone: Tone,
    /// Of a path both ends matter: where it begins, and which file it is.
    is_path: bool,
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
        self.lines_in(&self.widths(room), paint, room)
    }

    /// The same in columns of these widths.
    pub fn lines_in(&self, widths: &[usize], paint: Paint, room: Option<Room>) -> Vec<String> {
        let head: Vec<Cell> = self.head.iter().map(|title| Cell::toned(*title, Tone::Strong)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| line(row, widths, paint, room)).collect()
    }

    /// The last row alone, in columns that an earlier table had. They grow with it as long as there is room; a row that is
    /// too long for that is fitted by itself, and those behind it have the columns they had.
    pub fn next_line(&self, widths: &mut Vec<usize>, paint: Paint, room: Option<Room>) -> Option<String> {
        let row = self.rows.last()?;
        let mut grown = widths.clone();
        grow(&mut grown, row);
        let Some(Room { columns, .. }) = room.filter(|room| taken(&grown) > room.columns) else {
            *widths = grown;
            return Some(line(row, widths, paint, room));
        };
        let mut own = vec![0; widths.len()];
        grow(&mut own, row);
        let mut own = self.fitted(&own, columns);
        widen(&mut own, widths.iter().copied(), columns);
        Some(line(row, &own, paint, room))
    }

    /// For rows that are still to come: as wide as such columns usually are, if there is room.
    pub fn steady_widths(&self, room: Option<Room>) -> Vec<usize> {
        let mut widths = self.widths(room);
        let usual = self.head.iter().map(|title| usual_width(title));
        match room {
            Some(room) => widen(&mut widths, usual, room.columns),
            // A pipe takes any width, so there is room for names of people too.
            None => widen(&mut widths, usual.map(|usual| usual + usual / 2), usize::MAX),
        }
        widths
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
        let standing = self.head.iter().position(|title| STANDING.contains(title));
        let needed = standing.map_or(FEWEST, |place| FEWEST.max(place + 1));
        let mut shown = wanted.len();
        loop {
            let mut widths = wanted.iter().take(shown).copied().collect::<Vec<_>>();
            let others_first = self.squeeze(&mut widths, columns, NARROWEST, usize::MAX);
            if others_first || self.squeeze(&mut widths, columns, NARROWEST, NAME_AT_LEAST) {
                return widths;
            }
            let is_needed = shown <= needed;
            let fits = is_needed
                && (self.squeeze(&mut widths, columns, NARROWEST, NARROWEST)
                    || self.squeeze(&mut widths, columns, LAST_RESORT, LAST_RESORT));
            if fits || shown <= FEWEST {
                return widths;
            }
            shown -= 1;
        }
    }

    /// The widest column gives way first, as far as it may: a name to another width than what is no name. Whether it was
    /// enough.
    fn squeeze(&self, widths: &mut [usize], columns: usize, narrowest: usize, of_names: usize) -> bool {
        while taken(widths) > columns {
            let may_give = |title: &str, width: usize| match title {
                whole if WHOLE.contains(&whole) => false,
                name if NAMES.contains(&name) => width > of_names,
                _ => width > narrowest,
            };
            let titled = widths.iter_mut().zip(&self.head).filter(|(width, title)| may_give(title, **width));
            match titled.map(|(width, _)| width).max() {
                Some(widest) => *widest -= 1,
                None => return false,
            }
        }
        true
    }
}

/// A whole line of columns of these widths.
fn taken(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// The first ones first, as far as there is room.
fn widen(widths: &mut [usize], wanted: impl IntoIterator<Item = usize>, columns: usize) {
    let mut free = columns.saturating_sub(taken(widths));
    for (width, wanted) in widths.iter_mut().zip(wanted) {
        let more = wanted.saturating_sub(*width).min(free);
        *width += more;
        free -= more;
    }
}

/// The name of a task that was given none fits, and the longest of the usual states.
fn usual_width(title: &str) -> usize {
    match title {
        "NAMESPACE" => 12,
        "NAME" => 30,
        "SUBJECT" => 12,
        "STATE" | "STATUS" | "PHASE" => 9,
        "AGE" => 4,
        _ => 0,
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
        Self { text: if text.is_empty() { "-".to_owned() } else { text }, tone, is_path: false }
    }

    pub fn path(text: impl AsRef<str>) -> Self {
        Self { is_path: true, ..Self::new(text) }
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
            Some(room) if cell.is_path => text::cut_middle(&cell.text, *width, room.ellipsis),
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
        assert_eq!(table.left_out(at(101)), ["LABELS"]);
        assert!(table.lines(Paint::new(false), at(101))[1].ends_with(uid));
        assert!(table.left_out(at(200)).is_empty() && table.left_out(None).is_empty());
        assert_eq!(table.left_out(at(20)), ["UID", "LABELS"], "the state is the last to go");
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

    const TASKS: [&str; 6] = ["NAME", "SUBJECT", "STATE", "STEP", "AGE", "TOKENS"];

    fn task(name: &str) -> Table {
        let mut table = Table::new(TASKS);
        table.row([name, "porter", "succeeded", "0", "3s", "66"].map(Cell::new));
        table
    }

    #[test]
    fn a_long_name_is_cut_before_a_column_is_left_out() {
        let room = Some(Room { columns: 80, ellipsis: "…" });
        let table = task(&"n".repeat(70));
        assert!(table.left_out(room).is_empty());
        let lines = table.lines(Paint::new(false), room);
        assert!(lines[1].contains("nnn…   porter    succeeded   0 "), "{lines:?}");
        assert!(lines.iter().all(|line| text::width(line) <= 80), "{lines:?}");
        for columns in 20..200 {
            let room = Some(Room { columns, ellipsis: "…" });
            let lines = table.lines(Paint::new(false), room);
            assert!(lines[0].contains("STA") && lines[1].contains("suc"), "{columns}: {lines:?}");
            assert!(lines.iter().all(|line| text::width(line) <= columns), "{columns}: {lines:?}");
        }
    }

    #[test]
    fn a_long_name_costs_later_rows_nothing() {
        let room = Some(Room { columns: 80, ellipsis: "…" });
        let mut widths = Table::new(TASKS).steady_widths(room);
        let mut next = |name: &str| task(name).next_line(&mut widths, Paint::new(false), room).unwrap();
        let before = next("breakfast");
        let long = next(&"n".repeat(70));
        assert!(long.contains("…   porter") && long.contains("succeeded   0 "), "{long}");
        assert!(text::width(&long) <= 80, "{long}");
        assert_eq!(next("breakfast"), before);
    }

    #[test]
    fn the_head_of_a_watch_stands_above_the_rows_that_come() {
        for room in [None, Some(Room { columns: 80, ellipsis: "…" })] {
            let empty = Table::new(TASKS);
            let mut widths = empty.steady_widths(room);
            let head = empty.lines_in(&widths, Paint::new(false), room).remove(0);
            for name in ["a", "assistant2-01m7s4t6cbe0095yby"] {
                let line = task(name).next_line(&mut widths, Paint::new(false), room).unwrap();
                assert_eq!(head.find("STATE"), line.find("succeeded"), "{head}\n{line}");
                assert_eq!(head.find("AGE"), line.find("3s"), "{head}\n{line}");
            }
        }
    }
}
