#!/bin/bash
# The programs of Debian's perftest.  They check no data; that is for ibverbs_utils_test.sh and for
# tests/conformance.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
source tests/cases.sh
suite Perftest "$@"
source tests/clients/clients.sh

# result_rows: rows "size iterations numbers..." in the client's output whose last number, the message
# rate or the 99.9 % latency, is not zero.
result_rows() {
  awk '/^ *#bytes/ { on = 1; next }
       on && NF >= 4 && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && $2 > 0 && $NF > 0 { ++rows }
       END { print rows + 0 }' "$work/client"
}

# perftest ROWS CMD...: passes when the client prints ROWS results.
perftest() {
  local rows=$1 side
  shift
  own_fabric
  free_port
  # -F: no warning about the processor's frequency scaling.
  run_pair -d simhca0 -i 1 -x 0 -p "$tcp_port" -F -- "$@"
  expect_success
  for side in client server; do
    expect_unsaid $side "Completion with|Failed|Couldn't|Unable to"
  done
  [[ $(result_rows) == "$rows" ]] || pair_failed "$(result_rows) of $rows results"
}

perftest_drop_in() {
  export SIMHCA_FORM=dropin
  perftest "$@"
}

# A client whose server is killed gets its error; it does not wait for ever.
survives_a_killed_server() {
  own_fabric
  free_port
  local options=(-d simhca0 -i 1 -x 0 -p "$tcp_port" -F) client_pid server_program
  start_server "$@" "${options[@]}"
  become_under_shim stdbuf -oL "$@" "${options[@]}" 127.0.0.1 >"$work/client" 2>&1 &
  client_pid=$!
  # The table's head is printed when both sides are connected and traffic starts.
  wait_until "$client_pid" grep -q '#bytes' "$work/client"
  # The pid of timeout; the launcher that it started has become the program.
  server_program=$(cat "/proc/$server_pid/task/$server_pid/children")
  kill -KILL $server_program || fail "the server had ended"
  wait "$client_pid"
  client_status=$?
  ((client_status != 0 && client_status != 124 && client_status < 128)) ||
    pair_failed "status of the client of a killed server: $client_status"
  # What the killed process left goes with the last one.
  expect_nothing_left
}

run_table perftest <<'END'
SendBandwidth                   1 ib_send_bw -n 192
SendBandwidthOfAllSizes        23 ib_send_bw -a -n 16
SendBandwidthOfOddSize          1 ib_send_bw -s 4097 -n 192
SendBandwidthWithMtu256         1 ib_send_bw -m 256 -n 192
SendBandwidthWithEvents         1 ib_send_bw -e -n 192
SendBandwidthOf16Qps            1 ib_send_bw -q 16 -n 192
SendBandwidthBothWays           1 ib_send_bw -b -n 192
SendBandwidthWithLists          1 ib_send_bw -l 16 -n 192
SendBandwidthWithFewReceives    1 ib_send_bw --rx-depth 16 -n 192
SendLatency                     1 ib_send_lat -n 192
SendLatencyWithEvents           1 ib_send_lat -e -n 192
SrqBandwidth                    1 ib_send_bw --use-srq -n 192
SrqBandwidthOfAllSizes         23 ib_send_bw --use-srq -a -n 16
SrqBandwidthOf4Qps              1 ib_send_bw --use-srq -q 4 -n 192
SrqBandwidthOf16Qps             1 ib_send_bw --use-srq -q 16 -n 192
SrqBandwidthWithEvents          1 ib_send_bw --use-srq -e -q 2 -n 192
SrqBandwidthWithLists           1 ib_send_bw --use-srq -q 4 -l 16 -n 192
SrqBandwidthWithFewReceives     1 ib_send_bw --use-srq -q 4 --rx-depth 64 -n 192
SrqBandwidthBothWays            1 ib_send_bw --use-srq -b -n 192
SrqLatency                      1 ib_send_lat --use-srq -n 192
SrqLatencyOfAllSizes           23 ib_send_lat --use-srq -a -n 16
WriteBandwidth                  1 ib_write_bw -n 192
WriteBandwidthOfAllSizes       23 ib_write_bw -a -n 16
WriteBandwidthOf4Qps            1 ib_write_bw -q 4 -n 192
WriteLatency                    1 ib_write_lat -n 192
ReadBandwidth                   1 ib_read_bw -n 192
ReadBandwidthOfAllSizes        23 ib_read_bw -a -n 16
ReadBandwidthWithOneAtATime     1 ib_read_bw -o 1 -n 192
ReadLatency                     1 ib_read_lat -n 192
END
run_case SrqBandwidthWithTheDropIn perftest_drop_in 1 ib_send_bw --use-srq -n 192
run_case KilledServersGiveTheClientAnError survives_a_killed_server ib_send_bw --use-srq -D 30 -f 0
finish
