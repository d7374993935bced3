//! Runs one agent: the runner port and the ReAct loop.
