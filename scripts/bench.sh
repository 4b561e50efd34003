# ./simhca bench: the benchmarks under bench/.  Sourced by simhca.

bench_help() {
  cat <<END
Usage: ./simhca bench [--filter RE] [--json FILE] [--check BASELINE] [--write-baseline FILE]
                      [--plot DIR] [--from FILE] [--list] [-- ARG...]
       ./simhca bench --validate [FILE] [--json FILE]

Builds the Google Benchmark programs under bench/ (config opt) and runs them one after the other under
the simulator, then perftest's ib_send_lat and ib_send_bw with an SRQ as two processes.

  --filter RE  only the benchmarks whose name matches this regular expression
  --json FILE  the results of all programs in one file, in Google Benchmark's format
  --list       only list the benchmarks
  --from FILE  run nothing; check, store or plot the results that --json has left in FILE
  ARG...       given to each Google Benchmark program, e.g. --benchmark_repetitions=5

What follows is about modelled figures, which are the same on every machine: without --filter only the
benchmarks named Model/... run.
  --check BASELINE       compare every modelled counter with a stored baseline, exactly, and print what
                         differs.  Exit status 1 if a figure is worse or missing, 2 if a file is unusable
  --write-baseline FILE  store the modelled counters as a baseline
  --plot DIR             draw them, and the model against published figures, as SVG and PNG
  --validate [FILE]      compare the model with published figures, or with those of FILE
                         (docs/validation.md), nothing else.  Exit status 0 if all agree, 1 if one does
                         not, 2 for a wrong FILE; --json then has these rows
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

# python FILE ARG...: with the interpreter that the Debian packages are for.
python() {
  if [[ -x /usr/bin/python3 ]]; then
    /usr/bin/python3 -B "$@"
  else
    python3 -B "$@"
  fi
}

# absolute PATH: PATH seen from anywhere.
absolute() { [[ $1 == /* ]] && echo "$1" || echo "$PWD/$1"; }

# needs_writable OPTION FILE: ends unless FILE can be written.
needs_writable() {
  [[ -z $2 || -w $2 || (! -e $2 && -w ${2%/*}/) ]] || die "$1: cannot write '$2'"
}

# run_benchmarks FILTER JSON LIST ARG...: all programs, with their results in JSON unless that is empty.
run_benchmarks() {
  local filter=$1 json=$2 list=$3 value bin binary parts targets arguments runner status=0
  shift 3
  arguments=("$@")
  [[ -z $filter ]] || arguments+=(--benchmark_filter="$filter")
  [[ -z $list ]] || arguments+=(--benchmark_list_tests=true)
  source "$root/bench/two_process.sh"
  build_locked opt always 1>&2 || exit 1
  mapfile -t targets < <(bazel_run query 'attr(tags, benchmark, kind(cc_binary, //bench/...))' 2>/dev/null)
  ((${#targets[@]} > 0)) || die 1 "there are no benchmark programs under bench/"
  bazel_run build --config=opt "${targets[@]}" 1>&2 || die 1 "the build failed; the errors are above"
  bin=$(bazel_run info --config=opt bazel-bin 2>/dev/null)

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
  fi
  return "$status"
}

# report_results: what was asked to be done with the results in $from, by bench_main's variables.
report_results() {
  local check_py=$root/bench/report/check.py status=0
  if [[ -n $check ]]; then
    python "$check_py" compare "$check" "$from" ${filter:+--filter "$filter"} || status=$?
  fi
  if [[ -n $baseline ]]; then
    python "$check_py" write "$from" "$baseline" || status=$?
  fi
  if [[ -n $plot ]]; then
    python "$root/bench/report/plot.py" "$plot" --results "$from" ${rows:+--validation "$rows"} || status=$?
  fi
  return "$status"
}

bench_main() {
  local filter= json= list= check= baseline= plot= from= validate= validate_file= rows= value taken status=0 arguments=()
  while (($# > 0)); do
    case $1 in
      -h | --help) bench_help; exit 0 ;;
      --filter | --filter=*) take_option "$@"; filter=$value ;;
      --json | --json=*) take_option "$@"; json=$(absolute "$value") ;;
      --check | --check=*) take_option "$@"; check=$value ;;
      --write-baseline | --write-baseline=*) take_option "$@"; baseline=$(absolute "$value") ;;
      --plot | --plot=*) take_option "$@"; plot=$value ;;
      --from | --from=*) take_option "$@"; from=$value ;;
      --validate=*) take_option "$@"; validate=1 validate_file=$value ;;
      --validate)
        validate=1 taken=1
        [[ -z ${2-} || $2 == -* ]] || validate_file=$2 taken=2
        ;;
      --list) list=1 taken=1 ;;
      --) shift; arguments+=("$@"); break ;;
      *) die "bench: unknown argument '$1' (see ./simhca bench --help)" ;;
    esac
    shift "$taken"
  done
  needs_writable --json "$json"
  needs_writable --write-baseline "$baseline"
  [[ -z $validate || -z $list$check$baseline$plot$from$filter ]] ||
    die "bench: --validate goes with --json only"
  [[ -z $list || -z $check$baseline$plot$from ]] || die "bench: --list only lists"
  [[ -z $from || -n $check$baseline$plot ]] ||
    die "bench: --from needs --check, --write-baseline or --plot"
  [[ -z $from || -z $json ]] || die "bench: --from runs nothing, so there is nothing for --json"
  source "$root/scripts/validate.sh"
  [[ -z $validate ]] || validate_main "$validate_file" "$json"
  if [[ -n $check ]]; then
    # Before minutes are spent on running.
    python "$root/bench/report/check.py" validate "$check" || exit
  fi
  [[ -z $plot ]] || need_packages plot

  if [[ -z $from ]]; then
    need_packages bench
    bench_parts=$(mktemp -d)
    trap 'rm -rf "$bench_parts"' EXIT
    if [[ -n $check$baseline$plot ]]; then
      from=${json:-$bench_parts/all}
      run_benchmarks "${filter:-^Model/}" "$from" "" "${arguments[@]}" || status=$?
    else
      run_benchmarks "$filter" "$json" "$list" "${arguments[@]}" || status=$?
    fi
    [[ -z $json ]] || say "results in $json"
    if [[ -n $plot ]]; then
      # Rows that fail are drawn as well; --validate is what tells of them.
      rows=$bench_parts/rows
      (validate_main "" "$rows") >/dev/null
      [[ -s $rows ]] || die 1 "the model could not be compared with published figures"
    fi
  fi
  [[ -z $check$baseline$plot ]] || report_results || status=$?
  exit "$status"
}
