#!/usr/bin/env bash
# Every check that needs no test: all of them run, then those that failed are named.
set -uo pipefail
. "$(dirname "$0")/env.sh"
. scripts/parts.sh

check_scripts() {
  if ! command -v shellcheck >/dev/null; then
    say "no shellcheck here: the scripts go unchecked"
    return
  fi
  shellcheck scripts/*.sh deploy/*.sh .ci/run
}

part "format" cargo fmt --all --check
part "clippy" cargo clippy --workspace --all-targets -- -D warnings
part "xtask" cargo build --workspace --bin xtask
for check in arrows dupes leaks; do
  part "$check" "$target/debug/xtask" "$check"
done
part "reference" "$target/debug/xtask" reference --check
part "scripts" check_scripts
part "units" deploy/units.sh
summary lint
