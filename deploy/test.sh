#!/usr/bin/env bash
# Everything to deploy, tried: the image in containers, the units under a real systemd. It takes a machine on which
# podman can run containers, best as root. BINARY=path tests that program, instead of building one.
set -uo pipefail
export BINARY=${BINARY:+$(realpath -m "$BINARY")}
needs="containers units"
. "$(dirname "$0")/../scripts/env.sh"
. scripts/parts.sh

if [[ -z $BINARY ]]; then
  part "build" cargo build --release -p ostler-cli
  ((n_failed == 0)) || summary deploy-test
  BINARY="$target/release/ostler"
fi
part "units" deploy/units.sh
part "image" with_figures deploy/image-test.sh
part "systemd" with_figures deploy/units-test.sh
summary deploy-test
