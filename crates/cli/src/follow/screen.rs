//! The moving part at the bottom of a terminal: drawn over itself, and gone when it is dropped.

use std::io::{self, Write};

use crate::{
    paint::Paint,
    terminal::{Size, Terminal},
};

pub struct Screen {
    terminal: Terminal,
    /// Lines of the picture that are there now.
    drawn: usize,
}

/// How things look here.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub size: Size,
    pub paint: Paint,
    pub is_utf8: bool,
}

impl Screen {
    pub fn new(terminal: Terminal) -> Self {
        Self { terminal, drawn: 0 }
    }

    pub fn look(&self) -> Look {
        let Terminal { stderr, is_utf8, .. } = self.terminal;
        Look { size: self.terminal.size(), paint: Paint::new(stderr.has_colour), is_utf8 }
    }

    /// Puts these lines in the place of the picture. None may be wider than the terminal.
    pub fn draw(&mut self, lines: &[String]) {
        let mut out = self.wipe();
        self.drawn = lines.len();
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        self.write(&out);
    }

    /// Prints lines that stay, above the picture.
    pub fn keep(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.draw(lines);
            self.drawn = 0;
        }
    }

    /// Moves to the first line of the picture and clears everything from there.
    fn wipe(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\u{1b}[{lines}A\r\u{1b}[J"),
        }
    }

    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        // Who closed the terminal doesn't miss it.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let out = self.wipe();
        self.write(&out);
    }
}
