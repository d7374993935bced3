#!/usr/bin/env bash
# The systemd units under a real systemd, in a container that has this machine's programs and nothing else of it:
# services run tasks, keep their data, are started again after a crash and stop when told. Ends with one line of figures.
# BINARY=path tests that program, instead of building one.
set -euo pipefail
binary=${BINARY:+$(realpath -m "$BINARY")}
needs="containers units"
. "$(dirname "$0")/../scripts/env.sh"
. deploy/containers.sh

if [[ -z $binary ]]; then
  cargo build --release -p ostler-cli
  binary="$target/release/ostler"
fi

name="ostler-units-$$"
scratch=$(mktemp -d)
trap 'podman rm --force --time 0 "$name" >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT

# --- the machine ------------------------------------------------------------------------------------------------------

root="$scratch/root"
mkdir -p "$root"/{dev,etc/ostler,etc/systemd/system,etc/sysusers.d,proc,run,sys,tmp,usr,var/lib} "$scratch/bin"
for folder in bin sbin lib lib64; do [[ ! -L /$folder ]] || ln -s "usr/$folder" "$root/$folder"; done
cp -L /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$root/etc"
touch "$root/etc/machine-id"
cp "$binary" "$scratch/bin/ostler"
cp -r deploy/systemd/*.service deploy/systemd/*.service.d "$root/etc/systemd/system"
cp deploy/systemd/sysusers.conf "$root/etc/sysusers.d/ostler.conf"
cp examples/hello/agent.yaml "$root/etc/ostler/agent.yaml"

on() { podman exec "$name" "$@"; }

wait_for() { # a command that has to end well, soon
  for ((tries = 0; tries < 150; tries++)); do
    "$@" >"$scratch/said" 2>&1 && return
    sleep 0.1
  done
  on journalctl --no-pager --output cat --lines 30 >&2 || true
  fail "still not so: $*: $(cat "$scratch/said")"
}

is() { # a unit, a property, its value
  [[ $(on systemctl show "$1" --property "$2" --value) == "$3" ]]
}

stop() { # a unit
  local started took
  started=$(date +%s%N)
  on systemctl stop "$1"
  took=$((($(date +%s%N) - started) / 1000000))
  is "$1" Result success || fail "$1 did not stop well"
  ((took < 8000)) || fail "$1 took $took ms to stop"
  slowest=$((took > slowest ? took : slowest))
}

began=$SECONDS
slowest=0
machine=(--systemd=always --cap-add=all --security-opt=seccomp=unconfined --security-opt=apparmor=unconfined
  --network=none --hostname=mill --volume=/usr:/usr:ro --volume="$scratch/bin:/usr/local/bin:ro")
find_way "${machine[@]}" --rootfs "$root" /bin/true
"${run[@]}" --detach --name "$name" "${machine[@]}" --rootfs "$root" /lib/systemd/systemd >/dev/null
wait_for on systemctl is-active multi-user.target
# As it is where systemd is not in a container; credentials reach their services that way.
on mount --make-rshared /
on systemd-sysusers

# --- one machine ------------------------------------------------------------------------------------------------------

client=(on timeout 60 ostler --data /var/lib/ostler)
on systemctl enable --now --quiet ostler
wait_for "${client[@]}" ps
"${client[@]}" apply -f /etc/ostler/agent.yaml >&2
"${client[@]}" run hello "Say hello to the world." --name first >&2
status=$(on cat "/proc/$(on systemctl show ostler --property MainPID --value)/status")
for line in 'CapEff:\s*0+' 'NoNewPrivs:\s*1' 'Seccomp:\s*2' 'Uid:\s*[1-9].*'; do
  grep -qE "^$line\$" <<<"$status" || fail "the service is not as its unit says, no $line in: $status"
done

on systemctl kill --signal=KILL ostler
wait_for is ostler NRestarts 1
wait_for "${client[@]}" logs first
stop ostler

# What no restart can mend is not tried again.
echo "OSTLER_LEASE=soon" >"$root/etc/ostler/ostler.env"
on systemctl start ostler
wait_for is ostler ActiveState failed
is ostler NRestarts 0 || fail "a mistake in the settings was tried again"

# --- a server and a worker --------------------------------------------------------------------------------------------

(
  cd "$root/etc/ostler"
  umask 077
  for token in api worker; do openssl rand -hex 32 >"$token.token"; done
  openssl rand -base64 32 >secret.key
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=Ostler CA" \
    -keyout ca.key -out ca.pem
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" \
    -keyout server.key -out server.csr
  echo "subjectAltName=DNS:localhost" >names
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem
  echo "OSTLER_LISTEN=0.0.0.0:7070" >server.env
  printf '%s\n' "OSTLER_SERVER=https://localhost:7070" "OSTLER_WORKER_CA=/etc/ostler/ca.pem" >worker.env
  # It belongs to root, and workers read it themselves.
  chmod 644 ca.pem
) 2>/dev/null

client=(on timeout 60 env SSL_CERT_FILE=/etc/ostler/ca.pem OSTLER_SERVER=https://localhost:7070
  OSTLER_TOKEN="$(cat "$root/etc/ostler/api.token")" ostler)
on systemctl enable --now --quiet ostler-server ostler-worker
wait_for "${client[@]}" ps
"${client[@]}" apply -f /etc/ostler/agent.yaml >&2
"${client[@]}" run hello "Say hello to the world." --name second >&2
# It seals with the key that it was given, and makes none.
"${client[@]}" secret set tried value=for-nobody >&2
on test ! -e /var/lib/ostler-server/secret-key || fail "the server made a key of its own"
stop ostler-server
on systemctl start ostler-server
wait_for "${client[@]}" logs second
"${client[@]}" run hello "Once more." >&2
# What it has sealed it opens again; with another key it would not have started.
"${client[@]}" secret list | grep -q tried || fail "the secret is gone"
stop ostler-worker
stop ostler-server

echo "units: 3 services under systemd, a crash, a restart, slowest stop $slowest ms, $((SECONDS - began)) s"
