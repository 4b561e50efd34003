#!/bin/bash
# Runs the conformance tests on a simulated device through the drop-in form of the shim.
#
# usage: run_conformance.sh BINARY DROPIN PROFILE CLOCK SKIPS [ARGUMENT...]
#        run_conformance.sh --twice BINARY DROPIN PROFILE CLOCK SKIPS [ARGUMENT...]
#
# SKIPS is how many tests skip themselves on that profile.  With --twice the report of a second
# run has to be the same, byte for byte.
set -euo pipefail

runs=1
if [[ "$1" == --twice ]]; then
  runs=2
  shift
fi
binary=$1 dropin=$2 profile=$3 clock=$4 skips=$5
shift 5

export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(cd "$(dirname "$dropin")" && pwd)
export SIMHCA_PROFILE=$profile SIMHCA_CLOCK=$clock
reports=${TEST_TMPDIR:-$(mktemp -d)}

for ((run = 1; run <= runs; ++run)); do
  # The fabric lives in the machine's /dev/shm, which the test's sandbox does not make its own.
  SIMHCA_FABRIC="conformance-$profile-$clock-$(od -An -N6 -tx1 /dev/urandom | tr -d ' ')"
  export SIMHCA_FABRIC
  "$binary" --clock="$clock" --expect-skipped="$skips" --report="$reports/report$run.json" "$@"
done
if ((runs == 2)); then
  cmp "$reports/report1.json" "$reports/report2.json"
fi
