use ostler_client::{StepView, TaskView, WorkerView};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use super::*;
use crate::commands::top::{
    picture::Picture,
    state::{Action, Sort},
};

const NOW: i64 = 1_700_000_100_000;

fn task(name: &str, state: &str, age_s: i64, tokens: u64, cost: Option<u64>) -> TaskView {
    serde_json::from_value(json!({
        "apiVersion": "ostler.dev/v1", "kind": "Task",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("task_{name}"), "resourceVersion": "1",
            "createdAt": clock::print(NOW - age_s * 1000),
        },
        "spec": { "agent": "helper" },
        "status": { "state": state, "usage": { "input_tokens": tokens, "output_tokens": 0, "cost_micro_usd": cost } },
    }))
    .unwrap()
}

fn worker(name: &str, phase: &str) -> WorkerView {
    serde_json::from_value(json!({
        "metadata": { "name": name, "createdAt": clock::print(NOW) },
        "spec": { "capabilities": {}, "max_concurrent_tasks": 64 },
        "status": {
            "phase": phase, "standing": "open", "currentTasks": 2, "incarnation": 1,
            "lastHeartbeat": clock::print(NOW - 3000),
        },
    }))
    .unwrap()
}

fn state() -> State {
    let tasks = vec![
        task("alpha", "running", 5, 12_345, Some(61_700)),
        task("beta", "queued", 65, 0, None),
        task("gamma", "failed", 600, 900, None),
    ];
    let mut state = State::new("http://127.0.0.1:7070 default".to_owned(), String::new(), Sort::Age);
    state.saw(Picture { tasks, has_more: false, workers: vec![worker("local", "Ready")] }, NOW);
    state
}

fn drawn(state: &State, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let look = Look { has_colour: false, has_keys: true, is_whole: false };
    terminal.draw(|frame| picture(state, look, frame.area(), frame.buffer_mut())).unwrap();
    lines(terminal.backend().buffer())
}

#[test]
fn eighty_columns_show_the_whole_picture() {
    let shown = drawn(&state(), 80, 16);
    assert_eq!(shown[0], "ostler top  http://127.0.0.1:7070 default  live");
    assert_eq!(shown[1], "tasks   queued 1   running 1   waiting 0   sleeping 0");
    assert_eq!(shown[2], "tokens  13.2k in   0 out   cost >$0.0617");
    assert!(
        shown[5].starts_with("local ") && shown[5].contains("Ready") && shown[5].contains("2/64"),
        "{shown:#?}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown[7]), ["TASK", "AGENT", "STATE", "AGE", "TOKENS", "COST", "ABOUT"]);
    assert_eq!(words(&shown[8]), ["alpha", "helper", "running", "5s", "12.3k", "$0.0617"]);
    assert_eq!(words(&shown[9]), ["beta", "helper", "queued", "65s", "0"]);
    assert_eq!(
        words(&shown[10]),
        ["gamma", "helper", "failed", "10m", "900"],
        "what has ended stands behind"
    );
    assert!(shown[15].contains("q quit") && shown[15].contains("s sort: age"));
}

#[test]
fn a_name_that_is_cut_off_shows_it() {
    let mut state = state();
    let name = "n".repeat(40);
    let tasks = vec![task(&name, "running", 5, 1, None)];
    state.saw(Picture { tasks, has_more: false, workers: Vec::new() }, NOW);
    let narrow = drawn(&state, 80, 16).into_iter().find(|line| line.starts_with("nnn")).unwrap();
    assert!(narrow.contains("nnn… helper"), "{narrow}");
    let wide = drawn(&state, 200, 16).into_iter().find(|line| line.starts_with("nnn")).unwrap();
    assert!(wide.starts_with(&format!("{name} ")), "{wide}");
}

#[test]
fn keys_sort_filter_pause_and_open() {
    let mut state = state();
    state.act(Action::Sort);
    state.act(Action::Sort);
    state.act(Action::Sort);
    assert_eq!(
        state.rows().iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        ["alpha", "gamma", "beta"]
    );
    state.act(Action::Filter);
    for letter in "GAM".chars() {
        state.act(Action::Letter(letter));
    }
    assert!(drawn(&state, 80, 16)[15].contains("filter: GAM_"));
    assert_eq!(state.rows().len(), 1);
    state.act(Action::Open);
    assert!(!state.is_filtering && state.detail.is_none(), "the first enter keeps the filter");
    state.act(Action::Open);
    let step: StepView = serde_json::from_value(json!({
        "id": { "run": "run_1", "index": 0 }, "kind": { "type": "model", "model": "m-1" }, "attempt": 1, "opened_at": NOW,
        "state": { "state": "done", "outcome": { "outcome": "ok" }, "at": NOW, "took_ms": 1234,
            "usage": { "input_tokens": 900, "output_tokens": 0 } },
    }))
    .unwrap();
    state.steps_came("task_gamma", vec![step]);
    let shown = drawn(&state, 80, 16);
    assert!(
        shown.iter().any(|line| line.starts_with("default/gamma  helper  failed  900 tokens")),
        "{shown:#?}"
    );
    assert!(
        shown.iter().any(|line| line.contains("m-1") && line.contains("1.23s") && line.contains("ok")),
        "{shown:#?}"
    );
    state.act(Action::Back);
    state.act(Action::Back);
    assert!(state.detail.is_none() && state.filter.is_empty());
    state.act(Action::Pause);
    state.saw(Picture::default(), NOW + 1000);
    assert_eq!(state.rows().len(), 3, "a picture that is held still stays");
    assert!(drawn(&state, 80, 16)[0].ends_with("paused"));
    assert!(!state.act(Action::Quit));
}

#[test]
fn a_lost_server_is_said_and_forgotten_when_it_is_back() {
    let mut state = state();
    state.missed("nothing answers at http://127.0.0.1:7070".to_owned());
    state.missed("nothing answers at http://127.0.0.1:7070".to_owned());
    let shown = drawn(&state, 80, 16);
    assert!(shown[0].ends_with("reconnecting (2)"), "{shown:#?}");
    assert_eq!(shown[3], "nothing answers at http://127.0.0.1:7070");
    assert!(shown.iter().any(|line| line.starts_with("alpha")), "the last picture stays");
    state.saw(Picture::default(), NOW);
    assert!(drawn(&state, 80, 16)[0].ends_with("live"));
}

#[test]
fn a_small_window_breaks_nothing() {
    for (columns, rows) in [(1, 1), (10, 3), (40, 8), (200, 60)] {
        assert_eq!(drawn(&state(), columns, rows).len(), usize::from(rows));
    }
    let mut state = state();
    for _ in 0..9 {
        state.act(Action::Down);
    }
    assert_eq!(state.selected, Some(2));
    state.act(Action::First);
    assert_eq!(state.selected, Some(0));
}
