#!/bin/bash
# What processes leave to each other: files in shared memory, a fabric of another version, no room,
# and shared memory that somebody writes into.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
source tests/cases.sh
suite Life "$@"
source tests/clients/clients.sh

peer=$root/tests/conformance/conformance
scribble=$root/tests/clients/scribble
tool=$root/sim/tools/simhca-tool
holders=()

fabric_file() { echo "/dev/shm/simhca-$(id -u)-$SIMHCA_FABRIC"; }
fabric_files() { find /dev/shm -name "simhca-*-$SIMHCA_FABRIC*"; }
# clean: what the tool says of this test's fabric; "kept" if nothing.
clean() {
  "$tool" clean >"$work/clean" || fail "clean: exit $?"
  grep -x "removed fabric $SIMHCA_FABRIC" "$work/clean" || echo kept
}

# The launcher refuses a small /dev/shm before a program starts; these programs meet it themselves.
preloaded() {
  local lib=$SIMHCA_BUILD_DIR/opt/lib
  LD_PRELOAD="$(cat "$lib/runtime") $lib/libsimhca.so" timeout -k 5 "$DEADLINE" "$@"
}

kill_holders() { ((${#holders[@]} == 0)) || kill -KILL "${holders[@]}" 2>/dev/null; }

# start_between IN OUT NAME ROLE: a peer of the conformance tests with the two as its standard input
# and output; its pid becomes the last of $holders.
start_between() {
  trap kill_holders EXIT
  (
    lib=$SIMHCA_BUILD_DIR/opt/lib
    export LD_PRELOAD="$(cat "$lib/runtime") $lib/libsimhca.so"
    exec "$peer" --peer="$4" <>"$1" >"$2" 2>"$work/$3.log"
  ) &
  holders+=($!)
}

# start_holder NAME: a process that has a device open and waits.
start_holder() {
  local number
  mkfifo "$work/$1.in" "$work/$1.out"
  start_between "$work/$1.in" "$work/$1.out" "$1" stream
  read -r -t 30 number <>"$work/$1.out" || fail "$1 did not start: $(cat "$work/$1.log")"
}

# start_pair ROLE [NAME NAME]: two processes, connected to each other; a and b by default.
start_pair() {
  local a=${2:-a} b=${3:-b}
  mkfifo "$work/to_$a" "$work/to_$b"
  start_between "$work/to_$a" "$work/to_$b" "$a" "$1"
  start_between "$work/to_$b" "$work/to_$a" "$b" "$1"
}

kill_one() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null
}

killed_processes_leave_what_clean_removes() {
  own_fabric
  local name
  for name in a b c; do start_holder $name; done
  expect_eq "$(stat -c %a "$(fabric_file)" "$(fabric_file).lock" | sort -u)" 600 "mode of the files"
  kill_one "${holders[0]}"
  expect_eq "$(clean)" "kept" "with two survivors"
  kill_one "${holders[1]}"
  expect_eq "$(clean)" "kept" "with a survivor"
  [[ -e $(fabric_file) ]] || fail "the fabric of a living process is gone"
  kill_one "${holders[2]}"
  [[ -e $(fabric_file) ]] || fail "a process that was killed has cleaned up"
  expect_eq "$(clean)" "removed fabric $SIMHCA_FABRIC" "when all are gone"
  expect_eq "$(fabric_files)" "" "what is left"
}

next_start_reclaims_what_killed_processes_left() {
  own_fabric
  start_holder a
  start_holder b
  kill_one "${holders[0]}"
  kill_one "${holders[1]}"
  [[ -e $(fabric_file) ]] || fail "a process that was killed has cleaned up"
  under_shim ibv_devinfo -d simhca0 >/dev/null || fail "ibv_devinfo: exit $?"
  expect_eq "$(fabric_files)" "" "what is left"
}

killed_pair_leaves_nothing_for_long() {
  own_fabric
  start_pair stream
  wait_until "${holders[1]}" test -s "$(fabric_file)"
  local i
  # Rings in both directions.
  for ((i = 0; i < 500; ++i)); do
    [[ $("$tool" stats --fabric "$SIMHCA_FABRIC" 2>&1) == *"2 ring(s)"* ]] && break
    sleep 0.02
  done
  ((i < 500)) || fail "the two do not talk: $(cat "$work"/*.log)"
  kill_one "${holders[0]}"
  kill_one "${holders[1]}"
  expect_eq "$(clean)" "removed fabric $SIMHCA_FABRIC" "when both are gone"
  expect_eq "$(fabric_files)" "" "what is left"
}

# layout_word [VALUE]: the word by which a build knows its own fabrics; bytes 8 to 11 of the file.
layout_word() {
  if (($# == 0)); then
    od -An -tx1 -j8 -N4 "$(fabric_file)"
  else
    printf "%b" "${1// /\\x}" | dd of="$(fabric_file)" bs=1 seek=8 conv=notrunc status=none
  fi
}

other_build_is_refused_with_a_message() {
  own_fabric
  start_holder a
  local word output status
  word=$(layout_word)
  layout_word ' 11 22 33 44'
  output=$(under_shim ibv_devinfo -d simhca0 2>&1)
  status=$?
  ((status != 0 && status < 124)) || fail "ibv_devinfo: exit $status: $output"
  expect_match "$output" 'simhca: error: cannot open simhca0: .*another version of simhca.*EPROTO'
  expect_match "$output" 'stop its processes, or use another fabric name'
  output=$(SIMHCA_FABRIC=$SIMHCA_FABRIC-new under_shim ibv_devinfo -d simhca0 2>&1) ||
    fail "ibv_devinfo on another fabric: exit $?: $output"
  kill -0 "${holders[0]}" || fail "the first process has ended"
  layout_word "$word"
  under_shim ibv_devinfo -d simhca0 >/dev/null || fail "ibv_devinfo: exit $?"
}

readable_fabric_is_refused() {
  own_fabric
  start_holder a
  chmod 644 "$(fabric_file)"
  local output
  output=$(under_shim ibv_devinfo -d simhca0 2>&1) && fail "it was accepted"
  expect_match "$output" 'simhca: error: .*is not a private file \(mode 0600\) of this user.*EPERM'
}

# on_small_shm KIB FUNCTION: in a mount namespace where /dev/shm has so much room.
on_small_shm() {
  unshare -rm true 2>/dev/null || skip "no permission to mount"
  export root work tool peer scribble tcp_port DEADLINE
  export -f $(compgen -A function)
  unshare -rm bash -c 'holders=()
    mount -t tmpfs -o "size=$0k" simhca-test /dev/shm 2>/dev/null || exit 77
    "$1"' "$1" "$2"
  local status=$?
  ((status != 77)) || skip "no permission to mount"
  return $status
}

device_does_not_open() {
  local output status
  output=$(preloaded ibv_devinfo -d simhca0 2>&1)
  status=$?
  ((status != 0 && status < 124)) || fail "ibv_devinfo: exit $status: $output"
  expect_match "$output" 'simhca: error: cannot open simhca0: no room for /dev/shm/.*--shm-size.*ENOSPC'
  expect_eq "$(ls -A /dev/shm)" "" "what is left"
}

no_room_for_a_fabric_is_explained() {
  own_fabric
  on_small_shm 512 device_does_not_open
}

two_processes_talk() {
  preloaded "$peer" --gtest_filter='TwoProcesses.MessagesOfAnotherProcessArriveInAnSrq' 2>&1
}

# Two processes whose connection fails by the retries, and which say why.
expect_no_room_for_rings() {
  start_pair endure c d
  wait "${holders[-1]}" || fail "exit $?: $(cat "$work"/*.log)"
  wait "${holders[-2]}" || fail "exit $?: $(cat "$work"/*.log)"
  unset 'holders[-1]' 'holders[-1]'
  local output
  output=$(cat "$work/c.log" "$work/d.log")
  expect_match "$output" "simhca: error: no room in the fabric's file system \\(/dev/shm\\) for a ring"
  expect_match "$output" "the connection was lost"
}

fabric_without_rings() {
  expect_no_room_for_rings
  expect_eq "$(ls -A /dev/shm)" "" "what is left"
}

no_room_for_a_ring_is_explained() {
  own_fabric
  on_small_shm 1000 fabric_without_rings
}

fills_and_empties() {
  start_pair stream
  local i
  for ((i = 0; i < 500; ++i)); do
    [[ $("$tool" stats --fabric "$SIMHCA_FABRIC" 2>&1) == *"2 ring(s)"* ]] && break
    sleep 0.02
  done
  dd if=/dev/zero of=/dev/shm/filler bs=4k status=none 2>/dev/null
  expect_no_room_for_rings
  kill -0 "${holders[@]}" || fail "a process ended when the file system was full: $(cat "$work"/*.log)"
  rm /dev/shm/filler
  two_processes_talk >"$work/again" || fail "with room again: $(cat "$work/again")"
  # The first two have streamed all the time, and still do.
  kill -0 "${holders[@]}" || fail "a process has ended: $(cat "$work"/*.log)"
  local before
  before=$(messages_sent)
  for ((i = 0; i < 500; ++i)); do
    [[ $(messages_sent) != "$before" ]] && break
    sleep 0.02
  done
  ((i < 500)) || fail "the two have stopped: $(cat "$work"/*.log)"
}

messages_sent() { "$tool" stats --fabric "$SIMHCA_FABRIC" | grep sends_completed; }

room_that_runs_out_hurts_nobody_who_has_his() {
  own_fabric
  on_small_shm 2500 fills_and_empties
}

# scribbled AREA SEED...: two processes that talk while somebody writes into AREA of their fabric.
scribbled() {
  local area=$1 seed side status
  shift
  for seed; do
    own_fabric
    holders=()
    rm -f "$work/to_a" "$work/to_b"
    start_pair endure
    wait_until "${holders[1]}" test -s "$(fabric_file)"
    "$scribble" "$(fabric_file)" "$seed" 2500 "$area" || fail "scribble: exit $?"
    for side in 0 1; do
      wait "${holders[side]}"
      status=$?
      ((status == 0)) || fail "seed $seed: exit $status: $(cat "$work"/*.log)"
    done
    rm -f $(fabric_files)
  done
  cat "$work"/*.log
}

ends_with_its_last_thread() {
  local clock output
  for clock in wall virtual; do
    own_fabric
    output=$(SIMHCA_CLOCK=$clock preloaded timeout -s KILL 20 "$root/tests/clients/last_thread" 2>&1) ||
      fail "clock $clock: exit $?: $output"
    [[ $output == "worker done" ]] || fail "clock $clock: $output"
  done
}

writes_a_timeline() {
  own_fabric
  SIMHCA_CLOCK=virtual SIMHCA_TIMELINE=$work/t.json preloaded "$peer" \
    --gtest_filter=SrqCases.Row12OneEventAtSixLeftDisarms >"$work/log" 2>&1 || fail "exit $?: $(cat "$work/log")"
  [[ $(head -n 1 "$work/t.json") == "[" && $(tail -n 1 "$work/t.json") == "]" ]] || fail "not an array"
  grep -q '"name":"SRQ limit reached","pid":0,"tid":5,' "$work/t.json" || fail "no limit event"
  grep -qE '"ph":"C","name":"SRQ [0-9]+ fill"' "$work/t.json" || fail "no fill"
  ! grep -vE '^(\[|\]|\{"ph":"[MXCi]".*\},?)$' "$work/t.json" || fail "lines of another form"
}

run_case WritesATimeline writes_a_timeline
run_case EndsWithItsLastThread ends_with_its_last_thread
run_case KilledProcessesLeaveWhatCleanRemoves killed_processes_leave_what_clean_removes
run_case NextStartReclaimsWhatKilledProcessesLeft next_start_reclaims_what_killed_processes_left
run_case KilledPairLeavesNothingForLong killed_pair_leaves_nothing_for_long
run_case OtherBuildIsRefusedWithAMessage other_build_is_refused_with_a_message
run_case FabricThatOthersMayReadIsRefused readable_fabric_is_refused
run_case NoRoomForAFabricIsExplained no_room_for_a_fabric_is_explained
run_case NoRoomForARingIsExplained no_room_for_a_ring_is_explained
run_case RoomThatRunsOutHurtsNobodyWhoHasHis room_that_runs_out_hurts_nobody_who_has_his
run_case GarbageInTheHeaderCrashesNobody scribbled header 1
run_case GarbageInTheRingDirectoryCrashesNobody scribbled directory 2
run_case GarbageInTheOwnersCrashesNobody scribbled owners 3
run_case GarbageInTheSlotsCrashesNobody scribbled slots 4
run_case GarbageInTheRingsCrashesNobody scribbled rings 5
run_case GarbageEverywhereCrashesNobody scribbled all 6 7
finish
