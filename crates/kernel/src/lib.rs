//! Tasks, runs, attempts, sessions, inputs, blockers: ids, states and transitions. Pure.
