//! What a store remembers of claims between them, and may lose.

use std::collections::BTreeMap;

use ostler_kernel::Lease;

#[derive(Clone, Default)]
pub struct Turns {
    /// How often each namespace was served lately.
    pub served: BTreeMap<String, u64>,
    /// The last claim of each worker, as incarnation and number, whether it got something or not.
    asked: BTreeMap<String, (u64, u64)>,
}

impl Turns {
    /// Whether a later claim of its worker was made before this one.
    pub fn overtook(&mut self, lease: &Lease) -> bool {
        let this = (lease.incarnation, lease.claim);
        let last = self.asked.entry(lease.worker.clone()).or_insert(this);
        *last = this.max(*last);
        this < *last
    }
}
