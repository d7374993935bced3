//! What a worker counts of its calls, by the conventions for generative AI, and our own time in them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::Usage;

use crate::{
    genai,
    metric::{FINE_BOUNDS, Family, Histogram, Labels, Points, labelled},
};

/// As the conventions advise.
const OPERATION_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_CHUNK_BOUNDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const TOKEN_BOUNDS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// One call of a model, as it went.
#[derive(Debug, Clone)]
pub struct ModelCall<'a> {
    /// As the conventions name it.
    pub provider: &'a str,
    pub model: &'a str,
    pub took: Duration,
    pub first_chunk: Option<Duration>,
    /// Not spent waiting for the vendor, where there is somebody to wait for.
    pub own_time: Option<Duration>,
    pub usage: Option<Usage>,
    pub error: Option<&'a str>,
}

#[derive(Default)]
pub struct Instruments(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    /// Operation, provider, model, error.
    operations: BTreeMap<[String; 4], Histogram>,
    /// Provider, model.
    first_chunks: BTreeMap<[String; 2], Histogram>,
    /// Provider, model, kind of token.
    tokens: BTreeMap<[String; 3], Histogram>,
    /// Provider.
    overhead: BTreeMap<[String; 1], Histogram>,
}

impl Instruments {
    pub fn model_called(&self, call: &ModelCall<'_>) {
        let mut counted = self.lock();
        let (provider, model) = (call.provider.to_owned(), call.model.to_owned());
        let error = call.error.unwrap_or_default().to_owned();
        let key = [genai::CHAT.to_owned(), provider.clone(), model.clone(), error];
        of(&mut counted.operations, key, OPERATION_BOUNDS).add(call.took.as_secs_f64());
        if let Some(first) = call.first_chunk {
            let key = [provider.clone(), model.clone()];
            of(&mut counted.first_chunks, key, FIRST_CHUNK_BOUNDS).add(first.as_secs_f64());
        }
        if let Some(usage) = &call.usage {
            for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
                let key = [provider.clone(), model.clone(), kind.to_owned()];
                of(&mut counted.tokens, key, TOKEN_BOUNDS).add(tokens as f64);
            }
        }
        if let Some(own_time) = call.own_time {
            of(&mut counted.overhead, [provider], FINE_BOUNDS).add(own_time.as_secs_f64());
        }
    }

    pub fn tool_called(&self, tool: &str, took: Duration, error: Option<&str>) {
        let error = error.unwrap_or_default().to_owned();
        let key = [genai::EXECUTE_TOOL.to_owned(), String::new(), tool.to_owned(), error];
        of(&mut self.lock().operations, key, OPERATION_BOUNDS).add(took.as_secs_f64());
    }

    pub(crate) fn families(&self) -> Vec<Family> {
        let counted = self.lock();
        vec![
            Family {
                name: genai::OPERATION_DURATION,
                about: "Time that a call of a model or a tool took.",
                unit: "s",
                points: Points::Histogram(counted.operations.iter().map(operation).collect()),
            },
            Family {
                name: genai::FIRST_CHUNK,
                about: "Time until the first piece of a model's answer.",
                unit: "s",
                points: named(&counted.first_chunks, [genai::PROVIDER, genai::REQUEST_MODEL], &CHAT),
            },
            Family {
                name: genai::TOKEN_USAGE,
                about: "Tokens of a call, as the vendor counted them.",
                unit: "{token}",
                points: named(
                    &counted.tokens,
                    [genai::PROVIDER, genai::REQUEST_MODEL, genai::TOKEN_TYPE],
                    &CHAT,
                ),
            },
            Family {
                name: "ostler_gateway_overhead_seconds",
                about: "Time of a model call that was not spent waiting for the vendor. Of the worker in this process.",
                unit: "s",
                points: named(&counted.overhead, ["provider"], &[]),
            },
        ]
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CHAT: [(&str, &str); 1] = [(genai::OPERATION, genai::CHAT)];

fn operation(
    ([operation, provider, subject, error], histogram): (&[String; 4], &Histogram),
) -> (Labels, Histogram) {
    let subject_name = if operation == genai::CHAT { genai::REQUEST_MODEL } else { genai::TOOL_NAME };
    let labels = [
        (genai::OPERATION, operation),
        (genai::PROVIDER, provider),
        (subject_name, subject),
        (genai::ERROR_TYPE, error),
    ];
    let said = labels.into_iter().filter(|(_, value)| !value.is_empty());
    (said.map(|(name, value)| (name, value.clone())).collect(), histogram.clone())
}

fn named<const N: usize>(
    all: &BTreeMap<[String; N], Histogram>,
    names: [&'static str; N],
    always: &[(&'static str, &str)],
) -> Points {
    let point = |(key, histogram): (&[String; N], &Histogram)| {
        let labels = always.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let labels = labels.chain(names.into_iter().zip(key.iter().cloned()));
        (labels.collect(), histogram.clone())
    };
    Points::Histogram(all.iter().map(point).collect())
}

fn of<'m, const N: usize>(
    figures: &'m mut BTreeMap<[String; N], Histogram>,
    key: [String; N],
    bounds: &'static [f64],
) -> &'m mut Histogram {
    labelled(figures, key, || Histogram::new(bounds))
}
