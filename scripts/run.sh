# ./simhca run: start a program under the shim.  Sourced by simhca.

run_help() {
  local names
  profile_names
  cat <<END
Usage: ./simhca run [OPTION...] -- CMD [ARG...]

Runs CMD with the simulated devices in view of its verbs calls.  CMD replaces the launcher, so its
exit status and the signals it gets are its own.  Builds the simulator first if that was never done.

  --profile P     profile of all devices: a name or the path of a .toml file (default generic)
                  names: ${names:-none}
  --devices N     number of devices, simhca0 to simhca(N-1) (default 1)
  --device D=P    profile of one device, e.g. simhca1=efa; may be given several times
  --clock C       wall or virtual (default wall)
  --route R       sim, hw, both or auto, or a list by name such as hw:mlx5_0,sim (default sim)
  --fabric F      programs on the same fabric reach each other (default: one per user)
  --faults F      what befalls packets that CMD receives, e.g. loss=1%,corrupt=0.1%,reorder=1%:
                  loss, corrupt, duplicate, reorder (probabilities), delay (the most by which a
                  duplicate or reordered packet is late, default 20us), lose=N (the Nth packet);
                  each once, lose=N several times; ranges: docs/errors.md
  --seed S        seed of everything random, 0 to 2^64 - 1, decimal or 0x... (default 1); the same
                  seed gives the same faults
  --timeline FILE a trace of what the modelled devices do, for ui.perfetto.dev or chrome://tracing
                  (with --clock virtual)
  --log L         off, error, warn, info or debug (default error)
  --config C      build to use: ${configs// /, } (default opt)

Environment: SIMHCA_PROFILE, SIMHCA_DEVICES, SIMHCA_DEVICE (a list: D=P,D=P), SIMHCA_CLOCK,
SIMHCA_ROUTE, SIMHCA_FABRIC, SIMHCA_FAULTS, SIMHCA_SEED, SIMHCA_TIMELINE and SIMHCA_LOG mean the same
as the options.
  SIMHCA_STATS=1      CMD's device counters on its standard error when it ends
  SIMHCA_FORM=dropin  use the stand-in libibverbs.so.1 even where the real one is installed

Exit status: CMD's own; 126 if CMD cannot be run under the simulator, 127 if it is not found,
2 for a wrong option.
END
}

# profile_names: the shipped profiles, into $names.
profile_names() {
  local file
  names=
  for file in "$root"/sim/profiles/*.toml; do
    [[ -e $file ]] || continue
    file=${file##*/}
    names+=${names:+, }${file%.toml}
  done
}

# check_profile WHAT PROFILE: sets $profile to what the shim gets, a name or an absolute path.
check_profile() {
  profile=$2
  if [[ $profile == */* || $profile == *.toml ]]; then
    [[ -f $profile ]] || die "$1: there is no file '$profile'"
    [[ $profile == /* ]] || profile=$PWD/$profile
    return
  fi
  [[ -n $profile && -f $root/sim/profiles/$profile.toml ]] && return
  local names
  profile_names
  die "$1: '$profile' is neither the path of a .toml file nor one of: $names"
}

# check_timeline: a trace has to be of the model, and writable.
check_timeline() {
  [[ -n ${SIMHCA_TIMELINE-} ]] || return 0
  [[ ${SIMHCA_CLOCK-} == virtual ]] ||
    die "--timeline: only the virtual clock has a model whose times could be shown: add --clock virtual"
  [[ $SIMHCA_TIMELINE == /* ]] || SIMHCA_TIMELINE=$PWD/$SIMHCA_TIMELINE
  [[ ! -d $SIMHCA_TIMELINE && -w ${SIMHCA_TIMELINE%/*}/ ]] || die "--timeline: cannot write '$SIMHCA_TIMELINE'"
  export SIMHCA_TIMELINE
}

check_settings() {
  local profile
  if [[ -n ${SIMHCA_PROFILE-} ]]; then
    check_profile --profile "$SIMHCA_PROFILE"
    export SIMHCA_PROFILE=$profile
  fi
  if [[ -n ${SIMHCA_DEVICES-} ]]; then
    [[ $SIMHCA_DEVICES =~ ^[0-9]{1,2}$ ]] && ((10#$SIMHCA_DEVICES <= 64)) ||
      die "--devices: '$SIMHCA_DEVICES' is not a number from 0 to 64"
  fi
  if [[ -n ${SIMHCA_DEVICE-} ]]; then
    local entry list= entries
    IFS=, read -ra entries <<<"$SIMHCA_DEVICE"
    for entry in "${entries[@]}"; do
      [[ $entry =~ ^simhca(0|[1-9][0-9]*)=. ]] ||
        die "--device: '$entry' is not of the form simhcaN=PROFILE, e.g. simhca1=efa"
      check_profile --device "${entry#*=}"
      list+=${list:+,}${entry%%=*}=$profile
    done
    export SIMHCA_DEVICE=$list
  fi
  [[ -z ${SIMHCA_CLOCK-} ]] || one_of --clock "$SIMHCA_CLOCK" wall virtual
  check_timeline
  [[ -z ${SIMHCA_LOG-} ]] || one_of --log "$SIMHCA_LOG" off error warn info debug
  export SIMHCA_ROUTE=${SIMHCA_ROUTE:-sim}
  if [[ ! $SIMHCA_ROUTE =~ ^(sim|hw)(:[A-Za-z0-9_.-]+)?(,(sim|hw)(:[A-Za-z0-9_.-]+)?)*$ ]]; then
    one_of --route "$SIMHCA_ROUTE" sim hw both auto
  fi
  [[ -z ${SIMHCA_FABRIC-} || $SIMHCA_FABRIC =~ ^[A-Za-z0-9_.-]{1,64}$ ]] ||
    die "--fabric: '$SIMHCA_FABRIC' may have 1 to 64 letters, digits, '_', '.' and '-' only"
}

# check_with_tool: what only the simulator knows the form of.
check_with_tool() {
  [[ -n ${SIMHCA_FAULTS-}${SIMHCA_SEED-} ]] || return 0
  # A preload of the caller's is meant for the program.
  LD_PRELOAD= "$build_dir/$config/bin/simhca-tool" check-settings || exit 2
}

# look_up NAME: the file that PATH has for NAME, into $found; empty if there is none.
look_up() {
  # The shell's own table needs no process; it has no entry for names of builtins such as `true`.
  hash -- "$1" 2>/dev/null
  found=${BASH_CMDS[$1]-}
  [[ -n $found ]] || found=$(type -P -- "$1")
}

# find_program CMD: the file that would be executed, into $program.
find_program() {
  local found
  if [[ $1 == */* ]]; then
    program=$1
    [[ -e $program ]] || die 127 "'$1': no such file"
  else
    [[ -n $1 ]] && look_up "$1"
    program=${found-}
    [[ -n $program ]] || die 127 "'$1': command not found"
  fi
  [[ -d $program ]] && die 126 "'$program' is a directory"
  # Opening anything else, a FIFO say, could block.
  [[ -f $program ]] || die 126 "'$program' is not a regular file"
  [[ -x $program ]] || die 126 "'$program' is not executable"
}

# inspect_program: refuses what the dynamic loader would not let us into, and sets $runtimes to the
# sanitizer runtimes that the program is linked with, in the order it names them.  For a script that
# names its interpreter, it is the interpreter that counts.
inspect_program() {
  local head interpreter
  runtimes=()
  [[ -s $program ]] || die 126 "'$program' is empty"
  inspect_file "$program" "'$program'"
  [[ $head == '#!'* ]] || return 0
  find_interpreter "${head%%$'\n'*}"
  [[ -f $interpreter && -x $interpreter ]] || return 0
  inspect_file "$interpreter" "'$program' is a script for '$interpreter', which"
}

# find_interpreter LINE: the program that a `#!` line names, itself or through env, into
# $interpreter; empty if it cannot be told, which is then for the kernel or env to report.
find_interpreter() {
  local words word found=
  read -ra words <<<"${1#'#!'}"
  interpreter=${words[0]-}
  [[ $interpreter == */env ]] || return 0
  interpreter=
  for word in "${words[@]:1}"; do
    case $word in
      -S | -i | *=*) continue ;;
      -*) return 0 ;;
      */*) interpreter=$word ;;
      *) look_up "$word"; interpreter=$found ;;
    esac
    return 0
  done
}

# inspect_file FILE WHAT: the work of inspect_program on one file, which messages call WHAT.  Leaves
# the beginning of the file in $head, without its zero bytes.
inspect_file() {
  local file=$1 what=$2 headers line
  head=
  if [[ (-u $file && ! -O $file) || (-g $file && ! -G $file) ]]; then
    die 126 "$what is a setuid or setgid program: the loader ignores LD_PRELOAD for it, so it" \
      "cannot be run under the simulator (a copy without that bit can)"
  fi
  [[ -r $file ]] || return 0
  # The kernel looks at no more than 256 bytes of a `#!` line.
  LC_ALL=C IFS= read -r -N 256 head <"$file"
  [[ $head == $'\x7fELF'* ]] || return 0
  [[ $head != $'\x7fELF\x01'* ]] || die 126 "$what is a 32-bit program; the simulator is 64-bit"
  headers=$(LC_ALL=C exec readelf -ldW -- "$file" 2>/dev/null)
  # Without readelf (127) nothing can be told.
  (($? != 127)) || return 0
  [[ $headers == *'Program Headers:'* ]] ||
    die 126 "$what is not a program that can be inspected (truncated ELF header)"
  if [[ $headers != *' INTERP '* ]]; then
    [[ ${file##*/} == ld-linux* ]] && return 0
    die 126 "$what is statically linked: there is nothing in it that could be interposed," \
      "so it cannot be run under the simulator"
  fi
  [[ $headers != *'interpreter: '*/ld-musl* ]] ||
    die 126 "$what uses the musl C library; the simulator needs glibc"
  [[ $headers =~ lib(asan|tsan|lsan|hwasan|ubsan|clang_rt) ]] || return 0
  while read -r line; do
    [[ $line =~ \(NEEDED\).*\[(lib(asan|tsan|lsan|hwasan|ubsan)\.so[.0-9]*|libclang_rt\.[^]]*)\] ]] &&
      runtimes+=("${BASH_REMATCH[1]}")
  done <<<"$headers"
}

# The shim needs room for its rings: without it a program would die of SIGBUS in the middle.
check_shared_memory() {
  [[ $SIMHCA_ROUTE == hw ]] && return
  [[ -d /dev/shm && -w /dev/shm ]] || die "/dev/shm is missing or not writable; the simulator keeps its rings there"
  local blocks size
  # Not a process substitution: CMD would inherit a child that it never started.
  read -r blocks size <<<"$(stat -f -c '%a %S' /dev/shm)"
  ((blocks * size >= 16 << 20)) || die "/dev/shm has only $((blocks * size >> 10)) KiB free;" \
    "the simulator needs 16 MiB (./simhca clean removes leftovers; containers: --shm-size=256m)"
}

real_library_installed() {
  local folder folders
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
  for folder in "${folders[@]}" {/usr,}/lib/"$HOSTTYPE"-linux-gnu /usr/lib64 /lib64 /usr/local/lib /usr/lib; do
    [[ -e $folder/libibverbs.so.1 && ! $folder -ef $lib/dropin ]] && return 0
  done
  [[ $({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null) == *libibverbs.so.1* ]]
}

# choose_form: preload beside the real library, else the stand-in folder; sets $form.
choose_form() {
  form=${SIMHCA_FORM:-}
  if [[ -z $form ]]; then
    real_library_installed && form=preload || form=dropin
  fi
  one_of SIMHCA_FORM "$form" preload dropin
  [[ $form == preload || ! $SIMHCA_ROUTE =~ ^both$|hw ]] ||
    die "--route $SIMHCA_ROUTE needs the real libibverbs (Debian package libibverbs1)"
}

# set_environment: LD_PRELOAD and LD_LIBRARY_PATH of the program.  A sanitizer's runtime goes first,
# then the shim, then what the caller had there.
set_environment() {
  local preload= runtime item
  # The build notes the runtime that a sanitized shim needs ahead of itself.
  if [[ -s $lib/runtime ]]; then
    read -r runtime <"$lib/runtime"
    if [[ " ${runtimes[*]-} " != *" $runtime "* ]]; then
      [[ $runtime != libtsan* ]] ||
        die 126 "--config tsan: '$program' is not built with -fsanitize=thread, which that build needs"
      # Leaks of a program that was not built for the check are its own business.
      export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
      runtimes=("$runtime" "${runtimes[@]}")
    fi
  fi
  for runtime in "${runtimes[@]}"; do preload+=${preload:+:}$runtime; done
  if [[ $form == preload ]]; then
    preload+=${preload:+:}$lib/libsimhca.so
  elif [[ ${LD_LIBRARY_PATH-} != "$lib/dropin"* ]]; then
    export LD_LIBRARY_PATH=$lib/dropin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
  # A program that itself calls the launcher inherits ours; once is enough.
  for item in ${LD_PRELOAD+${LD_PRELOAD//:/ }}; do
    [[ :$preload: == *":$item:"* ]] || preload+=${preload:+:}$item
  done
  [[ -z $preload ]] || export LD_PRELOAD=$preload
}

# One line, at most, when the sources have changed since the build.  Building here would make
# programs that start together wait for each other.
warn_if_stale() {
  local file
  shopt -s globstar nullglob
  for file in "$root"/{WORKSPACE,.bazelrc} "$root"/{sim,verbs_shim}/**; do
    if [[ $file -nt $build_dir/$config/stamp && -f $file ]]; then
      say "sources are newer than the build in $build_dir/$config; ./simhca build brings it up to date"
      break
    fi
  done
  shopt -u globstar nullglob
}

run_main() {
  local config=opt value taken program form lib devices=() runtimes=() clock_given
  while (($# > 0)); do
    case $1 in
      --) shift; break ;;
      -h | --help) run_help; exit 0 ;;
      --profile | --profile=*) take_option "$@"; export SIMHCA_PROFILE=$value ;;
      --devices | --devices=*) take_option "$@"; export SIMHCA_DEVICES=$value ;;
      --device | --device=*) take_option "$@"; devices+=("$value") ;;
      --clock | --clock=*) take_option "$@"; export SIMHCA_CLOCK=$value ;;
      --route | --route=*) take_option "$@"; export SIMHCA_ROUTE=$value ;;
      --fabric | --fabric=*) take_option "$@"; export SIMHCA_FABRIC=$value ;;
      --faults | --faults=*) take_option "$@"; export SIMHCA_FAULTS=$value ;;
      --seed | --seed=*) take_option "$@"; export SIMHCA_SEED=$value ;;
      --timeline | --timeline=*) take_option "$@"; export SIMHCA_TIMELINE=$value ;;
      --log | --log=*) take_option "$@"; export SIMHCA_LOG=$value ;;
      --config | --config=*) take_option "$@"; config=$value ;;
      -*) die "run: unknown option '$1' (./simhca run --help lists them)" ;;
      *) break ;;
    esac
    shift "$taken"
  done
  (($# > 0)) || die "run: no program given: ./simhca run [OPTION...] -- CMD [ARG...]"
  if ((${#devices[@]} > 0)); then
    printf -v value '%s,' "${devices[@]}"
    export SIMHCA_DEVICE=${value%,}
  fi
  one_of --config "$config" $configs
  check_settings
  find_program "$1"
  inspect_program
  check_shared_memory

  lib=$build_dir/$config/lib
  [[ $lib != *[[:space:]:\;]* ]] ||
    die "'$lib': the loader takes no path with a space, ':' or ';' in LD_PRELOAD; move the project"
  if [[ -e $build_dir/$config/stamp ]]; then
    warn_if_stale
  else
    # The stamp is the last thing that a build leaves: without it the folder counts for nothing.
    source "$root/scripts/build.sh"
    say "--config $config is not built yet: building it with Bazel before '$1' starts, this once"
    need_packages build
    build_locked "$config" once 1>&2 || exit 1
  fi
  check_with_tool
  choose_form
  set_environment
  exec -a "$1" -- "$program" "${@:2}"
}
