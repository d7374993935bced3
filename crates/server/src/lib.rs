//! HTTP, SSE, sign-in.
