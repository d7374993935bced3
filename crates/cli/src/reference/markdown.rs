//! Markdown, as far as the reference needs it.

/// A table whose cells may hold anything.
pub struct Table {
    columns: usize,
    lines: Vec<String>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        let rule = vec!["---"; N].join("|");
        Self { columns: N, lines: vec![format!("| {} |", head.join(" | ")), format!("|{rule}|")] }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns);
        let cells: Vec<String> = cells.iter().map(|cell| one_line(cell).replace('|', "\\|")).collect();
        self.lines.push(format!("| {} |", cells.join(" | ")));
    }

    pub fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    pub fn is_empty(&self) -> bool {
        self.lines.len() == 2
    }
}

/// As something that is typed; nothing for nothing.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// With a capital at its beginning, and a full stop unless something else ends it.
pub fn sentence(text: &str) -> String {
    let text = one_line(text);
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return text };
    let text: String = first.to_uppercase().chain(letters).collect();
    if text.ends_with(['.', ':', '!', '?']) { text } else { text + "." }
}
