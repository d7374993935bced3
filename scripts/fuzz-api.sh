#!/usr/bin/env bash
# Sends the served description of the API back at the server (schemathesis, from PyPI): whatever it makes up, no answer
# may be a 5xx, none may differ from the description, and no route may answer who shows no valid token. Once with a token
# of each role, if the server makes tokens; else with the server's own. EXAMPLES=20 for each route, SEED=1;
# PHASES=examples,fuzzing leaves out the phase that tries every bound of every schema, which takes most of the time.
set -euo pipefail
. "$(dirname "$0")/env.sh"

ostler="$target/debug/ostler"
version=4.32.5
examples="${EXAMPLES:-20}"
seed="${SEED:-1}"
phases="${PHASES:-examples,coverage,fuzzing}"
tools="$PWD/.tools/schemathesis"

# Built already if the caller says so.
[[ -n ${BUILT:-} ]] || cargo build --workspace --bin ostler
if ! "$tools/bin/schemathesis" --version 2>/dev/null | grep -qF "$version"; then
  say "installing schemathesis $version into .tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install -q "schemathesis==$version" >&2
fi

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

"$ostler" --data "$data/store" up --listen 127.0.0.1:0 --quiet 2>"$data/log" &
server=$!
for ((waited = 0; ; waited++)); do
  kill -0 "$server" 2>/dev/null || fail "ostler up did not start: $(cat "$data/log")"
  grep -q "\"pid\":$server\b" "$data/store/server.json" 2>/dev/null && break
  ((waited < 300)) || fail "ostler up was not ready after 30 s"
  sleep 0.1
done
url=$(sed -nE 's/.*"url":"([^"]*)".*/\1/p' "$data/store/server.json")
admin=$(cat "$data/store/token")
"$ostler" --data "$data/store" apply -f examples/hello/agent.yaml >&2

ask() { curl -sS -H "authorization: Bearer $admin" -H 'content-type: application/json' "$@"; }

# A token of a role, or nothing where the server makes none.
token_of() {
  ask -X POST "$url/v1/tokens" -d "{\"name\":\"fuzz-$1\",\"role\":\"$1\"}" | sed -nE 's/.*"token":"([^"]*)".*/\1/p'
}

declare -A tokens=()
for role in reader writer controller admin; do
  made=$(token_of "$role")
  [[ -z $made ]] || tokens[$role]=$made
done
[[ ${#tokens[@]} -gt 0 ]] || tokens[server]=$admin

# A watch never ends by itself, a backup is as large as the store, and a worker that is drained is missed by the rest.
left_out='/watch$|^/v1/backup$|/drain$'
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks=$checks,response_schema_conformance,ignored_auth
failed=0
requests=0
for role in "${!tokens[@]}"; do
  say "fuzzing as $role"
  report="$data/$role.txt"
  "$tools/bin/schemathesis" run "$url/openapi.json" --header "Authorization: Bearer ${tokens[$role]}" \
    --checks "$checks" --exclude-path-regex "$left_out" --phases "$phases" --seed "$seed" \
    --max-examples "$examples" --request-timeout 10 --generation-database none --no-color >"$report" 2>&1 || failed=$((failed + 1))
  made=$(sed -nE 's/.*[^0-9]([0-9]+) generated.*/\1/p' "$report" | tail -1)
  requests=$((requests + ${made:-0}))
  [[ $failed == 0 ]] || { cp "$report" "$target/fuzz-api-$role.txt"; sed -n '/FAILURES/,$p' "$report" | head -200 >&2; }
done
kill -0 "$server" 2>/dev/null || fail "the server is gone: $(tail -5 "$data/log")"
broken=$(ask "$url/metrics" | grep -c 'status="5' || true)
echo "fuzz-api: ${#tokens[@]} roles (${!tokens[*]}), $requests cases, seed $seed: $failed runs failed, $broken lines of 5xx"
[[ $failed == 0 && $broken == 0 ]]
