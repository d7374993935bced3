#!/usr/bin/env bash
# What every store promises, tried on each of them; ends with one line of figures.
set -euo pipefail
needs=databases
. "$(dirname "$0")/env.sh"

started=$SECONDS
output=$(mktemp)
trap 'rm -f "$output"' EXIT
cargo test --workspace --test store_conformance --test shared_store --test class_limit \
  --test planted_store_bugs 2>&1 | tee "$output"
cases() { grep -cE "^test $1.* ok\$" "$output"; }
bugs() { grep -cE "^test [A-Z][A-Za-z]+ \.\.\. $1" "$output"; }
say "store-conformance: $(cases reference::) cases on the reference, $(cases sqlite) on SQLite (with its thread and without)," \
  "$(cases postgres::) on PostgreSQL, $(cases '[a-z_]+ ') of several servers, kills and histories," \
  "$(bugs ok) of $(bugs '') planted bugs found, $((SECONDS - started)) s"
