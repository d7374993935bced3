//! Accepts commands, dispatches to workers, recovers.
