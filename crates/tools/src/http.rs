//! Tools that are an HTTP endpoint: the arguments are posted, the answer is the result.

use std::time::Duration;

use async_trait::async_trait;
use ostler_kernel::Failure;
use ostler_net::{
    Bytes, Client, HeaderMap, HeaderValue, NetError, Redirects, Request, Response, Timeouts, header,
};
use ostler_secrets::{Redactor, Secrets};
use serde_json::Value;

use crate::{
    ToolRequest, Way, auth, contract,
    registry::{CallError, Outcome},
    taxonomy::ToolCode,
};

pub struct Http {
    client: Client,
    secrets: Secrets,
}

const MAX_RESPONSE: u64 = 4 * 1024 * 1024;

/// As much of an error's body as is looked at.
const MAX_ERROR: usize = 16 * 1024;

const MAX_CONNECT: Duration = Duration::from_secs(10);

/// A tool may have moved, or say where its result lies. It is not called without its arguments: an address that would
/// have that is refused, and has to be brought up to date.
const REDIRECTS: Redirects = Redirects::Unchanged { max: 5 };

impl Http {
    pub fn new(client: Client, secrets: Secrets) -> Self {
        Self { client, secrets }
    }
}

#[async_trait]
impl Way for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    async fn call(&self, request: &ToolRequest, limit: Duration) -> Result<String, CallError> {
        let tool = &request.tool.name;
        let mut outgoing = outgoing(request, limit);
        auth::show(request, &self.secrets, &mut outgoing.headers).await.map_err(known)?;
        let response = self.client.send(outgoing).await;
        let mut response = response.map_err(|error| of_net(tool, &error))?;
        if !response.status().is_success() {
            return Err(of_status(tool, response, self.secrets.redactor()).await);
        }
        let body = response.bytes_up_to(MAX_RESPONSE).await.map_err(|error| of_net(tool, &error))?;
        match contract::read(&body, self.secrets.redactor()) {
            Some(result) => result.map_err(known),
            None => Ok(String::from_utf8_lossy(&body).trim().to_owned()),
        }
    }
}

fn outgoing(request: &ToolRequest, limit: Duration) -> Request {
    let connect = limit.min(MAX_CONNECT);
    Request {
        headers: headers(&request.request_id),
        timeouts: Timeouts { connect, first_byte: limit, idle: limit, total: limit },
        max_body: MAX_RESPONSE,
        allow_private: request.tool.allow_private,
        redirects: REDIRECTS,
        ..Request::post(request.tool.endpoint.as_str(), body(request))
    }
}

/// The request id tells the tool that a call made again is the same call.
fn headers(request_id: &str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(request_id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", request_id.clone());
        headers.insert("idempotency-key", request_id);
    }
    headers
}

/// A tool without a schema was offered to the model as one string, `input`, and gets just that string.
fn body(request: &ToolRequest) -> Bytes {
    let only_input = match &request.arguments {
        Value::Object(fields) if request.tool.input_schema.is_none() && fields.len() == 1 => {
            fields.get("input").and_then(Value::as_str)
        }
        _ => None,
    };
    match only_input {
        Some(input) => Bytes::copy_from_slice(input.as_bytes()),
        None => Bytes::from(request.arguments.to_string()),
    }
}

async fn of_status(tool: &str, mut response: Response, redactor: &Redactor) -> CallError {
    let status = response.status();
    let retry_after = response.retry_after();
    let said = redactor.excerpt(&response.beginning(MAX_ERROR).await, contract::MAX_QUOTED);
    let answered = format!("tool `{tool}` answered {}", ostler_net::status_text(status));
    let message = match said.as_str() {
        "" => answered,
        said => format!("{answered}: {said}"),
    };
    let failure = match status.as_u16() {
        401 => ToolCode::AuthInvalid.failure(false, message),
        403 => ToolCode::AuthForbidden.failure(false, message),
        408 => ToolCode::Timeout.failure(true, message),
        429 | 500..=599 => ToolCode::ExecutionFailed.failure(true, message),
        _ => ToolCode::ExecutionFailed.failure(false, message),
    };
    let failure = failure.with_retry_after(retry_after);
    // A gateway says this when it has stopped waiting for a tool that may still be at work.
    let outcome = if status.as_u16() == 504 { Outcome::Unknown } else { Outcome::Known };
    CallError { failure, outcome }
}

fn of_net(tool: &str, error: &NetError) -> CallError {
    let message = format!("tool `{tool}`: {}", error.explain());
    let code = code_of(error);
    let failure = code.failure(error.is_transient(), message);
    // An error that will stay is an answer, though not one we take; what broke off on the way is none.
    let is_unknown = error.is_transient() && error.may_have_been_sent();
    CallError { failure, outcome: if is_unknown { Outcome::Unknown } else { Outcome::Known } }
}

fn code_of(error: &NetError) -> ToolCode {
    match error {
        NetError::Timeout { .. } => ToolCode::Timeout,
        NetError::RefusedAddress { .. } | NetError::BadUrl { .. } => ToolCode::RuntimePolicyInvalid,
        NetError::Redirected { source, .. } => code_of(source),
        NetError::Dns { .. }
        | NetError::Connect { .. }
        | NetError::Tls { .. }
        | NetError::Cut { .. }
        | NetError::NotHttp { .. }
        | NetError::TooLarge { .. }
        | NetError::Redirect { .. }
        | NetError::BadSetting { .. }
        | NetError::Setup { .. } => ToolCode::ExecutionFailed,
    }
}

fn known(failure: Failure) -> CallError {
    CallError { failure, outcome: Outcome::Known }
}
