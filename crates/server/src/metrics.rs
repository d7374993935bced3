//! The one registry of figures: every name with what it tells. From it come the text that Prometheus reads, what a collector
//! is told, and the reference. Names that users of such systems know are kept beside our own.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ostler_control::{
    Figures, Gauges,
    telemetry::{Family, Histogram, Labels, Points, Telemetry, genai},
};

/// What was asked of this server, and how it was answered.
#[derive(Default)]
pub struct Requests(Mutex<BTreeMap<(&'static str, u16), Histogram>>);

pub type RequestFigures = BTreeMap<(&'static str, u16), Histogram>;

impl Requests {
    pub fn count(&self, method: &http::Method, status: u16, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((name(method), status)).or_default().add(took.as_secs_f64());
    }

    pub fn figures(&self) -> RequestFigures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Callers can make up methods; figures can't grow by that.
fn name(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// Every figure of this process: what was counted, what the store says, and what those beside the server know.
pub fn families(
    figures: &Figures,
    gauges: &Gauges,
    requests: &RequestFigures,
    others: Vec<Family>,
) -> Vec<Family> {
    let mut families = of_tasks(figures);
    families.extend(of_steps(figures));
    families.extend(of_the_system(figures, gauges));
    let durations = requests.iter().map(|((method, status), histogram)| {
        (vec![("method", (*method).to_owned()), ("status", status.to_string())], histogram.clone())
    });
    let about = "Requests to this server, but for what was streamed behind their first byte.";
    families.push(Family::seconds("ostler_request_duration_seconds", about, durations));
    families.extend(others);
    families
}

fn of_tasks(figures: &Figures) -> Vec<Family> {
    let durations = || {
        let names = ["namespace", "system", "status"];
        figures.tasks.iter().map(move |(key, histogram)| (labels(names, key), histogram.clone()))
    };
    let accepted = figures.accepted.iter().map(|(key, n)| (labels(["namespace"], key), *n));
    let assigned =
        figures.assigned.iter().map(|(key, histogram)| (labels(["namespace"], key), histogram.clone()));
    let messages = figures.messages.iter().map(|(key, n)| (labels(["phase", "agent"], key), *n));
    let ended = "Time from acceptance to the end of a task.";
    let waited = "Time from when a run was made until a worker first had it.";
    vec![
        Family::seconds("orloj_task_duration_seconds", ended, durations()),
        Family::seconds("ostler_task_duration_seconds", ended, durations()),
        Family::seconds(
            genai::WORKFLOW_DURATION,
            "Time from acceptance to the end of a task that a system did.",
            figures.workflows.iter().map(|(key, histogram)| {
                let all = labels([genai::WORKFLOW_NAME, genai::ERROR_TYPE], key);
                // What went well has no error.
                (all.into_iter().filter(|(_, value)| !value.is_empty()).collect(), histogram.clone())
            }),
        ),
        Family::counter("ostler_tasks_accepted_total", "Tasks that were accepted.", accepted),
        Family::seconds("ostler_queued_to_assigned_seconds", waited, assigned),
        Family::counter(
            "orloj_messages_total",
            "Messages to agents, by each phase that they came to.",
            messages,
        ),
        Family::counter(
            "orloj_deadletters_total",
            "Tasks whose retries were used up.",
            one(figures.dead_letters),
        ),
        Family::counter(
            "orloj_retries_total",
            "Runs that are tried again after a failure.",
            one(figures.retries),
        ),
        Family::counter(
            "ostler_attempts_lost_total",
            "Attempts that lost their worker.",
            one(figures.lost_attempts),
        ),
    ]
}

fn of_steps(figures: &Figures) -> Vec<Family> {
    let steps = || {
        let names = ["agent", "step_type"];
        figures.steps.iter().map(move |(key, histogram)| (labels(names, key), histogram.clone()))
    };
    let tools = || {
        let names = ["tool", "outcome"];
        figures.tools.iter().map(move |(key, histogram)| (labels(names, key), histogram.clone()))
    };
    let tokens = || figures.tokens.iter().map(|(key, n)| (labels(["agent", "model", "type"], key), *n));
    let (a_step, a_tool) = ("Time that a step took.", "Time that a call of a tool took.");
    let counted = "Tokens, as vendors counted them or as was estimated.";
    let cost = figures.cost.iter().map(|(key, n)| (labels(["agent", "model"], key), *n));
    let paid = "What calls of models cost, in millionths of a US dollar, where a price is known.";
    vec![
        Family::seconds("orloj_agent_step_duration_seconds", a_step, steps()),
        Family::seconds("ostler_step_duration_seconds", a_step, steps()),
        Family::seconds("orloj_tool_execution_duration_seconds", a_tool, tools()),
        Family::seconds("ostler_tool_duration_seconds", a_tool, tools()),
        Family::counter("orloj_tokens_used_total", counted, tokens()),
        Family::counter("ostler_tokens_used_total", counted, tokens()),
        Family::counter("ostler_model_cost_micro_usd_total", paid, cost),
    ]
}

fn of_the_system(figures: &Figures, gauges: &Gauges) -> Vec<Family> {
    let ready = gauges.ready.iter().map(|(namespace, n)| (vec![("namespace", namespace.clone())], *n as u64));
    let workers = || {
        gauges
            .workers
            .iter()
            .map(|(name, phase, slots, runs)| (vec![("worker", name.clone())], phase, *slots, *runs))
    };
    let held = workers().map(|(labels, _, _, runs)| (labels, runs as u64));
    let slots = workers().map(|(labels, _, slots, _)| (labels, u64::from(slots)));
    let free =
        workers().map(|(labels, _, slots, runs)| (labels, u64::from(slots).saturating_sub(runs as u64)));
    let is_ready = workers().map(|(labels, phase, _, _)| (labels, u64::from(*phase == "Ready")));
    let in_flight: u64 = gauges.workers.iter().map(|(_, _, _, runs)| *runs as u64).sum();
    let build = [(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1)].into_iter();
    let commits = [(Labels::new(), figures.commits.clone())].into_iter();
    let changed = one(figures.resources_changed);
    vec![
        Family::counter("ostler_resources_changed_total", "Resources written or deleted.", changed),
        Family::gauge("ostler_queue_ready", "Runs that wait for a worker.", ready),
        Family::gauge("ostler_leases", "Runs that a worker holds.", held),
        Family::gauge("orloj_inflight_messages", "Runs under way.", one(in_flight)),
        Family::gauge("ostler_worker_slots", "Runs that a worker takes at once.", slots),
        Family::gauge("ostler_worker_free_slots", "Of these, how many it has room for now.", free),
        Family::gauge("ostler_worker_ready", "Whether a worker was heard of lately.", is_ready),
        Family::seconds("ostler_store_commit_seconds", "Time until the store has what was written.", commits),
        Family::gauge(
            "ostler_store_position",
            "The place of the last event in the log.",
            one(gauges.position),
        ),
        Family::gauge("ostler_build_info", "Which version this is.", build),
    ]
}

fn one(number: u64) -> impl Iterator<Item = (Labels, u64)> {
    [(Labels::new(), number)].into_iter()
}

fn labels<const N: usize>(names: [&'static str; N], values: &[String; N]) -> Labels {
    names.into_iter().zip(values.iter().cloned()).collect()
}

/// A figure as the reference tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// As Prometheus has it.
    pub name: String,
    /// As a collector is told, where that is another name.
    pub over_otlp: Option<&'static str>,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub about: &'static str,
    pub labels: Vec<String>,
}

/// All there are, taken from figures of which each stands once.
pub fn described() -> Vec<Metric> {
    let (workers, ready) = (vec![(String::new(), "Ready", 0, 0)], vec![(String::new(), 0)]);
    let gauges = Gauges { workers, ready, position: 0 };
    let requests = RequestFigures::from([(("GET", 200), Histogram::default())]);
    let others = Telemetry::sample().families();
    families(&sample(), &gauges, &requests, others).iter().map(Metric::of).collect()
}

impl Metric {
    fn of(family: &Family) -> Self {
        let mut labels: Vec<String> = Vec::new();
        for name in family.label_names() {
            let name = plain(name);
            if !labels.contains(&name) {
                labels.push(name);
            }
        }
        let name = shown_name(family);
        let over_otlp = (name != family.name).then_some(family.name);
        Self { name, over_otlp, kind: family.points.kind(), about: family.about, labels }
    }
}

/// Each figure once.
fn sample() -> Figures {
    let none = String::new;
    let mut figures = Figures::default();
    figures.tasks.insert([none(), none(), none()], Histogram::default());
    figures.workflows.insert(["-".to_owned(), "-".to_owned()], Histogram::default());
    figures.accepted.insert([none()], 0);
    figures.assigned.insert([none()], Histogram::default());
    figures.messages.insert([none(), none()], 0);
    figures.steps.insert([none(), none()], Histogram::default());
    figures.tools.insert([none(), none()], Histogram::default());
    figures.tokens.insert([none(), none(), none()], 0);
    figures.cost.insert([none(), none()], 0);
    figures
}

/// Of that text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The figures in the text that Prometheus reads.
pub fn text(families: &[Family]) -> String {
    let mut page = Page::default();
    families.iter().for_each(|family| page.add(family));
    page.0
}

/// Names with dots are those of OpenTelemetry, and get what its exporters put behind them.
fn shown_name(family: &Family) -> String {
    let end = match &family.points {
        _ if !family.name.contains('.') => "",
        Points::Counter(_) => "_total",
        Points::Histogram(_) | Points::Gauge(_) if family.unit == "s" => "_seconds",
        Points::Histogram(_) | Points::Gauge(_) => "",
    };
    format!("{}{end}", plain(family.name))
}

fn plain(name: &str) -> String {
    name.replace('.', "_")
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn add(&mut self, family: &Family) {
        let name = shown_name(family);
        // A string takes whatever is written to it.
        let _ = write!(self.0, "# HELP {name} {}\n# TYPE {name} {}\n", family.about, family.points.kind());
        match &family.points {
            Points::Counter(points) | Points::Gauge(points) => {
                points.iter().for_each(|(labels, number)| self.line(&name, labels, *number as f64));
            }
            Points::Histogram(points) => {
                points.iter().for_each(|(labels, histogram)| self.histogram(&name, labels, histogram));
            }
        }
    }

    fn histogram(&mut self, name: &str, labels: &Labels, histogram: &Histogram) {
        let mut within = 0;
        let bounds = histogram.bounds.iter().map(|bound| bound.to_string()).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&histogram.counts) {
            within += count;
            let mut labels = labels.clone();
            labels.push(("le", bound));
            self.line(&format!("{name}_bucket"), &labels, within as f64);
        }
        self.line(&format!("{name}_sum"), labels, histogram.sum);
        self.line(&format!("{name}_count"), labels, within as f64);
    }

    fn line(&mut self, name: &str, labels: &Labels, number: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let each = labels.iter().map(|(label, value)| format!("{}=\"{}\"", plain(label), escaped(value)));
            let _ = write!(self.0, "{{{}}}", each.collect::<Vec<_>>().join(","));
        }
        let _ = writeln!(self.0, " {number}");
    }
}

/// As the text asks for it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out_of_their_quotes() {
        let mut figures = Figures::default();
        figures.accepted.insert(["a\"b\\c\nd".to_owned()], 3);
        let text = text(&families(&figures, &Gauges::default(), &RequestFigures::new(), Vec::new()));
        let line = text.lines().find(|line| line.starts_with("ostler_tasks_accepted_total{")).unwrap();
        assert_eq!(line, r#"ostler_tasks_accepted_total{namespace="a\"b\\c\nd"} 3"#);
    }

    #[test]
    fn every_figure_is_described() {
        let metrics = described();
        let names: std::collections::BTreeSet<&str> =
            metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names.len(), metrics.len(), "none stands twice");
        assert!(
            metrics.iter().all(|metric| !metric.kind.is_empty() && metric.about.ends_with('.')),
            "{metrics:#?}"
        );
        let of = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().labels.clone();
        assert_eq!(of("ostler_task_duration_seconds"), ["namespace", "system", "status"]);
        assert_eq!(of("ostler_worker_slots"), ["worker"]);
        assert_eq!(of("ostler_request_duration_seconds"), ["method", "status"]);
        let chat =
            metrics.iter().find(|metric| metric.name == "gen_ai_client_operation_duration_seconds").unwrap();
        assert_eq!(chat.over_otlp, Some("gen_ai.client.operation.duration"));
        assert!(chat.labels.contains(&"gen_ai_provider_name".to_owned()), "{chat:?}");
    }

    #[test]
    fn a_histogram_counts_up_to_its_bounds() {
        let requests = Requests::default();
        requests.count(&http::Method::GET, 200, Duration::from_millis(7));
        requests.count(&http::Method::GET, 200, Duration::from_secs(9999));
        requests.count(&http::Method::from_bytes(b"BREW").unwrap(), 405, Duration::ZERO);
        let text = text(&families(&Figures::default(), &Gauges::default(), &requests.figures(), Vec::new()));
        let has = |line: &str| assert!(text.contains(line), "{line} is not in\n{text}");
        has("ostler_request_duration_seconds_bucket{method=\"GET\",status=\"200\",le=\"0.005\"} 0\n");
        has("ostler_request_duration_seconds_bucket{method=\"GET\",status=\"200\",le=\"0.01\"} 1\n");
        has("ostler_request_duration_seconds_bucket{method=\"GET\",status=\"200\",le=\"+Inf\"} 2\n");
        has("ostler_request_duration_seconds_count{method=\"GET\",status=\"200\"} 2\n");
        has("ostler_request_duration_seconds_count{method=\"other\",status=\"405\"} 1\n");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.rsplit_once(' ').is_some_and(|(_, number)| number.parse::<f64>().is_ok()), "{line}");
        }
    }
}
