#!/bin/bash
# The programs of Debian's ibverbs-utils.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
source tests/cases.sh
suite IbverbsUtils "$@"
source tests/clients/clients.sh

lists_devices() {
  own_fabric
  local output
  output=$(SIMHCA_DEVICES=2 under_shim ibv_devices) || fail "ibv_devices: exit $?"
  expect_match "$output" $'\n +simhca0 .*\n +simhca1 '
  output=$(SIMHCA_DEVICES=0 under_shim ibv_devices) || fail "ibv_devices without devices: exit $?"
  [[ $output != *simhca* ]] || fail "devices although there should be none: $output"
}

describes_the_device() {
  own_fabric
  local output
  output=$(under_shim ibv_devinfo -v -d simhca0) || fail "ibv_devinfo: exit $?: $output"
  expect_match "$output" 'hca_id:[[:space:]]+simhca0'
  expect_match "$output" 'state:[[:space:]]+PORT_ACTIVE'
  expect_match "$output" 'active_mtu:[[:space:]]+4096'
  expect_match "$output" 'link_layer:[[:space:]]+Ethernet'
  expect_match "$output" 'max_srq:[[:space:]]+[1-9]'
  expect_match "$output" 'GID\[ +0\]:[[:space:]]+[0-9a-f:]+, RoCE v2'
}

refuses_unknown_devices() {
  own_fabric
  local output
  output=$(under_shim ibv_devinfo -d simhca9 2>&1) && fail "a device that does not exist was found"
  # Not "No IB devices found", which it says when there is none at all.
  expect_match "$output" "'simhca9' wasn't found"
}

watches_events() {
  own_fabric
  become_under_shim stdbuf -oL ibv_asyncwatch -d simhca0 >"$work/client" 2>&1 &
  local pid=$!
  wait_until "$pid" grep -q 'async event FD' "$work/client"
  expect_match "$(cat "$work/client")" 'async event FD'
  kill -0 "$pid" || fail "it ended, although there was no event"
  kill "$pid"
  wait "$pid"
  expect_eq $? 143 "status after SIGTERM"
  # A process that was killed removes nothing; the next one on the fabric does.
  under_shim ibv_devinfo -d simhca0 || fail "ibv_devinfo: exit $?"
  expect_nothing_left
}

pingpong() {
  own_fabric
  free_port
  run_pair -d simhca0 -i 1 -g 0 -p "$tcp_port" -- "$@"
  expect_success
  expect_said client '[0-9] iters in .* usec/iter'
  expect_said server '[0-9] iters in .* usec/iter'
  expect_unsaid server 'invalid data'
  expect_unsaid client 'invalid data'
}

pingpong_drop_in() {
  export SIMHCA_FORM=dropin
  pingpong "$@"
}

leaves_nothing() {
  pingpong "$@"
  expect_nothing_left
}

counts_what_happened() {
  export SIMHCA_STATS=1
  pingpong "$@"
  local side
  for side in server client; do
    expect_said $side '^receives_completed +[1-9]'
    expect_said $side '^srq_wqes_claimed +[1-9]'
  done
}

run_case IbvDevicesListsTheDevices lists_devices
run_case IbvDevinfoDescribesTheDevice describes_the_device
run_case IbvDevinfoRefusesUnknownDevices refuses_unknown_devices
run_case IbvAsyncwatchBlocksUntilItIsStopped watches_events

# -c: one byte of each received page is checked.
run_table pingpong <<'END'
RcPingpong              ibv_rc_pingpong -c
RcPingpongOf1M          ibv_rc_pingpong -c -s 1048576 -n 50
RcPingpongOfOneByte     ibv_rc_pingpong -c -s 1
RcPingpongWithMtu256    ibv_rc_pingpong -c -s 65536 -m 256 -n 100
RcPingpongWithMtu4096   ibv_rc_pingpong -c -s 65536 -m 4096 -n 100
RcPingpongWithEvents    ibv_rc_pingpong -c -e
RcPingpongWithNewSend   ibv_rc_pingpong -c -N
RcPingpongWithTimestamps ibv_rc_pingpong -t
RcPingpongWithOneReceive ibv_rc_pingpong -c -r 1
SrqPingpong             ibv_srq_pingpong -c
SrqPingpongOf64K        ibv_srq_pingpong -c -s 65536 -n 100
SrqPingpongWithMtu256   ibv_srq_pingpong -c -s 5000 -m 256 -n 200
SrqPingpongWithEvents   ibv_srq_pingpong -c -e
SrqPingpongWithOneQp    ibv_srq_pingpong -c -q 1
SrqPingpongWithFewReceives ibv_srq_pingpong -c -q 16 -r 20
END
run_case RcPingpongWithTheDropIn pingpong_drop_in ibv_rc_pingpong -c
run_case SrqPingpongWithTheDropIn pingpong_drop_in ibv_srq_pingpong -c
run_case LeavesNothingInSharedMemory leaves_nothing ibv_srq_pingpong -c -n 10
run_case PrintsItsCountersWhenAsked counts_what_happened ibv_srq_pingpong -c -n 10
finish
