# shellcheck shell=bash
# Sourced by every script: goes to the top of the repository, decides once where cargo builds, and makes sure
# that the tools are there; who sets needs="databases ..." before gets those too (the words of setup.sh).
#
# RUSTFLAGS stay untouched: another value than plain `cargo build` uses would compile everything a second time,
# and the toolchain links with its own lld where that matters.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

# CI keeps a build folder outside the clone. One run at a time holds it, because the next one would replace the
# programs that this one is about to start; a second run at the same time builds in its clone.
use_cache() {
  local cache="${OSTLER_CACHE:-$HOME/.cache/ostler}" most="${OSTLER_CACHE_GIB:-20}" used
  command -v flock >/dev/null && mkdir -p "$cache/target" 2>/dev/null || return 1
  exec 9>"$cache/lock" || return 1
  flock -n 9 || { say "another run is using $cache"; return 1; }
  used=$(du -s --block-size=1G "$cache/target" | cut -f1)
  if ((used > most)); then
    say "the build folder has grown past $most GiB: starting it afresh"
    rm -rf "$cache/target"
  fi
  export CARGO_TARGET_DIR="$cache/target"
  # Incremental files only help the same clone, and are most of the size.
  export CARGO_INCREMENTAL=0
}

if [[ -z ${CARGO_TARGET_DIR:-} && ${CI:-} == true ]]; then
  use_cache || say "no build folder outside the clone"
fi
target="${CARGO_TARGET_DIR:-$PWD/target}"

# shellcheck disable=SC2086 # words
scripts/setup.sh ${needs:-} || exit 1
say "building in $target"
