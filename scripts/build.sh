# ./simhca build, and what the other jobs need of Bazel.  Sourced by simhca.
source "$root/scripts/packages.sh"

build_targets=(//verbs_shim:simhca //verbs_shim:dropin //sim/tools:simhca-tool)

build_help() {
  cat <<END
Usage: ./simhca build [--config opt|asan|tsan|ubsan]

Builds the simulator with Bazel, offline, and copies what \`run\` needs to $build_dir/CONFIG:
  lib/libsimhca.so               for LD_PRELOAD, next to the real libibverbs
  lib/dropin/libibverbs.so.1     for LD_LIBRARY_PATH, on machines without rdma-core
  bin/simhca-tool                devices, profiles, ctl, stats and clean
END
}

# bazel_run ARGS...: Bazel in the project, also where HOME or USER are not set (containers).
bazel_run() {
  local startup=()
  [[ -d ${HOME-} && -w ${HOME-} ]] || startup=(--output_user_root="${TMPDIR:-/tmp}/simhca-bazel-$EUID")
  (
    cd "$root" || exit
    unset LD_PRELOAD
    USER=${USER:-$(id -un 2>/dev/null || echo "uid$EUID")} exec bazel "${startup[@]}" "$@"
  )
}

# stage FROM TO: copies what was built in the Bazel output folder FROM into the layout that `run`
# uses.  Each file appears whole, under its name, so programs that run keep the one they have.
stage() {
  local from=$1 to=$2 file target
  mkdir -p "$to/lib/dropin" "$to/bin"
  for file in verbs_shim/libsimhca.so verbs_shim/dropin/libibverbs.so.1 verbs_shim/dropin/libefa.so.1 \
    sim/tools/simhca-tool; do
    case $file in
      verbs_shim/*) target=$to/lib/${file#verbs_shim/} ;;
      *) target=$to/bin/${file##*/} ;;
    esac
    if [[ -e $from/$file ]]; then
      cp -f -- "$from/$file" "$target.new" && chmod u+w "$target.new" && mv -f -- "$target.new" "$target" ||
        return
    else
      rm -f -- "$target"
    fi
  done
  # The sanitizer runtime that must be loaded ahead of a sanitized shim; empty otherwise.
  LC_ALL=C readelf -dW "$to/lib/libsimhca.so" | grep -oE 'lib(asan|tsan)\.so[.0-9]*' >"$to/lib/runtime"
  return 0
}

# build_locked CONFIG always|once: builds and stages while it holds the project's build lock.
# With `once`, a build that somebody else finished in the meantime will do.
build_locked() {
  local config=$1 when=$2 out=$build_dir/$1 started bin
  mkdir -p "$out" || die "cannot write to $build_dir"
  (
    flock -n 9 || {
      say "another build is running; waiting for it"
      flock 9
    }
    [[ $when == once && -e $out/stamp ]] && exit 0
    # Dated before the build, so that a source edited meanwhile counts as newer.
    started=$(mktemp "$out/.started.XXXXXX")
    trap 'rm -f "$started"' EXIT
    # The descriptor of the lock must not reach Bazel's server, which stays.
    bazel_run build --config="$config" "${build_targets[@]}" 9>&- ||
      die 1 "the build failed; the errors are above"
    bin=$(bazel_run info --config="$config" bazel-bin 2>/dev/null 9>&-) ||
      die 1 "Bazel does not tell where its output is"
    stage "$bin" "$out" || die 1 "could not copy the build from $bin to $out"
    mv -f -- "$started" "$out/stamp"
  ) 9>"$build_dir/.lock"
}

# build_once CONFIG: for jobs that only need some build to be there.
build_once() {
  [[ -e $build_dir/$1/stamp ]] && return
  say "nothing is built yet ($1): building, this once"
  need_packages build
  build_locked "$1" once 1>&2 || exit 1
}

build_main() {
  local config=opt value taken
  while (($# > 0)); do
    case $1 in
      -h | --help) build_help; exit 0 ;;
      --config | --config=*) take_option "$@" ;;
      *) die "build: unknown argument '$1' (see ./simhca build --help)" ;;
    esac
    config=$value
    shift "$taken"
  done
  one_of --config "$config" $configs
  need_packages build
  build_locked "$config" always || exit 1
  say "built $build_dir/$config"
}
