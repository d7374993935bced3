//! How many connections fit: each is an open file, and the store needs some too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the store, its readers and the rest of the process may need.
const KEPT_FREE: u64 = 128;

const MOST: u64 = 16_384;

/// Raises the limit of open files as far as it may be, and says how many of them may be connections.
pub fn connections() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(u64::MAX).min(MOST + KEPT_FREE);
    let raised = current.is_some_and(|current| current < wanted)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    let limit = if raised { wanted } else { current.unwrap_or(wanted) };
    usize::try_from(limit.saturating_sub(KEPT_FREE).clamp(KEPT_FREE, MOST)).unwrap_or(usize::MAX)
}
