//! Proxies: whether there is one, and for which calls. By default there is none, whatever the environment says: with a
//! proxy it is the proxy that dials, so that whoever can set a variable could have led every call past the check.

mod exempt;
mod judge;

use std::fmt;

use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::{NetError, resolver, target::Target};
use exempt::Exempt;

pub(crate) use judge::Judge;

/// Who dials in our place.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    for_http: Option<Url>,
    for_https: Option<Url>,
    exempt: Vec<Exempt>,
}

impl ProxyConfig {
    /// One proxy for all calls but those to the hosts in `exempt`.
    pub fn to(proxy: &str, exempt: &str) -> Result<Self, NetError> {
        let url = read(proxy)?;
        Ok(Self { for_http: Some(url.clone()), for_https: Some(url), exempt: Exempt::list(exempt)? })
    }

    /// What the variables of old say: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower
    /// case, which counts first. Hosts in `exempt` are spared as well.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>, exempt: &str) -> Result<Self, NetError> {
        let said = |name: &str| {
            let said = variable(&name.to_lowercase()).or_else(|| variable(name));
            said.filter(|text| !text.trim().is_empty())
        };
        let proxy = |name: &str| said(name).or_else(|| said("ALL_PROXY")).as_deref().map(read).transpose();
        let mut spared = Exempt::list(exempt)?;
        spared.extend(Exempt::list(&said("NO_PROXY").unwrap_or_default())?);
        Ok(Self { for_http: proxy("HTTP_PROXY")?, for_https: proxy("HTTPS_PROXY")?, exempt: spared })
    }

    /// What must not be shown of the proxies' addresses: who we are there, in the forms in which it may stand somewhere.
    pub fn hidden(&self) -> impl Iterator<Item = String> {
        let urls = [&self.for_http, &self.for_https].into_iter().flatten();
        urls.flat_map(credentials)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.for_http.is_none() && self.for_https.is_none()
    }

    /// Whether a call goes through a proxy. What this machine says to itself never does.
    pub(crate) fn serves(&self, target: &Target) -> bool {
        let proxy = if target.is_tls() { &self.for_https } else { &self.for_http };
        proxy.is_some() && !is_this_machine(target) && !self.exempt.iter().any(|exempt| exempt.covers(target))
    }

    /// As the HTTP library knows them.
    pub(crate) fn rules(&self) -> Result<Vec<reqwest::Proxy>, NetError> {
        let setup = |error: reqwest::Error| NetError::Setup { source: error.without_url().into() };
        let http = self.for_http.clone().map(reqwest::Proxy::http).transpose().map_err(setup)?;
        let https = self.for_https.clone().map(reqwest::Proxy::https).transpose().map_err(setup)?;
        Ok([http, https].into_iter().flatten().collect())
    }
}

/// A proxy's address may hold a password.
impl fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |url: &Option<Url>| url.as_ref().and_then(Url::host_str).map(str::to_owned);
        f.debug_struct("ProxyConfig")
            .field("for_http", &host(&self.for_http))
            .field("for_https", &host(&self.for_https))
            .field("exempt", &self.exempt)
            .finish()
    }
}

/// The password as it is and as it is written in an address, and both with the user, as a header has it. Without a password
/// the user is one.
fn credentials(url: &Url) -> Vec<String> {
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    match (url.username(), url.password()) {
        ("", None) => Vec::new(),
        (user, None) => vec![plain(user), user.to_owned()],
        (user, Some(password)) => vec![
            plain(password),
            password.to_owned(),
            format!("{}:{}", plain(user), plain(password)),
            format!("{user}:{password}"),
        ],
    }
}

/// `HOST:PORT`, or that with `http://` or `https://` before it, and perhaps `USER:PASSWORD@`.
fn read(text: &str) -> Result<Url, NetError> {
    let bad = |reason: &str| NetError::BadSetting { reason: format!("the proxy can't be used: {reason}") };
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("expected http://HOST:PORT or https://HOST:PORT"));
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() {
        return Err(bad("it has no host"));
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
    if let Ok(address) = literal {
        resolver::check(address, true).map_err(|refused| bad(&refused.to_string()))?;
    }
    Ok(url)
}

fn is_this_machine(target: &Target) -> bool {
    let host = target.host().trim_end_matches('.');
    let is_loopback = target.literal().is_some_and(|address| address.to_canonical().is_loopback());
    is_loopback || host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serves(config: &ProxyConfig, url: &str) -> bool {
        config.serves(&Target::parse(url).unwrap())
    }

    #[test]
    fn without_a_word_there_is_none() {
        assert!(ProxyConfig::default().is_none());
        assert!(!serves(&ProxyConfig::default(), "http://example.com/"));
    }

    #[test]
    fn a_named_one_serves_all_but_the_exempt_and_this_machine() {
        let config = ProxyConfig::to("proxy.example:3128", "intern.example, 10.0.0.0/8").unwrap();
        assert!(serves(&config, "http://example.com/") && serves(&config, "https://example.com/"));
        for url in [
            "http://a.intern.example/",
            "https://10.1.2.3/",
            "http://127.0.0.9/",
            "http://localhost:1/",
            "http://a.localhost./",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(!serves(&config, url), "{url}");
        }
    }

    #[test]
    fn variables_count_by_scheme_and_lower_case_first() {
        let variables = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://upper:1".to_owned()),
            "https_proxy" => Some("http://user:geheim@lower:2".to_owned()),
            "NO_PROXY" => Some("spared.example".to_owned()),
            "HTTP_PROXY" => Some("  ".to_owned()),
            _ => None,
        };
        let config = ProxyConfig::from_variables(variables, "other.example").unwrap();
        assert!(serves(&config, "https://example.com/") && !serves(&config, "http://example.com/"));
        assert!(!serves(&config, "https://spared.example/") && !serves(&config, "https://x.other.example/"));
        let shown = format!("{config:?}");
        assert!(shown.contains("lower") && !shown.contains("geheim"), "{shown}");
        let all = |name: &str| (name == "ALL_PROXY").then(|| "http://all:3".to_owned());
        assert!(serves(&ProxyConfig::from_variables(all, "").unwrap(), "http://example.com/"));
    }

    #[test]
    fn who_we_are_there_is_told_to_who_hides_it() {
        let hidden = |text: &str| ProxyConfig::to(text, "").unwrap().hidden().collect::<Vec<_>>();
        assert!(hidden("http://h:1").is_empty());
        assert!(hidden("me:pass%2Fword@h:1").contains(&"pass/word".to_owned()));
        assert!(hidden("http://me:pass%2Fword@h:1").contains(&"me:pass/word".to_owned()));
        assert!(hidden("http://token-alone@h:1").contains(&"token-alone".to_owned()));
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_its_password() {
        for text in ["socks5://u:geheim@h:1", "http://", "http://u:geheim@169.254.169.254:80", "http://h:x"] {
            let error = ProxyConfig::to(text, "").unwrap_err().to_string();
            assert!(!error.contains("geheim"), "{error}");
        }
        assert!(ProxyConfig::to("http://10.0.0.1:3128", "10.0.0.0/99").is_err());
    }
}
