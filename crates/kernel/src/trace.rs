//! What makes the spans of a task one tree, whoever tells of them and whenever: every id follows from what is durable.
//!
//! The trace is the caller's, or else the task's own; a span's id follows from the id of the task, the attempt or the
//! step it is of. So a server that was killed, and a worker on another machine, name the same parents without having
//! to remember any. The text forms are those of W3C Trace Context.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::{RunId, StepId, TaskId};

/// What a caller may send as `tracestate`; longer ones are dropped, as the recommendation says.
const MOST_STATE: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// Where in whose trace something happens: `traceparent`, and `tracestate` beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub parent: TraceParent,
    /// Of those who take part in the trace; passed on as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whoever began the trace keeps it.
    pub sampled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a traceparent: expected 00-<32 hex digits>-<16 hex digits>-<2 hex digits>")]
pub struct BadTraceParent {
    pub text: String,
}

impl TraceId {
    /// Of a task whose caller sent none: the letters of its id, as bytes.
    pub fn of_task(task: TaskId) -> Self {
        Self(*task.as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// What decides about sampling by ratio: the 56 bits that every maker of ids draws at random.
    pub fn random_part(&self) -> u64 {
        self.0[9..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl SpanId {
    pub fn of_task(task: TaskId) -> Self {
        Self::derived(&[b"task", task.as_bytes()])
    }

    pub fn of_attempt(run: RunId, attempt: u32) -> Self {
        Self::derived(&[b"attempt", run.as_bytes(), &attempt.to_be_bytes()])
    }

    pub fn of_step(step: StepId) -> Self {
        Self::derived(&[b"step", step.run.as_bytes(), &step.index.to_be_bytes()])
    }

    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    fn derived(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[..8]);
        // All zeros would be no id. Nobody will ever see it.
        id[7] |= u8::from(id == [0; 8]);
        Self(id)
    }
}

impl TraceContext {
    /// What a caller sent; none if it can't be read, and then the trace is a new one.
    pub fn read(parent: &str, state: Option<&str>) -> Result<Self, BadTraceParent> {
        let is_plain = |state: &&str| {
            let state = state.trim();
            !state.is_empty()
                && state.len() <= MOST_STATE
                && state.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        };
        let state = state.filter(is_plain).map(|state| state.trim().to_owned());
        Ok(Self { parent: parent.parse()?, state })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl FromStr for TraceParent {
    type Err = BadTraceParent;

    fn from_str(text: &str) -> Result<Self, BadTraceParent> {
        read_parent(text.trim()).ok_or_else(|| BadTraceParent { text: text.chars().take(80).collect() })
    }
}

/// Versions to come may have more behind these four, and mean the same by them.
fn read_parent(text: &str) -> Option<TraceParent> {
    let mut parts = text.split('-');
    let [version] = bytes::<1>(parts.next()?)?;
    let (trace, span) = (bytes::<16>(parts.next()?)?, bytes::<8>(parts.next()?)?);
    let [flags] = bytes::<1>(parts.next()?)?;
    let is_known = version != 0xff && (version != 0 || parts.next().is_none());
    let is_set = trace != [0; 16] && span != [0; 8];
    (is_known && is_set).then_some(TraceParent {
        trace: TraceId(trace),
        span: SpanId(span),
        sampled: flags & 1 == 1,
    })
}

/// Lower-case hexadecimal digits, and nothing else.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

macro_rules! printed {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }
    )*};
}

printed!(TraceId, SpanId);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_comes_back_as_it_was_sent() {
        let context = TraceContext::read(SENT, Some(" rojo=00f067aa,congo=t61 ")).unwrap();
        assert_eq!(context.parent.to_string(), SENT);
        assert_eq!(context.state.as_deref(), Some("rojo=00f067aa,congo=t61"));
        let written = serde_json::to_string(&context).unwrap();
        assert_eq!(serde_json::from_str::<TraceContext>(&written).unwrap(), context);
    }

    #[test]
    fn what_is_no_context_is_refused() {
        let bad = [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c8031ü-b7ad6b7169203331-01",
        ];
        for text in bad {
            assert!(text.parse::<TraceParent>().is_err(), "{text}");
        }
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        assert!(
            !later.parse::<TraceParent>().unwrap().sampled,
            "a later version is read as far as it is known"
        );
        assert_eq!(TraceContext::read(SENT, Some(&"x".repeat(513))).unwrap().state, None);
    }

    #[test]
    fn ids_follow_from_what_is_durable_and_differ() {
        let (task, run) = (
            TaskId::from_parts(Timestamp::from_millis(1), 2, 3),
            RunId::from_parts(Timestamp::from_millis(1), 2, 3),
        );
        let all = || {
            [
                SpanId::of_task(task),
                SpanId::of_attempt(run, 1),
                SpanId::of_attempt(run, 2),
                SpanId::of_step(StepId { run, index: 1 }),
                SpanId::of_step(StepId { run, index: 2 }),
            ]
        };
        assert_eq!(all(), all());
        let distinct: std::collections::BTreeSet<SpanId> = all().into_iter().collect();
        assert_eq!(distinct.len(), all().len());
        assert_eq!(TraceId::of_task(task).to_string().len(), 32);
    }
}
