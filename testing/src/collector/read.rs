//! Spans and figures, read by the numbers that `opentelemetry/proto/{trace,metrics,common}/v1` give to their fields.

use std::collections::BTreeMap;

use serde_json::Value;

use super::wire::{Field, Malformed, fields, messages};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeenSpan {
    pub service: String,
    pub trace: String,
    pub id: String,
    /// Empty where the trace begins.
    pub parent: String,
    pub state: String,
    pub name: String,
    pub kind: SpanKind,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: BTreeMap<String, Value>,
    /// Whether its status says so.
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeenMetric {
    pub name: String,
    pub unit: String,
    /// `gauge`, `sum` or `histogram`.
    pub kind: &'static str,
    pub points: Vec<SeenPoint>,
}

/// A number, or how many a histogram counted, as the bits that stand on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenPoint {
    pub attributes: BTreeMap<String, Value>,
    pub number: u64,
}

impl SeenSpan {
    /// The text of an attribute; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.attributes.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Of an ExportTraceServiceRequest.
pub fn spans(export: &[u8]) -> Result<Vec<SeenSpan>, Malformed> {
    let mut seen = Vec::new();
    for resource_spans in messages(export, 1)? {
        let service = service(resource_spans)?;
        for scope_spans in messages(resource_spans, 2)? {
            for span in messages(scope_spans, 2)? {
                seen.push(read_span(span, &service)?);
            }
        }
    }
    Ok(seen)
}

/// `service.name` of the resource.
fn service(of: &[u8]) -> Result<String, Malformed> {
    for resource in messages(of, 1)? {
        let attributes = attributes(resource, 1)?;
        if let Some(Value::String(name)) = attributes.get("service.name") {
            return Ok(name.clone());
        }
    }
    Err(Malformed)
}

fn read_span(message: &[u8], service: &str) -> Result<SeenSpan, Malformed> {
    let mut span = SeenSpan {
        service: service.to_owned(),
        trace: String::new(),
        id: String::new(),
        parent: String::new(),
        state: String::new(),
        name: String::new(),
        kind: SpanKind::Internal,
        start_ns: 0,
        end_ns: 0,
        attributes: attributes(message, 9)?,
        is_error: false,
    };
    for (number, field) in fields(message)? {
        match (number, field) {
            (1, Field::Bytes(id)) if id.len() == 16 => span.trace = hex(id),
            (2, Field::Bytes(id)) if id.len() == 8 => span.id = hex(id),
            (3, Field::Bytes(state)) => span.state = text(state)?,
            (4, Field::Bytes(id)) if matches!(id.len(), 0 | 8) => span.parent = hex(id),
            (5, Field::Bytes(name)) => span.name = text(name)?,
            (6, Field::Varint(kind)) => span.kind = kind_of(kind)?,
            (7, Field::Fixed64(start)) => span.start_ns = start,
            (8, Field::Fixed64(end)) => span.end_ns = end,
            (15, Field::Bytes(status)) => span.is_error = fields(status)?.contains(&(3, Field::Varint(2))),
            (9, Field::Bytes(_)) | (16, Field::Fixed32(_)) => {}
            _ => return Err(Malformed),
        }
    }
    let is_whole =
        span.trace.len() == 32 && span.id.len() == 16 && !span.name.is_empty() && span.start_ns > 0;
    if is_whole { Ok(span) } else { Err(Malformed) }
}

fn kind_of(kind: u64) -> Result<SpanKind, Malformed> {
    match kind {
        1 => Ok(SpanKind::Internal),
        2 => Ok(SpanKind::Server),
        3 => Ok(SpanKind::Client),
        4 => Ok(SpanKind::Producer),
        5 => Ok(SpanKind::Consumer),
        _ => Err(Malformed),
    }
}

/// Of an ExportMetricsServiceRequest.
pub fn metrics(export: &[u8]) -> Result<Vec<SeenMetric>, Malformed> {
    let mut seen = Vec::new();
    for resource_metrics in messages(export, 1)? {
        service(resource_metrics)?;
        for scope_metrics in messages(resource_metrics, 2)? {
            for metric in messages(scope_metrics, 2)? {
                seen.push(read_metric(metric)?);
            }
        }
    }
    Ok(seen)
}

fn read_metric(message: &[u8]) -> Result<SeenMetric, Malformed> {
    let mut metric = SeenMetric { name: String::new(), unit: String::new(), kind: "", points: Vec::new() };
    for (number, field) in fields(message)? {
        match (number, field) {
            (1, Field::Bytes(name)) => metric.name = text(name)?,
            (3, Field::Bytes(unit)) => metric.unit = text(unit)?,
            (5, Field::Bytes(data)) => (metric.kind, metric.points) = ("gauge", points(data, 7, 6)?),
            (7, Field::Bytes(data)) => (metric.kind, metric.points) = ("sum", points(data, 7, 6)?),
            (9, Field::Bytes(data)) => (metric.kind, metric.points) = ("histogram", points(data, 9, 4)?),
            (2, Field::Bytes(_)) => {}
            _ => return Err(Malformed),
        }
    }
    Ok(metric)
}

/// Where attributes and the number stand depends on the kind of point.
fn points(data: &[u8], attributes_at: u64, number_at: u64) -> Result<Vec<SeenPoint>, Malformed> {
    let point = |point| {
        let number = fields(point)?.into_iter().find(|(number, _)| *number == number_at);
        let number = match number {
            Some((_, Field::Fixed64(number))) => number,
            // What is nothing is not written.
            None => 0,
            Some(_) => return Err(Malformed),
        };
        Ok(SeenPoint { attributes: attributes(point, attributes_at)?, number })
    };
    messages(data, 1)?.into_iter().map(point).collect()
}

fn attributes(message: &[u8], number: u64) -> Result<BTreeMap<String, Value>, Malformed> {
    let pair = |pair| {
        let key = messages(pair, 1)?.first().map(|key| text(key)).ok_or(Malformed)??;
        let value = messages(pair, 2)?.first().map(|value| any(value)).ok_or(Malformed)??;
        Ok((key, value))
    };
    messages(message, number)?.into_iter().map(pair).collect()
}

/// An AnyValue.
fn any(message: &[u8]) -> Result<Value, Malformed> {
    match fields(message)?.first() {
        Some((1, Field::Bytes(bytes))) => Ok(Value::from(text(bytes)?)),
        Some((2, Field::Varint(flag))) => Ok(Value::from(*flag == 1)),
        Some((3, Field::Varint(number))) => Ok(Value::from(number.cast_signed())),
        Some((4, Field::Fixed64(bits))) => Ok(Value::from(f64::from_bits(*bits))),
        Some((5, Field::Bytes(list))) => messages(list, 1)?.into_iter().map(any).collect(),
        _ => Err(Malformed),
    }
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
