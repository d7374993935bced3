//! The client: an address, a token, a namespace, and the connections they share.

use std::fmt;

use reqwest::{Method, RequestBuilder, Response, Url, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{ClientError, transport};

/// Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client {
    base: Url,
    token: String,
    namespace: String,
    http: reqwest::Client,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub status: String,
}

impl Client {
    /// Connects to nothing yet. Objects are looked for in the namespace `default`. Over https, whoever this machine
    /// believes vouches for the server.
    pub fn new(base_url: &str, token: impl Into<String>) -> Result<Self, ClientError> {
        Self::trusting(base_url, token, None)
    }

    /// The same, where certificates of one's own vouch for the server, in PEM.
    pub fn trusting(
        base_url: &str,
        token: impl Into<String>,
        certificates: Option<&[u8]>,
    ) -> Result<Self, ClientError> {
        let base = address(base_url)?;
        let http = transport::connections(&base, certificates)?;
        let namespace = ostler_spec::DEFAULT_NAMESPACE.to_owned();
        Ok(Self { base, token: token.into(), namespace, http })
    }

    /// Whether a server may be called so; whether there is one, nobody asks.
    pub fn check_address(base_url: &str) -> Result<(), ClientError> {
        address(base_url).map(drop)
    }

    /// The same client for another namespace; `*` lists objects of all of them.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn base_url(&self) -> &str {
        self.base.as_str()
    }

    pub async fn version(&self) -> Result<Version, ClientError> {
        self.read(self.request(Method::GET, &["v1", "version"])?).await
    }

    /// Whether a server answers there; needs no valid token.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.read(self.request(Method::GET, &["healthz"])?).await
    }

    /// Whether it can serve: its store answers too.
    pub async fn ready(&self) -> Result<(), ClientError> {
        self.send(self.request(Method::GET, &["readyz"])?.timeout(transport::ANSWER_WITHIN)).await?;
        Ok(())
    }

    /// The calendar time of the server's machine, as HTTP writes it.
    pub async fn server_date(&self) -> Result<Option<String>, ClientError> {
        let request = self.request(Method::GET, &["healthz"])?.timeout(transport::ANSWER_WITHIN);
        let answer = self.send(request).await?;
        let date = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok());
        Ok(date.map(str::to_owned))
    }

    /// A request with the token, to a path of plain segments.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, ClientError> {
        self.request_with(method, path, &[])
    }

    /// The same, with parameters.
    pub(crate) fn request_with(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, ClientError> {
        let mut url = self.url(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(self.http.request(method, url).bearer_auth(&self.token))
    }

    /// The same, to an object or a collection that lives in the client's namespace.
    pub(crate) fn request_in_namespace(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, ClientError> {
        let mut url = self.url(path)?;
        url.query_pairs_mut().append_pair("namespace", &self.namespace).extend_pairs(query);
        Ok(self.http.request(method, url).bearer_auth(&self.token))
    }

    fn url(&self, path: &[&str]) -> Result<Url, ClientError> {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        // A URL drops such segments, and what is left would name something else.
        if let Some(name) = path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(ClientError::BadName { name: (*name).to_owned() });
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(url)
    }

    /// Sends it and gives the answer's head, or the problem that came in its place.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let answer = request.send().await.map_err(|error| self.failed(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let retry_after =
            answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = answer.bytes().await.map_err(|error| self.failed(error))?;
        Err(ClientError::from_answer(status, retry_after, &body))
    }

    /// Sends it and reads the whole answer, within a time that any answer of this kind should take.
    pub(crate) async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let answer = self.send(request.timeout(transport::ANSWER_WITHIN)).await?;
        let body = answer.bytes().await.map_err(|error| self.failed(error))?;
        serde_json::from_slice(&body).map_err(ClientError::BadAnswer)
    }

    pub(crate) fn failed(&self, error: reqwest::Error) -> ClientError {
        ClientError::from_transport(error, self.base.as_str())
    }
}

fn address(base_url: &str) -> Result<Url, ClientError> {
    let bad = |reason: String| ClientError::BadUrl { url: base_url.to_owned(), reason };
    let base = Url::parse(base_url).map_err(|error| bad(error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
        return Err(bad("it must begin with http:// or https:// and name a host".to_owned()));
    }
    Ok(base)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        write!(f, "Client({}, namespace {:?})", self.base, self.namespace)
    }
}
