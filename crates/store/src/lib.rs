//! The one durable place: port, SQLite, conformance suite.
