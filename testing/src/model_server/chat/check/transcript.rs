//! The messages: their order, what each role may say, and that every tool call has exactly one answer.

use crate::model_server::chat::request::{Content, Message, Part, Role, ToolCall};
use crate::model_server::rules::{Findings, Rule, is_name};
use serde::de::IgnoredAny;

pub(super) fn check(messages: &[Message<'_>], findings: &mut Findings) {
    findings.require(!messages.is_empty(), Rule::NoMessages, "messages", "must not be empty");
    check_order(messages, findings);
    let mut open = OpenCalls::default();
    for (index, message) in messages.iter().enumerate() {
        check_content(index, message, findings);
        check_fields(index, message, findings);
        if message.role == Role::Tool {
            open.answer(index, message, findings);
        } else {
            open.close(findings);
        }
        if let Some(calls) = &message.tool_calls {
            check_calls(index, calls, findings);
            open = OpenCalls::of(index, calls);
        }
    }
    open.close(findings);
}

fn check_order(messages: &[Message<'_>], findings: &mut Findings) {
    let is_system = |message: &Message<'_>| matches!(message.role, Role::System | Role::Developer);
    let n_system = messages.iter().take_while(|message| is_system(message)).count();
    for (index, message) in messages.iter().enumerate().skip(n_system) {
        let message_text = "a system message stands behind another one";
        findings.require(
            !is_system(message),
            Rule::SystemFirst,
            format_args!("messages[{index}]"),
            message_text,
        );
    }
    let opens_with_user = messages.get(n_system).is_some_and(|message| message.role == Role::User);
    let param = format_args!("messages[{n_system}]");
    let kept = opens_with_user || messages.is_empty();
    findings.require(kept, Rule::UserFirst, param, "must be the user's");
}

fn check_content(index: usize, message: &Message<'_>, findings: &mut Findings) {
    let silent = match &message.content {
        None => true,
        Some(Content::Text(text)) => text.is_empty(),
        Some(Content::Parts(parts)) => {
            let all_fit = parts.iter().all(|part| part_fits(message.role, part));
            let param = format_args!("messages[{index}].content");
            findings.require(all_fit, Rule::FieldForRole, param, "holds a part that this role doesn't have");
            parts.is_empty() || parts.iter().any(is_empty_part)
        }
    };
    let excused = match message.role {
        // A tool may well have nothing to say, but it has to say so.
        Role::Tool => message.content.is_some(),
        Role::Assistant => message.tool_calls.is_some() || message.refusal.is_some(),
        Role::System | Role::Developer | Role::User => false,
    };
    let param = format_args!("messages[{index}].content");
    findings.require(!silent || excused, Rule::EmptyMessage, param, "must not be empty");
}

fn part_fits(role: Role, part: &Part<'_>) -> bool {
    match part {
        Part::Text { .. } => true,
        Part::Refusal { .. } => role == Role::Assistant,
        Part::ImageUrl { .. } | Part::InputAudio { .. } | Part::File { .. } => role == Role::User,
    }
}

fn is_empty_part(part: &Part<'_>) -> bool {
    matches!(part, Part::Text { text, .. } if text.is_empty())
}

fn check_fields(index: usize, message: &Message<'_>, findings: &mut Findings) {
    let is_assistant = message.role == Role::Assistant;
    let is_tool = message.role == Role::Tool;
    let mut allow = |allowed: bool, field: &str| {
        let param = format_args!("messages[{index}].{field}");
        findings.require(allowed, Rule::FieldForRole, param, "is missing, or not for this role");
    };
    allow(message.tool_call_id.is_some() == is_tool, "tool_call_id");
    allow(is_assistant || message.tool_calls.is_none(), "tool_calls");
    allow(is_assistant || message.refusal.is_none(), "refusal");
    allow(is_assistant || message.annotations.is_none(), "annotations");
    allow(!is_tool || message.name.is_none(), "name");
    let named = message.name.as_ref().is_none_or(|name| is_name(name));
    let param = format_args!("messages[{index}].name");
    findings.require(named, Rule::Name, param, "must match ^[a-zA-Z0-9_-]{1,64}$");
}

fn check_calls(index: usize, calls: &[ToolCall<'_>], findings: &mut Findings) {
    let param = format_args!("messages[{index}].tool_calls");
    findings.require(!calls.is_empty(), Rule::EmptyToolCalls, param, "must not be an empty list");
    for (nth, call) in calls.iter().enumerate() {
        let mut require = |kept: bool, rule: Rule, field: &str, message: &str| {
            let param = format_args!("messages[{index}].tool_calls[{nth}].{field}");
            findings.require(kept, rule, param, message);
        };
        let length = call.id.chars().count();
        require((1..=40).contains(&length), Rule::CallId, "id", "must have 1 to 40 characters");
        let repeated = calls.iter().take(nth).any(|other| other.id == call.id);
        require(!repeated, Rule::DuplicateCallId, "id", "is the id of an earlier call of the turn");
        let name = "function.name";
        require(is_name(&call.function.name), Rule::Name, name, "must match ^[a-zA-Z0-9_-]{1,64}$");
        let is_json = serde_json::from_str::<IgnoredAny>(&call.function.arguments).is_ok();
        require(is_json, Rule::Arguments, "function.arguments", "must be JSON");
    }
}

/// The calls of the latest turn, each with whether it was answered.
#[derive(Default)]
struct OpenCalls<'m> {
    index: usize,
    calls: Vec<(&'m str, bool)>,
}

impl<'m> OpenCalls<'m> {
    fn of(index: usize, calls: &'m [ToolCall<'_>]) -> Self {
        Self { index, calls: calls.iter().map(|call| (&*call.id, false)).collect() }
    }

    fn answer(&mut self, index: usize, message: &Message<'_>, findings: &mut Findings) {
        let Some(id) = message.tool_call_id.as_deref() else { return };
        let param = format_args!("messages[{index}].tool_call_id");
        if let Some(call) = self.calls.iter_mut().find(|call| call.0 == id && !call.1) {
            call.1 = true;
        } else if self.calls.iter().any(|call| call.0 == id) {
            findings.add(Rule::ResultRepeated, param, format_args!("call `{id}` was already answered"));
        } else {
            findings.add(Rule::ResultWithoutCall, param, format_args!("no open call has the id `{id}`"));
        }
    }

    fn close(&mut self, findings: &mut Findings) {
        for (id, _) in self.calls.drain(..).filter(|call| !call.1) {
            let param = format_args!("messages[{}].tool_calls", self.index);
            findings.add(Rule::Unanswered, param, format_args!("call `{id}` has no tool message"));
        }
    }
}
