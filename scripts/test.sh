#!/usr/bin/env bash
# Every test, then the testing ground in a size that suits CI. `make sim`, `make crash`, `make power-loss` and
# `make chaos` run the same programs for longer.
set -uo pipefail
needs="databases networks clocks python canaries"
. "$(dirname "$0")/env.sh"
. scripts/parts.sh

cargo_test() {
  local output status
  output=$(mktemp)
  cargo test --workspace --no-fail-fast 2>&1 | tee "$output"
  status=${PIPESTATUS[0]}
  figures=$(awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
    END { printf "%d passed, %d failed, %d ignored", passed, failed, ignored }' "$output")
  grep -E '^test result: .* [1-9][0-9]* (passed|failed)|^test .* FAILED$' "$output" >"$results"
  rm -f "$output"
  return "$status"
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT

# Test targets are built with the programs, so that both see the same features and compile once.
part "build" cargo build --workspace --bins --tests
((n_failed == 0)) || summary test
part "tests" cargo_test
part "run once" env ONCE=1 BUILT=1 scripts/run.sh
part "vendors" with_figures env BUILT=1 scripts/vendors.sh
part "clients" with_figures env BUILT=1 scripts/clients.sh
part "simulation" with_figures "$target/debug/sim" --seeds "${SEEDS:-500}"
part "planted bugs" with_figures "$target/debug/sim" --all-bugs --seeds 500
part "power loss" with_figures "$target/debug/power-loss" --cuts "${CUTS:-60}"
part "ssrf" with_figures "$target/debug/ssrf"
rm -rf "${target:?}"/{crash,chaos,rolling}
part "crash" with_figures "$target/debug/crash" --kills "${KILLS:-12}" --data "$target/crash"
part "crash, postgres" with_figures "$target/debug/crash" --kills "${KILLS:-12}" --data "$target/crash" --postgres
part "chaos" with_figures "$target/debug/chaos" --minutes "${MINUTES:-3}" --data "$target/chaos"
part "canary" with_figures python3 testing/canary/canary.py --ostler "$target/debug/ostler" --folder "$target/canary"
part "rolling" with_figures "$target/debug/chaos" --rolling "${ROUNDS:-2}" --data "$target/rolling"

echo
cat "$results"
summary test
