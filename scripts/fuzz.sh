#!/usr/bin/env bash
# Gives the manifest reader anything for MINUTES=30, beginning with every manifest of the repository, and ends with one
# line of figures. What it learns stays in the build folder and is where the next run begins; an input that breaks
# something is kept, named, and makes the run fail.
set -euo pipefail
. "$(dirname "$0")/env.sh"

minutes="${MINUTES:-30}"
corpus="$target/fuzz/corpus/manifest"
seeds="$target/fuzz/seeds/manifest"
broken="$target/fuzz/artifacts/manifest"
log="$target/fuzz/manifest.log"

if ! cargo fuzz --version >/dev/null 2>&1; then
  say "installing cargo-fuzz with cargo"
  cargo install --quiet --locked cargo-fuzz
fi

# Coverage and sanitizers are for nightly compilers only. Where there is none, the stable one is told to let them pass.
toolchain=()
if rustup run nightly rustc --version >/dev/null 2>&1; then
  toolchain=(+nightly)
else
  say "no nightly toolchain: using the stable one with RUSTC_BOOTSTRAP=1"
  export RUSTC_BOOTSTRAP=1
fi

rm -rf "$seeds"
mkdir -p "$corpus" "$seeds" "$broken"
find examples crates/spec/tests/full crates/spec/tests/broken -type f \( -name '*.yaml' -o -name '*.json' \) -print0 |
  while IFS= read -r -d '' file; do cp "$file" "$seeds/${file//\//_}"; done
n_seeds=$(find "$seeds" -type f | wc -l)

# The limit for one input counts time on the wall: a busy machine must not look like a slow reader.
status=0
CARGO_TARGET_DIR="$target/fuzz" cargo "${toolchain[@]}" fuzz run manifest "$corpus" "$seeds" -- \
  -max_total_time=$((minutes * 60)) -timeout=60 -max_len=8192 -dict=fuzz/manifest.dict -print_final_stats=1 \
  -artifact_prefix="$broken/" 2>&1 | tee "$log" | grep --line-buffered -E '^#[0-9]+.(INITED|RELOAD|pulse)|ERROR|panicked|stat::' || status=$?
! grep -qE 'ERROR: libFuzzer|panicked at|SUMMARY:' "$log" || status=1

figure() { sed -nE "s/^stat::$1: +([0-9]+)$/\1/p" "$log" | tail -n1; }
coverage=$(grep -oE 'cov: [0-9]+' "$log" | tail -n1 | cut -d' ' -f2)
verdict="nothing broke"
if ((status != 0)); then
  tail -n 40 "$log" >&2
  verdict="BROKE: see $broken and $log"
fi
echo "fuzz: $(figure number_of_executed_units) manifests in $minutes min from $n_seeds seeds, $(find "$corpus" -type f | wc -l) kept," \
  "coverage ${coverage:-0}, slowest $(figure slowest_unit_time_sec) s, $(figure peak_rss_mb) MB; $verdict"
exit "$status"
