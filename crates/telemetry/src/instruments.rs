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
    /// Between two pieces of the answer, if it came in pieces: counted in [`chunk_times`].
    pub chunks: Option<&'a Histogram>,
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
pub struct Instruments {
    /// Whether tokens are told under the conventions' latest names too.
    latest: bool,
    counted: Mutex<Counted>,
}

/// To count in what passes between two pieces of an answer.
pub fn chunk_times() -> Histogram {
    Histogram::new(OPERATION_BOUNDS)
}

#[derive(Default)]
struct Counted {
    /// Provider, model, error.
    operations: BTreeMap<[String; 3], Histogram>,
    /// Tool, error.
    tools: BTreeMap<[String; 2], Histogram>,
    /// Provider, model.
    first_chunks: BTreeMap<[String; 2], Histogram>,
    chunks: BTreeMap<[String; 2], Histogram>,
    /// Provider, model, kind of token.
    tokens: BTreeMap<[String; 3], Histogram>,
    /// Each of them: provider, model, and what it is divided by.
    latest: [BTreeMap<[String; 3], u64>; 3],
    /// Provider.
    overhead: BTreeMap<[String; 1], Histogram>,
    turns: BTreeMap<[String; 1], Histogram>,
    secrets: BTreeMap<[String; 1], Histogram>,
}

impl Instruments {
    pub fn new(latest: bool) -> Self {
        Self { latest, counted: Mutex::default() }
    }

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
        if let Some(chunks) = call.chunks {
            of(&mut counted.chunks, [provider.clone(), model.clone()], OPERATION_BOUNDS).merge(chunks);
        }
        if let Some(usage) = call.usage.as_ref().filter(|_| self.latest) {
            for (figures, parts) in counted.latest.iter_mut().zip(divided(usage)) {
                for (part, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
                    let key = [provider.clone(), model.clone(), part.to_owned()];
                    *labelled(figures, key, u64::default) += tokens;
                }
            }
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
        let mut families = vec![
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
                name: genai::OUTPUT_CHUNK,
                about: "Time between two pieces of a model's answer.",
                unit: "s",
                points: named(&counted.chunks, [genai::PROVIDER, genai::REQUEST_MODEL], &CHAT),
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
        ];
        if self.latest {
            families.extend(LATEST.iter().zip(&counted.latest).map(|((name, about, part), figures)| {
                Family {
                    name,
                    about,
                    unit: "{token}",
                    points: Points::Counter(labels(
                        figures,
                        [genai::PROVIDER, genai::REQUEST_MODEL, part],
                        &CHAT,
                    )),
                }
            }));
        }
        families
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CHAT: [(&str, &str); 1] = [(genai::OPERATION, genai::CHAT)];

/// Counters in place of the histogram of tokens, each token once in each: the name, what it tells, what it is divided by. Of
/// which kind a token is beside (text, an image), no vendor says for all of them, and so neither do these.
const LATEST: [(&str, &str, &str); 3] = [
    (
        genai::INFERENCE_TOKENS,
        "Tokens of model calls. Only with OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental.",
        genai::TOKEN_TYPE,
    ),
    (
        genai::INPUT_BY_CACHE,
        "Input tokens, by what a vendor's cache had to do with them. Only with the same setting.",
        genai::TOKEN_CACHE,
    ),
    (
        genai::OUTPUT_BY_PHASE,
        "Output tokens, by what they were written for. Only with the same setting.",
        genai::TOKEN_PHASE,
    ),
];

/// The same tokens, divided as each of [`LATEST`] does.
fn divided(usage: &Usage) -> [Vec<(&'static str, u64)>; 3] {
    let Usage {
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, ..
    } = *usage;
    let uncached = input_tokens.saturating_sub(cache_read_tokens.saturating_add(cache_write_tokens));
    [
        vec![("input", input_tokens), ("output", output_tokens)],
        vec![("uncached", uncached), ("read", cache_read_tokens), ("write", cache_write_tokens)],
        vec![("response", output_tokens.saturating_sub(reasoning_tokens)), ("reasoning", reasoning_tokens)],
    ]
}

fn named<const N: usize>(
    all: &BTreeMap<[String; N], Histogram>,
    names: [&'static str; N],
    always: &[(&'static str, &str)],
) -> Points {
    Points::Histogram(labels(all, names, always))
}

fn labels<const N: usize, T: Clone>(
    all: &BTreeMap<[String; N], T>,
    names: [&'static str; N],
    always: &[(&'static str, &str)],
) -> Vec<(Labels, T)> {
    let point = |(key, figure): (&[String; N], &T)| {
        let labels = always.iter().map(|(name, value)| (*name, (*value).to_owned()));
        // What is not there is not said: a call without an error has none.
        let said = names.into_iter().zip(key.iter().cloned()).filter(|(_, value)| !value.is_empty());
        let labels = labels.chain(said);
        (labels.collect(), figure.clone())
    };
    all.iter().map(point).collect()
}

fn of<'m, const N: usize>(
    figures: &'m mut BTreeMap<[String; N], Histogram>,
    key: [String; N],
    bounds: &'static [f64],
) -> &'m mut Histogram {
    labelled(figures, key, || Histogram::new(bounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(instruments: &Instruments, name: &str) -> Vec<(String, u64)> {
        let family = instruments.families().into_iter().find(|family| family.name == name);
        let Some(Points::Counter(points)) = family.map(|family| family.points) else { return Vec::new() };
        let last = |labels: Labels| labels.last().map(|(_, value)| value.clone()).unwrap_or_default();
        points.into_iter().map(|(labels, count)| (last(labels), count)).collect()
    }

    fn call(instruments: &Instruments) {
        let usage = Usage {
            input_tokens: 100,
            output_tokens: 30,
            cache_read_tokens: 60,
            cache_write_tokens: 10,
            reasoning_tokens: 20,
            ..Usage::default()
        };
        instruments.model_called(&ModelCall {
            provider: "openai",
            model: "m",
            took: Duration::ZERO,
            first_chunk: None,
            chunks: None,
            own_time: None,
            turn: None,
            secret: None,
            usage: Some(usage),
            error: None,
        });
    }

    #[test]
    fn each_token_is_counted_once_in_each_division() {
        let instruments = Instruments::new(true);
        call(&instruments);
        call(&instruments);
        let parts = |name: &str| -> Vec<(String, u64)> { told(&instruments, name) };
        let expected = |parts: &[(&str, u64)]| -> Vec<(String, u64)> {
            parts.iter().map(|(part, count)| ((*part).to_owned(), *count)).collect()
        };
        assert_eq!(parts(genai::INFERENCE_TOKENS), expected(&[("input", 200), ("output", 60)]));
        let by_cache = expected(&[("read", 120), ("uncached", 60), ("write", 20)]);
        assert_eq!(parts(genai::INPUT_BY_CACHE), by_cache);
        assert_eq!(parts(genai::OUTPUT_BY_PHASE), expected(&[("reasoning", 40), ("response", 20)]));
    }

    #[test]
    fn who_did_not_ask_for_the_latest_names_is_told_none() {
        let instruments = Instruments::new(false);
        call(&instruments);
        let names: Vec<_> = instruments.families().iter().map(|family| family.name).collect();
        assert!(names.contains(&genai::TOKEN_USAGE), "{names:?}");
        assert!(!names.iter().any(|name| name.starts_with("gen_ai.client.inference")), "{names:?}");
    }
}
