# ./simhca test --soak MINUTES: processes that stream while others die.  Sourced by simhca.

# soak_main MINUTES CONFIG: runs tests/soak and prints its log, which ends with counts.  Adds to
# $passed or $failed; the soak is one case.
soak_main() {
  local minutes=$1 config=$2 bin log=$build_dir/soak.log
  say "building the soak"
  if ! bazel_run build --config="$config" //tests/soak //verbs_shim:dropin; then
    echo "FAILED  soak: it could not be built"
    ((failed += 1))
    return
  fi
  bin=$(bazel_run info --config="$config" bazel-bin 2>/dev/null)
  mkdir -p "$build_dir" || die "cannot write to $build_dir"
  say "soaking for $minutes minutes; the log is $log"
  "$root/tests/soak/soak.sh" "$bin/tests/soak/soak" "$bin/verbs_shim/dropin/libibverbs.so.1" \
    --minutes="$minutes" --seed="$RANDOM" 2>&1 | tee "$log"
  if ((PIPESTATUS[0] == 0)); then
    ((passed += 1))
  else
    echo "FAILED  soak (log: $log)"
    ((failed += 1))
  fi
}
