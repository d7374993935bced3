# shellcheck shell=bash
# Sourced: how containers run here. Not every machine lets every one run: it may hold both kinds of cgroups, which crun
# does not know, or grant fewer open files than podman asks for.

# Takes the first way in which this runs, options and all: "${run[@]}" then stands for `podman run`.
find_way() {
  local runtime limited said
  for runtime in "" runc; do
    for limited in "" yes; do
      # There may be no journal to write to.
      run=(podman ${runtime:+--runtime="$runtime"} run --log-driver=k8s-file)
      [[ -z $limited ]] || run+=(--ulimit=nofile=4096:4096 --ulimit=nproc=4096:4096)
      said=$("${run[@]}" --rm "$@" 2>&1) || continue
      say "containers run with: ${run[*]}"
      return
    done
  done
  fail "podman runs no container on this machine: $said"
}
