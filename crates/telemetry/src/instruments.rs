//! What a worker counts of its calls, by the conventions for generative AI, and our own time in them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ostler_kernel::Usage;

use crate::{
    genai,
    metric::{FINE_BOUNDS, Family, Histogram, Points, labelled},
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
    /// Waited for a turn at its endpoint, where it has limits.
    pub turn: Option<Duration>,
    /// Waited for its key, where it has one.
    pub secret: Option<Duration>,
    pub usage: Option<Usage>,
    pub error: Option<&'a str>,
}

#[derive(Default)]
pub struct Instruments(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    /// Provider, model, error.
    operations: BTreeMap<[String; 3], Histogram>,
    /// Tool, error.
    tools: BTreeMap<[String; 2], Histogram>,
    /// Provider, model.
    first_chunks: BTreeMap<[String; 2], Histogram>,
    /// Provider, model, kind of token.
    tokens: BTreeMap<[String; 3], Histogram>,
    /// Provider.
    overhead: BTreeMap<[String; 1], Histogram>,
    turns: BTreeMap<[String; 1], Histogram>,
    secrets: BTreeMap<[String; 1], Histogram>,
}

impl Instruments {
    pub fn model_called(&self, call: &ModelCall<'_>) {
        let mut counted = self.lock();
        let (provider, model) = (call.provider.to_owned(), call.model.to_owned());
        let error = call.error.unwrap_or_default().to_owned();
        let key = [provider.clone(), model.clone(), error];
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
        let Counted { overhead, turns, secrets, .. } = &mut *counted;
        for (figures, time) in [(overhead, call.own_time), (turns, call.turn), (secrets, call.secret)] {
            if let Some(time) = time {
                of(figures, [provider.clone()], FINE_BOUNDS).add(time.as_secs_f64());
            }
        }
    }

    pub fn tool_called(&self, tool: &str, took: Duration, error: Option<&str>) {
        let error = error.unwrap_or_default().to_owned();
        of(&mut self.lock().tools, [tool.to_owned(), error], OPERATION_BOUNDS).add(took.as_secs_f64());
    }

    pub(crate) fn families(&self) -> Vec<Family> {
        let counted = self.lock();
        vec![
            Family {
                name: genai::OPERATION_DURATION,
                about: "Time that a call of a model took.",
                unit: "s",
                points: named(
                    &counted.operations,
                    [genai::PROVIDER, genai::REQUEST_MODEL, genai::ERROR_TYPE],
                    &CHAT,
                ),
            },
            Family {
                name: "ostler_tool_call_seconds",
                about: "Time that a call of a tool took. Of the worker in this process.",
                unit: "s",
                points: named(&counted.tools, ["tool", "error"], &[]),
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
                about: "Time of a model call that was not spent waiting: for the vendor, a turn, or a key. Of the worker in this process.",
                unit: "s",
                points: named(&counted.overhead, ["provider"], &[]),
            },
            Family {
                name: "ostler_gateway_turn_wait_seconds",
                about: "Time that a model call waited for its turn at an endpoint with limits. Of the worker in this process.",
                unit: "s",
                points: named(&counted.turns, ["provider"], &[]),
            },
            Family {
                name: "ostler_gateway_secret_wait_seconds",
                about: "Time that a model call waited for its key. Of the worker in this process.",
                unit: "s",
                points: named(&counted.secrets, ["provider"], &[]),
            },
        ]
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CHAT: [(&str, &str); 1] = [(genai::OPERATION, genai::CHAT)];

fn named<const N: usize>(
    all: &BTreeMap<[String; N], Histogram>,
    names: [&'static str; N],
    always: &[(&'static str, &str)],
) -> Points {
    let point = |(key, histogram): (&[String; N], &Histogram)| {
        let labels = always.iter().map(|(name, value)| (*name, (*value).to_owned()));
        // What is not there is not said: a call without an error has none.
        let said = names.into_iter().zip(key.iter().cloned()).filter(|(_, value)| !value.is_empty());
        let labels = labels.chain(said);
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
