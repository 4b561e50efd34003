# Starting verbs programs under the shim, as a user would: server and client on this host, each pair
# on a fabric of its own.  Sourced behind tests/cases.sh, from the root of the project.
#
# DEADLINE is the number of seconds that each program gets (default 120: sanitizers are slow, and so
# are machines with other work).

build_folder=${SIMHCA_BUILD_DIR:-$PWD/build}
unset "${!SIMHCA_@}" LD_PRELOAD
export SIMHCA_BUILD_DIR=$build_folder
root=$PWD
# Bazel gives the shim it has just built; by hand the tests take that of `./simhca build`.
if [[ -e verbs_shim/libsimhca.so && -z $listing ]]; then
  source scripts/build.sh
  stage "$PWD" "$work/build/opt" && touch "$work/build/opt/stamp" || exit
  SIMHCA_BUILD_DIR=$work/build
fi

DEADLINE=${DEADLINE:-120}
tcp_port=$((20000 + RANDOM % 20000))

# under_shim PROGRAM ARGS...: with the time it may take.
under_shim() { timeout -k 5 "$DEADLINE" "$root/simhca" run -- "$@"; }

# become_under_shim PROGRAM ARGS...: the same for the background, where $! is then the pid of timeout,
# which passes SIGTERM on, and not that of a shell.
become_under_shim() { exec timeout -k 5 "$DEADLINE" "$root/simhca" run -- "$@"; }

# own_fabric: a fabric that no other test uses, for the rest of the case.
own_fabric() {
  export SIMHCA_FABRIC=test-$BASHPID-$RANDOM$RANDOM
  echo "$SIMHCA_FABRIC" >>"$work/fabrics"
}

listening() {
  grep -qsE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# free_port: sets $tcp_port to a TCP port on which nothing listens.
free_port() {
  while ((++tcp_port)) && listening "$tcp_port"; do :; done
}

# wait_until PID COMMAND...: until COMMAND succeeds, PID has ended, or 20 s are over.
wait_until() {
  local pid=$1 end=$((SECONDS + 20))
  shift
  until "$@"; do
    kill -0 "$pid" 2>/dev/null && ((SECONDS < end)) || return
    sleep 0.02
  done
}

# start_server CMD...: in the background, with its output in $work/server; sets $server_pid.  Returns
# when it listens on $tcp_port.
start_server() {
  become_under_shim "$@" >"$work/server" 2>&1 &
  server_pid=$!
  trap 'kill "$server_pid" 2>/dev/null' EXIT
  wait_until "$server_pid" listening "$tcp_port"
}

# run_pair CONNECTION-OPTIONS -- CMD...: the same program as server and client.  Sets
# $server_status and $client_status; the outputs are in $work/server and $work/client.
run_pair() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  start_server "$@" "${options[@]}"
  under_shim "$@" "${options[@]}" 127.0.0.1 >"$work/client" 2>&1
  client_status=$?
  ((client_status == 0)) || kill "$server_pid" 2>/dev/null
  wait "$server_pid"
  server_status=$?
}

# show_logs: what both said, for a case that is about to fail.
show_logs() {
  local side
  for side in server client; do
    [[ -s $work/$side ]] || continue
    echo "---- $side"
    tail -n 40 "$work/$side"
  done
  echo "----"
}

pair_failed() {
  show_logs
  fail "$*"
}

# expect_success: both sides ended well.
expect_success() {
  ((client_status == 0 && server_status == 0)) ||
    pair_failed "status of client: $client_status, of server: $server_status (124: deadline)"
}

# expect_said SIDE REGEX and expect_unsaid SIDE REGEX
expect_said() { grep -qaE -- "$2" "$work/$1" || pair_failed "the $1 does not say '$2'"; }
expect_unsaid() { ! grep -qaE -- "$2" "$work/$1" || pair_failed "the $1 says '$2'"; }

# expect_nothing_left: the fabric's shared memory went with its last process.
expect_nothing_left() {
  local left
  left=$(find /dev/shm -name "*$SIMHCA_FABRIC*")
  [[ -z $left ]] || pair_failed "left behind: $left"
}

# run_table FUNCTION: one case for each line "NAME COMMAND..." of standard input.
run_table() {
  local name command
  while read -r name command; do
    [[ -z $name || $name == \#* ]] || run_case "$name" "$1" $command
  done
}
