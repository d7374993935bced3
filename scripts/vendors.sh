#!/usr/bin/env bash
# Runs the vendors' own SDKs (from PyPI, versions in testing/vendors/requirements.txt) against the scripted model server,
# so that the server itself is proven: each SDK must read exactly what was scripted, on every wire. Ends with one line of
# figures. CASES="gemini cut" runs only those whose vendor or name holds one of the words.
set -euo pipefail
# shellcheck disable=SC2034 # read by env.sh
needs="python"
. "$(dirname "$0")/env.sh"

python="$target/vendors/bin/python"
wanted=testing/vendors/requirements.txt
server=""
output=$(mktemp)

stop() {
  trap - EXIT
  if [[ -n $server ]] && kill -0 "$server" 2>/dev/null; then
    kill "$server"
    wait "$server" 2>/dev/null || true
  fi
  rm -f "$output"
}
trap stop EXIT

# Built already if the caller says so.
[[ -n ${BUILT:-} ]] || cargo build --workspace --bin model-server

if ! cmp -s "$wanted" "$target/vendors/requirements.txt"; then
  say "installing the vendors' SDKs into $target/vendors"
  rm -rf "$target/vendors"
  python3 -m venv "$target/vendors"
  "$python" -m pip install -q --disable-pip-version-check -r "$wanted" >&2
  cp "$wanted" "$target/vendors/requirements.txt"
fi

"$target/debug/model-server" --port 0 >"$output" &
server=$!
for ((waited = 0; ; waited++)); do
  kill -0 "$server" 2>/dev/null || fail "the model server did not start"
  url=$(head -n1 "$output")
  [[ -z $url ]] || break
  ((waited < 300)) || fail "the model server was not ready after 30 s"
  sleep 0.1
done

# Loopback only: a proxy of the machine must not get in between.
# shellcheck disable=SC2086 # words
NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 PYTHONDONTWRITEBYTECODE=1 MODEL_SERVER="${url%/v1}" \
  "$python" testing/vendors/run.py ${CASES:-}
