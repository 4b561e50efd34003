#!/bin/bash
# What `./simhca bench` makes of results: comparison with a baseline, and plots.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../../.." || exit
source tests/cases.sh
suite BenchReport "$@"
unset "${!SIMHCA_@}" PYTHONPATH
report=$PWD/bench/report
python=/usr/bin/python3
[[ -x $python ]] || python=python3

# results NAME VALUE[,COUNTER=VALUE...]...: Google Benchmark's JSON; the first value is that of ns/msg.
results() {
  local separator= fields
  echo '{ "context": {"date": "2000-01-01"}, "benchmarks": ['
  while (($# > 0)); do
    fields=$(sed 's/,\([^=]*\)=/, "\1": /g' <<<"$2")
    echo "$separator{\"name\": \"$1\", \"run_type\": \"iteration\", \"real_time\": $RANDOM, \"ns/msg\": $fields}"
    separator=,
    shift 2
  done
  echo ']}'
}

# expect_check STATUS REGEX ARG...: `check.py ARG...` ends with STATUS and prints what matches REGEX.
expect_check() {
  local status=$1 regex=$2 output
  shift 2
  output=$("$python" -B "$report/check.py" "$@" 2>&1)
  expect_eq $? "$status" "status of check.py $* (which printed: $output)"
  expect_match "$output" "$regex" "output of check.py $*"
}

passes_equal_figures() {
  results Model/A/qps:1 12.5 Model/B 1.2500000000000000e+01,rnr_naks=0 Wall/C 7 >"$work/old"
  results Model/B 12.5,rnr_naks=0.0000000000000000e+00 Model/A/qps:1 1.25e1 Wall/C 7 >"$work/new"
  expect_check 0 '^3 benchmarks compared.*no modelled counter differs$' compare "$work/old" "$work/new"
}

# One last digit is enough.
refuses_a_figure_that_is_worse() {
  results Model/A 0.3,tlps/msg=2 Model/B 1 >"$work/old"
  results Model/A 0.30000000000000004,tlps/msg=2 Model/B 1 >"$work/new"
  expect_check 1 'Model/A +ns/msg +0\.3 +0\.30000000000000004  WORSE by .*: 1 changes for the worse$' \
    compare "$work/old" "$work/new"
  results Model/A 0.3,limit_events=0 >"$work/old"
  results Model/A 0.3,limit_events=3 >"$work/new"
  expect_check 1 'Model/A +limit_events +0 +3  WORSE' compare "$work/old" "$work/new"
}

does_not_weigh_better_against_worse() {
  results Model/A 100,rnr_naks=4 >"$work/old"
  results Model/A 50,rnr_naks=5 >"$work/new"
  expect_check 1 'ns/msg +100 +50  better by 50 %.*rnr_naks +4 +5  WORSE by 25 %' \
    compare "$work/old" "$work/new"
}

asks_to_store_what_is_better() {
  results Model/A 100 >"$work/old"
  results Model/A 75 Model/New 3 >"$work/new"
  expect_check 0 'ns/msg +100 +75  better by 25 %.*Model/New .*new: not in.*--write-baseline' \
    compare "$work/old" "$work/new"
}

misses_what_is_gone() {
  results Model/A 1 Model/B 1,rnr_naks=0 >"$work/old"
  results Model/B 1 >"$work/new"
  expect_check 1 'Model/A .*MISSING.*Model/B +rnr_naks +0 +MISSING.*2 changes' compare "$work/old" "$work/new"
  expect_check 1 '1 changes' compare "$work/old" "$work/new" --filter 'Model/B$'
  expect_check 2 "no benchmark matches 'Model/C'" compare "$work/old" "$work/new" --filter Model/C
  expect_check 2 "--filter: '\('" compare "$work/old" "$work/new" --filter '('
}

counts_failures_as_worse() {
  results Model/A 1 Model/B 1 >"$work/old"
  {
    results Model/A 1 | sed '$d'
    echo ', {"name": "Model/B", "error_occurred": true, "error_message": "no such device"}]}'
  } >"$work/new"
  expect_check 1 'Model/B .*FAILED: no such device' compare "$work/old" "$work/new"
  expect_check 2 'no baseline is stored.*Model/B: no such device' write "$work/new" "$work/baseline"
  [[ ! -e $work/baseline ]] || fail "a baseline was written all the same"
  results Model/A 1 Model/A 2 Model/B 1 >"$work/new"
  expect_check 1 'Model/A .*FAILED: its repetitions differ' compare "$work/old" "$work/new"
}

stores_only_what_is_modelled() {
  results Model/B 2,items_per_second=77 Model/A 0.1 >"$work/results"
  expect_check 0 '2 benchmarks stored' write "$work/results" "$work/one"
  results Model/A 0.1 Model/B 2 >"$work/again"
  expect_check 0 '2 benchmarks stored' write "$work/again" "$work/two"
  cmp "$work/one" "$work/two" || fail "the baseline depends on more than modelled figures"
  expect_check 0 'no modelled counter differs' compare "$work/one" "$work/results"
}

refuses_unusable_files() {
  results Model/A 1 >"$work/good"
  expect_check 2 "cannot read '$work/none': No such file" compare "$work/none" "$work/good"
  expect_check 2 "cannot read '$work/none': No such file" validate "$work/none"
  echo '{"benchmarks": [' >"$work/cut"
  expect_check 2 "'$work/cut' is not JSON: .*line" compare "$work/cut" "$work/good"
  echo '[]' >"$work/list"
  expect_check 2 "'$work/list' has no list \"benchmarks\"" compare "$work/list" "$work/good"
  echo '{"benchmarks": [{"name": "A", "real_time": 3}]}' >"$work/wall"
  expect_check 2 "'$work/wall' has no benchmark with a modelled counter" compare "$work/good" "$work/wall"
  echo '{"benchmarks": [{"name": "A", "ns/msg": NaN}]}' >"$work/nan"
  expect_check 2 "'$work/nan': NaN is not a number" compare "$work/nan" "$work/good"
  echo '{"benchmarks": [{"name": "A", "ns/msg": "3"}]}' >"$work/text"
  expect_check 2 "'$work/text': ns/msg of A is not a number" compare "$work/text" "$work/good"
  head -c 100 /dev/urandom >"$work/noise"
  expect_check 2 "'$work/noise' is not JSON" compare "$work/noise" "$work/good"
  expect_check 2 "cannot write '$work/none/b'" write "$work/good" "$work/none/b"
}

is_reached_through_the_launcher() {
  results Model/A 2 >"$work/results"
  results Model/A 1 >"$work/old"
  ./simhca bench --from "$work/results" --check "$work/old" >"$work/output" 2>&1
  expect_eq $? 1 "status of bench --check"
  ./simhca bench --from "$work/results" --write-baseline "$work/new" >"$work/output" 2>&1 ||
    fail "bench --write-baseline: $(cat "$work/output")"
  ./simhca bench --from "$work/results" --check "$work/new" >"$work/output" 2>&1 ||
    fail "bench --check of the stored baseline: $(cat "$work/output")"
  # Told before anything is built.
  PATH=/usr/bin:/bin ./simhca bench --check "$work/none" >"$work/output" 2>&1
  expect_eq $? 2 "status of bench --check with no such file"
  expect_match "$(cat "$work/output")" "cannot read '$work/none'"
}

have_matplotlib() {
  "$python" -c 'import matplotlib' 2>/dev/null || skip "no matplotlib (Debian package python3-matplotlib)"
}

plot_input() {
  results Model/SrqAgainstRq/queue:srq/size:64/iterations:1 5 Model/SrqAgainstRq/queue:srq/size:4096 50 \
    Model/SrqAgainstRq/queue:rq/size:64 6 Model/QpScaling/queue:srq/qps:16 7 \
    Model/QpScaling/queue:rq/qps:16 8 Model/QpScaling/queue:rq/qps:4096 9 \
    Model/Watermark/limit:32 1,rnr_naks=5,limit_events=2 \
    Model/Watermark/limit:64 1,rnr_naks=0,limit_events=3 >"$work/results"
  cat >"$work/rows" <<'END'
{"rows": [
  {"scenario": "latency & more", "published": 100, "model": 104.5, "unit": "ns", "error": 4.5,
   "tolerance": "5 %", "verdict": "ok"},
  {"scenario": "rate", "published": 215, "model": 150, "unit": "Mmsg/s", "error": -30.2,
   "tolerance": "200 to 220", "verdict": "FAILED"},
  {"scenario": "not comparable", "published": null, "model": 1, "unit": "x", "error": null,
   "tolerance": "at most", "verdict": "ok"}]}
END
}

# expect_labels PLOT LABEL...: the drawing exists in both forms and shows the labels.
expect_labels() {
  local file=$work/plots/$1 label
  shift
  expect_eq "$(head -c 4 "$file.png" | tail -c 3)" PNG "signature of $file.png"
  for label; do
    grep -q ">$label<" "$file.svg" || fail "$file.svg has no label '$label'"
  done
}

draws_labelled_plots() {
  have_matplotlib
  plot_input
  "$python" -B "$report/plot.py" "$work/plots" --results "$work/results" --validation "$work/rows" ||
    fail "plot.py failed"
  expect_labels srq_against_rq 'message size (bytes)' 'modelled time per message (ns/msg)' \
    'shared receive queue' 'a receive queue per queue pair' 4096
  expect_labels qp_scaling 'number of queue pairs' 'modelled time per message (ns/msg)' 16
  expect_labels watermark 'watermark (receives)' 'RNR NAKs (rnr_naks)' 'limit events (limit_events)' 64
  expect_labels model_against_published 'model / published (grey: tolerance)' \
    'latency &amp; more (100 ns)' 'rate (215 Mmsg/s)' FAILED
  ! grep -q 'not comparable' "$work/plots/model_against_published.svg" || fail "a row without a figure is drawn"
}

draws_the_same_twice() {
  local folder
  have_matplotlib
  plot_input
  for folder in one two; do
    "$python" -B "$report/plot.py" "$work/$folder" --results "$work/results" --validation "$work/rows"
  done
  expect_eq "$(ls "$work/one" | wc -l)" 8 "number of files"
  diff -r "$work/one" "$work/two" || fail "two runs differ"
  ! grep -il "dc:date" "$work"/one/*.svg || fail "a drawing carries its date"
}

names_plots_without_data() {
  local output
  have_matplotlib
  results Model/QpScaling/queue:srq/qps:16 7 >"$work/results"
  output=$("$python" -B "$report/plot.py" "$work/plots" --results "$work/results" 2>&1) || fail "$output"
  expect_match "$output" 'watermark is left out: no benchmark Model/Watermark'
  expect_eq "$(ls "$work/plots")" $'qp_scaling.png\nqp_scaling.svg' "files"
  results Model/Else 7 >"$work/results"
  output=$("$python" -B "$report/plot.py" "$work/plots" --results "$work/results" 2>&1)
  expect_eq $? 2 "status with nothing to draw"
  expect_match "$output" 'there was nothing to draw'
}

run_case PassesEqualFigures passes_equal_figures
run_case RefusesAFigureThatIsWorse refuses_a_figure_that_is_worse
run_case DoesNotWeighBetterAgainstWorse does_not_weigh_better_against_worse
run_case AsksToStoreWhatIsBetter asks_to_store_what_is_better
run_case MissesWhatIsGone misses_what_is_gone
run_case CountsFailuresAsWorse counts_failures_as_worse
run_case StoresOnlyWhatIsModelled stores_only_what_is_modelled
run_case RefusesUnusableFiles refuses_unusable_files
run_case IsReachedThroughTheLauncher is_reached_through_the_launcher
run_case DrawsLabelledPlots draws_labelled_plots
run_case DrawsTheSameTwice draws_the_same_twice
run_case NamesPlotsWithoutData names_plots_without_data
finish
