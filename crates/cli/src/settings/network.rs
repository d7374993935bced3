//! The settings of outgoing calls: what is checked when they are gathered, and what they come to.

use std::{env, time::Duration};

use ostler_spec::GoDuration;
use ostler_worker::{NetConfig, NetError, ProxyConfig, Redactor};

use super::{Settings, table};
use crate::error::CommandError;

/// How models and tools are called. Who we are to a proxy is hidden from now on.
pub fn config(settings: &Settings, redactor: &Redactor) -> Result<NetConfig, CommandError> {
    let proxy = proxy(settings).map_err(|error| {
        CommandError::error(error.to_string())
            .with_remedy("--proxy off calls models and tools directly, whatever the environment says")
    })?;
    let mut config = NetConfig { proxy, ..NetConfig::default() };
    config.proxy.hidden().for_each(|hidden| redactor.hide_for_good(&hidden));
    config.nameservers =
        nameservers(settings.text(&table::NAMESERVERS).unwrap_or_default()).map_err(CommandError::error)?;
    if let Some(wait) = settings.text(&table::CONNECT_TIMEOUT).and_then(wait) {
        config.connect_timeout = wait;
    }
    if let Some(wait) = settings.text(&table::IDLE_TIMEOUT).and_then(wait) {
        config.idle_timeout = wait;
    }
    if let Some(count) = settings.get(&table::IDLE_PER_HOST) {
        config.idle_per_host = count;
    }
    Ok(config)
}

pub fn proxy(settings: &Settings) -> Result<ProxyConfig, NetError> {
    let exempt = settings.text(&table::NO_PROXY).unwrap_or_default();
    match settings.text(&table::PROXY).unwrap_or("off") {
        "off" => Ok(ProxyConfig::default()),
        "environment" => ProxyConfig::from_variables(|name| env::var(name).ok(), exempt),
        proxy => ProxyConfig::to(proxy, exempt),
    }
}

fn nameservers(text: &str) -> Result<Vec<std::net::SocketAddr>, String> {
    let servers = table::parts(text).map(NetConfig::nameserver);
    let servers: Vec<_> = servers.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    match servers.len() > NetConfig::MAX_NAMESERVERS {
        true => Err(format!("expected at most {} nameservers", NetConfig::MAX_NAMESERVERS)),
        false => Ok(servers),
    }
}

fn wait(text: &str) -> Option<Duration> {
    text.parse::<GoDuration>().ok().map(GoDuration::get)
}

pub fn check_proxy(text: &str) -> Result<(), String> {
    if matches!(text, "off" | "environment") {
        return Ok(());
    }
    const EXPECTED: &str = "expected off, environment, or http://HOST:PORT";
    let with_scheme = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = with_scheme.unwrap_or(text).trim_end_matches('/');
    // A word alone would be taken for a host that nobody knows.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if host.contains(['/', '?', '#']) || (with_scheme.is_none() && !has_port) {
        return Err(EXPECTED.to_owned());
    }
    ProxyConfig::to(text, "").map(drop).map_err(|error| format!("{error}; {EXPECTED}"))
}

pub fn check_no_proxy(text: &str) -> Result<(), String> {
    ProxyConfig::to("proxy.invalid:1", text).map(drop).map_err(|error| error.to_string())
}

pub fn check_nameservers(text: &str) -> Result<(), String> {
    nameservers(text).map(drop)
}

pub fn check_wait(text: &str) -> Result<(), String> {
    match text.parse::<GoDuration>().map_err(|error| error.to_string())? {
        wait if wait < GoDuration::from_secs(1) => Err("expected at least 1s".to_owned()),
        _ => Ok(()),
    }
}
