//! How a call shows who makes it. The secret is asked for anew with each attempt, and stands in the request alone.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ostler_kernel::{
    ErrorClass, Failure,
    plan::{AuthForm, AuthPlan},
};
use ostler_net::{HeaderMap, HeaderValue, header};
use ostler_secrets::{Redactor, SecretText, Secrets};

use crate::{ToolRequest, taxonomy::ToolCode};

/// Headers that say how the request itself is read: a secret in one of them would break it, or worse.
const NOT_OURS: [&str; 10] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-connection",
];

/// Adds the header that the tool's plan asks for.
pub async fn show(request: &ToolRequest, secrets: &Secrets, headers: &mut HeaderMap) -> Result<(), Failure> {
    let Some(auth) = &request.tool.auth else { return Ok(()) };
    let secret = secrets.resolve(&auth.secret_ref, &request.request_id).await;
    let secret = secret.map_err(|failure| unresolved(&request.tool.name, failure))?;
    hide_parts(auth, &secret, secrets.redactor());
    let (name, text) = header_of(auth, &secret);
    let refuse = |what: &str| {
        let message = format!("tool `{}`: {what}", request.tool.name);
        ToolCode::RuntimePolicyInvalid.failure(false, message)
    };
    if NOT_OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(refuse(&format!("the header `{name}` can't carry a secret")));
    }
    let name = header::HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| refuse(&format!("`{name}` is no name of a header")))?;
    let mut value =
        HeaderValue::from_str(text.expose()).map_err(|_| refuse("its secret can't stand in a header"))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

fn header_of<'a>(auth: &'a AuthPlan, secret: &SecretText) -> (&'a str, SecretText) {
    match &auth.shown {
        AuthForm::Bearer => ("authorization", SecretText::new(format!("Bearer {}", secret.expose()))),
        AuthForm::Basic => {
            let encoded = STANDARD.encode(secret.expose());
            ("authorization", SecretText::new(format!("Basic {encoded}")))
        }
        AuthForm::Header { header } => (header, secret.clone()),
    }
}

/// A tool that is shown a user and a password may well repeat the password alone. The pair is hidden already, in base64 too.
pub fn hide_parts(auth: &AuthPlan, secret: &SecretText, redactor: &Redactor) {
    match &auth.shown {
        AuthForm::Basic => {
            if let Some((_, password)) = secret.expose().split_once(':') {
                redactor.hide(password);
            }
        }
        AuthForm::Bearer | AuthForm::Header { .. } => {}
    }
}

/// In the words of the tool contract. What may pass by itself stays so.
fn unresolved(tool: &str, failure: Failure) -> Failure {
    let message = format!("tool `{tool}`: {}", failure.message);
    ToolCode::SecretResolutionFailed.failure(failure.class == ErrorClass::Transient, message)
}
