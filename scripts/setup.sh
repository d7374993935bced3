#!/usr/bin/env bash
# Installs what building and testing needs and this machine lacks, and says what it does.
# Says and does nothing when all is there. Words name what only some targets need: `databases` of their own, `networks`
# of their own, `clocks` that can be set for one process, `containers` for the image, `units` to try those of systemd,
# `python` with environments of its own, `canaries` for secrets.
set -euo pipefail

wanted=" $* "

say() { printf 'setup: %s\n' "$*" >&2; }

# Debian would make a database and start it when its package is installed.
keep_postgres_quiet() {
  [[ $(id -u) == 0 && ! -e /etc/postgresql-common/createcluster.conf ]] || return 0
  mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
}

lacking_packages() {
  [[ $wanted != *" databases "* ]] || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || echo postgresql
  [[ $wanted != *" networks "* ]] || command -v ip >/dev/null || echo iproute2
  [[ $wanted != *" clocks "* ]] || compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || echo libfaketime
  [[ $wanted != *" python "* ]] || python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3 python3-venv
  [[ $wanted != *" canaries "* ]] || command -v openssl >/dev/null || echo openssl
  [[ $wanted != *" canaries "* ]] || command -v python3 >/dev/null || echo python3
  [[ $wanted != *" containers "* ]] || lacking_for_containers
  [[ $wanted != *" units "* ]] || lacking_for_units
  command -v cc >/dev/null || echo gcc libc6-dev
  command -v make >/dev/null || echo make
  command -v pkg-config >/dev/null || echo pkg-config
  command -v git >/dev/null || echo git
}

lacking_for_containers() {
  command -v podman >/dev/null || echo podman
  # crun, which podman prefers, knows nothing of machines with both kinds of cgroups.
  command -v runc >/dev/null || echo runc
  command -v strip >/dev/null || echo binutils
  [[ -e /etc/ssl/certs/ca-certificates.crt ]] || echo ca-certificates
}

lacking_for_units() {
  [[ -x /lib/systemd/systemd ]] || echo systemd
  command -v openssl >/dev/null || echo openssl
}

install_packages() {
  local as_root=()
  if ! command -v apt-get >/dev/null; then
    say "please install: $*"
    return 1
  fi
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || { say "please install as root: apt-get install $*"; return 1; }
    as_root=(sudo)
  fi
  say "installing $* with apt-get"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2
}

need_rust() {
  local least have
  least=$(sed -nE 's/^rust-version = "(.*)"/\1/p' "$(dirname "$0")/../Cargo.toml")
  command -v cargo >/dev/null || { say "please install Rust $least or newer, for example with rustup"; return 1; }
  have=$(rustc --version | cut -d' ' -f2)
  if [[ $(printf '%s\n' "$least" "$have" | sort -V | head -n1) != "$least" ]]; then
    say "Rust $have is too old, $least or newer is needed: rustup update stable"
    return 1
  fi
}

need_component() { # the component, the command it brings
  cargo "$2" --version >/dev/null 2>&1 && return
  command -v rustup >/dev/null || { say "please install $1 for your Rust toolchain"; return 1; }
  say "adding $1 to the Rust toolchain"
  rustup component add "$1" >&2
}

mapfile -t packages < <(lacking_packages | tr ' ' '\n')
if ((${#packages[@]} > 0)); then
  [[ " ${packages[*]} " != *" postgresql "* ]] || keep_postgres_quiet
  install_packages "${packages[@]}"
fi
need_rust
need_component rustfmt fmt
need_component clippy clippy
