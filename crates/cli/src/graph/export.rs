//! The graph for other programs: Graphviz, Mermaid, JSON.

use serde_json::{Value, json};

use super::{Edge, Graph};

pub fn dot(graph: &Graph, name: &str) -> String {
    let mut lines = vec![format!("digraph {} {{", quoted(name)), "  node [shape=box];".to_owned()];
    for node in &graph.nodes {
        let label = std::iter::once(&node.name).chain(&node.notes).cloned().collect::<Vec<_>>().join("\n");
        lines.push(format!("  {} [label={}];", quoted(&node.name), quoted(&label)));
    }
    for edge in &graph.edges {
        let mut attributes = Vec::new();
        attributes.extend(edge.condition.as_ref().map(|words| format!("label={}", quoted(words))));
        attributes.extend((edge.is_delegation || edge.is_back).then(|| "style=dashed".to_owned()));
        let attributes =
            if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
        let (from, to) = (&graph.nodes[edge.from].name, &graph.nodes[edge.to].name);
        lines.push(format!("  {} -> {}{attributes};", quoted(from), quoted(to)));
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

pub fn mermaid(graph: &Graph) -> String {
    let mut lines = vec!["flowchart TD".to_owned()];
    for (number, node) in graph.nodes.iter().enumerate() {
        let label = std::iter::once(&node.name).chain(&node.notes).cloned().collect::<Vec<_>>().join("<br/>");
        lines.push(format!("  n{number}[\"{}\"]", label.replace('"', "#quot;")));
    }
    for Edge { from, to, condition, is_delegation, is_back } in &graph.edges {
        let arrow = if *is_delegation || *is_back { "-.->" } else { "-->" };
        let label = match condition {
            Some(words) => format!("|\"{}\"|", words.replace('"', "#quot;")),
            None => String::new(),
        };
        lines.push(format!("  n{from} {arrow}{label} n{to}"));
    }
    lines.join("\n")
}

pub fn json(graph: &Graph, name: &str) -> Value {
    let nodes: Vec<Value> =
        graph.nodes.iter().map(|node| json!({ "agent": node.name, "notes": node.notes })).collect();
    let edge = |edge: &Edge| {
        json!({
            "from": graph.nodes[edge.from].name,
            "to": graph.nodes[edge.to].name,
            "condition": edge.condition,
            "delegation": edge.is_delegation,
            "back": edge.is_back,
        })
    };
    json!({ "name": name, "nodes": nodes, "edges": graph.edges.iter().map(edge).collect::<Vec<_>>() })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
