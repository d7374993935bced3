//! Where a kind of telemetry goes, and how.

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};

use super::{ConfigError, Variables, bad};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub protocol: Protocol,
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub timeout: Duration,
    /// Who vouches for the collector, if not whoever this machine believes.
    pub certificate: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Grpc,
}

/// One of the two kinds that are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signal {
    name: &'static str,
    http_path: &'static str,
    grpc_path: &'static str,
}

pub(crate) const TRACES: Signal = Signal {
    name: "TRACES",
    http_path: "v1/traces",
    grpc_path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
};

pub(crate) const METRICS: Signal = Signal {
    name: "METRICS",
    http_path: "v1/metrics",
    grpc_path: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
};

const GRPC_PORT: u16 = 4317;
const HTTP_PORT: u16 = 4318;

impl Target {
    /// None where nobody is to be told.
    pub(super) fn read(variables: &Variables<'_>, signal: Signal) -> Result<Option<Self>, ConfigError> {
        let exporter = format!("OTEL_{}_EXPORTER", signal.name);
        match variables.text(&exporter).as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => return Err(bad(&exporter, other, "expected otlp or none")),
        }
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.name);
        let general = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let (name, text, is_own) = match (variables.text(&own), variables.text(general)) {
            (Some(text), _) => (own.as_str(), text, true),
            (None, Some(text)) => (general, text, false),
            (None, None) => return Ok(None),
        };
        let address = Address::read(&text, variables.flag("OTEL_EXPORTER_OTLP_INSECURE")?);
        let address =
            address.ok_or_else(|| bad(name, &text, "expected http://HOST:PORT or https://HOST:PORT"))?;
        let protocol = protocol(variables, signal, address.port)?;
        let port = address.port.unwrap_or(match protocol {
            Protocol::Http => HTTP_PORT,
            Protocol::Grpc => GRPC_PORT,
        });
        let path = match protocol {
            Protocol::Grpc => signal.grpc_path.to_owned(),
            Protocol::Http if is_own => address.path,
            Protocol::Http => format!("{}/{}", address.path.trim_end_matches('/'), signal.http_path),
        };
        Ok(Some(Self {
            protocol,
            is_tls: address.is_tls,
            host: address.host,
            port,
            path,
            headers: either(variables, signal, "HEADERS", |name| variables.headers(name))?,
            timeout: variables.millis("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?,
            certificate: variables.text("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
        }))
    }

    /// As it is shown, without what may be secret.
    pub fn shown(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

/// The variable of the signal, or else that of all.
fn either<T>(
    variables: &Variables<'_>,
    signal: Signal,
    what: &str,
    read: impl Fn(&str) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.name);
    match variables.text(&own) {
        Some(_) => read(&own),
        None => read(&format!("OTEL_EXPORTER_OTLP_{what}")),
    }
}

fn protocol(variables: &Variables<'_>, signal: Signal, port: Option<u16>) -> Result<Protocol, ConfigError> {
    let read = |name: &str| match variables.text(name).as_deref() {
        Some("grpc") => Ok(Protocol::Grpc),
        Some("http/protobuf") => Ok(Protocol::Http),
        Some(other) => Err(bad(name, other, "expected grpc or http/protobuf")),
        None if port == Some(GRPC_PORT) => Ok(Protocol::Grpc),
        None => Ok(Protocol::Http),
    };
    either(variables, signal, "PROTOCOL", read)
}

struct Address {
    is_tls: bool,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Address {
    /// `http://host:port/path`; without a scheme, as gRPC has it, `host:port`.
    fn read(text: &str, is_insecure: bool) -> Option<Self> {
        let (is_tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return None,
            None => (!is_insecure, text),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority: http::uri::Authority = authority.parse().ok()?;
        let is_plain = !authority.as_str().contains('@') && !authority.host().is_empty();
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        path.parse::<http::uri::PathAndQuery>().ok()?;
        is_plain.then(|| Self { is_tls, host, port: authority.port_u16(), path })
    }
}
