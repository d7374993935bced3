//! The parameters and headers that routes share, each with what it means.

use super::table::{Parameter, Value};

macro_rules! parameters {
    ($($name:ident = $text:literal: $value:ident, $about:literal;)*) => {
        $(pub const $name: &Parameter = &Parameter { name: $text, about: $about, value: Value::$value };)*
    };
}

parameters! {
    NAMESPACE = "namespace": Text, "The namespace; by default `default`.";
    SCOPE = "namespace": Text, "The namespace, or `*` for all of them; by default `default`.";
    EVENT_SCOPE = "namespace": Text, "The namespace; without one, all that the caller is let into.";
    MAX_RESULTS = "max_results": Limit, "The same as `limit`.";
    LIMIT = "limit": Limit, "How many at most; by default 100.";
    AFTER = "after": Text, "The `continue` of the page before, or the name of its last item in a list of one namespace.";
    LABEL_SELECTOR = "labelSelector": Text, "Only those with these labels: `k=v`, `k!=v`, `k`, `!k`, separated by commas.";
    LABELS = "labels": Text, "The same as `labelSelector`.";
    DRY_RUN = "dry_run": Flag, "Everything is checked and nothing is written.";
    DRY_RUN_CAMEL = "dryRun": Flag, "The same as `dry_run`.";
    NAME = "name": Text, "Only the one with this name.";
    RESOURCE_VERSION = "resourceVersion": Place, "Of those that are there at first, only what is newer than this version.";
    STATE = "state": Text, "Only tasks in one of these states, separated by commas.";
    PHASE = "phase": Text, "Only those in one of these phases, separated by commas, in any case.";
    LIFECYCLE = "lifecycle": Text, "The same as `phase`.";
    BEFORE = "before": Text, "The same as `after`.";
    ARCHIVED = "archived": Flag, "Archived tasks too.";
    SYSTEM = "system": Text, "Only tasks of this system.";
    AGENT = "agent": Text, "Only tasks of this agent.";
    MODE = "mode": Text, "`template` for templates instead of tasks.";
    WATCH_MODE = "mode": Text, "`template` for templates instead of tasks; by default tasks, or with a `name` whatever has it.";
    SESSION_MODE = "mode": Text, "`live` lists the conversations that somebody began; by default `declared`, what was declared.";
    OFFSET = "offset": Place, "How many are passed over, 10,000 at most; a cursor (`after`) leads further and costs less.";
    SORT = "sort": Text, "`name`, `created_at` or `phase`; other than the newest first only as long as there are 10,000 at most.";
    ORDER = "order": Text, "`asc` or `desc`; by default the newest first, or else `asc`.";
    RERUN = "rerun": Flag, "Asks again for the ended task, or the template, that the body names: as the body says, if it names an agent or a system, or else as before. Where nothing has the name yet, the task is made under it.";
    SEQUENCE = "after": Place, "Only events behind this one.";
    FROM_AGENT = "from_agent": Text, "Only messages of this sender.";
    TO_AGENT = "to_agent": Text, "Only messages to this agent.";
    BRANCH_ID = "branch_id": Text, "Only messages of this branch.";
    TRACE_ID = "trace_id": Text, "Only messages of this trace.";
    SINCE = "since": Place, "Only events behind this one; without it, only what comes.";
    SOURCE = "source": Text, "Only events of this source.";
    TYPE = "type": Text, "Only events of this type.";
    KIND = "kind": Text, "Only events about this kind.";
    QUERY = "q": Text, "What to search for.";
    RUNS = "runs": Text, "Names, separated by commas.";
    PREFIX = "prefix": Text, "Only keys that begin like this.";
    IF_MATCH = "If-Match": Text, "The version that a change is made to, or `*`.";
    LAST_EVENT_ID = "Last-Event-ID": Text, "Goes on behind the event with this id.";
    USER_AGENT = "User-Agent": Text, "`orloj-js-sdk/<version>` and `orloj-sdk-python/<version>` are answered as those SDKs read it: a list as a bare array; for the former an event of a stream under the name `resource`, for the latter a line of a log as an object.";
    IDEMPOTENCY_KEY = "Idempotency-Key": Text, "The same key again is the same task.";
}
