# shellcheck shell=bash
# What the scripts of the real clients have in common: arguments, a directory of their own, processes that
# are ended whatever happens, and the proof of which liburcu a process runs on. Sourced, not run.
#
# A script that sources this says `client NAME LIMIT_SECONDS_SHORT LIMIT_SECONDS_LONG "$@"` first.
# Exit codes: 0 all held, 1 something did not, 2 the arguments are wrong, 4 something is not
# installed, 5 it cannot run on this machine.

set -uo pipefail
export LC_ALL=C
# What is freed is overwritten: who still reads it then is seen.
export MALLOC_PERTURB_=165
unset LD_LIBRARY_PATH LD_PRELOAD

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
client_name=$(basename "$0" .sh)
is_long=false
which_libraries=(stock ours)
libraries="$here/../../target/compat/lib"
temporary=
place=
started=()
# Where a check that did not hold is reported to: the standard error that the script began with.
messages=2
# Of the program that the script is about.
version=
# Put before the commands that run as another user, where a script has such.
as_user=()

usage() {
    cat <<TEXT
usage: $0 [--long] [--only ours|stock] [--libraries DIR]
  --long            minutes instead of seconds
  --only WHICH      with our libraries only, or with Debian's only (default: with both, and compared)
  --libraries DIR   where ours are (default: target/compat/lib, which \`cargo xtask compat\` fills)
TEXT
}

say() { echo "$client_name: $*"; }

# A check that did not hold: says so, with what the processes had to say, and ends the script.
fail() {
    local log
    {
        echo "$client_name: FAILED: $*"
        for log in "$temporary"/*.log; do
            [ -s "$log" ] && { echo "--- end of ${log##*/}"; tail -n 25 "$log"; }
        done
    } >&"$messages"
    exit 1
}

missing() { echo "$client_name: $*" >&2; exit 4; }

# What this machine does not allow, which is no fault of a library.
cannot() {
    echo "$client_name: cannot run here: $*" >&2
    exit 5
}

# held WHICH PROGRAM WHAT...: this was exercised, and every check of it held.
held() {
    local which=$1 program=$2
    shift 2
    say "$program on $([ "$which" = ours ] && echo "our libraries" || echo "Debian's"): $*"
}

# not_exercised PROGRAM WHAT...
not_exercised() {
    local program=$1
    shift
    say "$program, not exercised: $*"
}

# alone "$@": the script once more, in namespaces of its own: a network that has only a loopback,
# mounts that no other process sees, and processes of which none outlives the script. To be called
# before `client`.
alone() {
    if [ "${QUIESCENCE_ALONE:-}" = "$0" ]; then
        # The first process of a namespace is not ended by a signal that it does not handle.
        trap 'exit 143' TERM
        ip link set lo up || exit 1
        return
    fi
    local into=(unshare --net --mount --pid --fork --kill-child --mount-proc)
    need unshare util-linux
    need setpriv util-linux
    need ip iproute2
    [ "$(id -u)" = 0 ] || cannot "needs root, for namespaces of its own"
    "${into[@]}" ip link set lo up 2>/dev/null ||
        cannot "no namespaces of its own (unshare of util-linux is refused)"
    told_to_end=false
    trap 'told_to_end=true' TERM INT
    QUIESCENCE_ALONE=$0 setpriv --pdeathsig KILL "${into[@]}" "$0" "$@" &
    wait_for_inside $!
}

# wait_for_inside PID: of unshare, which itself takes no TERM; the script in it is told instead.
# Ends with the code of that.
wait_for_inside() {
    local unshare=$1 since= script
    until is_gone "$unshare"; do
        if ! $told_to_end; then
            wait "$unshare"
            continue
        fi
        : "${since:=$SECONDS}"
        # Again and again: it may not have come to handle it.
        for script in $(children "$unshare"); do
            kill -TERM "$script" 2>/dev/null
            # What hangs in the foreground keeps it from that.
            [ $((SECONDS - since)) -lt 5 ] || hurry "$script"
        done
        [ $((SECONDS - since)) -lt 15 ] || kill -KILL "$unshare" 2>/dev/null
        sleep 0.1
    done
    wait "$unshare"
    exit
}

children() { cat /proc/"$1"/task/*/children 2>/dev/null; }

# hurry PID: ends what descends from a script, but not the process that asks for it.
hurry() {
    local process
    for process in $(descendants "$1"); do
        [ "$process" = "$BASHPID" ] || kill -KILL "$process" 2>/dev/null
    done
}

# watch SECONDS: ends the script after so long, whatever hangs in its foreground.
watch() {
    read -r -t "$1" <>"$temporary/never"
    kill -TERM $$
    read -r -t 5 <>"$temporary/never"
    hurry $$
}

# need PROGRAM PACKAGE: without the program there is no result, which is not the same as a good one.
# The first one after `client` is what the script is about.
need() {
    command -v "$1" >/dev/null || missing "$1 is not installed; get it with: apt-get install $2"
    if [ -n "$temporary" ] && [ -z "$version" ]; then
        version=$(dpkg-query --show --showformat '${source:Upstream-Version}' "$2" 2>/dev/null)
        say "version: ${version:=not told}"
    fi
}

client() {
    client_name=$1
    local limit_s=$2 limit_long_s=$3
    shift 3
    while [ $# -gt 0 ]; do
        case $1 in
            --long) is_long=true limit_s=$limit_long_s ;;
            --only)
                [[ ${2:-} == ours || ${2:-} == stock ]] || { usage >&2; exit 2; }
                which_libraries=("$2"); shift ;;
            --libraries) [ -n "${2:-}" ] || { usage >&2; exit 2; }; libraries=$2; shift ;;
            --help) usage; exit 0 ;;
            *) usage >&2; exit 2 ;;
        esac
        shift
    done
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/quiescence-$client_name.XXXXXX") || exit 1
    chmod 755 "$temporary"
    trap clean_up EXIT
    script_limit_s=$limit_s
    # It comes also while a function runs whose messages are not wanted.
    exec {messages}>&2
    trap 'trap "" TERM; fail "took more than $script_limit_s s, or was told to end"' TERM
    trap 'exit 130' INT
    mkfifo "$temporary/never"
    watch "$limit_s" >/dev/null 2>&1 &
    started+=($!)
    if has ours; then copy_libraries; fi
    mkdir -m 700 "$temporary/run"
}

# Is `ours` (or `stock`) asked for?
has() { [[ " ${which_libraries[*]} " == *" $1 "* ]]; }

# same_with_both NAME COMPLAINT SAID: NAME-stock and NAME-ours are the same, where both are
# asked for.
same_with_both() {
    has ours && has stock || return 0
    diff "$temporary/$1-stock" "$temporary/$1-ours" >&2 || fail "$2"
    say "$3"
}

# A copy: a build meanwhile does not touch it, and another user than ours can read it.
copy_libraries() {
    [ -e "$libraries/libquiescence.so.0" ] ||
        missing "$libraries has no libquiescence.so.0; build it with: cargo xtask compat"
    mkdir "$temporary/lib"
    cp -L "$libraries"/*.so.* "$temporary/lib/" || fail "cannot copy $libraries"
    libraries=$temporary/lib
}

# with WHICH COMMAND...: runs it with our libraries in front of Debian's, or with Debian's alone.
with() {
    local which=$1
    shift
    if [ "$which" = ours ]; then
        env LD_LIBRARY_PATH="$libraries" QUIESCENCE_STATS=1 XDG_RUNTIME_DIR="$temporary/run" "$@"
    else
        env "$@"
    fi
}

# with_seen WHICH LOG COMMAND...: as `with`, to the log, and reads what the dynamic linker has loaded:
# such a process has ended before its map could be read.
with_seen() {
    local which=$1 log=$temporary/$2.log code
    shift 2
    rm -f "$temporary"/loaded.*
    with "$which" env LD_DEBUG=libs LD_DEBUG_OUTPUT="$temporary/loaded" timeout 120 "$@" \
        >"$log" 2>&1 </dev/null
    code=$?
    of_one_kind "$which" "$1" "$(sed -nE 's#.*calling init: (/.*/lib(urcu|quiescence).*)#\1#p' \
        "$temporary"/loaded.* | sort -u)" liburcu
    return $code
}

# start LOG WHICH COMMAND...: in the background; its process is $pid from then on.
start() {
    local log=$temporary/$1.log which=$2
    shift 2
    if [ "$which" = ours ]; then
        LD_LIBRARY_PATH=$libraries QUIESCENCE_STATS=1 XDG_RUNTIME_DIR=$temporary/run "$@" >>"$log" 2>&1 &
    else
        "$@" >>"$log" 2>&1 &
    fi
    pid=$!
    started+=("$pid")
}

# The processes that descend from PID, the nearest first.
descendants() {
    local child
    for child in $(children "$1"); do
        echo "$child"
        descendants "$child"
    done
}

# until_true SECONDS WHAT COMMAND...: asks again until the command succeeds; fails after so many seconds.
until_true() {
    local limit_s=$1 what=$2 end=$((SECONDS + $1 + 1))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what: not within $limit_s s"
        sleep 0.02
    done
}

# Also if nobody has asked how it ended: it may have become the child of another process than us.
is_gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }

# ended PID SECONDS WHAT [CODE]: waits for a process of ours that was told to end; it has to end by
# itself, with 0 or that code.
ended() {
    until_true "$2" "$3 ends" is_gone "$1"
    wait "$1"
    local code=$?
    [ $code = "${4:-0}" ] || fail "$3 ended with $code, and should end with ${4:-0}"
    local other rest=()
    for other in "${started[@]}"; do [ "$other" = "$1" ] || rest+=("$other"); done
    started=("${rest[@]}")
}

# What is still there is ended here, by its number: told first, killed after two seconds.
clean_up() {
    local code=$? process all=() end
    trap '' TERM INT
    # What a script knows about that started[] does not.
    if declare -F clean_up_first >/dev/null; then clean_up_first >/dev/null 2>&1; fi
    for process in "${started[@]}"; do
        # shellcheck disable=SC2207
        all+=("$process" $(descendants "$process"))
    done
    if [ ${#all[@]} -gt 0 ]; then
        kill "${all[@]}" 2>/dev/null
        end=$((SECONDS + 3))
        for process in "${all[@]}"; do
            while ! is_gone "$process" && [ $SECONDS -lt $end ]; do sleep 0.02; done
        done
        kill -KILL "${all[@]}" 2>/dev/null
    fi
    [ -n "$temporary" ] && rm -rf "$temporary" "$place"
    exit $code
}

# uses WHICH PID LIBRARY...: the process has these libraries mapped, ours or Debian's as it should be, and of
# the others' not one.
uses() {
    local which=$1 process=$2 library mapped
    shift 2
    mapped=$(sed -n 's|^[^/]*\(/.*\)$|\1|p' "/proc/$process/maps" | grep -E '/lib(urcu|quiescence)' | sort -u)
    of_one_kind "$which" "process $process ($(tr '\0' ' ' <"/proc/$process/cmdline"))" "$mapped" "$@"
}

# of_one_kind WHICH WHO PATHS LIBRARY...
of_one_kind() {
    local which=$1 who=$2 paths=$3 library
    shift 3
    for library in "$@"; do
        grep -q "/$library\.so" <<<"$paths" || fail "$who does not have $library:"$'\n'"$paths"
    done
    if [ "$which" = ours ]; then
        grep -q "^$libraries/libquiescence\.so" <<<"$paths" || fail "$who does not have libquiescence:"$'\n'"$paths"
        ! grep -v "^$libraries/" <<<"$paths" || fail "$who has another's libraries"
    else
        ! grep -E "^$libraries/|libquiescence" <<<"$paths" || fail "$who has our libraries"
    fi
}

# figure NAME: that figure of the last look, of all the process's domains together.
figure() { grep -oE "\"$1\": *[0-9]+" "$temporary/top.json" | awk -F: '{n += $2} END {print n + 0}'; }

# all_run RCU PID CALLBACKS: a look at the process; have so many callbacks been run, and does none wait?
all_run() {
    "${as_user[@]}" "$1" top "$2" --json - >"$temporary/top.json" || return 1
    [ "$(figure callbacks_run)" -ge "$3" ] && [ "$(figure callbacks_waiting)" = 0 ]
}

# statistics PID GRACE_PERIODS CALLBACKS: what `rcu top` says of a process with our libraries. What was done needs at
# least so many grace periods, one after the other, and so many callbacks: with fewer, memory was freed too early
# or never.
statistics() {
    local rcu=${RCU:-} candidate
    for candidate in "$here"/../../target/{release,debug}/rcu; do
        [ -z "$rcu" ] && [ -x "$candidate" ] && rcu=$candidate
    done
    # Without it the strongest check is not made, which is not the same as one that held.
    [ -n "$rcu" ] || missing "the command rcu is not built; build it with: cargo build --release -p rcu"
    if [ ${#as_user[@]} != 0 ] && ! [ -e "$temporary/rcu" ]; then
        # Where that user can reach it.
        cp "$rcu" "$temporary/rcu" || fail "cannot copy $rcu"
    fi
    [ ${#as_user[@]} = 0 ] || rcu=$temporary/rcu
    "${as_user[@]}" "$rcu" top "$1" --json - >"$temporary/top.json" 2>"$temporary/top.log" || fail "rcu top $1"
    until_true 10 "$3 callbacks run, none waiting, in process $1" all_run "$rcu" "$1" "$3"
    say "rcu top of $(cat "/proc/$1/comm"): $(figure readers) readers, $(figure grace_periods) grace periods," \
        "$(figure callbacks_run) callbacks run"
    [ "$(figure grace_periods)" -ge "$2" ] ||
        fail "$(figure grace_periods) grace periods have ended in process $1, and $2 were needed"
}

# The most memory that a process had at a time.
memory() { awk '/^VmHWM:/ { printf "%.1f MiB", $2 / 1024 }' "/proc/$1/status"; }

# quiet LOG: neither our library nor an assertion has said anything there.
quiet() {
    ! grep -E 'liburcu|quiescence: |[Aa]ssert' "$temporary/$1.log" || fail "$1 has complaints"
}

# in_memory KIB: a directory in memory if there is so much room, else $temporary: a busy disk lets a rename wait for
# seconds. Not for libraries: nothing may be executed there on some machines. To $place.
in_memory() {
    place=$temporary
    if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt "$1" ] 2>/dev/null; then
        place=$(mktemp -d "/dev/shm/quiescence-$client_name.XXXXXX") || exit 1
        chmod 755 "$place"
    fi
}

# timed COMMAND...: runs it; how long the longest of all of them took is $longest_ms.
longest_ms=0
timed() {
    local begin=${EPOCHREALTIME/./} code took_ms
    "$@"
    code=$?
    took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
    [ "$took_ms" -le $longest_ms ] || longest_ms=$took_ms
    return $code
}

# free_port [COUNT]: a port of the loopback that nobody has, neither UDP nor TCP, and neither the ones behind it, so many
# altogether.
free_port() {
    local port=$((20000 + (BASHPID * 7) % 20000)) count=${1:-1} taken next
    taken=$(cat /proc/net/udp /proc/net/udp6 /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '{ sub(/.*:/, "", $2); print $2 }')
    for ((next = port; next < port + count; next++)); do
        if grep -qx "$(printf '%04X' "$next")" <<<"$taken"; then port=$((next + 1)); fi
    done
    echo "$port"
}
