//! The API as a typed Rust client.
