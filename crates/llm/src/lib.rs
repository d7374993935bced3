//! Model gateways, one file per vendor: streaming, usage.
