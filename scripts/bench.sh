#!/usr/bin/env bash
# Builds the release profile and measures. Arguments go to the bench program.
set -euo pipefail
needs=databases
. "$(dirname "$0")/env.sh"

cargo build --release -p ostler-cli -p ostler-bench --bins
exec "$target/release/bench" "$@"
