//! What a caller is told when something is refused: a problem document (RFC 9457) with a stable code, a
//! sentence that helps, and where there is one a way out.

use std::{borrow::Cow, time::Duration};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use ostler_control::{ControlError, secrets::Redactor, store::StoreError};
use ostler_spec::Location;
use serde::Serialize;

use crate::telemetry;

#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    /// Stable; listed in the reference of error codes.
    code: &'static str,
    detail: String,
    problems: Vec<FieldProblem>,
    remedy: Option<Cow<'static, str>>,
    /// When it may be worth another try.
    retry_after: Option<Duration>,
}

/// One mistake in a manifest.
#[derive(Debug, Clone, Serialize)]
pub struct FieldProblem {
    /// Which of several objects it is about, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    path: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), problems: Vec::new(), remedy: None, retry_after: None }
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    #[must_use]
    pub fn remedy(self, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// It is worth another try so much later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    pub fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).remedy(
            "send `Authorization: Bearer <token>`; the server's own token is in the file `token` of its data folder",
        )
    }

    /// More than may be at once or in so short a time.
    pub fn too_many(detail: &str, delay: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail)
            .remedy("send it again after the time in Retry-After")
            .after(delay)
    }

    /// A mistake in a body that is no manifest.
    pub fn invalid_body(field: &str, message: impl Into<String>) -> Self {
        let (path, message) = (field.to_owned(), message.into());
        let detail = if field.is_empty() { message.clone() } else { format!("{field}: {message}") };
        let problem = FieldProblem { item: None, path, message, suggestion: None, line: None, column: None };
        Self { problems: vec![problem], ..Self::new(StatusCode::BAD_REQUEST, "invalid_body", detail) }
    }

    /// It passes.
    fn unavailable(self) -> Self {
        let problem = self.remedy("try again; the server's log says what is wrong");
        Self { retry_after: Some(Duration::from_secs(1)), ..problem }
    }

    pub fn bad_parameter(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_parameter", detail)
    }

    pub fn bad_utf8(what: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_utf8", format!("{what} is not valid UTF-8"))
    }

    pub fn not_found(kind: &'static str, name: &str) -> Self {
        ControlError::NotFound { kind, name: name.to_owned() }.into()
    }

    pub fn invalid_manifest(problems: &[ostler_spec::Problem]) -> Self {
        let detail = match problems {
            [] => "the manifest can't be read".to_owned(),
            [problem] => problem.to_string(),
            [first, ..] => format!("the manifest has {} problems; the first: {first}", problems.len()),
        };
        let problems = problems.iter().map(FieldProblem::from).collect();
        Self { problems, ..Self::new(StatusCode::BAD_REQUEST, "invalid_manifest", detail) }
    }

    /// Without any secret that this server knows: a detail may quote what was sent.
    pub fn hide(&mut self, redactor: &Redactor) {
        redactor.clean(&mut self.detail);
        for problem in &mut self.problems {
            redactor.clean(&mut problem.path);
            redactor.clean(&mut problem.message);
        }
    }

    /// What is wrong with objects that came together.
    pub fn invalid_manifests(problems: Vec<FieldProblem>) -> Self {
        let first = problems.first().map_or("", |first| first.message.as_str());
        let detail = match problems.len() {
            1 => first.to_owned(),
            count => format!("the manifests have {count} problems; the first: {first}"),
        };
        Self { problems, ..Self::new(StatusCode::BAD_REQUEST, "invalid_manifest", detail) }
    }

    /// The whole answer, as it goes out.
    pub fn render(&self, response: &mut Response, request_id: &str) {
        #[derive(Serialize)]
        struct Document<'a> {
            r#type: &'static str,
            title: &'static str,
            status: u16,
            code: &'static str,
            detail: &'a str,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            problems: &'a [FieldProblem],
            #[serde(skip_serializing_if = "Option::is_none")]
            remedy: Option<&'a str>,
            request_id: &'a str,
        }
        let document = Document {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            problems: &self.problems,
            remedy: self.remedy.as_deref(),
            request_id,
        };
        let body = Bytes::from(serde_json::to_vec(&document).unwrap_or_default());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.remove(header::CONTENT_LENGTH);
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(delay) = self.retry_after {
            // Whole seconds, and not one too few.
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        *response.body_mut() = body.into();
    }
}

/// Carries the problem to the gate, which knows the request's id and writes the document.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::default();
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

impl FieldProblem {
    pub fn of_item(item: usize, problem: &ostler_spec::Problem, place: Option<Location>) -> Self {
        let line = place.as_ref().map(|place| place.line);
        let column = place.as_ref().map(|place| place.column);
        Self { item: Some(item), path: problem.path.pointer(), line, column, ..Self::from(problem) }
    }
}

impl From<&ostler_spec::Problem> for FieldProblem {
    fn from(problem: &ostler_spec::Problem) -> Self {
        Self {
            item: None,
            path: problem.shown_path(),
            message: problem.message.clone(),
            suggestion: problem.suggestion.clone(),
            line: problem.location.as_ref().map(|location| location.line),
            column: problem.location.as_ref().map(|location| location.column),
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let status = match &error {
            ControlError::Invalid(problems) => return Self::invalid_manifest(problems),
            ControlError::Store(error) => {
                telemetry::store_failed(error);
                StatusCode::SERVICE_UNAVAILABLE
            }
            ControlError::NotFound { .. } => StatusCode::NOT_FOUND,
            ControlError::BadReference(_) => StatusCode::BAD_REQUEST,
            ControlError::NotAvailable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ControlError::WrongKeys(_) => StatusCode::SERVICE_UNAVAILABLE,
            ControlError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            ControlError::KeysInUse(_)
            | ControlError::Conflict(_)
            | ControlError::NameTaken { .. }
            | ControlError::Ended { .. }
            | ControlError::NotEnded { .. }
            | ControlError::Contended => StatusCode::CONFLICT,
        };
        let problem = Self::new(status, error.code(), error.to_string());
        match error {
            ControlError::Store(_) => problem.unavailable(),
            ControlError::TooMany { retry_after, .. } => {
                let problem =
                    problem.remedy("send it again after the time in Retry-After; a Quota sets the limit");
                Self { retry_after: Some(retry_after), ..problem }
            }
            ControlError::Ended { .. } => problem.remedy("to do it again, retry it: that makes a new task"),
            ControlError::NotEnded { .. } => problem.remedy("wait for it to end, or cancel it"),
            ControlError::WrongKeys(_) => problem.remedy(
                "give this server the keys of those that share its store, with --secret-key-file, and restart it",
            ),
            ControlError::KeysInUse(_) => problem.remedy(
                "put them back below the first key until everything is sealed with that; values whose key is lost \
                 have to be set again or deleted. The keys in use stay as they are",
            ),
            _ => problem,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        ControlError::from(error).into()
    }
}
