#!/bin/bash
# ./simhca ctl and what programs under the shim see of it.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
source tests/cases.sh
suite Ctl "$@"
source tests/clients/clients.sh

program=$root/tests/control/use_device

# start NAME HOW: the program, which says what it sees in $work/NAME and is told what to do by
# `tell NAME`; sets $qp_NAME and $srq_NAME to its numbers, and $pid_NAME.
start() {
  local name=$1 words pid
  mkfifo "$work/$name.in"
  exec {input}<>"$work/$name.in"
  printf -v "input_$name" %s "$input"
  become_under_shim "$program" "$2" <"$work/$name.in" >"$work/$name" 2>&1 &
  pid=$!
  started+=("$pid")
  trap 'kill "${started[@]}" 2>/dev/null' EXIT
  wait_until "$pid" grep -qs '^ready' "$work/$name" || fail "$name: $(cat "$work/$name")"
  read -r -a words <"$work/$name"
  printf -v "qp_$name" %s "${words[2]}"
  printf -v "srq_$name" %s "${words[4]}"
  read -r "pid_$name" <"/proc/$pid/task/$pid/children"  # of timeout: the program itself
}
started=()

tell() {
  local input=input_$1
  echo "${*:2}" >&"${!input}"
}

# expect NAME LINE [COUNT]: the program says the line (a regular expression), so often in all.
expect() {
  local name=$1 line=$2 count=${3:-1} end=$((SECONDS + 30))
  until (($(grep -cE "^$line\$" "$work/$name") >= count)); do
    ((SECONDS < end)) || fail "no '$line' from $name, which says: $(cat "$work/$name")"
    sleep 0.01
  done
  (($(grep -cE "^$line\$" "$work/$name") == count)) || fail "too often '$line': $(cat "$work/$name")"
}

# ctl STATUS REGEX ARGS...
ctl() {
  local status=$1 regex=$2 output
  shift 2
  output=$("$root/simhca" ctl "$@" 2>&1)
  expect_eq $? "$status" "status of ctl $* (which printed: $output)"
  expect_match "$output" "$regex" "output of ctl $*"
}

connect_pair() {
  start a block
  start b block
  tell a connect "$qp_b"
  tell b connect "$qp_a"
  expect a connected
  expect b connected
}

# every_event HOW CLOCK
every_event() {
  own_fabric
  export SIMHCA_CLOCK=$2
  start a "$1"
  ctl 0 'use_device.*1 context told' simhca0 port down
  expect a 'event PORT_ERR port 1'
  ctl 0 '1 context told' simhca0 port up
  expect a 'event PORT_ACTIVE port 1'
  local command
  for command in lid-change:LID_CHANGE gid-change:GID_CHANGE pkey-change:PKEY_CHANGE \
    sm-change:SM_CHANGE client-reregister:CLIENT_REREGISTER; do
    ctl 0 '1 context told' simhca0 "${command%:*}"
    expect a "event ${command#*:} port 1"
  done
  ctl 0 '1 queue pair told' simhca0 qp-path-migrated "$qp_a"
  expect a "event PATH_MIG qp $qp_a"
  ctl 0 '1 queue pair told' simhca0 qp-path-failed all
  expect a "event PATH_MIG_ERR qp $qp_a"
  ctl 0 '1 queue pair told' simhca0 qp-fatal "$qp_a"
  expect a "event QP_FATAL qp $qp_a"
  expect a "event LAST_WQE qp $qp_a"
  ctl 0 '1 SRQ told' simhca0 srq-error "$srq_a"
  expect a 'event SRQ_ERR srq'
  ctl 0 '1 context told' simhca0 fatal
  expect a 'event DEVICE_FATAL'
}

reaches_a_sleeping_program() {
  own_fabric
  start a sleep
  ctl 0 '1 context told' simhca0 port down
  expect a 'port 1'
}

a_port_that_is_down() {
  own_fabric
  connect_pair
  tell a send
  tell a wait
  expect a 'completion success'
  ctl 0 'told.*told' simhca0 port down
  expect b 'event PORT_ERR port 1'
  tell a port
  expect a 'port 1 phys 3'
  tell b receive
  tell a send
  tell a wait
  expect a 'completion transport retry counter exceeded'
  tell b state
  expect b 'state 3'
  # One that starts now finds it down, and nothing has changed for it.
  start c block
  tell c port
  expect c 'port 1 phys 3'
  ctl 0 '' simhca0 port up
  expect c 'event PORT_ACTIVE port 1'
  tell c port
  expect c 'port 4 phys 5'
}

traffic_goes_on_after_port_up() {
  own_fabric
  connect_pair
  ctl 0 'told.*told' simhca0 port down
  tell a send
  tell a wait
  expect a 'event PORT_ERR port 1'
  ctl 0 'told.*told' simhca0 port up
  expect a 'completion success'
}

a_device_that_failed() {
  own_fabric
  connect_pair
  ctl 0 'context told' --pid "$pid_b" simhca0 fatal
  expect b 'event DEVICE_FATAL'
  tell b alloc
  expect b 'alloc Input/output error'
  tell b port
  expect b 'port Input/output error'
  tell b state
  expect b 'state Input/output error'
  tell a send
  tell a wait
  expect a 'completion transport retry counter exceeded'
  tell a alloc
  expect a 'alloc ok'
  ctl 0 'simhca0: port up.*simhca0: failed|simhca0: failed.*simhca0: port up' simhca0 list
}

a_failed_device_opens_again() {
  own_fabric
  start a none
  ctl 0 'context told' simhca0 fatal
  tell a alloc
  expect a 'alloc Input/output error'
  tell a reopen
  expect a 'closed 0 0 0 0 0 0'
  tell a alloc
  expect a 'alloc ok'
  tell a close
  expect a 'closed 0 0 0 0 0 0' 2
}

an_srq_that_failed() {
  own_fabric
  connect_pair
  ctl 0 '1 SRQ told' simhca0 srq-error "$srq_b"
  expect b 'event SRQ_ERR srq'
  expect b "event LAST_WQE qp $qp_b"
  tell b receive
  expect b 'receive Invalid argument'
  tell b state
  expect b 'state 6'
  tell b send
  tell b wait
  expect b 'completion Work Request Flushed Error'
  tell b close
  expect b 'closed 0 0 0 0 0 0'
}

lists_numbers() {
  own_fabric
  connect_pair
  ctl 0 "QP  $qp_a  RTS +peer $qp_b  SRQ $srq_a" simhca0 list
  ctl 0 "SRQ $srq_b  limit 0  fill 1" simhca0 list
  ctl 0 "process $pid_b .use_device." simhca0 list --pid "$pid_b"
}

says_what_is_wrong() {
  own_fabric
  ctl 1 "there is no fabric '$SIMHCA_FABRIC'" simhca0 fatal
  start a block
  ctl 1 "no process of fabric '$SIMHCA_FABRIC' has a device simhca1" simhca1 fatal
  ctl 1 'has queue pair 0x1 on simhca0' simhca0 qp-fatal 0x1
  ctl 1 'there is no fabric .nobodys' simhca0 --fabric nobodys fatal
  kill -STOP "$pid_a"
  ctl 1 "process $pid_a .use_device. does not answer.*Nothing has happened" simhca0 gid-change
  ctl 1 "^process $pid_a .use_device. does not answer within 2000 ms: is it stopped\?\$" simhca0 list
  kill -CONT "$pid_a"
  ctl 0 '1 context told' simhca0 lid-change
  expect a 'event LID_CHANGE port 1'
  expect a 'event GID_CHANGE port 1' 0
}

names_the_object_that_has_failed_before() {
  own_fabric
  start a block
  ctl 0 '1 SRQ told' simhca0 srq-error "$srq_a"
  ctl 1 "^process $pid_a .use_device.: SRQ $srq_a of simhca0 has failed before\$" \
    simhca0 srq-error "$srq_a"
  ctl 1 ': every SRQ of simhca0 has failed before$' simhca0 srq-error all
  ctl 0 '1 queue pair told' simhca0 qp-fatal "$qp_a"
  ctl 1 ": queue pair $qp_a of simhca0 has failed before\$" simhca0 qp-fatal "$qp_a"
  ctl 0 '1 context told' simhca0 fatal
  ctl 1 ': simhca0 has failed before$' simhca0 lid-change
}

# wrong PROBLEM ARGS...: one line of the launcher's, with PROBLEM (a regular expression).
wrong() {
  local problem=$1
  shift
  ctl 2 "^simhca: ctl: $problem \\(see ./simhca ctl --help\\)\$" "$@"
}

refuses_wrong_usage() {
  own_fabric
  start a block
  wrong 'DEVICE is required'
  wrong 'COMMAND is required' simhca0
  wrong "'simhca00' is not a device: they are simhca0 to simhca63" simhca00 fatal
  wrong 'port takes down or up' simhca0 port
  wrong "port takes down or up, not 'left'" simhca0 port left
  wrong "'explode' is not a command; known: list, [^"$'\n'"]*" simhca0 explode
  wrong 'qp-fatal takes the number of one queue pair, or all' simhca0 qp-fatal
  wrong "fatal takes nothing more, not 'all'" simhca0 fatal all
  wrong "unknown argument '--loud'" simhca0 --loud fatal
  wrong "qp-fatal takes the number of one queue pair, or all, not '-1'" simhca0 qp-fatal -1
  wrong '--pid needs a value' simhca0 fatal --pid
  wrong '--fabric needs a value' simhca0 fatal --fabric
  local pid
  for pid in x 0 -5 1.5 4294967296; do
    wrong "--pid: '$pid' is not a process id" simhca0 "--pid=$pid" fatal
  done
  expect a 'event .*' 0
  local output
  output=$("$root/simhca" stats extra 2>&1)
  expect_eq $? 2 "status of stats with an argument"
  expect_eq "$output" "simhca: stats: unknown argument 'extra' (see ./simhca stats --help)"
}

help_names_every_command() {
  local help known name names
  help=$("$root/simhca" ctl simhca0 --help)
  expect_match "$help" '^Usage: ./simhca ctl ' "help"
  known=$("$root/simhca" ctl simhca0 explode 2>&1)
  known=${known#*known: }
  IFS=, read -ra names <<<"${known% (see*}"
  ((${#names[@]} > 10)) || fail "few commands: $known"
  for name in "${names[@]# }"; do
    expect_match "$help" "(^|[|"$'\n'"]|, ) *$name( |$|"$'\n'")" "help on $name"
  done
}

run_case EveryEventComesToAThreadThatWaitsForIt every_event block wall
run_case EveryEventComesToAProgramInPoll every_event poll-fd wall
run_case EveryEventComesToAProgramThatPollsForCompletions every_event poll-cq wall
run_case EveryEventComesUnderVirtualTime every_event block virtual
run_case EveryEventComesInPollUnderVirtualTime every_event poll-fd virtual
run_case EveryEventComesWhilePollingUnderVirtualTime every_event poll-cq virtual
run_case ReachesAProgramThatCallsNothing reaches_a_sleeping_program
run_case APortThatIsDownDropsWhatIsSent a_port_that_is_down
run_case TrafficGoesOnAfterPortUp traffic_goes_on_after_port_up
run_case AFatalErrorEndsOneProcesssDevice a_device_that_failed
run_case AFailedDeviceOpensAgain a_failed_device_opens_again
run_case AnSrqErrorEndsItsQueuePairs an_srq_that_failed
run_case ListsTheNumbersThatCtlTakes lists_numbers
run_case SaysWhatIsWrong says_what_is_wrong
run_case NamesTheObjectThatHasFailedBefore names_the_object_that_has_failed_before
run_case RefusesWrongUsageInOneLine refuses_wrong_usage
run_case HelpNamesEveryCommand help_names_every_command
finish
