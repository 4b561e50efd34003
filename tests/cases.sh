# A small test runner for tests written in shell, with the outside of a GoogleTest program: the same
# result lines, --gtest_list_tests, --test_filter of Bazel, and an XML file with one entry per case.
#
#   source tests/cases.sh
#   suite Launcher "$@"
#   run_case PassesTheExitStatus passes_the_exit_status     # a function, with arguments if it wants
#   finish
#
# A case is a function that runs in a subshell, with $work a folder of its own.  It passes if it
# returns 0; `fail WHY` and `skip WHY` end it.  What it prints is shown only if it fails.  Outside of
# cases, $work is the folder of the suite.
set -u

suite_name= listing= passed=0 failed=0 skipped=0 xml_cases= failed_names=()
work=${TEST_TMPDIR:-$(mktemp -d)}

suite() {
  suite_name=$1
  filter=${TESTBRIDGE_TEST_ONLY:-*}
  shift
  local argument
  for argument; do
    case $argument in
      --gtest_list_tests) listing=1 ;;
      --gtest_filter=*) filter=${argument#*=} ;;
    esac
  done
  [[ -z $listing ]] || echo "$suite_name."
  [[ -n ${TEST_TMPDIR-} ]] || trap 'rm -rf "$work"' EXIT
}

fail() {
  echo "$*"
  exit 1
}

skip() {
  echo "$*"
  exit 77
}

# expect_eq ACTUAL EXPECTED [WHAT] and expect_match ACTUAL REGEX [WHAT]: end the case otherwise.
expect_eq() { [[ $1 == "$2" ]] || fail "${3:-value}: is '$1', expected '$2'"; }
expect_match() { [[ $1 =~ $2 ]] || fail "${3:-text}: '$1' does not match '$2'"; }

# selected NAME: whether the filter, in GoogleTest's form, picks the case.
selected() {
  local patterns pattern positive=${filter%%-*} negative=
  [[ $filter == *-* ]] && negative=${filter#*-}
  IFS=: read -ra patterns <<<"$negative"
  for pattern in "${patterns[@]}"; do [[ $suite_name.$1 == $pattern ]] && return 1; done
  IFS=: read -ra patterns <<<"${positive:-*}"
  for pattern in "${patterns[@]}"; do [[ $suite_name.$1 == $pattern ]] && return 0; done
  return 1
}

# remove_fabrics LIST: what the programs that a case has killed left of the fabrics in that file.
remove_fabrics() {
  local fabric
  [[ -e $1 ]] || return 0
  while read -r fabric; do rm -f /dev/shm/simhca-*-"$fabric"{,.lock,-new,-new.lock}; done <"$1"
}

run_case() {
  local name=$1 log=$work/$1.log start=${EPOCHREALTIME/./} status detail milliseconds body=
  shift
  if [[ -n $listing ]]; then
    echo "  $name"
    return
  fi
  selected "$name" || return 0
  echo "[ RUN      ] $suite_name.$name"
  (
    work=$work/$name
    mkdir "$work"
    "$@"
  ) >"$log" 2>&1 </dev/null
  status=$?
  remove_fabrics "$work/$name/fabrics"
  milliseconds=$(((${EPOCHREALTIME/./} - start) / 1000))
  detail=$(LC_ALL=C tr -cd '\11\12\40-\176' <"$log")
  case $status in
    0)
      ((++passed))
      echo "[       OK ] $suite_name.$name ($milliseconds ms)"
      ;;
    77)
      ((++skipped))
      body="<skipped/>"
      echo "[  SKIPPED ] $suite_name.$name: $detail"
      ;;
    *)
      ((++failed))
      failed_names+=("$name")
      body="<failure message=\"status $status\"><![CDATA[${detail//]]>/]] >}]]></failure>"
      printf '%s\n' "$detail"
      echo "[  FAILED  ] $suite_name.$name ($milliseconds ms)"
      ;;
  esac
  xml_cases+="    <testcase name=\"$name\" classname=\"$suite_name\" status=\"run\""
  xml_cases+=" time=\"$((milliseconds / 1000)).$(printf %03d $((milliseconds % 1000)))\">$body</testcase>"$'\n'
}

# finish: prints the totals, writes the XML file that Bazel asks for, and ends the test.
finish() {
  [[ -z $listing ]] || exit 0
  echo "[==========] $((passed + failed + skipped)) tests ran."
  echo "[  PASSED  ] $passed tests."
  ((skipped == 0)) || echo "[  SKIPPED ] $skipped tests."
  ((failed == 0)) || printf '[  FAILED  ] %s\n' "${failed_names[@]/#/$suite_name.}"
  if [[ -n ${XML_OUTPUT_FILE-} ]]; then
    cat >"$XML_OUTPUT_FILE" <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="$suite_name" tests="$((passed + failed + skipped))" failures="$failed" skipped="$skipped">
$xml_cases  </testsuite>
</testsuites>
END
  fi
  ((failed == 0))
  exit
}
