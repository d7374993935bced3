# shellcheck shell=bash
# Sourced: runs the parts of a check one after another, goes on after a failure, and ends with one line each.

report=()
n_failed=0

part() { # a title, then the command; a figure that the command wants in the report goes to $figures
  local title=$1 started=$SECONDS verdict=ok
  shift
  figures=""
  say "== $title"
  "$@" || { verdict=FAILED; n_failed=$((n_failed + 1)); }
  report+=("$(printf '%-8s %-14s %4d s  %s' "$verdict" "$title" $((SECONDS - started)) "$figures")")
}

# Runs a command whose last line is its figures, and keeps that line for the report.
with_figures() {
  local output status
  output=$(mktemp)
  "$@" | tee "$output"
  status=${PIPESTATUS[0]}
  figures=$(tail -n1 "$output")
  rm -f "$output"
  return "$status"
}

summary() { # the name of the whole
  echo
  printf '%s\n' "${report[@]}"
  if ((n_failed > 0)); then
    echo "$1: $n_failed of ${#report[@]} parts FAILED, $SECONDS s"
    exit 1
  fi
  echo "$1: all ${#report[@]} parts ok, $SECONDS s"
}
