//! What people declare: every resource kind, manifests, defaults, validation. Pure.
