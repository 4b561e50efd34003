# Latency and message rate between two processes: perftest's ib_send_lat and ib_send_bw with a
# shared receive queue, as they are, under the simulator.  Sourced by scripts/bench.sh.
source "$root/scripts/demo.sh"  # wait_for_port

# Name, program, bytes of a message, number of messages.
two_process_runs() {
  cat <<END
TwoProcessLatency/bytes:8 ib_send_lat 8 20000
TwoProcessLatency/bytes:64 ib_send_lat 64 20000
TwoProcessLatency/bytes:65536 ib_send_lat 65536 2000
TwoProcessRate/bytes:8 ib_send_bw 8 200000
TwoProcessRate/bytes:64 ib_send_bw 64 200000
TwoProcessRate/bytes:65536 ib_send_bw 65536 5000
END
}

# choose_cpus: the first two processors that this process may use, into $cpus.
choose_cpus() {
  local list range ranges cpu
  list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
  cpus=()
  IFS=, read -ra ranges <<<"$list"
  for range in "${ranges[@]}"; do
    for ((cpu = ${range%-*}; cpu <= ${range#*-} && ${#cpus[@]} < 2; ++cpu)); do
      cpus+=("$cpu")
    done
  done
}

# pinned SIDE COMMAND...: on a processor of its own where there are two.
pinned() {
  local side=$1
  shift
  ((${#cpus[@]} < 2)) || set -- taskset -c "${cpus[side]}" "$@"
  exec timeout -k 5 60 "$@"
}

# run_two PROGRAM BYTES MESSAGES: the client's row of numbers, into $row.
run_two() {
  local port=$((20000 + RANDOM % 20000)) server client_status server_status
  local program=("$root/simhca" run -- "$1" -F -x 0 --use-srq -s "$2" -n "$3" -p "$port")
  export SIMHCA_FABRIC=bench-$$-$port
  (pinned 0 "${program[@]}") >"$bench_parts/server" 2>&1 &
  server=$!
  wait_for_port "$port" "$server"
  (pinned 1 "${program[@]}" 127.0.0.1) >"$bench_parts/client" 2>&1
  client_status=$?
  ((client_status == 0)) || kill "$server" 2>/dev/null
  wait "$server"
  server_status=$?
  unset SIMHCA_FABRIC
  row=$(awk '/^ *#bytes/ { on = 1; next } on && $1 ~ /^[0-9]+$/ { print; exit }' "$bench_parts/client")
  ((client_status == 0 && server_status == 0)) && [[ -n $row ]] && return
  say "$1 failed (server: exit $server_status, client: exit $client_status)"
  tail -n 15 "$bench_parts/server" "$bench_parts/client" >&2
  return 1
}

# json_entry NAME: one benchmark in Google Benchmark's format, from $row.
json_entry() {
  awk -v name="$1" '
    function field(key, value) { printf ",\n      \"%s\": %s", key, value }
    {
      printf "    {\n      \"name\": \"%s\"", name
      field("run_name", "\"" name "\"")
      field("run_type", "\"iteration\"")
      field("iterations", $2)
      if (name ~ /Latency/) {
        # bytes, messages, minimum, maximum, typical, average, deviation, 99 %, 99.9 %
        field("real_time", $5)
        field("time_unit", "\"us\"")
        field("minimum_us", $3)
        field("maximum_us", $4)
        field("percentile_99_us", $8)
      } else {
        # bytes, messages, peak MiB/s, average MiB/s, million messages per second
        field("real_time", 1000 / $5)
        field("time_unit", "\"ns\"")
        field("items_per_second", $5 * 1e6)
        field("bytes_per_second", $5 * 1e6 * $1)
      }
      printf "\n    }"
    }' <<<"$row"
}

print_row() {
  awk -v name="$1" '{
    result = name ~ /Latency/ ? \
      sprintf("%9.2f us typical   %9.2f us minimum   %9.2f us 99 %%", $5, $3, $8) : \
      sprintf("%9.3f million messages/s   %9.1f MiB/s", $5, $4)
    printf "%-32s %s\n", name, result
  }' <<<"$row"
}

# two_process_main FILTER JSON LIST: each may be empty.  Returns 1 if a run failed.
two_process_main() {
  local filter=$1 json=$2 list=$3 name program bytes messages row cpus entries= status=0 announced=$3
  choose_cpus
  while read -r name program bytes messages; do
    [[ -z $filter || $name =~ $filter ]] || continue
    [[ -z $list ]] || { echo "$name"; continue; }
    [[ -n $announced ]] || say "perftest as two processes, with an SRQ, on processors: ${cpus[*]}"
    announced=1
    if run_two "$program" "$bytes" "$messages"; then
      print_row "$name"
      entries+=${entries:+,$'\n'}$(json_entry "$name")
    else
      status=1
    fi
  done < <(two_process_runs)
  [[ -z $json || -z $entries ]] ||
    printf '{\n  "context": {\n    "executable": "bench/two_process.sh"\n  },\n  "benchmarks": [\n%s\n  ]\n}\n' \
      "$entries" >"$json"
  return "$status"
}
