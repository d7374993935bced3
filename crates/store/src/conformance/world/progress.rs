//! What a worker may have to write down: the model answered, or asked for tools, or the tools answered.

use ostler_kernel::{
    Block, Entry, Role, Step, StepKind, StepOutcome, Timestamp, Usage,
    conversation::ToolCallRef,
    run::{
        RunView,
        journal::{Progress, StepDone},
    },
    step::StepState,
};

/// Every open step is done; the model said `text`.
pub fn answers(view: &RunView, text: &str) -> Progress {
    let block = Block::Text { text: text.to_owned() };
    Progress { done: all_done(view), entries: vec![said(view, vec![block])], ..Progress::default() }
}

/// The model's call is done: it wants these tools called.
pub fn asks_for_tools(view: &RunView, tools: &[&str]) -> Progress {
    let calls = tools.iter().map(|tool| ToolCallRef { id: format!("call-{tool}"), name: (*tool).to_owned() });
    let calls: Vec<ToolCallRef> = calls.collect();
    let blocks = calls.iter().map(|call| Block::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: "{}".to_owned(),
    });
    let entries = vec![said(view, blocks.collect())];
    let open = calls.into_iter().map(|call| StepKind::tool(call, "{}", true));
    Progress { done: all_done(view), entries, open: open.collect(), ..Progress::default() }
}

/// Every open tool call is done; the model is asked again.
pub fn tools_answer(view: &RunView) -> Progress {
    let results = view.open_steps.iter().filter_map(|step| match &step.kind {
        StepKind::Tool { call, .. } => {
            Some(Entry::tool_result(view.run.id, step.id.index, call, format!("{} did it", call.name), false))
        }
        StepKind::Model { .. } | StepKind::Wait => None,
    });
    let open = vec![StepKind::model(&view.run.model)];
    Progress { done: all_done(view), entries: results.collect(), open, ..Progress::default() }
}

/// An entry in one line, for comparing.
pub fn words(entry: &Entry) -> String {
    let blocks = entry.blocks.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::ToolCall { name, .. } => format!("call {name}"),
        Block::ToolResult { name, content, .. } => format!("{name}: {content}"),
        Block::Image(image) => format!("image {}", image.media_type),
        Block::Native { vendor, .. } => format!("native {vendor}"),
    });
    blocks.collect::<Vec<_>>().join(", ")
}

fn all_done(view: &RunView) -> Vec<StepDone> {
    let done = |step: &Step| StepDone::new(finished(step, step.opened_at), "");
    view.open_steps.iter().map(done).collect()
}

fn finished(step: &Step, at: Timestamp) -> Step {
    let usage = Usage { input_tokens: 10, output_tokens: 3, estimated: false, ..Usage::default() };
    let state = StepState::Done { outcome: StepOutcome::Ok, at, took_ms: 7, usage };
    Step { state, ..step.clone() }
}

fn said(view: &RunView, blocks: Vec<Block>) -> Entry {
    let step = view.open_steps.first().map(|step| step.id.index);
    Entry { role: Role::Assistant, blocks, run: view.run.id, step }
}
