#!/usr/bin/env bash
# Builds the testing ground and plays one of its programs: ground.sh sim --seeds 100
set -euo pipefail
[[ $* != *--postgres* ]] || needs=databases
[[ $1 != chaos ]] || needs="databases clocks"
[[ $1 != ssrf ]] || needs=networks
. "$(dirname "$0")/env.sh"

program=$1
shift
[[ -e testing/src/bin/$program.rs || -d testing/src/bin/$program ]] || fail "the testing ground has no $program"
cargo build --workspace --bins
if [[ $program == crash || $program == chaos ]]; then
  # What an earlier run that failed left to look at.
  rm -rf "${target:?}/$program"
  set -- --data "$target/$program" "$@"
fi
exec "$target/debug/$program" "$@"
