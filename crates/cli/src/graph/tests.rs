use super::*;

fn system(text: &str) -> Graph {
    let manifest = format!("kind: AgentSystem\nmetadata: {{name: s}}\nspec:\n{text}");
    let resources = ostler_spec::parse("s.yaml", &manifest).unwrap();
    let ostler_spec::Spec::AgentSystem(spec) = &resources[0].spec else { panic!("{resources:?}") };
    Graph::of(spec)
}

fn canvas(columns: usize, is_utf8: bool) -> Canvas {
    Canvas { columns, paint: Paint::new(false), is_utf8 }
}

const LINE: &str = "  agents: [research, write, edit]\n";
const DIAMOND: &str = "  agents: [plan, left, right, merge]\n  graph:\n    plan: {edges: [{to: left}, {to: right}]}\n    left: {next: merge}\n    right: {next: merge}\n    merge: {join: {mode: wait_for_all}}\n";
const LOOP: &str = "  agents: [write, review, publish]\n  graph:\n    write: {next: review}\n    review:\n      edges:\n        - {to: write, condition: {output_contains: revise}}\n        - {to: publish, condition: {default: true}}\n";

#[test]
fn agents_in_a_line_stand_in_a_row() {
    let drawn = system(LINE).lines(canvas(80, true));
    assert_eq!(
        drawn,
        [
            "┌──────────┐   ┌───────┐   ┌──────┐",
            "│ research ├──▶│ write ├──▶│ edit │",
            "└──────────┘   └───────┘   └──────┘",
        ]
    );
    let ascii = system(LINE).lines(canvas(80, false));
    assert_eq!(ascii[1], "| research +-->| write +-->| edit |");
}

#[test]
fn a_row_goes_on_in_the_next_line() {
    let drawn = system(LINE).lines(canvas(28, true));
    assert_eq!(
        drawn,
        [
            "┌──────────┐   ┌───────┐",
            "│ research ├──▶│ write │",
            "└──────────┘   └─┬─────┘",
            "┌────────────────┘",
            "│  ┌──────┐",
            "└─▶│ edit │",
            "   └──────┘",
        ]
    );
}

#[test]
fn branches_part_and_meet() {
    let drawn = system(DIAMOND).lines(canvas(80, true));
    assert_eq!(
        drawn,
        [
            "     ┌──────┐",
            "     │ plan │",
            "     └───┬──┘",
            "    ┌────┴─────┐",
            "    ▼          ▼",
            "┌──────┐   ┌───────┐",
            "│ left │   │ right │",
            "└───┬──┘   └───┬───┘",
            "    └────┬─────┘",
            "         ▼",
            " ┌───────────────┐",
            " │ merge         │",
            " │ waits for all │",
            " └───────────────┘",
        ]
    );
}

#[test]
fn a_cycle_is_told_below() {
    let graph = system(LOOP);
    let drawn = graph.lines(canvas(80, true)).join("\n");
    assert!(drawn.contains("review ─▶ write  back, if the output contains \"revise\""), "{drawn}");
    assert!(drawn.contains("review ─▶ publish  otherwise"), "{drawn}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let many: Vec<String> = (0..12).map(|number| format!("an-agent-with-a-long-name-{number}")).collect();
    let fan = format!(
        "  agents: [start, {}, end]\n  graph:\n    start: {{edges: [{}]}}\n{}",
        many.join(", "),
        many.iter().map(|name| format!("{{to: {name}}}")).collect::<Vec<_>>().join(", "),
        many.iter().map(|name| format!("    {name}: {{next: end}}\n")).collect::<String>(),
    );
    for text in [LINE, DIAMOND, LOOP, &fan] {
        for columns in [20, 40, 80, 200] {
            for is_utf8 in [true, false] {
                for line in system(text).lines(canvas(columns, is_utf8)) {
                    assert!(text::width(&line) <= columns, "{columns}: {line}");
                    assert!(is_utf8 || line.is_ascii(), "{line}");
                }
            }
        }
    }
    let outline = system(&fan).lines(canvas(80, true)).join("\n");
    assert!(
        outline.contains("├▶ an-agent-with-a-long-name-0") && outline.contains("(see above)"),
        "{outline}"
    );
}

#[test]
fn long_ways_pass_by_the_boxes_between() {
    let text = "  agents: [a, b, c, d]\n  graph:\n    a: {edges: [{to: b}, {to: d}]}\n    b: {next: c}\n    c: {next: d}\n";
    let drawn = system(text).lines(canvas(80, true));
    assert!(drawn.iter().all(|line| !line.contains("│ b │") || line.contains("│ b │   │")), "{drawn:#?}");
    assert_eq!(drawn.iter().filter(|line| line.contains('▼')).count(), 3, "{drawn:#?}");
}

#[test]
fn programs_get_every_edge() {
    let graph = system(LOOP);
    let dot = export::dot(&graph, "s");
    assert!(
        dot.contains(
            "\"review\" -> \"write\" [label=\"if the output contains \\\"revise\\\"\", style=dashed];"
        ),
        "{dot}"
    );
    let mermaid = export::mermaid(&graph);
    assert!(mermaid.contains("n1 -.->|\"if the output contains #quot;revise#quot;\"| n0"), "{mermaid}");
    assert_eq!(export::json(&graph, "s")["edges"].as_array().unwrap().len(), 3);
}

#[test]
fn what_is_too_large_is_not_drawn_and_breaks_nothing() {
    let line = |count: usize| {
        let node = |number: usize| Node { name: format!("a{number}"), notes: Vec::new(), tone: Tone::Plain };
        let edges = (1..count).map(|to| edge(to - 1, to)).collect();
        let mut graph = Graph { nodes: (0..count).map(node).collect(), edges };
        graph.find_back_edges();
        graph
    };
    assert!(line(MOST).lines(canvas(80, true)).len() > 10);
    let told = line(200_000).lines(canvas(80, true));
    assert!(told[0].starts_with("200000 agents are too many to draw"), "{told:?}");
}
