#!/usr/bin/env bash
# The image at work: a server and a worker in containers of their own, a task through both, a restart, a stop.
# Ends with one line of figures. BINARY=path tests an image of that program, instead of the one it builds.
set -euo pipefail
export BINARY=${BINARY:+$(realpath -m "$BINARY")}
needs=containers
. "$(dirname "$0")/../scripts/env.sh"
. deploy/containers.sh

name="ostler-test-$$"
image="localhost/$name"
scratch=$(mktemp -d)

clean_up() {
  for container in "$name-server" "$name-worker" "$name-up"; do
    podman rm --force --volumes --time 0 "$container" >/dev/null 2>&1 || true
  done
  podman volume rm --force "$name-data" >/dev/null 2>&1 || true
  podman secret rm "$name-api" "$name-link" >/dev/null 2>&1 || true
  podman rmi --force "$image" "$image:again" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean_up EXIT

start() { # the name behind ours, options, --, the command
  local container="$name-$1" own=()
  shift
  while [[ $1 != -- ]]; do own+=("$1"); shift; done
  shift
  "${run[@]}" --detach --name "$container" "${options[@]}" "${own[@]}" "$image" "$@" >/dev/null
}

# A client that knows nothing but the server's address and its token, and has no patience.
client() {
  "${run[@]}" --rm --interactive --timeout=60 "${options[@]}" \
    --env OSTLER_SERVER="$url" --env OSTLER_TOKEN="$token" "$image" "$@"
}

wait_until_ready() { # the name behind ours
  for ((tries = 0; tries < 100; tries++)); do
    podman exec "$name-$1" /usr/bin/ostler ps >/dev/null 2>&1 && return
    sleep 0.1
  done
  podman logs "$name-$1" >&2
  fail "the container $1 is not ready"
}

stop() { # the name behind ours; SIGTERM, and nothing harder for a long time
  local started ended_with
  started=$(date +%s%N)
  podman stop --time 60 "$name-$1" >/dev/null
  took=$((($(date +%s%N) - started) / 1000000))
  ended_with=$(podman inspect --format '{{.State.ExitCode}}' "$name-$1")
  [[ $ended_with == 0 ]] || { podman logs "$name-$1" >&2; fail "$1 ended with $ended_with"; }
  ((took < 8000)) || fail "$1 took $took ms to stop"
  slowest=$((took > slowest ? took : slowest))
}

holds() { # what is looked for, what is looked at
  [[ $2 == *"$1"* ]] || fail "no \"$1\" in: $2"
}

id_of() { podman image inspect --format '{{.Id}}' "$1"; }

free_port() {
  local port
  while port=$((20000 + RANDOM % 20000)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

started=$SECONDS
slowest=0
IMAGE=$image deploy/image.sh
BINARY=${BINARY:-$target/release/ostler} IMAGE="$image:again" deploy/image.sh
[[ $(id_of "$image") == "$(id_of "$image:again")" ]] || fail "the same files gave another image"
options=(--network=host --read-only --cap-drop=all --security-opt=no-new-privileges)
find_way "${options[@]}" "$image" --version

url="http://localhost:$(free_port)"
token=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
podman secret create "$name-api" - <<<"$token" >/dev/null
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' | podman secret create "$name-link" - >/dev/null

# Not in /run/secrets, where podman would put them: runc can't make their places there under a read-only root.
link=(--secret "$name-link,target=/etc/ostler/worker.token,uid=10001,mode=0400"
  --env OSTLER_WORKER_TOKEN_FILE=/etc/ostler/worker.token)
start server --volume "$name-data:/var/lib/ostler" "${link[@]}" \
  --secret "$name-api,target=/etc/ostler/api.token,uid=10001,mode=0400" \
  --env OSTLER_TOKEN_FILE=/etc/ostler/api.token --env OSTLER_TOKEN="$token" \
  --env OSTLER_LISTEN="127.0.0.1:${url##*:}" -- server
start worker "${link[@]}" --env OSTLER_SERVER="$url" -- worker
wait_until_ready server

status=$(cat "/proc/$(podman inspect --format '{{.State.Pid}}' "$name-server")/status")
grep -qE '^CapEff:\s*0+$' <<<"$status" || fail "the server has rights that it does not need"
grep -qE "^Uid:\s*[1-9]" <<<"$status" || fail "the server runs as root"

client apply -f - <examples/hello/agent.yaml
holds "Say hello to the world." "$(client run hello "Say hello to the world." --name first)"

stop server
podman start "$name-server" >/dev/null
wait_until_ready server
holds "succeeded" "$(client logs first)"
holds "Once more." "$(client run hello "Once more." --name second)"
holds "linked" "$(podman logs "$name-worker" 2>&1)"
stop worker
stop server

# Everything in one, as it stands; its health is asked with the same program.
start up --env OSTLER_LISTEN=127.0.0.1:0 --health-cmd='["/usr/bin/ostler","ps"]' --health-interval=disable -- up
wait_until_ready up
podman healthcheck run "$name-up" || fail "a server that works is called unhealthy"
stop up

echo "image: 2 tasks over 3 containers and a restart, slowest stop $slowest ms, $((SECONDS - started)) s"
