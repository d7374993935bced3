//! The graph of a system as numbers of agents, in the order they were declared.

use std::collections::VecDeque;

use super::{AgentSystemSpec, Edge, GraphNode};
use crate::problem::{Path, Problem};
use crate::reference::Reference;
use crate::suggest::nearest;

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// For each agent those behind it, each once.
    targets: Vec<Vec<usize>>,
    /// For each agent those it may hand parts of its work to.
    delegates: Vec<Vec<usize>>,
}

impl Graph {
    /// The graph as it was declared; whoever is not among the agents is left out. Without any node the agents
    /// work one behind the other.
    pub fn of(system: &AgentSystemSpec) -> Self {
        let count = system.agents.len();
        let numbers = |references: Vec<&Reference>| {
            let mut found = Vec::new();
            for number in references.into_iter().filter_map(|reference| system.number(reference)) {
                if !found.contains(&number) {
                    found.push(number);
                }
            }
            found
        };
        let mut graph = Self { targets: vec![Vec::new(); count], delegates: vec![Vec::new(); count] };
        if system.graph.is_empty() {
            graph.targets = (0..count).map(|number| (number + 1..count).take(1).collect()).collect();
            return graph;
        }
        for (name, node) in &system.graph {
            if let Some(number) = system.number_named(name) {
                graph.targets[number] = numbers(node.targets().collect());
                graph.delegates[number] = numbers(node.delegates.iter().map(|edge| &edge.to).collect());
            }
        }
        graph
    }

    pub fn targets(&self, agent: usize) -> &[usize] {
        &self.targets[agent]
    }

    /// How many send to each agent.
    pub fn incoming(&self) -> Vec<usize> {
        let mut incoming = vec![0; self.targets.len()];
        for target in self.targets.iter().flatten() {
            incoming[*target] += 1;
        }
        incoming
    }

    /// Where the work begins: whoever nobody sends to or delegates to. Where everybody is sent to, the first.
    pub fn entries(&self) -> Vec<usize> {
        let mut is_target = vec![false; self.targets.len()];
        for target in self.targets.iter().chain(&self.delegates).flatten() {
            is_target[*target] = true;
        }
        let mut entries: Vec<usize> = (0..is_target.len()).filter(|number| !is_target[*number]).collect();
        if entries.is_empty() && !is_target.is_empty() {
            entries.push(0);
        }
        entries
    }

    /// Everyone before those it sends to, else in the order declared; whoever is on a cycle is left out.
    pub fn order(&self) -> Vec<usize> {
        let mut waiting_for = self.incoming();
        let mut order = Vec::new();
        let mut is_placed = vec![false; waiting_for.len()];
        while let Some(next) =
            (0..waiting_for.len()).find(|number| !is_placed[*number] && waiting_for[*number] == 0)
        {
            is_placed[next] = true;
            order.push(next);
            for target in &self.targets[next] {
                waiting_for[*target] -= 1;
            }
        }
        order
    }

    /// The agents of one cycle, in its order, if there is one.
    pub fn cycle(&self) -> Option<Vec<usize>> {
        let order = self.order();
        let mut trail = vec![(0..self.targets.len()).find(|number| !order.contains(number))?];
        // Who is left has someone before it that is left too, so that going back meets itself.
        loop {
            let last = *trail.last()?;
            let before = (0..self.targets.len())
                .find(|number| !order.contains(number) && self.targets[*number].contains(&last))?;
            if let Some(start) = trail.iter().position(|number| *number == before) {
                let mut cycle = trail.split_off(start);
                cycle.reverse();
                return Some(cycle);
            }
            trail.push(before);
        }
    }

    /// Whether every agent but the last sends to exactly one, and everyone is on that one line.
    pub fn line(&self) -> Option<Vec<usize>> {
        let [first] = self.entries()[..] else { return None };
        let mut line = vec![first];
        loop {
            match self.targets[*line.last()?][..] {
                [] => return (line.len() == self.targets.len()).then_some(line),
                [next] if !line.contains(&next) => line.push(next),
                _ => return None,
            }
        }
    }

    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.targets.len()];
        let mut queue: VecDeque<usize> = self.entries().into();
        while let Some(number) = queue.pop_front() {
            if !std::mem::replace(&mut reached[number], true) {
                queue.extend(self.targets[number].iter().chain(&self.delegates[number]));
            }
        }
        reached
    }
}

impl AgentSystemSpec {
    fn number(&self, reference: &Reference) -> Option<usize> {
        self.agents.iter().position(|agent| agent == reference)
    }

    fn number_named(&self, name: &str) -> Option<usize> {
        self.agents.iter().position(|agent| agent.to_string() == name)
    }
}

impl GraphNode {
    /// Everyone this sends to, as they were written.
    pub fn targets(&self) -> impl Iterator<Item = &Reference> {
        self.next.iter().chain(self.edges.iter().map(|edge| &edge.to))
    }
}

/// What makes a graph impossible.
pub(super) fn mistakes(system: &AgentSystemSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, node) in &system.graph {
        if system.number_named(name).is_none() {
            problems.push(unknown(system, Path::node(name), name));
        }
        for (path, reference) in named(name, node) {
            if system.number(reference).is_none() {
                problems.push(unknown(system, path, &reference.to_string()));
            }
        }
        problems.extend(two_defaults(name, "edges", &node.edges));
        problems.extend(two_defaults(name, "delegates", &node.delegates));
    }
    // What follows speaks of the whole, and would repeat what was said of its parts.
    if problems.is_empty() {
        let graph = Graph::of(system);
        problems.extend(unreachable(system, &graph));
    }
    problems
}

/// Every agent that a node names, and where.
fn named<'a>(name: &'a str, node: &'a GraphNode) -> impl Iterator<Item = (Path, &'a Reference)> {
    let next = node.next.iter().map(move |next| (Path::node(name).field("next"), next));
    let edges = node.edges.iter().enumerate();
    let edges =
        edges.map(move |(at, edge)| (Path::node(name).field("edges").index(at).field("to"), &edge.to));
    let delegates = node.delegates.iter().enumerate();
    let delegates =
        delegates.map(move |(at, edge)| (Path::node(name).field("delegates").index(at), &edge.to));
    next.chain(edges).chain(delegates)
}

fn unknown(system: &AgentSystemSpec, path: Path, name: &str) -> Problem {
    let agents: Vec<String> = system.agents.iter().map(ToString::to_string).collect();
    let near = nearest(name, agents.iter().map(String::as_str)).map(str::to_owned);
    let message = match near {
        Some(_) => format!("no agent {name:?} in spec.agents"),
        None => format!("no agent {name:?} in spec.agents, there are {}", agents.join(", ")),
    };
    Problem { suggestion: near, ..Problem::new(path, message) }
}

fn two_defaults(name: &str, field: &str, edges: &[Edge]) -> Option<Problem> {
    let is_default = |at: &usize| edges[*at].condition.as_ref().is_some_and(|condition| condition.default);
    let second = (0..edges.len()).filter(is_default).nth(1)?;
    let path = Path::node(name).field(field).index(second).field("condition").field("default");
    let message =
        format!("a second default: of the {field} of an agent at most one is taken where no other is");
    Some(Problem::new(path, message))
}

fn unreachable(system: &AgentSystemSpec, graph: &Graph) -> Option<Problem> {
    let reached = graph.reached();
    let lost: Vec<usize> = (0..reached.len()).filter(|number| !reached[*number]).collect();
    let names: Vec<String> =
        lost.iter().map(|number| format!("{:?}", system.agents[*number].to_string())).collect();
    let message = format!("nothing leads to {} from where the work begins", names.join(", "));
    Some(Problem::new(Path::of("spec.agents").index(*lost.first()?), message))
}

/// What the engine of this version can't do yet: it goes through agents in a line.
pub(super) fn unsupported(system: &AgentSystemSpec) -> Vec<Problem> {
    let refuse =
        |path: Path, what: &str| Problem::new(path, format!("{what} is not available in this version"));
    let mut problems = Vec::new();
    for (name, node) in &system.graph {
        for (at, edge) in node.edges.iter().enumerate() {
            if edge.condition.is_some() {
                let path = Path::node(name).field("edges").index(at).field("condition");
                problems.push(refuse(path, "an edge with a condition"));
            }
        }
        if !node.delegates.is_empty() {
            problems.push(refuse(Path::node(name).field("delegates"), "the field delegates"));
        }
        if node.review.is_some() {
            problems.push(refuse(Path::node(name).field("review"), "the field review"));
        }
    }
    if problems.is_empty() && Graph::of(system).line().is_none() {
        problems.push(refuse(Path::of("spec.graph"), "a graph other than a line of agents"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(agents: &str, edges: &[(&str, &str)]) -> AgentSystemSpec {
        let mut system = AgentSystemSpec {
            agents: agents.chars().map(|name| Reference::named(name.to_string())).collect(),
            ..AgentSystemSpec::default()
        };
        for (from, to) in edges {
            let node = system.graph.entry((*from).to_owned()).or_default();
            let to = Reference::named(*to);
            node.edges.push(Edge { to, ..Default::default() });
        }
        system
    }

    #[test]
    fn without_a_graph_agents_stand_in_a_line() {
        let graph = Graph::of(&system("abc", &[]));
        assert_eq!((graph.line(), graph.order()), (Some(vec![0, 1, 2]), vec![0, 1, 2]));
        assert_eq!((graph.entries(), graph.cycle()), (vec![0], None));
    }

    #[test]
    fn order_follows_the_edges_and_then_the_declaration() {
        let graph = Graph::of(&system("abcd", &[("d", "a"), ("d", "b"), ("a", "c"), ("b", "c")]));
        assert_eq!((graph.order(), graph.entries()), (vec![3, 0, 1, 2], vec![3]));
        assert_eq!(graph.incoming(), [1, 1, 2, 0]);
        assert_eq!(graph.line(), None);
    }

    #[test]
    fn a_cycle_is_told_in_its_order() {
        let graph = Graph::of(&system("abcd", &[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]));
        let mut cycle = graph.cycle().unwrap();
        let start = cycle.iter().position(|number| *number == 1).unwrap();
        cycle.rotate_left(start);
        assert_eq!(cycle, [1, 2]);
        assert_eq!(Graph::of(&system("a", &[("a", "a")])).cycle(), Some(vec![0]));
        let whole = Graph::of(&system("ab", &[("a", "b"), ("b", "a")]));
        assert_eq!((whole.entries(), whole.line()), (vec![0], None));
    }

    #[test]
    fn who_is_on_an_island_is_found() {
        let lost = mistakes(&system("abcd", &[("a", "b"), ("c", "d"), ("d", "c")]));
        let shown: Vec<String> = lost.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["/spec/agents/2: nothing leads to \"c\", \"d\" from where the work begins"]);
        assert_eq!(mistakes(&system("abc", &[("a", "b")])), []);
    }
}
