#!/bin/bash
# The launcher's contract: options, errors, exit status, signals, what the program finds in its
# environment, and when Bazel and apt are called.  The "shim" here is an empty library.
cd "$(dirname -- "${BASH_SOURCE[0]}")/../../.." || exit
source tests/cases.sh
suite Launcher "$@"

launcher=$PWD/simhca
unset "${!SIMHCA_@}" LD_PRELOAD
export SIMHCA_BUILD_DIR=$work/build
programs=$work/programs
mkdir "$programs"

compile() { g++ -x c++ "$@" - || echo "g++ $* failed" >&2; }

# fake_build CONFIG: a build folder such as `simhca build` leaves.
fake_build() {
  local out=$SIMHCA_BUILD_DIR/$1
  mkdir -p "$out/lib/dropin" "$out/bin"
  echo 'int simhca_fake_shim;' | compile -shared -fPIC -o "$out/lib/libsimhca.so"
  cp "$out/lib/libsimhca.so" "$out/lib/dropin/libibverbs.so.1"
  cat >"$out/bin/simhca-tool" <<'END'
#!/bin/sh
[ "$*" != check-settings ] || exit 0
echo "tool: $*"
exit 5
END
  chmod +x "$out/bin/simhca-tool"
  touch "$out/stamp" "$out/lib/runtime"
}

make_programs() {
  fake_build opt
  fake_build asan
  fake_build tsan
  echo libasan.so.8 >"$SIMHCA_BUILD_DIR/asan/lib/runtime"
  echo libtsan.so.2 >"$SIMHCA_BUILD_DIR/tsan/lib/runtime"
  local print='#include <stdio.h>
#include <stdlib.h>
int main() { const char* p = getenv("LD_PRELOAD"); puts(p ? p : ""); }'
  compile -static -o "$programs/static" <<<"$print"
  compile -fsanitize=address -o "$programs/with_asan" <<<"$print"
  compile -fsanitize=thread -o "$programs/with_tsan" <<<"$print"
  compile -fsanitize=undefined -o "$programs/with_ubsan" <<<"$print"
}

# expect_run STATUS REGEX ARGS...: `simhca ARGS...` ends with STATUS and prints what matches REGEX.
expect_run() {
  local status=$1 regex=$2 output
  shift 2
  output=$("$launcher" "$@" 2>&1)
  expect_eq $? "$status" "status of simhca $* (which printed: $output)"
  expect_match "$output" "$regex" "output of simhca $*"
}

shim() { echo "$SIMHCA_BUILD_DIR/${1:-opt}/lib/libsimhca.so"; }

passes_exit_status() {
  local status
  for status in 0 1 7 126 127 200; do expect_run $status '^$' run -- sh -c "exit $status"; done
}

passes_arguments() {
  expect_run 0 $'^<a b>\n<>\n<\\*>\n<-->\n<--clock>$' run -- printf '<%s>\n' 'a b' '' '*' -- --clock
}

takes_the_command_without_dashes() { expect_run 0 '^hello$' run --seed=1 echo hello; }

is_the_program_itself() {
  "$launcher" run -- sh -c 'echo $$ >"$0"; exec sleep 60' "$work/pid" &
  local pid=$! i
  for ((i = 0; i < 250; i++)); do [[ -s $work/pid ]] && break; sleep 0.02; done
  expect_eq "$(cat "$work/pid")" "$pid" "process id"
  kill -TERM "$pid"
  wait "$pid"
  expect_eq $? 143 "status after SIGTERM"
  expect_run 137 '' run -- sh -c 'kill -KILL $$'
}

leaves_no_child() {
  expect_run 1 '^$' run -- perl -e 'exit(wait() == -1 ? 1 : 0)'
}

preloads_the_shim() {
  expect_run 0 "^$(shim)\$" run -- printenv LD_PRELOAD
  LD_PRELOAD=libm.so.6 expect_run 0 "^$(shim):libm.so.6\$" run -- printenv LD_PRELOAD
  # Started from a program that runs under it already.
  expect_run 0 "^$(shim)\$" run -- "$launcher" run -- printenv LD_PRELOAD
  expect_run 0 "^$(shim tsan)\$|^libtsan.so.2:$(shim tsan)\$" run --config tsan -- "$programs/with_tsan"
}

exports_settings() {
  local names=(SIMHCA_PROFILE SIMHCA_DEVICES SIMHCA_DEVICE SIMHCA_CLOCK SIMHCA_ROUTE SIMHCA_FABRIC
    SIMHCA_SEED SIMHCA_LOG)
  touch "$work/own.toml"
  cd "$work" || exit
  expect_run 0 $'^'"$work"$'/own.toml\n3\nsimhca1='"$work"'/./own.toml,simhca2='"$work"$'/own.toml
virtual\nhw:mlx5_0,sim\nmy-fabric.1\n0x2a\ndebug$' \
    run --profile own.toml --devices 3 --device simhca1=./own.toml --device=simhca2=own.toml \
    --clock virtual --route hw:mlx5_0,sim --fabric my-fabric.1 --seed=0x2a --log debug -- \
    printenv "${names[@]}"
  expect_run 1 '^sim$' run -- printenv "${names[@]}"
  SIMHCA_CLOCK=virtual SIMHCA_LOG=off expect_run 0 $'^virtual\nwarn$' run --log warn -- \
    printenv SIMHCA_CLOCK SIMHCA_LOG
}

refuses_bad_values() {
  expect_run 2 "'fast' is not one of: wall, virtual" run --clock fast -- true
  expect_run 2 "'nic' is not one of: sim, hw, both, auto" run --route nic -- true
  expect_run 2 "'loud' is not one of: off, error, warn, info, debug" run --log=loud -- true
  expect_run 2 "'fast' is not one of: opt, asan, tsan, ubsan" run --config fast -- true
  expect_run 2 "'nosuch' is neither .* nor one of:" run --profile nosuch -- true
  expect_run 2 "no file './nosuch.toml'" run --profile ./nosuch.toml -- true
  expect_run 2 "'65' is not a number from 0 to 64" run --devices 65 -- true
  expect_run 2 "'-1' is not a number" run --devices -1 -- true
  expect_run 2 "'mlx5_0=efa' is not of the form" run --device mlx5_0=efa -- true
  expect_run 2 "'simhca01=generic' is not of the form" run --device simhca01=generic -- true
  expect_run 2 "'simhca1' is not of the form" run --device simhca1 -- true
  expect_run 2 "'a/b' may have" run --fabric a/b -- true
  expect_run 2 "needs a value" run --clock
  expect_run 2 "needs a value" run --clock= -- true
  expect_run 2 "unknown option '--colour'" run --colour -- true
  expect_run 2 "no program given" run --clock wall --
  SIMHCA_CLOCK=fast expect_run 2 "'fast' is not one of" run -- true
}

refuses_a_timeline_without_a_model() {
  SIMHCA_BUILD_DIR=$work/build
  fake_build opt
  expect_run 2 "^simhca: --timeline: only the virtual clock has a model" \
    run --timeline "$work/t.json" -- touch "$work/ran"
  expect_run 2 "^simhca: --timeline: cannot write '/nonexistent/t.json'" \
    run --clock virtual --timeline /nonexistent/t.json -- touch "$work/ran"
  [[ ! -e $work/ran ]] || fail "the program ran"
}

refuses_faults_and_seeds_as_the_simulator_does() {
  [[ -x sim/tools/simhca-tool ]] || skip "the tool is not built"
  SIMHCA_BUILD_DIR=$work/build
  fake_build opt
  cp -f sim/tools/simhca-tool "$SIMHCA_BUILD_DIR/opt/bin/"
  local item value help='\(see ./simhca run --help\)$'
  for item in loss=101% lose=0 delay=0ns drop=1%; do
    expect_run 2 "^simhca: run: --faults: '$item' is [^"$'\n'"]* $help" \
      run --faults "corrupt=1%,$item" -- touch "$work/ran"
  done
  expect_run 2 "^simhca: run: --faults: 'loss=2%': loss has been given before $help" \
    run --faults loss=1%,loss=2% -- touch "$work/ran"
  for value in x -1 18446744073709551616 0x10000000000000000; do
    expect_run 2 "^simhca: run: --seed: '$value' is not a number of 0 to 2\^64 - 1" \
      run "--seed=$value" -- touch "$work/ran"
  done
  SIMHCA_FAULTS=loss expect_run 2 "'loss' is not a probability" run -- touch "$work/ran"
  [[ ! -e $work/ran ]] || fail "the program was started"
  expect_run 0 $'^loss=1%,lose=1,lose=2\n18446744073709551615$' run --faults loss=1%,lose=1,lose=2 \
    --seed 18446744073709551615 -- printenv SIMHCA_FAULTS SIMHCA_SEED
}

refuses_what_cannot_run() {
  mkdir "$work/folder"
  printf 'text' >"$work/plain"
  printf '\x7fELF\x01 a 32-bit program' >"$work/narrow"
  chmod +x "$work/narrow"
  expect_run 127 "'no-such-program': command not found" run -- no-such-program
  expect_run 127 "no such file" run -- "$work/absent"
  expect_run 126 "is a directory" run -- "$work/folder"
  expect_run 126 "not executable" run -- "$work/plain"
  expect_run 126 "32-bit" run -- "$work/narrow"
  expect_run 126 "statically linked" run -- "$programs/static"
}

# script NAME LINE: an executable script in $work whose first line is LINE.
script() {
  printf '%s\necho ran\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}

refuses_scripts_for_programs_that_cannot_run() {
  script direct "#! $programs/static -x"
  script by_name '#!/usr/bin/env static'
  script split '#!/usr/bin/env -S A=b static -x'
  local name
  PATH=$programs:$PATH
  for name in direct by_name split; do
    expect_run 126 "'$work/$name' is a script for '$programs/static', which is statically linked" \
      run -- "$work/$name"
  done
  script sanitized "#!$programs/with_asan"
  expect_run 0 "^libasan\.so\.[0-9]+:$(shim)\$" run -- "$work/sanitized"
  script plain '#!/bin/sh'
  script env '#!/usr/bin/env sh'
  script none ''
  for name in plain env none; do expect_run 0 '^ran$' run -- "$work/$name"; done
  script absent '#!/no/such/interpreter'
  # Left to the kernel to report.
  expect_run 127 'absent: ' run -- "$work/absent"
}

refuses_files_that_are_no_programs() {
  : >"$work/empty"
  printf '\x7fELF' >"$work/magic"
  printf '\x7fELF\x02\x01' >"$work/ident"
  head -c 100 /usr/bin/env >"$work/header"
  mkfifo "$work/fifo"
  chmod +x "$work"/{empty,magic,ident,header,fifo}
  expect_run 126 "empty' is empty\$" run -- "$work/empty"
  local name
  for name in magic ident header; do
    expect_run 126 'not a program that can be inspected \(truncated ELF header\)' run -- "$work/$name"
  done
  local output
  output=$(timeout 10 "$launcher" run -- "$work/fifo" 2>&1)
  expect_eq $? 126 "status for a FIFO"
  expect_match "$output" "fifo' is not a regular file\$" "output for a FIFO"
  expect_run 127 "^simhca: '': command not found\$" run -- ''
}

refuses_setuid_programs() {
  if ((EUID != 0)); then
    [[ -u /usr/bin/su ]] || skip "no setuid program here"
    expect_run 126 "setuid" run -- su --help
    script of_su "#!$(type -P su)"
    expect_run 126 "which is a setuid" run -- "$work/of_su"
    return
  fi
  cp /usr/bin/true "$work/secure"
  chown nobody "$work/secure" && chmod u+s "$work/secure" || skip "cannot make a setuid program here"
  expect_run 126 "setuid" run -- "$work/secure"
  script of_secure "#!$work/secure"
  expect_run 126 "which is a setuid" run -- "$work/of_secure"
}

puts_sanitizers_first() {
  expect_run 0 "^libasan\.so\.[0-9]+:$(shim)\$" run -- "$programs/with_asan"
  expect_run 0 "^libtsan\.so\.[0-9]+:$(shim)\$" run -- "$programs/with_tsan"
  expect_run 0 "^libubsan\.so\.[0-9]+:$(shim)\$" run -- "$programs/with_ubsan"
}

puts_the_runtime_of_a_sanitized_shim_first() {
  expect_run 0 "^libasan.so.8:$(shim asan)"$'\ndetect_leaks=0$' run --config asan -- \
    printenv LD_PRELOAD ASAN_OPTIONS
  expect_run 0 "^libasan.so.8:$(shim asan)\$" run --config asan -- "$programs/with_asan"
  expect_run 126 "not built with -fsanitize=thread" run --config tsan -- true
}

runs_from_anywhere() {
  mkdir -p "$work/elsewhere"
  printf '#!/bin/sh\necho "script $0"\n' >"$work/elsewhere/script"
  chmod +x "$work/elsewhere/script"
  ln -s "$launcher" "$work/link"
  ln -s ../link "$work/elsewhere/link"
  cd "$work/elsewhere" || exit
  launcher=./link
  expect_run 0 '^script /.*/elsewhere/script$' run -- ./script
  PATH=$work/elsewhere:$PATH expect_run 0 "^script $work/elsewhere/script\$" run -- script
  expect_run 0 "^$(shim)\$" run -- printenv LD_PRELOAD
}

has_a_drop_in_form() {
  local dropin=$SIMHCA_BUILD_DIR/opt/lib/dropin
  export SIMHCA_FORM=dropin
  LD_LIBRARY_PATH=/opt/x expect_run 0 "^$dropin:/opt/x\$" run -- printenv LD_LIBRARY_PATH
  expect_run 1 '^$' run -- printenv LD_PRELOAD
  expect_run 2 "needs the real libibverbs" run --route hw -- true
  SIMHCA_FORM=other expect_run 2 "'other' is not one of: preload, dropin" run -- true
}

refuses_small_shared_memory() {
  unshare -rm sh -c 'mount -t tmpfs -o size=1m none /dev/shm' 2>/dev/null || skip "cannot mount here"
  local output
  output=$(unshare -rm sh -c 'mount -t tmpfs -o size=1m none /dev/shm; exec "$@"' - \
    "$launcher" run -- true 2>&1)
  expect_eq $? 2 "status"
  expect_match "$output" "/dev/shm has only 1024 KiB free" "output"
}

warns_once_about_old_builds() {
  SIMHCA_BUILD_DIR=$work/build
  fake_build opt
  expect_run 0 '^$' run -- true
  touch -d 2000-01-01 "$SIMHCA_BUILD_DIR/opt/stamp"
  expect_run 3 $'^[^\n]*sources are newer than the build[^\n]*$' run -- sh -c 'exit 3'
}

# fake_bazel: a `bazel` that notes each build in $work/builds and takes its time.
fake_bazel() {
  mkdir -p "$work/fake" "$work/output/verbs_shim/dropin" "$work/output/sim/tools"
  cp "$(shim)" "$work/output/verbs_shim/libsimhca.so"
  cp "$(shim)" "$work/output/verbs_shim/dropin/libibverbs.so.1"
  cp "$SIMHCA_BUILD_DIR/opt/bin/simhca-tool" "$work/output/sim/tools/simhca-tool"
  cat >"$work/fake/bazel" <<END
#!/bin/sh
case "\$*" in
  *info*) echo "$work/output" ;;
  *build*) echo build >>"$work/builds"; sleep 0.5; exit \${FAKE_BAZEL_STATUS:-0} ;;
esac
END
  # Every package that it is asked for is installed, unless $work/lacking says otherwise.
  cat >"$work/fake/dpkg-query" <<END
#!/bin/sh
for name; do
  case \$name in -*) continue ;; esac
  grep -qsx "\$name" "$work/lacking" || printf 'installed:%s ' "\$name"
done
END
  cat >"$work/fake/apt-get" <<END
#!/bin/sh
echo "\$*" >>"$work/apt"
[ -e "$work/apt-fails" ] && { echo "E: no network"; exit 100; }
# Installing works only once the lists are fresh.
case \$1 in
  update) touch "$work/updated" ;;
  install) [ -e "$work/updated" ] && : >"$work/lacking" ;;
esac
END
  printf '#!/bin/sh\nexec "$@"\n' >"$work/fake/sudo"
  chmod +x "$work"/fake/*
  PATH=$work/fake:$PATH
  SIMHCA_BUILD_DIR=$work/fresh
}

first_runs_build_once() {
  fake_bazel
  "$launcher" run -- printenv LD_PRELOAD >"$work/first" 2>/dev/null &
  "$launcher" run -- printenv LD_PRELOAD >"$work/second" 2>/dev/null &
  wait
  expect_eq "$(cat "$work/first")" "$(shim)" "preload of the first"
  expect_eq "$(cat "$work/second")" "$(shim)" "preload of the second"
  expect_eq "$(cat "$work/builds")" build "calls of Bazel"
  "$launcher" run -- true || fail "a third run failed"
  expect_eq "$(cat "$work/builds")" build "calls of Bazel after a third run"
  expect_run 0 'built .*/fresh/opt' build
  expect_eq "$(wc -l <"$work/builds")" 2 "builds after ./simhca build"
}

failed_builds_start_nothing() {
  fake_bazel
  export FAKE_BAZEL_STATUS=1
  expect_run 1 'the build failed' run -- touch "$work/ran"
  [[ ! -e $work/ran ]] || fail "the program ran without a shim"
  [[ ! -e $SIMHCA_BUILD_DIR/opt/stamp ]] || fail "a failed build left a stamp"
  expect_run 1 'the build failed' build
}

interrupted_builds_count_for_nothing() {
  fake_bazel
  local said="--config asan is not built yet: building it with Bazel before 'echo' starts, this once"
  setsid "$launcher" run --config asan -- echo ran >"$work/first" 2>&1 &
  local pid=$! i
  for ((i = 0; i < 250; i++)); do [[ -s $work/builds ]] && break; sleep 0.02; done
  kill -TERM -- "-$pid"
  wait "$pid"
  expect_eq $? 143 "status of the interrupted run"
  expect_match "$(cat "$work/first")" "$said" "output of the interrupted run"
  expect_run 0 "$said.*ran\$" run --config asan -- echo ran
  expect_eq "$(wc -l <"$work/builds")" 2 "builds after the second run"
  expect_run 0 '^ran$' run --config asan -- echo ran
}

installs_missing_packages() {
  fake_bazel
  printf 'libgtest-dev\ng++\n' >"$work/lacking"
  expect_run 0 'missing packages: g\+\+ libgtest-dev' build
  expect_match "$(tail -n 1 "$work/apt")" '^install -y .* g\+\+ libgtest-dev$' "the last apt-get call"
  expect_eq "$(grep -c '^update' "$work/apt")" 1 "calls of apt-get update"
}

names_what_it_cannot_install() {
  fake_bazel
  echo libgtest-dev >"$work/lacking"
  touch "$work/apt-fails"
  expect_run 2 'no network.*could not install: libgtest-dev' build
  [[ ! -e $work/builds ]] || fail "it went on to build"
}

names_packages_on_other_systems() {
  local tool
  fake_bazel
  mkdir "$work/tools"
  for tool in bash sh readlink flock mktemp mkdir cp mv rm chmod readelf grep id; do
    ln -s "$(type -P "$tool")" "$work/tools/$tool"
  done
  cp "$work/fake/bazel" "$work/tools/"
  PATH=$work/tools
  expect_run 2 'not a Debian system.*bazel-bootstrap' build
}

passes_arguments_to_the_tool() {
  local command
  for command in devices profiles ctl stats clean; do
    expect_run 5 "^tool: $command a --b\$" "$command" a --b
    expect_run 0 "^Usage: ./simhca $command" "$command" --help
    expect_run 0 "^Usage: ./simhca $command" "$command" a -h b
  done
}

bench_validates_the_model() {
  fake_bazel
  mkdir -p "$work/output/bench/model"
  printf '#!/bin/sh\necho "validate: $*"\nexit 1\n' >"$work/output/bench/model/validate"
  chmod +x "$work/output/bench/model/validate"
  touch "$work/own.toml"
  cd "$work" || exit
  expect_run 2 "no file 'nosuch.toml'" bench --validate nosuch.toml
  expect_run 2 "goes with --json only" bench --validate --list
  expect_run 2 "goes with --json only" bench --validate own.toml --filter x
  [[ ! -e $work/builds ]] || fail "Bazel was called for wrong arguments"
  expect_run 1 "^validate: -- .*/bench/model/published.toml\$" bench --validate
  expect_run 1 "^validate: --json $work/j -- own.toml\$" bench --validate own.toml --json j
  expect_run 1 "^validate: --json $work/j -- own.toml\$" bench --json j --validate=own.toml
}

has_help() {
  local command
  expect_run 0 './simhca run .*./simhca clean' --help
  expect_eq "$("$launcher")" "$("$launcher" --help)" "output without arguments"
  for command in build run demo test bench packages; do
    expect_run 0 "^Usage: ./simhca $command" "$command" --help
  done
  expect_run 2 "'conquer' is not a command" conquer
  expect_run 2 "unknown argument '--fast'" build --fast
  expect_run 2 "unknown argument '--fast'" test --fast
  expect_run 2 "'soon' is not a number of minutes" test --fuzz soon
  expect_run 2 "unknown argument '--fast'" bench --fast
}

[[ -n $listing ]] || make_programs
run_case PassesTheExitStatusThrough passes_exit_status
run_case PassesArgumentsThrough passes_arguments
run_case TakesACommandWithoutDashes takes_the_command_without_dashes
run_case BecomesTheProgramSoThatSignalsReachIt is_the_program_itself
run_case LeavesTheProgramNoChildren leaves_no_child
run_case PreloadsTheShimAheadOfTheCallersPreload preloads_the_shim
run_case ExportsTheSettings exports_settings
run_case RefusesBadValuesAndListsGoodOnes refuses_bad_values
run_case RefusesFaultsAndSeedsAsTheSimulatorDoes refuses_faults_and_seeds_as_the_simulator_does
run_case RefusesATimelineWithoutAModel refuses_a_timeline_without_a_model
run_case RefusesProgramsThatCannotRun refuses_what_cannot_run
run_case RefusesScriptsForProgramsThatCannotRun refuses_scripts_for_programs_that_cannot_run
run_case RefusesFilesThatAreNoPrograms refuses_files_that_are_no_programs
run_case RefusesSetuidPrograms refuses_setuid_programs
run_case PutsTheRuntimeOfASanitizedProgramFirst puts_sanitizers_first
run_case PutsTheRuntimeOfASanitizedShimFirst puts_the_runtime_of_a_sanitized_shim_first
run_case RunsFromAnywhereAndThroughLinks runs_from_anywhere
run_case HasADropInForm has_a_drop_in_form
run_case RefusesASharedMemoryThatIsTooSmall refuses_small_shared_memory
run_case WarnsInOneLineThatTheBuildIsOld warns_once_about_old_builds
run_case FirstRunsTogetherBuildOnce first_runs_build_once
run_case FailedBuildsStartNothing failed_builds_start_nothing
run_case InterruptedBuildsCountForNothing interrupted_builds_count_for_nothing
run_case InstallsMissingPackages installs_missing_packages
run_case NamesWhatItCannotInstall names_what_it_cannot_install
run_case NamesPackagesOnOtherSystems names_packages_on_other_systems
run_case PassesArgumentsToTheTool passes_arguments_to_the_tool
run_case BenchValidatesTheModel bench_validates_the_model
run_case HasHelpForEveryCommand has_help
finish
