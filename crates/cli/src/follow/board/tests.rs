use ostler_worker::TokioRuntime;

use super::*;
use crate::{paint::Paint, terminal::Size};

fn board() -> Board {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    Board::new(Arc::new(TokioRuntime::new(tokio.handle().clone())))
}

fn look(columns: usize) -> Look {
    Look { size: Size { columns, rows: 24 }, paint: Paint::new(false), is_utf8: true }
}

fn event(body: &str) -> EventView {
    let json = format!(r#"{{"seq":1,"position":1,"task":"t","at":0,"body":{body}}}"#);
    serde_json::from_str(&json).unwrap()
}

fn finished(preview: &str, opened: &str) -> EventView {
    event(&format!(
        r#"{{"type":"step_finished","run":"r","step":0,"attempt":1,"kind":{{"type":"model","model":"m"}},
        "outcome":"ok","started_at":0,"took_ms":12,"usage":{{"input_tokens":3,"output_tokens":4}},
        "preview":"{preview}","opened":[{opened}]}}"#
    ))
}

const TOOL: &str = r#"{"step":1,"kind":{"type":"tool","call":{"id":"c","name":"lookup"},"arguments":"{}","idempotent":true}}"#;

fn delta(offset: u64, text: &str) -> DeltaView {
    DeltaView { run: "r".into(), step: 0, offset, text: text.into(), thinking: false }
}

/// Without the mark in front, which moves.
fn shown(board: &Board, columns: usize) -> Vec<String> {
    let lines = board.lines(look(columns));
    lines.iter().map(|line| line.trim_start_matches(|c: char| !c.is_ascii()).to_owned()).collect()
}

#[test]
fn what_is_under_way_is_named_and_what_is_done_stays() {
    let mut board = board();
    assert_eq!(shown(&board, 80), [" queued"]);
    board.attempt(0, &[]);
    assert_eq!(shown(&board, 80), [" step 0"]);
    let kept = board.event(&finished("let me look", TOOL), look(80));
    assert_eq!(kept, ["✓ step 0  model m  ok  12ms  7 tokens", "  let me look"]);
    assert_eq!(shown(&board, 80), [" step 1  tool lookup  7 tokens so far"]);
}

#[test]
fn the_answer_is_not_shown_twice() {
    let kept = board().event(&finished("the answer", ""), look(80));
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn text_shows_as_it_comes_and_starts_over_with_its_call() {
    let mut board = board();
    board.attempt(0, &[]);
    board.delta(&delta(0, "Hello "));
    board.delta(&delta(6, "wor\u{1b}[2Jld"));
    assert_eq!(shown(&board, 80), [" step 0", "  Hello wor[2Jld"]);
    board.delta(&delta(100, "later"));
    assert_eq!(shown(&board, 80)[1], "  Hello wor[2Jld [...] later");
    board.delta(&delta(0, "Anew"));
    assert_eq!(shown(&board, 80)[1], "  Anew");
    board.delta(&delta(4, &"long ".repeat(10_000)));
    let lines = board.lines(look(40));
    assert_eq!(lines.len(), 1 + TEXT_LINES, "only its end");
    assert!(lines.iter().all(|line| text::width(line) < 40), "{lines:?}");
    assert!(board.open[&0].text.len() <= 2 * TEXT_KEPT);
}

#[test]
fn trouble_shows_until_something_comes() {
    let mut board = board();
    board.attempt(0, &[]);
    board.reconnecting(2, "nothing answers");
    assert_eq!(shown(&board, 80)[1], "nothing answers; trying again (try 2)");
    board.delta(&delta(0, "x"));
    assert_eq!(shown(&board, 80)[1], "  x");
}

#[test]
fn a_retry_is_told_and_waited_for() {
    let mut board = board();
    board.attempt(0, &[]);
    let failure = r#"{"code":"busy","class":"transient","message":"later"}"#;
    let body =
        format!(r#"{{"type":"run_retrying","run":"r","failure":{failure},"failures":1,"not_before":2000}}"#);
    assert_eq!(board.event(&event(&body), look(80)), ["· failure 1, trying again in 2.00s: busy: later"]);
    assert_eq!(shown(&board, 80), [" failure 1, trying again in 2.00s: busy: later"]);
}
