#!/usr/bin/env bash
# Builds the container image: the binary, the libraries it needs, certificates of the authorities that this machine
# believes, and one user without rights. The same files give the same image, bit by bit.
#
#   BINARY=path    takes this program, instead of building one in the release profile
#   IMAGE=name     names the image; without it, localhost/ostler and the version
#   ARCHIVE=file   writes it to a file too, for `podman load` elsewhere
set -euo pipefail
# Before the script goes to the top of the repository.
binary=${BINARY:+$(realpath -m "$BINARY")}
archive=${ARCHIVE:+$(realpath -m "$ARCHIVE")}
needs=containers
. "$(dirname "$0")/../scripts/env.sh"

if [[ -z $binary ]]; then
  cargo build --release -p ostler-cli
  binary="$target/release/ostler"
fi
[[ -x $binary ]] || fail "$binary is no program"
certificates=/etc/ssl/certs/ca-certificates.crt
[[ -e $certificates ]] || fail "no $certificates: install ca-certificates"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
# Modes of folders come from here.
umask 022
root="$context/root"
mkdir -p "$root/usr/bin" "$root/var/lib"

# Line numbers are four fifths of the program. The names of functions stay, for the trace of a crash.
strip --strip-debug -o "$root/usr/bin/ostler" "$binary"

# What it is linked with, and what glibc before 2.34 loads by itself to look up the names of hosts.
libraries=$(ldd "$binary" | grep -oE '/[^ ]+') || fail "ldd finds no libraries for $binary"
libc=$(grep -E '/libc\.so\.' <<<"$libraries") || fail "$binary is not linked with glibc"
for library in $libraries "${libc%/*}"/libnss_{files,dns}.so.2 "${libc%/*}/libresolv.so.2"; do
  [[ ! -e $library ]] || install -D -m 755 "$library" "$root$library"
done

install -D -m 644 "$certificates" "$root$certificates"
echo "ostler:x:10001:10001::/var/lib/ostler:/usr/sbin/nologin" >"$root/etc/passwd"
echo "ostler:x:10001:" >"$root/etc/group"
echo "hosts: files dns" >"$root/etc/nsswitch.conf"

# The time of all files in it, and of the image.
made_at=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
pack() { # an owner, a folder, what of it, and more options
  tar --sort=name --mtime="@$made_at" --numeric-owner --owner="$1" --group="$1" --directory "$2" "${@:4}" \
    --file "$context/root.tar" "$3"
}
pack 0 "$root" . --create
# The data folder belongs to the user; a volume that is empty takes its owner from there.
mkdir -p "$context/data/var/lib/ostler"
chmod 700 "$context/data/var/lib/ostler"
pack 10001 "$context/data" ./var/lib/ostler --append
rm -r "$root" "$context/data"

version=$(sed -nE 's/^version = "(.*)"/\1/p' Cargo.toml | head -n1)
image=${IMAGE:-localhost/ostler:$version}
# The format of Docker would hold the id of the container in which it was built.
podman build --quiet --format oci --layers=false --timestamp "$made_at" --file deploy/Containerfile \
  --label org.opencontainers.image.title=ostler --label "org.opencontainers.image.version=$version" \
  --tag "$image" "$context" >/dev/null

if [[ -n $archive ]]; then
  rm -f "$archive"
  podman save --quiet --output "$archive" "$image"
fi
size=$(podman image inspect --format '{{.Size}}' "$image")
say "image: $image, $((size / 1000000)) MB, $(podman image inspect --format '{{.Id}}' "$image")"
