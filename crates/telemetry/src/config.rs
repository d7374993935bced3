//! What the standard variables of OpenTelemetry say. Each is listed with what it does, for the reference.

mod target;

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

pub use target::{Protocol, Target};

use crate::{otlp::Resource, sampler::Sampler};

/// Of a variable: its name, its default, and what it says.
pub type Variable = (&'static str, &'static str, &'static str);

pub const VARIABLES: [Variable; 20] = [
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "",
        "The collector, as http://collector:4318. Nothing is exported without it",
    ),
    (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "",
        "The same for spans alone, with its path; likewise _METRICS_ENDPOINT",
    ),
    (
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "http/protobuf",
        "http/protobuf or grpc (without it, grpc if the port is 4317); likewise _TRACES_PROTOCOL, _METRICS_PROTOCOL",
    ),
    (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "",
        "Sent with every export, as api-key=abc,tenant=one; likewise _TRACES_HEADERS, _METRICS_HEADERS",
    ),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "10000", "How long one export may take, in milliseconds"),
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "", "A file with who vouches for the collector, in PEM"),
    ("OTEL_EXPORTER_OTLP_INSECURE", "false", "Whether an endpoint without a scheme is spoken to without TLS"),
    (
        "OTEL_EXPORTER_OTLP_COMPRESSION",
        "none",
        "Read, and not followed: exports are small and sent as they are",
    ),
    ("OTEL_SERVICE_NAME", "ostler", "What this service is called"),
    (
        "OTEL_RESOURCE_ATTRIBUTES",
        "",
        "What else is told of this process, as deployment.environment.name=test,team=a",
    ),
    ("OTEL_TRACES_EXPORTER", "otlp", "otlp or none"),
    ("OTEL_METRICS_EXPORTER", "otlp", "otlp or none"),
    (
        "OTEL_TRACES_SAMPLER",
        "parentbased_always_on",
        "always_on, always_off, traceidratio, or each of them behind parentbased_",
    ),
    ("OTEL_TRACES_SAMPLER_ARG", "1.0", "The ratio of traceidratio"),
    (
        "OTEL_BSP_SCHEDULE_DELAY",
        "5000",
        "Spans are sent after so many milliseconds, or earlier if there are many",
    ),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "2048", "Spans that wait to be sent; further ones are dropped and counted"),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512", "Spans of one export"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "60000", "Figures are sent every so many milliseconds"),
    (
        "OTEL_SEMCONV_STABILITY_OPT_IN",
        "",
        "A list; with gen_ai_latest_experimental in it, tokens are also counted under the names that replace \
         gen_ai.client.token.usage: by kind, by cache and by phase",
    ),
    (
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        "false",
        "true puts into spans what models and tools were told and what they said; secrets are hidden. \
         OTEL_SDK_DISABLED=true turns everything off",
    ),
];

/// What asks for the names that the conventions for generative AI have lately.
const LATEST: &str = "gen_ai_latest_experimental";

#[derive(Debug, Clone)]
pub struct Config {
    pub traces: Option<Target>,
    pub metrics: Option<Target>,
    pub resource: Resource,
    pub sampler: Sampler,
    /// Whether spans hold what was said.
    pub content: bool,
    /// Whether tokens are told under the conventions' latest names too.
    pub latest: bool,
    pub queue: usize,
    pub batch: usize,
    pub delay: Duration,
    pub interval: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value:?}: {expected}")]
pub struct ConfigError {
    pub variable: String,
    pub value: String,
    pub expected: &'static str,
}

impl Config {
    /// What `lookup` says, variable by variable. An empty one is none.
    pub fn read(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let lookup = |name: &str| lookup(name).filter(|text| !text.trim().is_empty());
        let variables = Variables(&lookup);
        let is_off = variables.flag("OTEL_SDK_DISABLED")?;
        let target = |signal| if is_off { Ok(None) } else { Target::read(&variables, signal) };
        Ok(Self {
            traces: target(target::TRACES)?,
            metrics: target(target::METRICS)?,
            resource: resource(&variables)?,
            sampler: Sampler::read(&variables)?,
            content: variables.flag("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")?,
            latest: variables.list("OTEL_SEMCONV_STABILITY_OPT_IN").any(|name| name == LATEST),
            queue: variables.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)?,
            batch: variables.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?,
            delay: variables.millis("OTEL_BSP_SCHEDULE_DELAY", 5000)?,
            interval: variables.millis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?,
        })
    }

    /// Tells this process from others of its service, unless it is told apart already.
    pub fn identify(&mut self, random: u64) {
        let key = "service.instance.id";
        if !self.resource.iter().any(|(known, _)| known == key) {
            self.resource.push((key.to_owned(), format!("{random:016x}")));
        }
    }

    /// What must not be shown: headers hold keys.
    pub fn hidden(&self) -> impl Iterator<Item = &str> {
        let targets = self.traces.iter().chain(&self.metrics);
        targets.flat_map(|target| &target.headers).filter_map(|(_, value)| value.to_str().ok())
    }
}

/// The variables, read into what they mean.
pub(crate) struct Variables<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|text| text.trim().to_owned())
    }

    /// Names with commas between them.
    pub fn list(&self, name: &str) -> impl Iterator<Item = String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>().into_iter()
    }

    pub fn flag(&self, name: &str) -> Result<bool, ConfigError> {
        match self.text(name).map(|text| text.to_ascii_lowercase()).as_deref() {
            None | Some("false" | "0" | "no_content") => Ok(false),
            Some("true" | "1" | "span_only" | "span_and_event") => Ok(true),
            Some(other) => Err(bad(name, other, "expected true or false")),
        }
    }

    pub fn number(&self, name: &str, usual: usize) -> Result<usize, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(usual) };
        let number = text.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| bad(name, &text, "expected a number from 1 on"))
    }

    pub fn millis(&self, name: &str, usual: usize) -> Result<Duration, ConfigError> {
        self.number(name, usual).map(|millis| Duration::from_millis(millis as u64))
    }

    /// `key=value,...`, values as in an address.
    pub fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(text) = self.text(name) else { return Ok(Vec::new()) };
        let pair = |part: &str| {
            let (key, value) = part.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((key.trim().to_owned(), value.into_owned())).filter(|(key, _)| !key.is_empty())
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let pairs: Option<Vec<_>> = parts.map(pair).collect();
        // What stands there may be a key: it is not repeated.
        pairs.ok_or_else(|| bad(name, "...", "expected KEY=VALUE, with commas between them"))
    }

    pub fn headers(&self, name: &str) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        let header = |(key, value): (String, String)| {
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(key.to_ascii_lowercase().as_bytes()).ok()?, value))
        };
        let headers: Option<Vec<_>> = self.pairs(name)?.into_iter().map(header).collect();
        headers.ok_or_else(|| bad(name, "...", "a name or a value can't stand in a header"))
    }
}

pub(crate) fn bad(variable: &str, value: &str, expected: &'static str) -> ConfigError {
    ConfigError { variable: variable.to_owned(), value: value.to_owned(), expected }
}

fn resource(variables: &Variables<'_>) -> Result<Resource, ConfigError> {
    let mut resource = variables.pairs("OTEL_RESOURCE_ATTRIBUTES")?;
    let mut put = |key: &str, value: String| {
        resource.retain(|(known, _)| known != key);
        resource.push((key.to_owned(), value));
    };
    if let Some(name) = variables.text("OTEL_SERVICE_NAME") {
        put("service.name", name);
    }
    put("service.version", env!("CARGO_PKG_VERSION").to_owned());
    put("telemetry.sdk.name", "ostler".to_owned());
    put("telemetry.sdk.language", "rust".to_owned());
    put("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned());
    if !resource.iter().any(|(key, _)| key == "service.name") {
        resource.push(("service.name".to_owned(), "ostler".to_owned()));
    }
    Ok(resource)
}

#[cfg(test)]
mod tests;
