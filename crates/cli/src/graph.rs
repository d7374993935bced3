//! A system as a graph: who works, and where the work goes. Drawn for a terminal, or written for other programs.

pub mod export;

mod grid;
mod layers;
mod outline;
mod row;

use ostler_spec::{
    AgentSystemSpec, Condition, Reference,
    agent_system::{GraphNode, Join, JoinFailure, JoinMode},
};

use crate::{
    paint::{Paint, Tone},
    text,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// Lines below the name.
    pub notes: Vec<String>,
    pub tone: Tone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// When it is taken.
    pub condition: Option<String>,
    pub is_delegation: bool,
    /// It leads back to where the work has been.
    pub is_back: bool,
}

/// Nobody finds their way through more boxes.
const MOST: usize = 300;

/// What the drawing is for.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    pub columns: usize,
    pub paint: Paint,
    pub is_utf8: bool,
}

impl Graph {
    /// As the system declares it; without a graph its agents work one behind the other.
    pub fn of(system: &AgentSystemSpec) -> Self {
        let nodes: Vec<Node> = system.agents.iter().map(|agent| node(system, agent)).collect();
        let mut graph = Self { nodes, edges: Vec::new() };
        if system.graph.is_empty() {
            graph.edges = (1..graph.nodes.len()).map(|to| edge(to - 1, to)).collect();
        }
        for (name, declared) in &system.graph {
            if let Some(from) = graph.number(name) {
                graph.add(from, declared);
            }
        }
        graph.find_back_edges();
        graph
    }

    /// One agent alone.
    pub fn single(name: &str) -> Self {
        let node = Node { name: name.to_owned(), notes: Vec::new(), tone: Tone::Plain };
        Self { nodes: vec![node], edges: Vec::new() }
    }

    /// Who handed the work to whom, as `(from, to)` in order; the first has it from nobody that is drawn.
    pub fn of_messages(handed: &[(&str, &str)]) -> Self {
        let mut graph = Self::default();
        for (from, to) in handed {
            let to = graph.number(to).unwrap_or_else(|| {
                graph.nodes.extend(Self::single(to).nodes);
                graph.nodes.len() - 1
            });
            let from = graph.number(from).filter(|from| *from != to);
            let drawn = from.map(|from| edge(from, to)).filter(|edge| !graph.edges.contains(edge));
            graph.edges.extend(drawn);
        }
        graph.find_back_edges();
        graph
    }

    /// Whether work that was handed on so went along this graph, and, where it has come to its end, to an end of it.
    pub fn went(&self, handed: &[(&str, &str)], is_through: bool) -> bool {
        let leads = |from, to| self.edges.iter().any(|edge| (edge.from, edge.to) == (from, to));
        let is_first = |node| !self.edges.iter().any(|edge| edge.to == node && !edge.is_back);
        let is_last = |node| !self.edges.iter().any(|edge| edge.from == node && !edge.is_back);
        let fits = |(place, (from, to)): (usize, &(&str, &str))| match (self.number(from), self.number(to)) {
            (_, None) => false,
            (None, Some(to)) => place == 0 && is_first(to),
            (Some(from), Some(to)) => leads(from, to),
        };
        let end = handed.last().and_then(|(_, to)| self.number(to));
        handed.iter().enumerate().all(fits)
            && !self.nodes.is_empty()
            && (!is_through || end.is_none_or(is_last))
    }

    pub fn number(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// As lines of boxes and arrows, none wider than the canvas, and below them what no arrow can say.
    pub fn lines(&self, canvas: Canvas) -> Vec<String> {
        if self.nodes.len() > MOST {
            let words = format!(
                "{} agents are too many to draw; -o dot, mermaid and json have them",
                self.nodes.len()
            );
            return text::wrap(&words, canvas.columns);
        }
        let drawn = row::draw(self, canvas)
            .or_else(|| layers::draw(self, canvas))
            .unwrap_or_else(|| outline::draw(self, canvas));
        drawn.into_iter().chain(self.remarks(canvas)).collect()
    }

    /// Edges that hold only sometimes, lead back, or hand over parts of the work.
    fn remarks(&self, canvas: Canvas) -> Vec<String> {
        let arrow = if canvas.is_utf8 { "─▶" } else { "->" };
        let line = |edge: &&Edge| {
            let mut words = Vec::new();
            words.extend(edge.is_back.then(|| "back".to_owned()));
            words.extend(edge.is_delegation.then(|| "hands over parts of its work".to_owned()));
            words.extend(edge.condition.clone());
            if words.is_empty() {
                return None;
            }
            let (from, to) = (&self.nodes[edge.from].name, &self.nodes[edge.to].name);
            Some(format!("{from} {arrow} {to}  {}", words.join(", ")))
        };
        let lines: Vec<String> = self.edges.iter().filter_map(|edge| line(&edge)).collect();
        let wrapped = lines.iter().flat_map(|line| text::wrap(line, canvas.columns)).collect::<Vec<_>>();
        let gap = (!wrapped.is_empty()).then(String::new);
        gap.into_iter().chain(wrapped).collect()
    }

    fn add(&mut self, from: usize, declared: &GraphNode) {
        let next = declared.next.iter().map(|next| (next, None, false));
        let edges = declared.edges.iter();
        let edges = edges.map(|edge| (&edge.to, edge.condition.as_ref().map(condition), false));
        let delegates = declared.delegates.iter();
        let delegates = delegates.map(|edge| (&edge.to, edge.condition.as_ref().map(condition), true));
        let all: Vec<(&Reference, Option<String>, bool)> = next.chain(edges).chain(delegates).collect();
        for (reference, condition, is_delegation) in all {
            let Some(to) = self.number(&reference.to_string()) else { continue };
            let is_known = |edge: &Edge| edge.from == from && edge.to == to && edge.condition == condition;
            if !self.edges.iter().any(is_known) {
                self.edges.push(Edge { condition, is_delegation, ..edge(from, to) });
            }
        }
    }

    /// Going through the graph from its first agents on, an edge to where we still are leads back.
    fn find_back_edges(&mut self) {
        let mut outgoing = vec![Vec::new(); self.nodes.len()];
        let mut is_target = vec![false; self.nodes.len()];
        for (place, edge) in self.edges.iter().enumerate() {
            outgoing[edge.from].push(place);
            is_target[edge.to] = true;
        }
        let firsts = (0..self.nodes.len()).filter(|node| !is_target[*node]);
        let mut state = vec![Visit::New; self.nodes.len()];
        for start in firsts.chain(0..self.nodes.len()).collect::<Vec<_>>() {
            self.walk(start, &outgoing, &mut state);
        }
    }

    /// Not by calling itself: a line of agents may be longer than a stack is deep.
    fn walk(&mut self, start: usize, outgoing: &[Vec<usize>], state: &mut [Visit]) {
        if state[start] != Visit::New {
            return;
        }
        state[start] = Visit::Here;
        let mut trail = vec![(start, 0)];
        while let Some((node, next)) = trail.last_mut() {
            let Some(place) = outgoing[*node].get(*next).copied() else {
                state[*node] = Visit::Done;
                trail.pop();
                continue;
            };
            *next += 1;
            let to = self.edges[place].to;
            match state[to] {
                Visit::Here => self.edges[place].is_back = true,
                Visit::Done => {}
                Visit::New => {
                    state[to] = Visit::Here;
                    trail.push((to, 0));
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Here,
    Done,
}

fn edge(from: usize, to: usize) -> Edge {
    Edge { from, to, condition: None, is_delegation: false, is_back: false }
}

fn node(system: &AgentSystemSpec, agent: &Reference) -> Node {
    let name = agent.to_string();
    let mut notes = Vec::new();
    if let Some(declared) = system.graph.get(&name) {
        notes.extend(declared.join.as_ref().map(join));
        notes.extend(declared.review.as_ref().map(|review| format!("review {}", review.checkpoint_id)));
    }
    Node { name, notes, tone: Tone::Plain }
}

/// `waits for 2`, `waits for all, else skips`
fn join(join: &Join) -> String {
    let wait = match join.mode {
        JoinMode::WaitForAll => "waits for all".to_owned(),
        JoinMode::Quorum if join.quorum_count > 0 => format!("waits for {}", join.quorum_count),
        JoinMode::Quorum if join.quorum_percent > 0 => format!("waits for {} %", join.quorum_percent),
        JoinMode::Quorum => "waits for all".to_owned(),
    };
    match join.on_failure {
        JoinFailure::DeadLetter => wait,
        JoinFailure::Skip => format!("{wait}, else skips"),
        JoinFailure::ContinuePartial => format!("{wait}, else goes on"),
    }
}

fn condition(condition: &Condition) -> String {
    let mut words = Vec::new();
    words.extend(condition.default.then(|| "otherwise".to_owned()));
    words.extend(condition.output_contains.as_ref().map(|text| format!("if the output contains {text:?}")));
    words
        .extend(condition.output_not_contains.as_ref().map(|text| format!("if it doesn't contain {text:?}")));
    words.extend(condition.output_matches.as_ref().map(|text| format!("if it matches /{text}/")));
    if let Some(path) = &condition.output_json_path {
        words.extend(condition.equals.as_ref().map(|value| format!("if {path} = {value}")));
        words.extend(condition.not_equals.as_ref().map(|value| format!("if {path} != {value}")));
        words.extend(condition.contains.as_ref().map(|value| format!("if {path} contains {value:?}")));
        words.extend(condition.greater_than.as_ref().map(|value| format!("if {path} > {value}")));
        words.extend(condition.less_than.as_ref().map(|value| format!("if {path} < {value}")));
    }
    words.join(" and ")
}

#[cfg(test)]
mod tests;
