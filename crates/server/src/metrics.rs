//! Figures in the text that Prometheus reads. Names that users of such systems know are kept beside our own.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ostler_control::{Figures, Gauges, Histogram};

/// The bounds of a histogram, as they are counted.
use ostler_control::BOUNDS;

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

pub fn text(figures: &Figures, gauges: &Gauges, requests: &RequestFigures) -> String {
    let mut page = Page::default();
    page.of_tasks(figures);
    page.of_steps(figures);
    page.of_the_system(figures, gauges);
    let durations = requests.iter().map(|((method, status), histogram)| {
        (vec![("method", (*method).to_owned()), ("status", status.to_string())], histogram)
    });
    let about = "Requests to this server, but for what was streamed behind their first byte.";
    page.histograms("ostler_request_duration_seconds", about, durations);
    page.0
}

/// A figure as the reference tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    pub about: String,
    pub labels: Vec<String>,
}

/// All there are, read from a page on which each stands once.
pub fn described() -> Vec<Metric> {
    let (workers, ready) = (vec![(String::new(), "Ready", 0, 0)], vec![(String::new(), 0)]);
    let gauges = Gauges { workers, ready, position: 0 };
    let text = text(&sample(), &gauges, &RequestFigures::from([(("GET", 200), Histogram::default())]));
    let mut metrics: Vec<Metric> = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(about)) => metrics.push(Metric {
                name: name.to_owned(),
                kind: String::new(),
                about: about.to_owned(),
                labels: Vec::new(),
            }),
            (Some("#"), Some("TYPE"), Some(_), Some(kind)) => {
                metrics.iter_mut().rev().take(1).for_each(|metric| kind.clone_into(&mut metric.kind));
            }
            _ => metrics.iter_mut().rev().take(1).for_each(|metric| metric.labels = labels_in(line)),
        }
    }
    metrics
}

/// Each figure once.
fn sample() -> Figures {
    let none = String::new;
    let mut figures = Figures::default();
    figures.tasks.insert([none(), none(), none()], Histogram::default());
    figures.accepted.insert([none()], 0);
    figures.messages.insert([none(), none()], 0);
    figures.steps.insert([none(), none()], Histogram::default());
    figures.tools.insert([none(), none()], Histogram::default());
    figures.tokens.insert([none(), none(), none()], 0);
    figures
}

/// `le` belongs to every histogram.
fn labels_in(line: &str) -> Vec<String> {
    let inside =
        line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(inside, _)| inside);
    let names = inside.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned());
    names.filter(|name| name != "le").collect()
}

#[derive(Default)]
struct Page(String);

type Labels = Vec<(&'static str, String)>;

impl Page {
    fn of_tasks(&mut self, figures: &Figures) {
        for name in ["orloj_task_duration_seconds", "ostler_task_duration_seconds"] {
            let all = figures.tasks.iter().map(|([namespace, system, status], histogram)| {
                (labels(["namespace", "system", "status"], [namespace, system, status]), histogram)
            });
            self.histograms(name, "Time from acceptance to the end of a task.", all);
        }
        let accepted =
            figures.accepted.iter().map(|([namespace], n)| (labels(["namespace"], [namespace]), *n));
        self.counters("ostler_tasks_accepted_total", "Tasks that were accepted.", accepted);
        let messages = figures.messages.iter();
        let messages = messages.map(|([phase, agent], n)| (labels(["phase", "agent"], [phase, agent]), *n));
        self.counters("orloj_messages_total", "Messages to agents, by what they came to.", messages);
        let none = Vec::new;
        let dead = [(none(), figures.dead_letters)];
        self.counters("orloj_deadletters_total", "Tasks whose retries were used up.", dead.into_iter());
        let retries = [(none(), figures.retries)];
        self.counters(
            "orloj_retries_total",
            "Runs that are tried again after a failure.",
            retries.into_iter(),
        );
        let lost = [(none(), figures.lost_attempts)];
        self.counters("ostler_attempts_lost_total", "Attempts that lost their worker.", lost.into_iter());
    }

    fn of_steps(&mut self, figures: &Figures) {
        let steps = figures
            .steps
            .iter()
            .map(|([agent, kind], histogram)| (labels(["agent", "step_type"], [agent, kind]), histogram));
        self.histograms("orloj_agent_step_duration_seconds", "Time that a step took.", steps);
        let tools = figures
            .tools
            .iter()
            .map(|([tool, outcome], histogram)| (labels(["tool", "outcome"], [tool, outcome]), histogram));
        self.histograms("orloj_tool_execution_duration_seconds", "Time that a call of a tool took.", tools);
        let tokens = figures
            .tokens
            .iter()
            .map(|([agent, model, kind], n)| (labels(["agent", "model", "type"], [agent, model, kind]), *n));
        self.counters(
            "orloj_tokens_used_total",
            "Tokens, as vendors counted them or as was estimated.",
            tokens,
        );
    }

    fn of_the_system(&mut self, figures: &Figures, gauges: &Gauges) {
        let changed = [(Vec::new(), figures.resources_changed)];
        self.counters("ostler_resources_changed_total", "Resources written or deleted.", changed.into_iter());
        let ready = gauges.ready.iter().map(|(namespace, n)| (labels(["namespace"], [namespace]), *n as u64));
        self.gauges("ostler_queue_ready", "Runs that wait for a worker.", ready);
        let held = gauges.workers.iter().map(|(worker, _, _, n)| (labels(["worker"], [worker]), *n as u64));
        self.gauges("ostler_leases", "Runs that a worker holds.", held);
        let in_flight: u64 = gauges.workers.iter().map(|(_, _, _, runs)| *runs as u64).sum();
        self.gauges("orloj_inflight_messages", "Runs under way.", [(Vec::new(), in_flight)].into_iter());
        let slots =
            gauges.workers.iter().map(|(worker, _, n, _)| (labels(["worker"], [worker]), u64::from(*n)));
        self.gauges("ostler_worker_slots", "Runs that a worker takes at once.", slots);
        let is_ready = gauges
            .workers
            .iter()
            .map(|(worker, phase, _, _)| (labels(["worker"], [worker]), u64::from(*phase == "Ready")));
        self.gauges("ostler_worker_ready", "Whether a worker was heard of lately.", is_ready);
        let position = [(Vec::new(), gauges.position)];
        self.gauges("ostler_store_position", "The place of the last event in the log.", position.into_iter());
        let build = labels(["version"], [&env!("CARGO_PKG_VERSION").to_owned()]);
        self.gauges("ostler_build_info", "Which version this is.", [(build, 1)].into_iter());
    }

    fn counters(&mut self, name: &str, about: &str, all: impl Iterator<Item = (Labels, u64)>) {
        self.numbers(name, about, "counter", all);
    }

    fn gauges(&mut self, name: &str, about: &str, all: impl Iterator<Item = (Labels, u64)>) {
        self.numbers(name, about, "gauge", all);
    }

    fn numbers(&mut self, name: &str, about: &str, kind: &str, all: impl Iterator<Item = (Labels, u64)>) {
        self.head(name, about, kind);
        for (labels, number) in all {
            self.line(name, &labels, number as f64);
        }
    }

    fn histograms<'h>(
        &mut self,
        name: &str,
        about: &str,
        all: impl Iterator<Item = (Labels, &'h Histogram)>,
    ) {
        self.head(name, about, "histogram");
        for (labels, histogram) in all {
            let mut within = 0;
            let bounds = BOUNDS.iter().map(|bound| bound.to_string()).chain(["+Inf".to_owned()]);
            for (bound, count) in bounds.zip(histogram.counts) {
                within += count;
                let mut labels = labels.clone();
                labels.push(("le", bound));
                self.line(&format!("{name}_bucket"), &labels, within as f64);
            }
            self.line(&format!("{name}_sum"), &labels, histogram.sum);
            self.line(&format!("{name}_count"), &labels, within as f64);
        }
    }

    fn head(&mut self, name: &str, about: &str, kind: &str) {
        // A string takes whatever is written to it.
        let _ = write!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &Labels, number: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let each = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let _ = write!(self.0, "{{{}}}", each.collect::<Vec<_>>().join(","));
        }
        let _ = writeln!(self.0, " {number}");
    }
}

fn labels<const N: usize>(names: [&'static str; N], values: [&String; N]) -> Labels {
    names.into_iter().zip(values.into_iter().cloned()).collect()
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
        let text = text(&figures, &Gauges::default(), &RequestFigures::new());
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
    }

    #[test]
    fn a_histogram_counts_up_to_its_bounds() {
        let requests = Requests::default();
        requests.count(&http::Method::GET, 200, Duration::from_millis(7));
        requests.count(&http::Method::GET, 200, Duration::from_secs(9999));
        requests.count(&http::Method::from_bytes(b"BREW").unwrap(), 405, Duration::ZERO);
        let text = text(&Figures::default(), &Gauges::default(), &requests.figures());
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
