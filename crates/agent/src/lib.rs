//! Runs one agent.
//!
//! [`RunnerPort`] is what every kind of agent is written against; [`react`] is our own loop on it. A runner's
//! state is a function of its journal: what was journaled is never done again, and nothing is asked of the
//! code between two steps.

mod codes;
pub mod context;
pub mod hook;
pub mod port;
pub mod react;

pub use codes::CODES;
pub use hook::Hook;
pub use port::{Departure, RunStart, Runner, RunnerPort, Stopped};
pub use react::React;

/// The ports that a runner is given, for whoever equips it.
pub use ostler_llm as llm;
pub use ostler_tools as tools;
