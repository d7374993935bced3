//! Claims runs, keeps leases, drives agents.
