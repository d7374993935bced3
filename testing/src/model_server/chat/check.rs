//! What chat completions refuse, and what other vendors on the same wire would.

mod options;
mod tools;
mod transcript;

use http::{HeaderMap, header};

pub(in crate::model_server) use options::check_breakpoints;

use super::request::ChatRequest;
use crate::model_server::rules::{Findings, Rule, check_content_type, is_token};

/// Every rule that the body breaks.
pub(in crate::model_server) fn check(request: &ChatRequest<'_>, findings: &mut Findings) {
    options::check(request, findings);
    tools::check(request, findings);
    transcript::check(&request.messages, findings);
}

/// A model is named; Azure has it in the path.
pub(in crate::model_server) fn check_model(request: &ChatRequest<'_>, findings: &mut Findings) {
    match request.model.as_deref() {
        None => findings.add(Rule::Shape, "model", "you must provide a model parameter"),
        Some(model) => findings.require(!model.is_empty(), Rule::Range, "model", "must not be empty"),
    }
}

/// Every rule that the headers break. A server on this wire may want no token at all.
pub(in crate::model_server) fn check_headers(headers: &HeaderMap, findings: &mut Findings) {
    check_content_type(headers, findings);
    for value in headers.get_all(header::AUTHORIZATION) {
        let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
        let message = "must be `Bearer` and one token";
        findings.require(token.is_some_and(is_token), Rule::Authorization, "authorization", message);
    }
}
