# ./simhca bench --validate: the device model against published figures.  Sourced by bench.sh.

# validate_main FILE JSON: ends with the comparison's exit status.  FILE may be empty: what the project
# ships; so may JSON.
validate_main() {
  local file=${1:-$root/bench/model/published.toml} json=$2 bin
  [[ -f $file && -r $file ]] || die "--validate: no file '$file'"
  need_packages bench
  bazel_run build --config=opt //bench/model:validate 1>&2 || die 1 "the build failed; the errors are above"
  bin=$(bazel_run info --config=opt bazel-bin 2>/dev/null) || die 1 "Bazel does not tell where its output is"
  exec "$bin/bench/model/validate" ${json:+--json "$json"} -- "$file"
}
