#!/usr/bin/env bash
# Debian's flowtop on our libraries: a thread that keeps a list of the kernel's connections, each
# freed by call_rcu when it is gone, and one that draws the list with inlined readers, through
# copy relocations. The connections are of flows.c, over the loopback of a network namespace; the
# screen is tmux's. What it shows is what the connections are, and the same with Debian's liburcu.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
alone "$@"
client flowtop 120 1800 "$@"
need flowtop netsniff-ng
need tmux tmux
need nft nftables
need cc gcc

# Not more at a time: each makes several events, which the socket of flowtop has to hold.
connections=16 first=8
rounds=6
$is_long && rounds=400

cc -O2 -Wall -Wextra -Werror -o "$temporary/flows" "$here/flows.c" >"$temporary/cc.log" 2>&1 ||
    fail "cannot compile flows.c"
# The kernel follows connections in a network namespace as soon as a rule asks for their state.
nft -f - 2>"$temporary/nft.log" <<TEXT || cannot "no connection tracking: $(<"$temporary/nft.log")"
table inet follow {
    chain output {
        type filter hook output priority 0
        ct state new counter accept
    }
}
TEXT

terminal() { env -u TMUX tmux -S "$temporary/terminal" -f /dev/null "$@"; }

# keys KEY...: as if they were typed.
keys() { terminal send-keys -t flowtop "$@" || fail "tmux send-keys"; }

# screen: what is on it.
screen() { terminal capture-pane -p -t flowtop >"$temporary/screen.log"; }

# shows PATTERN: that is on the screen.
shows() { screen && grep -qE -- "$1" "$temporary/screen.log"; }

# run_flowtop WHICH: on a screen with room for all lines, which it draws without a pause, so that it
# reads all the time; its process is $process.
run_flowtop() {
    local variables=(MALLOC_PERTURB_=$MALLOC_PERTURB_)
    [ "$1" = stock ] || variables+=("LD_LIBRARY_PATH=$libraries" QUIESCENCE_STATS=1
        "XDG_RUNTIME_DIR=$temporary/run")
    rm -f "$temporary/ended.log"
    terminal new-session -d -s flowtop -x 160 -y $((connections * 4 + 20)) \
        "env ${variables[*]} flowtop -InGs -t 0 2>'$temporary/flowtop-$1.log'
        echo \$? >'$temporary/ended.log'" || fail "tmux new-session"
    until_true 20 "flowtop has a screen" shows 'netfilter flows\(0\) for IPv4,IPv6,ICMP,'
    process=$(children "$(terminal display -p -t flowtop '#{pane_pid}')" | tr -d ' ')
    uses "$1" "$process" liburcu
}

# told COMMAND...: flows does it.
told() {
    local reply
    echo "$*" >&"$to_flows"
    read -r -t 20 reply <&"$from_flows" && [ "$reply" = done ] || fail "flows does not: $*"
}

# rows: those of the screen, without times, rates and the number of the process. Of each
# connection, two: whence and where to.
rows() {
    awk 'NR > 4 && substr($0, 47, 4) == "127." {
        from = substr($0, 1, 14) substr($0, 23, 19)
        print (from ~ /[a-z]/ ? from : "to"), substr($0, 47, 58), substr($0, 116, 11)
    }' "$temporary/screen.log" | tr -s ' ' | sed 's/ $//' | paste -d ' ' - - | sort
}

# expected COUNT PROTOCOL...: the rows that there should be of so many connections: SYN, ACK and
# data with their headers, and what came back; of the datagram of one byte, itself.
expected() {
    local count=$1 protocol number
    shift
    for protocol in "$@"; do
        for ((number = 0; number < count; number++)); do
            if [ "$protocol" = udp ]; then
                echo "flows udp 127.0.0.3 $((20600 + number)) 29 to 127.0.0.2 20900"
            elif [ $number = 0 ]; then
                echo "flows tcp ESTABLISHED 127.0.0.3 20600 112 to 127.0.0.2 20900 60"
            else
                echo "flows tcp ESTABLISHED 127.0.0.3 $((20600 + number)) $((164 + number))" \
                    "to 127.0.0.2 20900 112"
            fi
        done
    done | sort
}

# has_rows COUNT PROTOCOL...
has_rows() { screen && rows >"$temporary/rows.log" && diff <(expected "$@") "$temporary/rows.log"; }

# shown AFTER COUNT PROTOCOL...: these rows, and no others.
shown() {
    local after=$1
    shift
    until_true 20 "flowtop shows $*, after $after" has_rows "$@"
}

# round WHICH: connections come, are shown, left out, shown again, and go. Each key has flowtop free
# its whole list, and ask the kernel anew. They go while none is on the list: at an event of one
# that has gone, which it may read while it walks the list outside of a reader's section, it would
# go on from what it has just given to call_rcu. That is a fault of its own, with either libraries.
round() {
    told open $first
    keys T
    shown T $first tcp
    keys U
    shown U $first tcp udp
    # These by events.
    told open $connections
    shown "they came" $connections tcp udp
    cp "$temporary/rows.log" "$temporary/all-$1"
    [ "$(grep -c "^flows  *$flows " "$temporary/screen.log")" = $((connections * 2)) ] ||
        fail "not every connection is of process $flows"
    keys T
    shown T $connections udp
    keys T
    shown T $connections tcp udp
    keys U
    shown U $connections tcp
    keys T
    until_true 20 "flowtop leaves out both" shows 'netfilter flows\(0\) for IPv4,IPv6,ICMP,'
    told close
}

start tmux stock env -u TMUX tmux -D -S "$temporary/terminal" -f /dev/null
until_true 20 "tmux is there" test -S "$temporary/terminal"
terminal set -g default-shell /bin/sh || fail "tmux set"
coproc talk { exec "$temporary/flows" 2>>"$temporary/flows.log"; }
flows=$talk_PID from_flows=${talk[0]} to_flows=${talk[1]}
started+=("$flows")
for which in "${which_libraries[@]}"; do
    run_flowtop "$which"
    for ((number = 1; number <= rounds; number++)); do round "$which"; done
    followed=$((rounds * connections * 2))
    # A round frees the list of both protocols twice, that of each alone once, and the first one.
    freed=$((rounds * (connections * 6 + first)))
    [ "$which" = stock ] || statistics "$process" 1 $freed
    keys q
    until_true 20 "flowtop ends" test -s "$temporary/ended.log"
    code=$(cat "$temporary/ended.log")
    [ "$code" = 0 ] || fail "flowtop ended with $code"
    quiet "flowtop-$which"
    held "$which" flowtop "$followed connections of TCP and UDP followed in the kernel's table," \
        "shown with their bytes and process, left out, shown again ($freed entries freed);" \
        "quit with 0"
done
same_with_both all "flowtop shows something else" \
    "the rows of its screen are the same with either libraries"
not_exercised flowtop "connections that go while they are shown (a fault of its own);" \
    "names of hosts and countries, IPv6, SCTP, DCCP, ICMP"
