//! The tool contract and every way to call a tool.
