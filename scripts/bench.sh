#!/usr/bin/env bash
# Builds the release profile and measures. Arguments go to the bench program. LiteLLM, which the gateway is measured
# beside, is installed from PyPI into an environment of its own; where that fails it is left out, and the bench says so.
set -euo pipefail
# shellcheck disable=SC2034 # read by env.sh
needs="databases python"
. "$(dirname "$0")/env.sh"

install_litellm() {
  local wanted=bench/litellm/requirements.txt place="$target/litellm"
  ! cmp -s "$wanted" "$place/requirements.txt" || return 0
  say "installing LiteLLM into $place"
  rm -rf "$place"
  python3 -m venv "$place" &&
    "$place/bin/python" -m pip install -q --disable-pip-version-check -r "$wanted" >&2 &&
    cp "$wanted" "$place/requirements.txt" && return 0
  rm -rf "$place"
  say "LiteLLM can't be installed: the gateway is measured without it"
}
install_litellm

cargo build --release -p ostler-cli -p ostler-bench --bins
exec "$target/release/bench" "$@"
