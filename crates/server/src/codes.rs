//! Every code that a problem document may have, with its status, for the reference.

use http::StatusCode;
use ostler_kernel::error_code::ErrorCode;

/// A code as the API sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiCode {
    pub status: StatusCode,
    pub code: ErrorCode,
}

const fn api(status: StatusCode, code: &'static str, cause: &'static str, remedy: &'static str) -> ApiCode {
    ApiCode { status, code: ErrorCode::new(code, cause, remedy) }
}

/// Sorted by status.
pub const CODES: &[ApiCode] = &[
    api(
        StatusCode::BAD_REQUEST,
        "bad_body",
        "The body could not be received.",
        "Send it again; look for a proxy that cuts bodies.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "bad_json",
        "The body is not JSON; the detail says where.",
        "Correct the body.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "bad_parameter",
        "A parameter of the query, or a header, is unknown, given twice, or has a value that can't be used.",
        "The detail names it, and what is expected.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "bad_reference",
        "What is asked for names something that is not there, or that can't be named from here.",
        "Apply what is missing first, or correct the name.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "bad_utf8",
        "The address, a header or the body is not UTF-8.",
        "Send UTF-8.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "invalid_body",
        "A field of a body that is no manifest is missing, unknown, or has a value that can't be used.",
        "The detail names it, and what is expected.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "invalid_manifest",
        "The manifest has mistakes. `problems` lists all of them, with path, line, column and what may have been meant.",
        "Correct them; `ostler apply` tells them with the name of the file.",
    ),
    api(
        StatusCode::BAD_REQUEST,
        "too_deep",
        "The JSON is nested deeper than is read.",
        "Send a flatter document.",
    ),
    api(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "The request shows no token and no sign-in, or one that is not valid here, or no longer.",
        "Send `Authorization: Bearer <token>`; the server's own token is in the file `token` of its data folder. Or sign in again.",
    ),
    api(
        StatusCode::FORBIDDEN,
        "bad_host",
        "The request's Host is not one of this server's names.",
        "Use the address that the server printed, or localhost.",
    ),
    api(
        StatusCode::FORBIDDEN,
        "bad_origin",
        "The request comes from a page of another site.",
        "Call the API from a program, or from a page that this server serves; `--allow-origin` lets in the pages of another site.",
    ),
    api(
        StatusCode::FORBIDDEN,
        "forbidden",
        "Who asks is known, and may not do this: the role is too low, or the namespace is not one it is let into.",
        "The detail says which. Use a token that may, or ask whoever makes them for one.",
    ),
    api(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is no such object in this namespace.",
        "Check name and namespace: `ostler get KIND -A` lists all of them.",
    ),
    api(StatusCode::NOT_FOUND, "unknown_route", "There is no such route.", "Check the address."),
    api(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "The route is there, with other methods.",
        "The header Allow lists them.",
    ),
    api(
        StatusCode::REQUEST_TIMEOUT,
        "body_too_slow",
        "The body came too slowly.",
        "Send it again, over a better connection.",
    ),
    api(
        StatusCode::CONFLICT,
        "backup_elsewhere",
        "The server's store is in PostgreSQL, which it doesn't back up.",
        "Use `pg_dump`.",
    ),
    api(
        StatusCode::CONFLICT,
        "conflict",
        "The name is taken, the version is not the current one, or the idempotency key stands for another request.",
        "Read the object again and send the change anew; for a task, choose another name or key.",
    ),
    api(
        StatusCode::CONFLICT,
        "contended",
        "Others kept changing the same thing at the same time.",
        "Send it again.",
    ),
    api(
        StatusCode::CONFLICT,
        "immutable",
        "A task was accepted as it is, and never changes.",
        "Cancel it if it is not wanted, and retry it: that makes a new task.",
    ),
    api(
        StatusCode::CONFLICT,
        "secret_key_in_use",
        "The keys to turn to lack one that secrets are still sealed with, or that seals now; the keys in use stay.",
        "Leave the old keys below the new one until `GET /v1/secret-keys` says that none is left, and rotate again. Values \
         whose key is lost have to be set again or deleted.",
    ),
    api(
        StatusCode::CONFLICT,
        "secret_key_unusable",
        "The file of secret keys can't be read, or holds something that is no key; the keys in use stay.",
        "Correct the file, a key to a line, and rotate again.",
    ),
    api(
        StatusCode::CONFLICT,
        "task_ended",
        "The task has ended, and what has ended stays so.",
        "To do it again, retry it: that makes a new task.",
    ),
    api(
        StatusCode::CONFLICT,
        "task_not_ended",
        "The task has to end first.",
        "Wait for it to end, or cancel it.",
    ),
    api(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        "The body is larger than is read.",
        "Send less at once.",
    ),
    api(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "The body's Content-Type is not read here.",
        "Send `application/json`, or `application/yaml` where manifests are read.",
    ),
    api(
        StatusCode::UNPROCESSABLE_ENTITY,
        "not_available",
        "Something that was declared, and kept, is asked for, and this version can't do it.",
        "Leave that part out; the reference of kinds says for each what is not available.",
    ),
    api(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_requests",
        "More requests, streams or sign-ins than may be at once, or in so short a time.",
        "Send it again after the time in Retry-After; settings bound requests and streams.",
    ),
    api(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_tasks",
        "A Quota's `tasks_per_minute` or `max_queued` is reached.",
        "Send it again after the time in Retry-After, or raise the Quota.",
    ),
    api(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_watches",
        "As many watches are open as a server keeps, or as one account may have of them.",
        "Close one that nobody reads, or watch on another server.",
    ),
    api(
        StatusCode::SERVICE_UNAVAILABLE,
        "secret_key_wrong",
        "The keys of this server are not those that the store's secrets are sealed with.",
        "Give it the keys of the servers that share its store, with `--secret-key-file`, and restart it.",
    ),
    api(
        StatusCode::SERVICE_UNAVAILABLE,
        "store_unavailable",
        "The store can't serve this now.",
        "Send it again, to this server or another; the server's log says what is wrong.",
    ),
    api(
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        "The server can't do this just now; the detail says why.",
        "Send it again.",
    ),
    api(
        StatusCode::GATEWAY_TIMEOUT,
        "too_late",
        "There was no answer in time. What was asked for may yet be done.",
        "Look whether it was done before you send it again; with an idempotency key a task stays one task.",
    ),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;
    use ostler_control::{ControlError, store::StoreError};

    use super::*;
    use crate::problem::Problem;

    #[test]
    fn what_control_refuses_is_listed_with_the_status_it_gets() {
        let (name, kind) = (String::new(), "task");
        let errors = [
            ControlError::NotFound { kind, name: name.clone() },
            ControlError::Invalid(Vec::new()),
            ControlError::BadReference(name.clone()),
            ControlError::NotAvailable(name.clone()),
            ControlError::Conflict(name.clone()),
            ControlError::Ended { name: name.clone(), state: "failed" },
            ControlError::NotEnded { name: name.clone(), state: "running" },
            ControlError::Store(StoreError::Unavailable(String::new())),
            ControlError::TooMany { message: name, retry_after: Duration::ZERO },
            ControlError::Contended,
        ];
        for error in errors {
            let code = error.code();
            let status = Problem::from(error).into_response().status();
            let listed = CODES.iter().find(|listed| listed.code.code == code);
            assert_eq!(listed.map(|listed| listed.status), Some(status), "{code}");
        }
    }

    #[test]
    fn the_list_is_sorted_and_each_stands_once() {
        let order: Vec<_> = CODES.iter().map(|listed| (listed.status.as_u16(), listed.code.code)).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:#?}");
    }
}
