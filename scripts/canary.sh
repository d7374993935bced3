#!/usr/bin/env bash
# Uses a secret of each kind for real, against servers whose model and tools repeat what they are shown, and looks for it
# wherever it might have been left.
set -euo pipefail
needs="databases canaries"
. "$(dirname "$0")/env.sh"

cargo build --workspace --bins
exec python3 testing/canary/canary.py --ostler "$target/debug/ostler" --folder "$target/canary"
