# ./simhca bench: the benchmarks under bench/.  Sourced by simhca.

bench_help() {
  cat <<END
Usage: ./simhca bench [--filter RE] [--json FILE] [--list] [-- ARG...]
       ./simhca bench --validate [FILE] [--json FILE]

Builds the Google Benchmark programs under bench/ (config opt) and runs them one after the other under
the simulator, then perftest's ib_send_lat and ib_send_bw with an SRQ as two processes.

  --filter RE  only the benchmarks whose name matches this regular expression
  --json FILE  the results of all programs in one file, in Google Benchmark's format
  --list       only list the benchmarks
  --validate   no benchmarks: compares the device model with published figures, or with those of FILE
               (docs/validation.md).  Exit status 0 if all agree, 1 if one does not, 2 for a wrong FILE;
               --json FILE then has the rows
  ARG...       given to each Google Benchmark program, e.g. --benchmark_repetitions=5
END
}

# merge_json FILE...: the benchmarks of all files behind the context of the first.
merge_json() {
  awk '
    FNR == 1 { inside = 0 }
    /^  "benchmarks": \[/ {
      if (NR == FNR) print
      inside = 1
      next
    }
    inside && /^  \]/ { inside = 0; next }
    inside {
      # Between the last benchmark of one file and the first of the next.
      if (/^    \{/ && last ~ /\}$/) last = last ","
      if (last != "") print last
      last = $0
      next
    }
    NR == FNR && !/^}/ { print }
    END {
      if (last != "") print last
      print "  ]\n}"
    }' "$@"
}

bench_main() {
  local filter= json= list= validate= validate_file= value taken bin binary parts targets arguments=() runner status=0
  while (($# > 0)); do
    case $1 in
      -h | --help) bench_help; exit 0 ;;
      --filter | --filter=*) take_option "$@"; filter=$value ;;
      --json | --json=*) take_option "$@"; json=$value ;;
      --list) list=1 taken=1 ;;
      --validate=*) take_option "$@"; validate=1 validate_file=$value ;;
      --validate)
        validate=1 taken=1
        [[ -z ${2-} || $2 == -* ]] || validate_file=$2 taken=2
        ;;
      --) shift; arguments+=("$@"); break ;;
      *) die "bench: unknown argument '$1' (see ./simhca bench --help)" ;;
    esac
    shift "$taken"
  done
  [[ -z $json || $json == /* ]] || json=$PWD/$json
  [[ -z $json || -w $json || -w ${json%/*}/ ]] || die "--json: cannot write '$json'"
  if [[ -n $validate ]]; then
    [[ -z $filter$list && ${#arguments[@]} == 0 ]] || die "bench: --validate goes with --json only"
    source "$root/scripts/validate.sh"
    validate_main "$validate_file" "$json"
  fi
  [[ -z $filter ]] || arguments+=(--benchmark_filter="$filter")
  [[ -z $list ]] || arguments+=(--benchmark_list_tests=true)

  need_packages bench
  source "$root/bench/two_process.sh"
  build_locked opt always 1>&2 || exit 1
  mapfile -t targets < <(bazel_run query 'attr(tags, benchmark, kind(cc_binary, //bench/...))' 2>/dev/null)
  ((${#targets[@]} > 0)) || die 1 "there are no benchmark programs under bench/"
  bazel_run build --config=opt "${targets[@]}" 1>&2 || die 1 "the build failed; the errors are above"
  bin=$(bazel_run info --config=opt bazel-bin 2>/dev/null)

  bench_parts=$(mktemp -d)
  trap 'rm -rf "$bench_parts"' EXIT
  for value in "${targets[@]}"; do
    binary=${value#//}
    binary=$bin/${binary/://}
    # Programs that call verbs run like any other program; the rest drive the simulator's parts.
    runner=()
    LC_ALL=C readelf -dW "$binary" | grep -q 'NEEDED.*\[libibverbs\.so' && runner=("$root/simhca" run --)
    [[ -n $list ]] || say "$value"
    "${runner[@]}" "$binary" "${arguments[@]}" \
      ${json:+--benchmark_out_format=json "--benchmark_out=$bench_parts/${value//[\/:]/_}.json"} || {
      say "$value failed (exit $?)"
      status=1
    }
  done
  two_process_main "$filter" "${json:+$bench_parts/two_process.json}" "$list" || status=1
  if [[ -n $json ]]; then
    parts=()
    for value in "$bench_parts"/*.json; do [[ -s $value ]] && parts+=("$value"); done
    ((${#parts[@]} > 0)) || die 1 "no benchmark left a result"
    merge_json "${parts[@]}" >"$json" || die 1 "cannot write '$json'"
    say "results in $json"
  fi
  exit "$status"
}
