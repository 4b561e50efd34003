# ./simhca demo: an unmodified program of rdma-core, as server and client.  Sourced by simhca.

demo_help() {
  cat <<END
Usage: ./simhca demo
Runs ibv_srq_pingpong of Debian's ibverbs-utils, as it is, as two processes under the simulator: 16
queue pairs that share one receive queue, with the received data checked, then the devices' counters.
END
}

# wait_for_port PORT PID: until something listens on the TCP port, PID ends, or 5 s are over.
wait_for_port() {
  local hex i
  printf -v hex ':%04X ' "$1"
  for ((i = 0; i < 250; i++)); do
    grep -qsE "$hex"'[0-9A-F]+:0000 0A ' /proc/net/tcp /proc/net/tcp6 && return
    kill -0 "$2" 2>/dev/null || return
    sleep 0.02
  done
}

# show_result SIDE: what one side says of its run; all it says if it failed.
show_result() {
  grep -hE 'bytes in|iters in|[Ii]nvalid|ail|rror' "$demo_logs/$1.out" | sed "s/^ */  $1: /"
  grep -vE '^[a-z_]+ [0-9]+$' "$demo_logs/$1.err" | sed "s/^/  $1: /"
}

# show_counters: those that are not zero, of both sides' devices.
show_counters() {
  awk 'NF == 2 && $2 ~ /^[0-9]+$/ {
         if (!($1 in seen)) { seen[$1] = 1; names[++count] = $1 }
         value[FILENAME == ARGV[1], $1] = $2
       }
       END {
         printf "\n%-24s %12s %12s\n", "simhca0", "server", "client"
         for (i = 1; i <= count; ++i) {
           server = value[1, names[i]] + 0
           client = value[0, names[i]] + 0
           if (server + client > 0) printf "%-24s %12d %12d\n", names[i], server, client
         }
         print ""
       }' "$demo_logs/server.err" "$demo_logs/client.err"
}

demo_main() {
  [[ ${1-} == -h || ${1-} == --help ]] && { demo_help; exit 0; }
  (($# == 0)) || die "demo: takes no arguments"
  need_packages demo
  build_once opt

  local port=$((20000 + RANDOM % 20000)) server client_status server_status
  local program=(ibv_srq_pingpong -d simhca0 -g 0 -q 16 -c -n 500 -p "$port")
  demo_logs=$(mktemp -d)
  trap 'rm -rf "$demo_logs"' EXIT
  export SIMHCA_FABRIC=demo-$$ SIMHCA_STATS=1

  echo "server: ./simhca run -- ${program[*]}"
  timeout 30 "$root/simhca" run -- "${program[@]}" >"$demo_logs/server.out" 2>"$demo_logs/server.err" &
  server=$!
  wait_for_port "$port" "$server"
  echo "client: ./simhca run -- ${program[*]} 127.0.0.1"
  timeout 30 "$root/simhca" run -- "${program[@]}" 127.0.0.1 >"$demo_logs/client.out" 2>"$demo_logs/client.err"
  client_status=$?
  ((client_status == 0)) || kill "$server" 2>/dev/null
  wait "$server"
  server_status=$?

  show_result server
  show_result client
  if ((client_status != 0 || server_status != 0)); then
    die 1 "the demo failed (server: exit $server_status, client: exit $client_status)"
  fi
  show_counters
  echo "The server received every message through one shared receive queue and found the data right."
}
