#!/usr/bin/env bash
# The main job from end to end: builds, starts a server, applies an example, runs it live.
# Then stays up with its data in .ostler; with ONCE=1 it uses a folder of its own and ends after the result.
set -euo pipefail
. "$(dirname "$0")/env.sh"

ostler="$target/debug/ostler"
once="${ONCE:-}"
server=""

[[ -n ${BUILT:-} ]] || cargo build --workspace --bin ostler

if [[ -n $once ]]; then
  data=$(mktemp -d)
else
  data="$PWD/.ostler"
fi

stop() {
  trap - EXIT INT TERM HUP
  if [[ -n $server ]] && kill -0 "$server" 2>/dev/null; then
    kill -TERM "$server"
    wait "$server" || true
  fi
  [[ -z $once ]] || rm -rf "$data"
}
trap stop EXIT
status_when_interrupted=130
trap 'say ""; say "stopping"; exit "$status_when_interrupted"' INT TERM HUP

# A process group of its own: Ctrl-C then reaches this script alone, which asks the server to stop once.
set -m
"$ostler" --data "$data" up --listen "127.0.0.1:${PORT:-0}" --quiet &
server=$!
set +m

# server.json of an earlier start may still lie there, so the process it names has to be ours.
for ((waited = 0; ; waited++)); do
  kill -0 "$server" 2>/dev/null || fail "ostler up did not start; its reason stands above"
  grep -q "\"pid\":$server\b" "$data/server.json" 2>/dev/null && break
  ((waited < 300)) || fail "ostler up was not ready after 30 s"
  sleep 0.1
done

address=$(sed -nE 's/.*"url":"([^"]*)".*/\1/p' "$data/server.json")
say "ostler is up at $address"
"$ostler" --data "$data" apply -f examples/hello/agent.yaml
"$ostler" --data "$data" run hello "Say hello to the world."

if [[ -n $once ]]; then
  say "run: the task ended well, stopping the server"
  exit 0
fi

cat >&2 <<END

Ostler stays up at $address with its data in .ostler. In another terminal, from this folder:

  export PATH="$target/debug:\$PATH"
  ostler run hello "And once more."     # give the agent something to do
  ostler ps -a                          # the tasks so far
  ostler trace TASK                     # where a task's time went
  ostler --help                         # everything else

Ctrl-C stops it; what is under way goes on after the next start.
END
status_when_interrupted=0
wait "$server"
