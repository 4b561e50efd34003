# ./simhca test: all tests, counted by case.  Sourced by simhca.

test_help() {
  cat <<END
Usage: ./simhca test [--config opt|asan|tsan|ubsan] [--filter RE] [--fuzz MINUTES]
                     [--soak MINUTES]

Runs all tests on the simulator: GoogleTest programs, and unmodified verbs programs (tests/clients).
The last line is "N passed, N failed, N skipped" and counts single cases.  Exit status 0 if no case
failed and at least one passed.

  --config C   build to test (default opt).  Cases that a sanitizer cannot run are left out: programs
               that are not built with it cannot load a tsan build
  --filter RE  only the cases whose name, Suite.Case, or whose Bazel label matches this regular
               expression.  A new filter runs a test again even if nothing has changed
  --soak M     afterwards stream between processes for M minutes while clients are killed, stopped,
               forked and cut off by a lossy wire; the log ends with counts
  --fuzz M     afterwards fuzz the simulator for M minutes in all, with clang's libFuzzer: packets,
               shared memory, profiles and verbs calls from random bytes.  Each target counts as a
               case, named Fuzz.TARGET.  An input that fails is kept under $build_dir/fuzz
END
}

# select_cases RE: sets $labels to the test targets that have cases matching RE, and $test_filter to
# those cases, in GoogleTest's form.  Every test program of the project answers --gtest_list_tests.
select_cases() {
  local label binary bin cases found= all
  mapfile -t all < <(bazel_run query 'tests(//...)' 2>/dev/null)
  say "building the tests, to read their cases"
  bazel_run build "${flags[@]}" "${all[@]}" ||
    say "not all tests could be built; the errors are above"
  bin=$(bazel_run info --config="$config" bazel-bin 2>/dev/null)
  labels=()
  for label in "${all[@]}"; do
    binary=${label#//}
    binary=$bin/${binary/://}
    if [[ ! -x $binary ]]; then
      [[ $label =~ $1 ]] && labels+=("$label")
      continue
    fi
    cases=$(timeout 20 "$binary" --gtest_list_tests 2>/dev/null </dev/null | sed 's/ *#.*//' |
      awk '/^[^ ].*\.$/ { suite = $1; next } /^  / { print suite $1 }')
    [[ $label =~ $1 ]] || cases=$(grep -E -- "$1" <<<"$cases") || continue
    labels+=("$label")
    found+=$cases$'\n'
  done
  ((${#labels[@]} > 0)) || die 1 "no test case matches '$1'"
  # Cases of one name in two programs both run; that does no harm.
  test_filter=$(sort -u <<<"$found" | sed '/^$/d' | paste -sd:)
  ((${#test_filter} < 120000)) || test_filter=
}

# test_results EVENTS: from Bazel's event file, one line "STATUS LABEL XML-FILE" for each test run;
# for tests that were asked for and gave no result, "MISSING LABEL -".  Last attempts only.
test_results() {
  awk '
    function between(text, from, to,   at) {
      at = index(text, from)
      if (!at) return ""
      text = substr(text, at + length(from))
      return substr(text, 1, index(text, to) - 1)
    }
    /^\{"id":\{"targetConfigured":/ && /"targetKind":"[a-z_]*_test rule"/ {
      asked[between($0, "\"label\":\"", "\"")] = 1
    }
    /^\{"id":\{"testResult":/ {
      label = between($0, "\"label\":\"", "\"")
      xml = between($0, "{\"name\":\"test.xml\",\"uri\":\"file://", "\"")
      key = label " " between($0, "\"run\":", ",") " " between($0, "\"shard\":", ",")
      # The first "status" belongs to the result itself; the strategy details have none.
      result[key] = between($0, "\"status\":\"", "\"") " " label " " (xml == "" ? "-" : xml)
      seen[label] = 1
    }
    END {
      for (key in result) print result[key]
      for (label in asked) if (!(label in seen)) print "MISSING " label " -"
    }' "$1" | sort -k 2
}

# count_cases XML: "passed failed skipped" of a GoogleTest or JUnit file, then a line for each case
# that failed.  Captured output may contain anything and is not looked at.
count_cases() {
  awk '
    function finish() {
      if (name == "") return
      if (bad) { failed++; list = list "\n" name }
      else if (skip) skipped++
      else passed++
      name = ""
    }
    function attribute(text, key) {
      if (!match(text, " " key "=\"[^\"]*\"")) return ""
      return substr(text, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
    }
    {
      line = $0
      while (line != "") {
        if (hidden != "") {
          at = index(line, hidden)
          if (!at) break
          line = substr(line, at + length(hidden))
          hidden = ""
        }
        if (!match(line, /<!\[CDATA\[|<testcase |<failure|<error|<skipped/)) break
        tag = substr(line, RSTART, RLENGTH)
        rest = substr(line, RSTART + RLENGTH)
        if (tag == "<![CDATA[") hidden = "]]>"
        else if (tag == "<testcase ") {
          finish()
          element = " " substr(rest, 1, index(rest ">", ">"))
          name = attribute(element, "classname")
          name = (name == "" ? "" : name ".") attribute(element, "name")
          bad = 0
          skip = element ~ /status="notrun"|result="(skipped|suppressed)"/
        }
        else if (tag == "<skipped") skip = 1
        else bad = 1
        line = rest
      }
    }
    END { finish(); print passed + 0, failed + 0, skipped + 0 list }' "$1"
}

# report EVENTS: prints the failed cases and sets $passed, $failed and $skipped.
report() {
  local status label xml counts p f s
  passed=0 failed=0 skipped=0
  while read -r status label xml; do
    p=0 f=0 s=0 counts=
    if [[ $status == MISSING ]]; then
      echo "FAILED  $label (could not be built or was not run)"
      f=1
    else
      if [[ -s $xml ]]; then
        counts=$(count_cases "$xml")
        read -r p f s <<<"$counts"
      fi
      if [[ $status != PASSED && $f == 0 ]]; then
        # A program can end badly although every case of it was fine.
        echo "FAILED  $label ($status)"
        f=1
      elif ((f > 0)); then
        tail -n +2 <<<"$counts" | sed "s|^|FAILED  $label  |"
      fi
    fi
    ((passed += p, failed += f, skipped += s))
  done < <(test_results "$1")
}

test_main() {
  local config=opt filter= fuzz= soak= value taken status passed failed skipped
  local flags labels=(//...) test_filter=
  while (($# > 0)); do
    case $1 in
      -h | --help) test_help; exit 0 ;;
      --config | --config=*) take_option "$@"; config=$value ;;
      --filter | --filter=*) take_option "$@"; filter=$value ;;
      --fuzz | --fuzz=*)
        take_option "$@"; fuzz=$value
        [[ $fuzz =~ ^[1-9][0-9]{0,4}$ ]] || die "--fuzz: '$fuzz' is not a number of minutes"
        ;;
      --soak | --soak=*)
        take_option "$@"; soak=$value
        [[ $soak =~ ^[0-9]{1,4}(\.[0-9]+)?$ ]] || die "--soak: '$soak' is not a number of minutes"
        ;;
      *) die "test: unknown argument '$1' (see ./simhca test --help)" ;;
    esac
    shift "$taken"
  done
  one_of --config "$config" $configs
  need_packages test
  [[ -z $fuzz ]] || need_packages fuzz

  flags=(--config="$config" --keep_going)
  [[ -t 2 ]] || flags+=(--show_progress_rate_limit=15)
  [[ $config == opt ]] || flags+=(--build_tests_only --test_tag_filters="-no-$config,-no-sanitizer")
  if [[ -n $filter ]]; then
    select_cases "$filter"
    [[ -z $test_filter ]] || flags+=(--test_filter="$test_filter")
  fi
  events=$(mktemp)
  trap 'rm -f "$events"' EXIT
  bazel_run test "${flags[@]}" --notest_verbose_timeout_warnings --build_event_json_file="$events" "${labels[@]}"
  status=$?

  report "$events"
  # Not even analysed: there are no results to blame, yet nothing is fine.
  if ((status != 0 && failed == 0)); then
    echo "FAILED  bazel test: exit status $status"
    failed=1
  fi
  if [[ -n $soak ]]; then
    source "$root/scripts/soak.sh"
    soak_main "$soak" "$config"
  fi
  if [[ -n $fuzz ]]; then
    source "$root/scripts/fuzz.sh"
    fuzz_main "$fuzz" "$filter"
  fi
  ((passed + failed > 0)) || echo "no test was run"
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0 && passed > 0)) || exit 1
}
