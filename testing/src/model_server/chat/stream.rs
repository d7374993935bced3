//! A completion as server-sent events, cut into chunks as the vendor cuts them. Written by hand rather than
//! through a tree of values, because this is the hot path of the mock model.

use std::ops::Range;

use serde::Serialize;

use super::finish_reason;
use super::whole::{CREATED, UsageReport};
use crate::model_server::completion::{Completion, MadeCall};
use crate::model_server::events::{Events, pieces};

/// How many characters a chunk carries unless told otherwise.
const CHUNK: usize = 8;

/// Puts a completion into events.
pub(super) fn render(completion: &Completion<'_>, chunk: Option<usize>) -> Events {
    let mut writer = Writer::new(completion, completion.wishes.usage_in_stream);
    let size = chunk.unwrap_or(CHUNK);
    // A lone call opens the stream itself.
    let alone = completion.text.is_none() && completion.calls.len() == 1;
    if !alone {
        let content = if completion.text.is_none() && !completion.calls.is_empty() { "null" } else { "\"\"" };
        writer.delta(&[r#""role":"assistant","content":"#, content, r#","refusal":null"#]);
    }
    for piece in pieces(completion.refusal.as_deref().unwrap_or_default(), size) {
        writer.delta(&[r#""refusal":"#, &quoted(piece)]);
    }
    let text_start = writer.ends.len();
    for piece in pieces(completion.text.as_deref().unwrap_or_default(), size) {
        writer.delta(&[r#""content":"#, &quoted(piece)]);
    }
    let text = text_start..writer.ends.len();
    let mut arguments = 0..0;
    for (index, call) in completion.calls.iter().enumerate() {
        arguments = writer.call(index, call, alone, size);
    }
    writer.end(completion);
    Events { bytes: writer.out.into(), text, arguments, ends: writer.ends }
}

struct Writer {
    out: Vec<u8>,
    ends: Vec<usize>,
    /// What every chunk begins with, up to its choices.
    head: Vec<u8>,
    include_usage: bool,
}

impl Writer {
    fn new(completion: &Completion<'_>, include_usage: bool) -> Self {
        let mut head = Vec::with_capacity(192);
        head.extend_from_slice(br#"data: {"id":"chatcmpl-"#);
        head.extend_from_slice(completion.id.as_bytes());
        head.extend_from_slice(br#"","object":"chat.completion.chunk","created":"#);
        write_json(&mut head, &CREATED);
        head.extend_from_slice(br#","model":"#);
        write_json(&mut head, &*completion.model);
        head.extend_from_slice(
            br#","service_tier":"default","system_fingerprint":"fp_scripted","choices":["#,
        );
        Self { out: Vec::with_capacity(4096), ends: Vec::with_capacity(16), head, include_usage }
    }

    /// One call; returns which events carry its arguments.
    fn call(&mut self, index: usize, call: &MadeCall, alone: bool, size: usize) -> Range<usize> {
        let index = index.to_string();
        self.delta(&[
            if alone { r#""role":"assistant","content":null,"# } else { "" },
            r#""tool_calls":[{"index":"#,
            &index,
            r#","id":"#,
            &quoted(&call.id),
            r#","type":"function","function":{"name":"#,
            &quoted(&call.name),
            r#","arguments":""}}]"#,
            if alone { r#","refusal":null"# } else { "" },
        ]);
        let start = self.ends.len();
        for piece in pieces(&call.arguments, size) {
            let arguments = r#","function":{"arguments":"#;
            self.delta(&[r#""tool_calls":[{"index":"#, &index, arguments, &quoted(piece), "}}]"]);
        }
        start..self.ends.len()
    }

    /// One chunk whose delta holds these fields.
    fn delta(&mut self, fields: &[&str]) {
        self.out.extend_from_slice(&self.head);
        self.out.extend_from_slice(br#"{"index":0,"delta":{"#);
        for field in fields {
            self.out.extend_from_slice(field.as_bytes());
        }
        self.out.extend_from_slice(br#"},"logprobs":null,"finish_reason":null}]"#);
        self.end_chunk();
    }

    fn end(&mut self, completion: &Completion<'_>) {
        self.out.extend_from_slice(&self.head);
        self.out.extend_from_slice(br#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"#);
        write_json(&mut self.out, finish_reason(completion.finish));
        self.out.extend_from_slice(b"}]");
        self.end_chunk();
        if let Some(usage) = completion.usage.filter(|_| self.include_usage) {
            self.out.extend_from_slice(&self.head);
            self.out.extend_from_slice(br#"],"usage":"#);
            write_json(&mut self.out, &UsageReport::from(usage));
            self.end_event(b"}\n\n");
        }
        self.end_event(b"data: [DONE]\n\n");
    }

    /// With usage asked for, every chunk but the one that has it says that it has none.
    fn end_chunk(&mut self) {
        if self.include_usage {
            self.out.extend_from_slice(br#","usage":null"#);
        }
        self.end_event(b"}\n\n");
    }

    fn end_event(&mut self, tail: &[u8]) {
        self.out.extend_from_slice(tail);
        self.ends.push(self.out.len());
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Strings and numbers into memory: neither side of this can fail.
    let _ = serde_json::to_writer(out, value);
}
