//! What is told to a collector: spans and figures, over OTLP; and the figures themselves, whoever reads them.
//!
//! Nothing here may hold up a step. A span is put into a bounded buffer or dropped, and counted either way; one activity
//! sends what is there. A collector that is away, slow or refusing costs spans and nothing else.

pub mod config;
mod export;
pub mod genai;
mod instruments;
pub mod metric;
mod otlp;
mod sampler;
mod send;
mod span;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ostler_kernel::{Runtime, TraceContext, TraceId, Usage, runtime::BoxFuture};

pub use config::{Config, ConfigError, VARIABLES, Variable};
pub use export::Exporter;
pub use instruments::{Instruments, ModelCall, chunk_times};
pub use metric::{Family, Histogram, Labels, Points};
pub use sampler::Sampler;
pub use send::SetupError;
pub use span::{Kind, Moment, Span, Value};

use export::Buffer;

/// Cheap to clone: what a process tells of itself goes through one. By default it counts, and tells nobody.
#[derive(Clone, Default)]
pub struct Telemetry {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    instruments: Instruments,
    /// Where somebody wants spans.
    spans: Option<Tracing>,
    counts: Counts,
}

struct Tracing {
    buffer: Arc<Buffer>,
    sampler: Sampler,
    content: bool,
}

/// What became of spans.
#[derive(Default)]
pub struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// All figures of the process, when somebody asks.
pub type Source = Arc<dyn Fn() -> BoxFuture<'static, Vec<Family>> + Send + Sync>;

impl Telemetry {
    /// As the configuration says. Nothing is sent until [`Telemetry::start`].
    pub fn new(config: &Config) -> Self {
        let spans = config.traces.as_ref().map(|_| Tracing {
            buffer: Arc::new(Buffer::new(config.queue, config.batch)),
            sampler: config.sampler,
            content: config.content,
        });
        let instruments = Instruments::new(config.latest);
        Self { shared: Arc::new(Shared { instruments, spans, ..Shared::default() }) }
    }

    /// Begins to send what there is, and asks `source` for figures at each interval.
    pub fn start(
        &self,
        config: &Config,
        runtime: Arc<dyn Runtime>,
        source: Source,
    ) -> Result<Exporter, SetupError> {
        Exporter::start(self, config, runtime, source)
    }

    /// One that has counted each figure once, to describe them by.
    pub fn sample() -> Self {
        let shared = Shared { instruments: Instruments::new(true), ..Shared::default() };
        let sample = Self { shared: Arc::new(shared) };
        sample.instruments().model_called(&ModelCall {
            provider: "-",
            model: "-",
            took: Duration::ZERO,
            first_chunk: Some(Duration::ZERO),
            chunks: Some(&chunk_times()),
            own_time: Some(Duration::ZERO),
            turn: Some(Duration::ZERO),
            secret: Some(Duration::ZERO),
            usage: Some(Usage {
                input_tokens: 2,
                output_tokens: 2,
                cache_read_tokens: 1,
                reasoning_tokens: 1,
                ..Usage::default()
            }),
            error: Some("-"),
        });
        sample.instruments().tool_called("-", Duration::ZERO, Some("-"));
        sample
    }

    /// Whether spans of this trace are kept. A caller's trace that is not, and any if nobody wants spans, is passed on
    /// as it came.
    pub fn keeps(&self, trace: TraceId, caller: Option<&TraceContext>) -> bool {
        self.shared.spans.as_ref().is_some_and(|spans| spans.sampler.keeps(trace, caller))
    }

    pub fn is_tracing(&self) -> bool {
        self.shared.spans.is_some()
    }

    /// Whether spans hold what was said.
    pub fn has_content(&self) -> bool {
        self.shared.spans.as_ref().is_some_and(|spans| spans.content)
    }

    /// Never waits: a full buffer drops it.
    pub fn tell(&self, span: Span) {
        if let Some(spans) = &self.shared.spans
            && !spans.buffer.put(span)
        {
            self.shared.counts.drop(1);
        }
    }

    pub fn instruments(&self) -> &Instruments {
        &self.shared.instruments
    }

    /// Gives these figures whenever it is asked, where there are no others.
    pub fn source(&self) -> Source {
        let telemetry = self.clone();
        Arc::new(move || -> BoxFuture<'static, Vec<Family>> {
            Box::pin(std::future::ready(telemetry.families()))
        })
    }

    /// What this process knows by itself, as figures.
    pub fn families(&self) -> Vec<Family> {
        let mut families = self.shared.instruments.families();
        let counts = &self.shared.counts;
        let one = |count: &AtomicU64| [(Labels::new(), count.load(Ordering::Relaxed))].into_iter();
        families.push(Family::counter(
            "ostler_spans_exported_total",
            "Spans that a collector took.",
            one(&counts.exported),
        ));
        let about = "Spans that were not told: the buffer was full, or the collector did not take them.";
        families.push(Family::counter("ostler_spans_dropped_total", about, one(&counts.dropped)));
        families
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("is_tracing", &self.is_tracing()).finish()
    }
}

impl Counts {
    fn drop(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    fn export(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }
}
