# ./simhca test --fuzz MINUTES: libFuzzer on the targets of tests/fuzz.  Sourced by simhca.

fuzz_targets=(fabric packets profile ring verbs)

# fuzz_one TARGET SECONDS: fuzzes one target, starting from its corpus in the repository and from
# what earlier runs have found.  Status 0 if nothing was found.
fuzz_one() {
  local target=$1 seconds=$2 options=()
  local corpus=$root/tests/fuzz/corpus/$target found=$fuzz_dir/$target log=$fuzz_dir/$target.log
  [[ -e $root/tests/fuzz/$target.dict ]] && options+=(-dict="$root/tests/fuzz/$target.dict")
  mkdir -p "$found"
  # Destroyed objects stay in quarantine, which a leak detector takes for leaks.  Inputs of one run
  # are small and short: what takes ten seconds hangs.
  "$fuzz_bin/$target" -max_total_time="$seconds" -max_len=2048 -len_control=0 -timeout=10 \
    -detect_leaks=0 -print_final_stats=1 -artifact_prefix="$fuzz_dir/$target-" "${options[@]}" \
    "$found" "$corpus" >"$log" 2>&1 </dev/null
}

# fuzz_report TARGET STATUS: one line on a target, or what it takes to see its failure again.
fuzz_report() {
  local target=$1 status=$2 log=$fuzz_dir/$1.log runs rate coverage input
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  coverage=$(grep -a -o ' cov: [0-9]*' "$log" | tail -n 1)
  if ((status == 0)); then
    echo "fuzz $target: ${runs:-?} executions, ${rate:-?} per second, coverage${coverage# cov:}"
    return
  fi
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "FAILED  fuzz $target: ${input:-no input was kept} (log: $log)"
  grep -a -m 3 -E 'ERROR: |runtime error: |broken rule: ' "$log" | sed 's/^/          /'
  [[ -z $input ]] || echo "          again: $fuzz_bin/$target $input"
}

# fuzz_main MINUTES FILTER: fuzzes all targets, or those that match FILTER, two at a time and each
# for the same time, MINUTES in all.  Adds to $passed and $failed; each target is one case.
fuzz_main() {
  local minutes=$1 filter=$2 target targets=() seconds pids=() statuses=() i
  for target in "${fuzz_targets[@]}"; do
    [[ -n $filter && ! Fuzz.$target =~ $filter ]] || targets+=("$target")
  done
  ((${#targets[@]} > 0)) || return 0
  fuzz_dir=$build_dir/fuzz
  mkdir -p "$fuzz_dir" || die "cannot write to $fuzz_dir"
  say "building the fuzzing programs"
  if ! bazel_run build --config=fuzz //tests/fuzz:fuzzers; then
    echo "FAILED  fuzz: the programs could not be built"
    ((failed += ${#targets[@]}))
    return
  fi
  fuzz_bin=$(bazel_run info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz
  seconds=$((minutes * 60 / ((${#targets[@]} + 1) / 2)))
  say "fuzzing ${targets[*]}, $seconds seconds each"
  for ((i = 0; i < ${#targets[@]}; ++i)); do
    # The one before the last has to end first: two at a time.
    ((i < 2)) || { wait "${pids[i - 2]}"; statuses[i - 2]=$?; }
    fuzz_one "${targets[i]}" "$seconds" &
    pids+=($!)
  done
  for ((i = 0; i < ${#targets[@]}; ++i)); do
    [[ -n ${statuses[i]-} ]] || { wait "${pids[i]}"; statuses[i]=$?; }
    fuzz_report "${targets[i]}" "${statuses[i]}"
    if ((statuses[i] == 0)); then ((passed += 1)); else ((failed += 1)); fi
  done
}
