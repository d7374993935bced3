#!/usr/bin/env bash
# Compares SQLite and PostgreSQL with the reference store on random histories: HISTORIES=10000, or SEED=7 for that one
# alone.
set -euo pipefail
needs=databases
. "$(dirname "$0")/env.sh"

started=$SECONDS
cargo test --workspace --test store_conformance -- --nocapture equals_the_reference_on_random_histories
say "store-histories: $((SECONDS - started)) s"
