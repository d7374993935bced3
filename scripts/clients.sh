#!/usr/bin/env bash
# Runs other systems' SDKs (from PyPI, versions in testing/clients/requirements.txt) against the real server: each must read what was
# declared and done. Ends with one line of figures.
set -euo pipefail
# shellcheck disable=SC2034 # read by env.sh
needs="python"
. "$(dirname "$0")/env.sh"

ostler="$target/debug/ostler"
tools="$PWD/.tools/clients"
wanted=testing/clients/requirements.txt
data=$(mktemp -d)
server=""

stop() {
  trap - EXIT
  if [[ -n $server ]] && kill -0 "$server" 2>/dev/null; then
    kill -TERM "$server"
    wait "$server" || true
  fi
  rm -rf "$data"
}
trap stop EXIT

# Built already if the caller says so.
[[ -n ${BUILT:-} ]] || cargo build --workspace --bin ostler

if ! cmp -s "$wanted" "$tools/requirements.txt"; then
  say "installing other systems' SDKs into .tools"
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/python" -m pip install -q --disable-pip-version-check -r "$wanted" >&2
  cp "$wanted" "$tools/requirements.txt"
fi

"$ostler" --data "$data/store" up --listen 127.0.0.1:0 --quiet 2>"$data/log" &
server=$!
for ((waited = 0; ; waited++)); do
  kill -0 "$server" 2>/dev/null || fail "ostler up did not start: $(cat "$data/log")"
  grep -q "\"pid\":$server\b" "$data/store/server.json" 2>/dev/null && break
  ((waited < 300)) || fail "ostler up was not ready after 30 s"
  sleep 0.1
done
url=$(sed -nE 's/.*"url":"([^"]*)".*/\1/p' "$data/store/server.json")

# Loopback only: a proxy of the machine must not get in between.
NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 PYTHONDONTWRITEBYTECODE=1 OSTLER_SERVER="$url" OSTLER_TOKEN="$(cat "$data/store/token")" \
  "$tools/bin/python" testing/clients/orloj_sdk.py
