//! A graph too wide for boxes: each agent once, those behind it further in.

use super::{Canvas, Graph};
use crate::{paint::Tone, text};

pub fn draw(graph: &Graph, canvas: Canvas) -> Vec<String> {
    let is_target = |node: usize| graph.edges.iter().any(|edge| edge.to == node && !edge.is_back);
    let mut outline = Outline { graph, canvas, is_told: vec![false; graph.nodes.len()], lines: Vec::new() };
    for start in (0..graph.nodes.len()).filter(|node| !is_target(*node)) {
        outline.tell(start, "", "");
    }
    outline.lines
}

struct Outline<'a> {
    graph: &'a Graph,
    canvas: Canvas,
    is_told: Vec<bool>,
    lines: Vec<String>,
}

impl Outline<'_> {
    /// `branch` stands in front of this line, `below` in front of those below it.
    fn tell(&mut self, number: usize, branch: &str, below: &str) {
        let node = &self.graph.nodes[number];
        let is_known = std::mem::replace(&mut self.is_told[number], true);
        let notes: String = match is_known {
            true => "  (see above)".to_owned(),
            false => node.notes.iter().map(|note| format!("  {note}")).collect(),
        };
        let ellipsis = if self.canvas.is_utf8 { "…" } else { "..." };
        let room = self.canvas.columns.saturating_sub(text::width(branch));
        let words = text::cut(&format!("{}{notes}", text::one_line(&node.name)), room, ellipsis);
        let tone = if node.tone == Tone::Plain { Tone::Strong } else { node.tone };
        self.lines.push(format!("{branch}{}", self.canvas.paint.tone(tone, &words)));
        if is_known {
            return;
        }
        let targets: Vec<usize> = self
            .graph
            .edges
            .iter()
            .filter(|edge| edge.from == number && !edge.is_back)
            .map(|edge| edge.to)
            .collect();
        let (more, last, bar) =
            if self.canvas.is_utf8 { ("├▶ ", "└▶ ", "│  ") } else { ("|> ", "`> ", "|  ") };
        for (place, target) in targets.iter().enumerate() {
            let is_last = place + 1 == targets.len();
            let branch = format!("{below}{}", if is_last { last } else { more });
            let below = format!("{below}{}", if is_last { "   " } else { bar });
            self.tell(*target, &branch, &below);
        }
    }
}
