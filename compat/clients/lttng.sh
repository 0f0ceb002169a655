#!/usr/bin/env bash
# Debian's lttng-sessiond, its consumer and lttng-relayd on our libraries: hash tables, queues, call_rcu and
# inlined readers through copy relocations. Sessions of user-space tracing are made, started, stopped and
# destroyed again and again; what babeltrace2 reads is what was emitted, to the event.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
client lttng 120 1800 "$@"
need lttng-sessiond lttng-tools
need lttng lttng-tools
need lttng-relayd lttng-tools
need babeltrace2 babeltrace2
need cc gcc
need setpriv util-linux
cc -E -include lttng/tracepoint.h -x c /dev/null >/dev/null 2>&1 ||
    missing "lttng/tracepoint.h is not installed; get it with: apt-get install liblttng-ust-dev"

threads=2
events=5000

# Not as root: it would be the system's own session daemon. The user `nobody` then.
user=$(id -u)
if [ "$user" = 0 ]; then
    user=65534
    as_user=(setpriv --reuid=$user --regid=$user --clear-groups)
fi

# Left behind by everything that is traced, one for all users and one a user; ours to remove if not there before.
shared=()
for file in /dev/shm/lttng-ust-wait-8 "/dev/shm/lttng-ust-wait-8-$user"; do
    [ -e "$file" ] || shared+=("$file")
done
clean_up_first() { [ ${#shared[@]} = 0 ] || rm -f "${shared[@]}"; }

# make_home WHICH: the directory of everything of this session daemon; $home is it.
make_home() {
    home=$place/$1
    mkdir -p "$home/run/quiescence" "$home/output"
    chmod 700 "$home/run" "$home/run/quiescence"
    [ ${#as_user[@]} = 0 ] || chown -R "$user" "$home"
}

in_place() { env HOME="$home" LTTNG_HOME="$home" XDG_RUNTIME_DIR="$home/run" "$@"; }
control() { in_place timeout 60 "${as_user[@]}" lttng --quiet "$@" >>"$temporary/lttng.log" 2>&1 || fail "lttng $*"; }

# run_daemons WHICH: the session daemon, whose consumer has a library path of its own; and a relay daemon.
run_daemons() {
    local which=$1 consumer_libraries=()
    make_home "$which"
    [ "$which" = stock ] || consumer_libraries=("--consumerd64-libdir=$libraries")
    control_port=$(free_port 4)
    local variables=(HOME="$home" LTTNG_HOME="$home")
    [ "$which" = stock ] || variables+=(LD_LIBRARY_PATH="$libraries" QUIESCENCE_STATS=1 XDG_RUNTIME_DIR="$home/run")
    start "sessiond-$which" stock "${as_user[@]}" env "${variables[@]}" lttng-sessiond --no-kernel \
        --agent-tcp-port="$control_port" "${consumer_libraries[@]}"
    daemon=$pid
    until_true 20 "lttng-sessiond is there" in_place timeout 60 "${as_user[@]}" lttng --quiet list
    uses "$which" "$daemon" liburcu liburcu-cds liburcu-common

    control_port=$((control_port + 1))
    start "relayd-$which" stock "${as_user[@]}" env "${variables[@]}" lttng-relayd --output="$home/output" \
        --control-port="tcp://127.0.0.1:$control_port" --data-port="tcp://127.0.0.1:$((control_port + 1))" \
        --live-port="tcp://127.0.0.1:$((control_port + 2))"
    relay=$pid
    until_true 20 "lttng-relayd is there" grep -q "$(printf ':%04X ' "$control_port")" /proc/net/tcp
    uses "$which" "$relay" liburcu liburcu-cds
}

# traced ARGUMENT...: waits until it is registered with the session daemon, and loses no event.
traced() {
    in_place LTTNG_UST_REGISTER_TIMEOUT=-1 LTTNG_UST_ALLOW_BLOCKING=1 timeout 120 \
        "${as_user[@]}" "$temporary/traced" "$@" >>"$temporary/traced.log" 2>&1 || fail "the traced program"
}

# counted DIRECTORY: counted events in that trace, the other ones taken away; each thread's in order.
counted() {
    babeltrace2 "$1" 2>"$temporary/babeltrace.log" | sed -n 's/.*quiescence:counted.*thread = \([0-9]*\), number = \([0-9]*\).*/\1 \2/p' |
        sort -k1n -k2n
}

# what_was_emitted PROGRAMS: the events of so many programs, as `counted` has them.
what_was_emitted() {
    awk -v programs="$1" -v threads=$threads -v events=$events 'BEGIN {
        for (t = 0; t < threads; t++) for (n = 0; n < events; n++) for (p = 0; p < programs; p++) print t, n }'
}

# session NAME URL-OPTION TRACE: from its creation to its end; other sessions and programs go on meanwhile.
session() {
    local name=$1 where=$2 trace=$3 first second
    control create "$name" "$where"
    # Buffers that are handed over often, and hold all there is: a writer that is kept from its CPU while
    # others come round the buffer loses events, by lttng's design.
    control enable-channel -u -s "$name" --subbuf-size=64K --num-subbuf=8 --blocking-timeout=inf \
        --switch-timer=20000 channel
    control enable-event -u -s "$name" -c channel 'quiescence:*'
    control start "$name"
    traced $threads $events &
    first=$!
    traced $threads $events &
    second=$!
    started+=("$first" "$second")
    ended "$first" 120 "a traced program"
    ended "$second" 120 "a traced program"
    if [[ $where == --output=* ]]; then
        control rotate "$name"
        traced $threads $events
        control stop "$name"
    fi
    control destroy "$name"
    local programs=2
    [[ $where == --output=* ]] && programs=3
    counted "$trace" >"$temporary/counted"
    cmp -s "$temporary/counted" <(what_was_emitted $programs) ||
        fail "$name: $(wc -l <"$temporary/counted") events of $((programs * threads * events)), or not each once"
    total=$((total + programs * threads * events))
    rm -rf "$trace"
}

# sessions WHICH COUNT
sessions() {
    local count=$2 i other
    total=0
    start traced stock env HOME="$home" LTTNG_HOME="$home" LTTNG_UST_REGISTER_TIMEOUT=-1 \
        LTTNG_UST_ALLOW_BLOCKING=1 "${as_user[@]}" "$temporary/traced" forever
    other=$pid
    control create whole --output="$home/whole"
    control enable-event -u -s whole 'quiescence:other'
    control start whole
    for ((i = 0; i < count; i++)); do
        if [ $((i % 3)) = 2 ]; then
            session "relayed$i" --set-url="net://127.0.0.1:$control_port:$((control_port + 1))/relayed$i" "$home/output"
        else
            session "session$i" --output="$home/trace$i" "$home/trace$i"
        fi
    done
    # The consumer exists since the first session has a channel.
    consumer=$(descendants "$daemon" | while read -r process; do
        [ "$(cat "/proc/$process/comm")" = lttng-consumerd ] && echo "$process"; done | head -n 1)
    [ -n "$consumer" ] || fail "lttng-sessiond has no consumer"
    uses "$1" "$consumer" liburcu liburcu-cds
    control destroy whole
    kill "$other"
    until_true 20 "the other program ends" is_gone "$other"
    # All in order, none twice and none missed: the program did not write faster than the buffers were read.
    babeltrace2 "$home/whole" 2>>"$temporary/babeltrace.log" | sed -n 's/.*quiescence:other.*number = \([0-9]*\).*/\1/p' \
        >"$temporary/others"
    [ -s "$temporary/others" ] || fail "the other program left nothing"
    awk 'NR > 1 && $1 != last + 1 { exit 1 } { last = $1 }' "$temporary/others" ||
        fail "the other program's events are not one after the other"
    say "$1: $count sessions, $total events emitted and read, $(wc -l <"$temporary/others") of another program meanwhile"
}

# shut_down WHICH: both daemons, and the consumer with them.
shut_down() {
    kill -TERM "$daemon"
    ended "$daemon" 30 lttng-sessiond
    until_true 10 "the consumer ends" is_gone "$consumer"
    kill -TERM "$relay"
    ended "$relay" 30 lttng-relayd
    local log
    for log in "sessiond-$1" "relayd-$1"; do
        if grep -E '^(PERROR|Error)' "$temporary/$log.log"; then fail "errors in $log"; fi
        quiet "$log"
    done
}

in_memory 300000
cc -O2 -I"$here" -o "$temporary/traced" "$here/traced.c" -llttng-ust -ldl -lpthread >"$temporary/cc.log" 2>&1 ||
    fail "cannot compile traced.c"
for which in "${which_libraries[@]}"; do
    run_daemons "$which"
    count=6
    [ "$which" = stock ] && count=3
    $is_long && count=$((count * 50))
    sessions "$which" $count
    [ "$which" = stock ] || for process in "$daemon" "$consumer" "$relay"; do statistics "$process" 1 1; done
    shut_down "$which"
done
say "all held"
