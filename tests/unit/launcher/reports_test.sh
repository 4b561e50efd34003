#!/bin/bash
# What `./simhca test` and `./simhca bench` make of result files.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../../.." || exit
source tests/cases.sh
source scripts/test.sh
source scripts/bench.sh
suite Reports "$@"

googletest_xml() {
  cat <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="2" disabled="1" errors="0" time="0" name="AllTests">
  <testsuite name="Srq" tests="5" failures="2" disabled="1" skipped="1" errors="0" time="0.">
    <testcase name="Passes" file="a.cc" line="2" status="run" result="completed" time="0." classname="Srq" />
    <testcase name="Fails" file="a.cc" line="3" status="run" result="completed" time="0." classname="Srq">
      <failure message="a.cc:3&#x0A;1 &gt; 2" type=""><![CDATA[a.cc:3
<testcase name="NotACase" <failure <skipped ]]></failure>
      <failure message="again" type=""><![CDATA[again]]></failure>
    </testcase>
    <testcase name="Skips" file="a.cc" line="4" status="run" result="skipped" time="0." classname="Srq">
      <skipped message="no such device" type=""><![CDATA[no such device]]></skipped>
    </testcase>
    <testcase name="DISABLED_Is" file="a.cc" line="5" status="notrun" result="suppressed" time="0." classname="Srq" />
    <testcase name="FailsLast" status="run" result="completed" classname="Srq">
      <failure message="x" type=""><![CDATA[x]]></failure>
    </testcase>
  </testsuite>
</testsuites>
END
}

# What Bazel writes for a test that leaves no file of its own.
bazel_xml() {
  cat <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="tests/crash" tests="1" failures="0" errors="1">
    <testcase name="tests/crash" status="run" duration="1" time="1"><error message="exited with error code 134"></error></testcase>
      <system-out>
Generated test.log (if the file is not UTF-8, then this may be unreadable):
<![CDATA[<testcase name="Other"><skipped
]]>
      </system-out>
    </testsuite>
</testsuites>
END
}

event() { # LABEL STATUS XML
  echo '{"id":{"testResult":{"label":"'"$1"'","run":1,"shard":1,"attempt":1}},"testResult":{"testActionOutput":[{"name":"test.log","uri":"file:///x/test.log"},{"name":"test.xml","uri":"file://'"$3"'"}],"status":"'"$2"'"}}'
}

asked() {
  echo '{"id":{"targetConfigured":{"label":"'"$1"'"}},"configured":{"targetKind":"'"$2"' rule","testSize":"SMALL"}}'
}

counts_googletest_cases() {
  googletest_xml >"$work/test.xml"
  expect_eq "$(count_cases "$work/test.xml")" $'1 2 2\nSrq.Fails\nSrq.FailsLast'
}

counts_programs_without_a_report() {
  bazel_xml >"$work/test.xml"
  expect_eq "$(count_cases "$work/test.xml")" $'0 1 0\ntests/crash'
}

counts_its_own_reports() {
  # A suite of this very kind, with a case of each outcome.
  (
    XML_OUTPUT_FILE=$work/test.xml TESTBRIDGE_TEST_ONLY='*'
    source tests/cases.sh
    suite Inner
    run_case Passes true
    run_case Fails fail ']]> <testcase '
    run_case Skips skip "no such program"
    finish
  ) >"$work/output"
  expect_eq $? 1 "status of a suite with a failure"
  expect_eq "$(count_cases "$work/test.xml")" $'1 1 1\nInner.Fails'
}

adds_up_a_run() {
  local passed failed skipped
  googletest_xml | grep -E '"(Passes|Skips|DISABLED_Is)"|^<[?/]|</?testsuite' >"$work/good.xml"
  bazel_xml >"$work/crash.xml"
  {
    asked //a:good cc_test
    asked //a:crash sh_test
    asked //a:late cc_test
    asked //a:unbuilt cc_test
    asked //a:library cc_library
    event //a:good FAILED "$work/crash.xml"
    event //a:good PASSED "$work/good.xml"
    event //a:crash FAILED "$work/crash.xml"
    event //a:late FAILED "$work/good.xml"
  } >"$work/events"
  report "$work/events" >"$work/output"
  expect_eq "$passed $failed $skipped" "2 3 4"
  expect_eq "$(cat "$work/output")" "FAILED  //a:crash  tests/crash
FAILED  //a:late (FAILED)
FAILED  //a:unbuilt (could not be built or was not run)"
}

merges_benchmark_results() {
  local name
  for name in one two three; do
    printf '{\n  "context": {\n    "host": "%s"\n  },\n  "benchmarks": [\n    {\n      "name": "%s",\n      "iterations": 3\n    },\n    {\n      "name": "%s/2",\n      "iterations": 4\n    }\n  ]\n}\n' \
      $name $name $name >"$work/$name"
  done
  merge_json "$work/one" "$work/two" "$work/three" >"$work/all" || fail "merging failed"
  expect_eq "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(d["context"]["host"], *[b["name"] for b in d["benchmarks"]])' "$work/all")" \
    "one one one/2 two two/2 three three/2"
}

run_case CountsGoogleTestCases counts_googletest_cases
run_case CountsProgramsThatLeaveNoReport counts_programs_without_a_report
run_case CountsReportsOfShellTests counts_its_own_reports
run_case AddsUpARun adds_up_a_run
run_case MergesBenchmarkResults merges_benchmark_results
finish
