//! A grid of letters and lines. Lines that meet join by themselves.

use crate::{
    graph::{Canvas, Node},
    paint::Tone,
    text,
};

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

#[derive(Debug, Clone, Copy, Default)]
struct Spot {
    /// Where lines leave it.
    lines: u8,
    letter: Option<char>,
    /// The right half of a wide letter.
    is_taken: bool,
    tone: Option<Tone>,
}

pub struct Grid {
    canvas: Canvas,
    rows: Vec<Vec<Spot>>,
}

/// A box as it will be drawn.
pub struct Frame {
    pub width: usize,
    pub height: usize,
    lines: Vec<String>,
    tone: Tone,
}

impl Frame {
    /// Around a name and its notes, at most so wide.
    pub fn around(node: &Node, widest: usize, canvas: Canvas) -> Self {
        let ellipsis = if canvas.is_utf8 { "…" } else { "..." };
        let cut = |line: &String| text::cut(&text::one_line(line), widest.saturating_sub(4), ellipsis);
        let lines: Vec<String> = std::iter::once(&node.name).chain(&node.notes).map(cut).collect();
        let inner = lines.iter().map(|line| text::width(line)).max().unwrap_or(0);
        Self { width: inner + 4, height: lines.len() + 2, lines, tone: node.tone }
    }
}

impl Grid {
    pub fn new(canvas: Canvas) -> Self {
        Self { canvas, rows: Vec::new() }
    }

    pub fn frame(&mut self, frame: &Frame, x: usize, y: usize) {
        let (right, bottom) = (x + frame.width - 1, y + frame.height - 1);
        self.across(x, right, y);
        self.across(x, right, bottom);
        self.down(x, y, bottom);
        self.down(right, y, bottom);
        for (place, line) in frame.lines.iter().enumerate() {
            let tone = if place == 0 && frame.tone == Tone::Plain { Tone::Strong } else { frame.tone };
            self.text(x + 2, y + 1 + place, line, tone);
        }
    }

    /// A line from one column to another.
    pub fn across(&mut self, from: usize, to: usize, y: usize) {
        for x in from.min(to)..from.max(to) {
            self.spot(x, y).lines |= RIGHT;
            self.spot(x + 1, y).lines |= LEFT;
        }
    }

    /// A line from one row to another.
    pub fn down(&mut self, x: usize, from: usize, to: usize) {
        for y in from.min(to)..from.max(to) {
            self.spot(x, y).lines |= DOWN;
            self.spot(x, y + 1).lines |= UP;
        }
    }

    pub fn arrow_down(&mut self, x: usize, y: usize) {
        self.spot(x, y).letter = Some(if self.canvas.is_utf8 { '▼' } else { 'v' });
    }

    pub fn arrow_right(&mut self, x: usize, y: usize) {
        self.spot(x, y).letter = Some(if self.canvas.is_utf8 { '▶' } else { '>' });
    }

    pub fn text(&mut self, mut x: usize, y: usize, words: &str, tone: Tone) {
        for letter in words.chars() {
            let wide = text::width(letter.encode_utf8(&mut [0; 4]));
            if wide == 0 {
                continue;
            }
            let spot = self.spot(x, y);
            (spot.letter, spot.tone) = (Some(letter), Some(tone));
            for further in 1..wide {
                self.spot(x + further, y).is_taken = true;
            }
            x += wide;
        }
    }

    pub fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| self.line(row)).collect()
    }

    fn line(&self, row: &[Spot]) -> String {
        let end =
            row.iter().rposition(|spot| spot.lines != 0 || spot.letter.is_some()).map_or(0, |at| at + 1);
        let mut line = String::new();
        let mut word = (String::new(), None);
        for spot in row[..end].iter().filter(|spot| !spot.is_taken) {
            if spot.tone != word.1 {
                line.push_str(&self.painted(&word));
                word = (String::new(), spot.tone);
            }
            word.0.push(spot.letter.unwrap_or_else(|| self.line_letter(spot.lines)));
        }
        line.push_str(&self.painted(&word));
        line
    }

    fn painted(&self, (word, tone): &(String, Option<Tone>)) -> String {
        self.canvas.paint.tone(tone.unwrap_or(Tone::Plain), word)
    }

    fn line_letter(&self, lines: u8) -> char {
        let (upright, flat) = (lines & (UP | DOWN) != 0, lines & (LEFT | RIGHT) != 0);
        if !self.canvas.is_utf8 {
            return match (upright, flat) {
                (false, false) => ' ',
                (true, false) => '|',
                (false, true) => '-',
                (true, true) => '+',
            };
        }
        const LETTERS: [char; 16] =
            [' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'];
        LETTERS[usize::from(lines & 15)]
    }

    fn spot(&mut self, x: usize, y: usize) -> &mut Spot {
        if self.rows.len() <= y {
            self.rows.resize(y + 1, Vec::new());
        }
        let row = &mut self.rows[y];
        if row.len() <= x {
            row.resize(x + 1, Spot::default());
        }
        &mut row[x]
    }
}
