# The Debian packages that the project needs, and their installation.  Sourced by build.sh.

# What each job needs beyond the jobs before it.
packages_build="g++ binutils bazel-bootstrap bazel-platforms bazel-rules-java libibverbs-dev
  libboost-dev libcli11-dev libfmt-dev libtomlplusplus-dev libgtest-dev libgmock-dev
  libbenchmark-dev"
packages_demo="ibverbs-utils"
packages_bench="perftest python3"
packages_plot="python3-matplotlib"
# Never installed from here: a benchmark compares with it where it is.
packages_ns3="libns3-dev"
packages_test="ibverbs-providers perftest python3-pyverbs"
packages_fuzz="clang libclang-rt-14-dev"

packages_for() {
  case $1 in
    build) echo $packages_build ;;
    demo) echo $packages_build $packages_demo ;;
    bench) echo $packages_build $packages_bench ;;
    plot) echo python3 $packages_plot ;;
    ns3) echo $packages_ns3 ;;
    test) echo $packages_build $packages_demo $packages_test ;;
    fuzz) echo $packages_build $packages_demo $packages_test $packages_fuzz ;;
  esac
}

packages_main() {
  case ${1:-all} in
    all)
      echo "build: $(echo $packages_build)"
      echo "demo:  $(echo $packages_demo)"
      echo "bench: $(echo $packages_bench)"
      echo "plot:  $(echo $packages_plot)"
      echo "ns3:   $(echo $packages_ns3)"
      echo "test:  $(echo $packages_test)"
      echo "fuzz:  $(echo $packages_fuzz)"
      ;;
    build | demo | bench | plot | ns3 | test | fuzz) packages_for "$1" ;;
    -h | --help) cat <<END
Usage: ./simhca packages [build|demo|bench|plot|ns3|test|fuzz]
Lists the Debian packages that the project needs: by job, or all that one job needs on one line.
The jobs install what is missing by themselves, with apt-get.  plot is what \`./simhca bench --plot\`
needs; ns3 is optional: bench/event_queue.cc compares with ns-3's scheduler where it is installed.
END
      ;;
    *) one_of packages "$1" build demo bench plot ns3 test fuzz ;;
  esac
}

# missing_packages NAME...: those that are not installed, on one line.
missing_packages() {
  local installed name
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null)"
  for name; do
    [[ $installed == *" installed:$name "* ]] || printf '%s ' "$name"
  done
}

# need_packages JOB: installs what JOB needs and the machine lacks, or ends with the list.
need_packages() {
  local missing names log as_root=
  names=$(packages_for "$1")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    [[ -n ${SIMHCA_NO_PACKAGES-} ]] && return
    die "this is not a Debian system, so what is needed cannot be installed from here." \
      "Install the equivalents of: $names -- then set SIMHCA_NO_PACKAGES=1"
  fi
  missing=$(missing_packages $names)
  [[ -n $missing ]] || return 0
  say "missing packages: $missing"
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "neither root nor sudo here; as root: apt-get install --no-install-recommends $missing"
    as_root=sudo
  fi
  log=$(mktemp)
  say "installing them with apt-get"
  # The package lists may be missing or old: the second attempt is with fresh ones.
  apt_install $missing >"$log" 2>&1 || {
    $as_root apt-get update >>"$log" 2>&1
    apt_install $missing >>"$log" 2>&1
  }
  missing=$(missing_packages $names)
  if [[ -n $missing ]]; then
    tail -n 15 "$log" >&2
    die "could not install: $missing (full log: $log)"
  fi
  rm -f "$log"
}

apt_install() {
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
