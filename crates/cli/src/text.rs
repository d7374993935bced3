//! Text that others wrote, made fit for a terminal: what a model says must not move somebody's cursor.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns the text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// What would move a cursor, or turn the text around it: escapes, and the marks that change the direction of writing.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Without control characters; tabs become blanks, and line breaks too: for a place of one line.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || is_harmful(c)).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Without control characters except line breaks: for a terminal, where a pipe would get the text as it is.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| is_harmful(c) && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").chars().filter(|c| !harmful(*c)).collect())
}

/// At most `columns` wide; what is left out shows as an ellipsis.
pub fn cut(text: &str, columns: usize, ellipsis: &str) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(ellipsis.width());
    let mut taken = 0;
    let mut short = String::new();
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        short.push(c);
    }
    if columns >= ellipsis.width() {
        short.push_str(ellipsis);
    }
    short
}

/// The same, with what is left out in the middle.
pub fn cut_middle(text: &str, columns: usize, ellipsis: &str) -> String {
    let Some(room) = columns.checked_sub(ellipsis.width()).filter(|_| text.width() > columns) else {
        return cut(text, columns, ellipsis);
    };
    let head = cut(text, room / 2, "");
    let mut tail = text;
    while tail.width() > room - head.width() {
        let Some(first) = tail.chars().next() else { break };
        tail = &tail[first.len_utf8()..];
    }
    format!("{head}{ellipsis}{tail}")
}

/// The text in lines of at most `columns`, broken at blanks where there are any.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    harmless(text).lines().flat_map(|line| wrap_line(&line.replace('\t', "    "), columns)).collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut taken = 0;
    for word in line.split_inclusive(' ') {
        if taken > 0 && taken + word.trim_end().width() > columns {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            taken = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if taken + wide > columns && c != ' ' {
                lines.push(std::mem::take(&mut current));
                taken = 0;
            }
            current.push(c);
            taken += wide;
        }
    }
    lines.push(current.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_others_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\nc\u{9b}31m\td"), "a[2Jb\nc31m\td");
        assert_eq!(one_line(" a\n\tb\u{1b}c  d\r"), "a b c d");
        assert_eq!(harmless("say \u{202e}txt.exe\u{202c} \u{2066}twice\u{2069}"), "say txt.exe twice");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(cut("日本語です", 10, "…"), "日本語です");
        assert_eq!(cut("日本語です", 8, "…"), "日本語…");
        assert_eq!(cut("abcdef", 5, "..."), "ab...");
        assert_eq!(cut("abcdef", 1, "..."), "");
        assert_eq!(wrap("日本語です", 4), ["日本", "語で", "す"]);
    }

    #[test]
    fn of_a_path_both_ends_stay() {
        assert_eq!(cut_middle("/srv/ostler/server.json", 23, "…"), "/srv/ostler/server.json");
        assert_eq!(cut_middle("/srv/ostler/server.json", 16, "…"), "/srv/os…ver.json");
        assert_eq!(cut_middle("日本語です/a", 8, "..."), "日.../a");
        assert_eq!(cut_middle("abcdef", 1, "..."), "");
    }

    #[test]
    fn lines_break_at_blanks_and_never_exceed_the_width() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 8), ["a", "", "b"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        for columns in 2..30 {
            let text = "The quick  brown\tfox 日本語 jumps-over-the-very-lazy-dog, twice.";
            assert!(wrap(text, columns).iter().all(|line| width(line) <= columns), "{columns}");
        }
    }
}
