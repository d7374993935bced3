//! From our spans and figures to the messages of the protocol.

use bytes::Bytes;
use prost::Message as _;

use super::proto::{
    AnyValue, Array, Attributes, Data, ExportMetrics, ExportTraces, Gauge, HistogramPoint, Histograms,
    KeyValue, Metric, NumberPoint, ResourceMetrics, ResourceSpans, Scope, ScopeMetrics, ScopeSpans, Status,
    Sum, Value as Wire, WireSpan,
};
use crate::{
    genai::ERROR_TYPE,
    metric::{Family, Histogram, Labels, Points},
    span::{Kind, Moment, Span, Value},
};

/// Who tells: the attributes that stand once for all spans and figures.
pub type Resource = Vec<(String, String)>;

const STATUS_ERROR: i32 = 2;

/// Each point tells of all since the start.
const CUMULATIVE: i32 = 2;

/// The trace is kept. That a parent is remote is not known to us from its id.
const SAMPLED: u32 = 1;

pub fn traces(resource: &Resource, spans: &[Span]) -> Bytes {
    let scope_spans = ScopeSpans { scope: scope(), spans: spans.iter().map(span).collect() };
    let resource_spans = ResourceSpans { resource: told(resource), scope_spans: vec![scope_spans] };
    ExportTraces { resource_spans: vec![resource_spans] }.encode_to_vec().into()
}

pub fn metrics(resource: &Resource, families: &[Family], since: Moment, now: Moment) -> Bytes {
    let between = Between { since, now };
    let metrics = families.iter().map(|family| between.metric(family)).filter(|metric| metric.data.is_some());
    let scope_metrics = ScopeMetrics { scope: scope(), metrics: metrics.collect() };
    let resource_metrics = ResourceMetrics { resource: told(resource), scope_metrics: vec![scope_metrics] };
    ExportMetrics { resource_metrics: vec![resource_metrics] }.encode_to_vec().into()
}

fn told(resource: &Resource) -> Option<Attributes> {
    let pairs = resource.iter().map(|(key, value)| pair(key, Wire::Text(value.clone())));
    Some(Attributes { attributes: pairs.collect() })
}

fn scope() -> Option<Scope> {
    Some(Scope { name: "ostler".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

fn span(span: &Span) -> WireSpan {
    let mut attributes: Vec<KeyValue> =
        span.attributes.iter().map(|(key, value)| pair(key, wire(value))).collect();
    if let Some((code, _)) = &span.error {
        attributes.push(pair(ERROR_TYPE, Wire::Text(code.clone())));
    }
    WireSpan {
        trace_id: span.trace.as_bytes().to_vec(),
        span_id: span.id.as_bytes().to_vec(),
        trace_state: span.state.clone().unwrap_or_default(),
        parent_span_id: span.parent.map(|parent| parent.as_bytes().to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: match span.kind {
            Kind::Internal => 1,
            Kind::Client => 3,
            Kind::Consumer => 5,
        },
        start_time_unix_nano: span.began.nanos(),
        end_time_unix_nano: span.ended.max(span.began).nanos(),
        attributes,
        status: span
            .error
            .as_ref()
            .map(|(_, message)| Status { message: message.clone(), code: STATUS_ERROR }),
        flags: SAMPLED,
    }
}

fn wire(value: &Value) -> Wire {
    match value {
        Value::Text(text) => Wire::Text(text.clone()),
        Value::Integer(number) => Wire::Integer(*number),
        Value::Number(number) => Wire::Number(*number),
        Value::Flag(flag) => Wire::Flag(*flag),
        Value::Texts(texts) => {
            let values = texts.iter().map(|text| AnyValue { value: Some(Wire::Text(text.clone())) });
            Wire::List(Array { values: values.collect() })
        }
    }
}

fn pair(key: &str, value: Wire) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// The time that the figures tell of.
struct Between {
    since: Moment,
    now: Moment,
}

impl Between {
    fn metric(&self, family: &Family) -> Metric {
        let data = match &family.points {
            Points::Counter(points) if !points.is_empty() => Some(Data::Sum(Sum {
                data_points: self.numbers(points),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            })),
            Points::Gauge(points) if !points.is_empty() => {
                Some(Data::Gauge(Gauge { data_points: self.numbers(points) }))
            }
            Points::Histogram(points) if !points.is_empty() => {
                let data_points = points.iter().map(|(labels, histogram)| self.histogram(labels, histogram));
                let data_points = data_points.collect();
                Some(Data::Histogram(Histograms { data_points, aggregation_temporality: CUMULATIVE }))
            }
            Points::Counter(_) | Points::Gauge(_) | Points::Histogram(_) => None,
        };
        let (name, description, unit) = (family.name.into(), family.about.into(), family.unit.into());
        Metric { name, description, unit, data }
    }

    fn numbers(&self, points: &[(Labels, u64)]) -> Vec<NumberPoint> {
        let point = |(labels, number): &(Labels, u64)| NumberPoint {
            start_time_unix_nano: self.since.nanos(),
            time_unix_nano: self.now.nanos(),
            as_int: Some(i64::try_from(*number).unwrap_or(i64::MAX)),
            attributes: attributes(labels),
        };
        points.iter().map(point).collect()
    }

    fn histogram(&self, labels: &Labels, histogram: &Histogram) -> HistogramPoint {
        HistogramPoint {
            start_time_unix_nano: self.since.nanos(),
            time_unix_nano: self.now.nanos(),
            count: histogram.count(),
            sum: Some(histogram.sum),
            bucket_counts: histogram.counts.clone(),
            explicit_bounds: histogram.bounds.to_vec(),
            attributes: attributes(labels),
        }
    }
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| pair(key, Wire::Text(value.clone()))).collect()
}
