//! The one outbound HTTP client: address checks, redirects, proxies, timeouts.
