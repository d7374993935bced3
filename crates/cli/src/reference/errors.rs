//! The page of error codes, from the registries of the server and of what a worker runs.

use super::markdown::{Table, code};

const INTRODUCTION: &str = "\
# Error codes

What goes wrong has a stable code: programs decide by it, never by the words beside it.

## Of the API

A request that is refused is answered with `application/problem+json`: `status`, `code`, `detail`, mostly a `remedy`, and
the `request_id` that the server's log knows it by. 429 and 503 come with `Retry-After`, except where waiting alone mends
nothing (`secret_key_wrong`). `ostler` prints the same words.
";

const FAILURES: &str = "
## Of tasks and steps

A step that fails, and a task that ends so, has a code in its log, in `ostler describe task NAME`, and in `status`. Beside it
stands a class, which decides what follows: `transient` is tried again as the task's `retry` allows, and ends as a dead letter;
`permanent`, `limit` and `timeout` end the task as failed; `outcome_unknown` is told to the model; `cancelled` ends it. What a tool
failed of is told to the model first, which may go on without it.
";

pub fn page() -> String {
    let mut api = Table::new(["Status", "Code", "Cause", "Remedy"]);
    for listed in ostler_server::CODES {
        let told = listed.code;
        api.row([
            listed.status.as_u16().to_string(),
            code(told.code),
            told.cause.to_owned(),
            told.remedy.to_owned(),
        ]);
    }
    let mut failures = Table::new(["Code", "Cause", "Remedy"]);
    for told in ostler_worker::codes() {
        failures.row([code(told.code), told.cause.to_owned(), told.remedy.to_owned()]);
    }
    format!("{INTRODUCTION}\n{}{FAILURES}\n{}", api.text(), failures.text())
}
