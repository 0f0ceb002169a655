#!/usr/bin/env bash
# Debian's glusterd on our libraries: peers that are probed and detached, each freed by call_rcu,
# while others list them, and a volume of one brick whose files threads of files.c use meanwhile.
# Of gluster's programs only glusterd uses liburcu (its bp flavour); the brick's process and gfapi
# are there because glusterd starts the one and gives the other its volume.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
alone "$@"
client gluster 120 1800 "$@"
for program in glusterd gluster glusterfsd; do need $program glusterfs-server; done
need cc gcc
[ -e /usr/include/glusterfs/api/glfs.h ] ||
    missing "glusterfs/api/glfs.h is not there; get it with: apt-get install libglusterfs-dev"

# gluster writes there whatever its options are.
mount -t tmpfs none /run && mkdir /run/gluster || cannot "mount is refused"
for directory in /var/lib/glusterd /var/log/glusterfs; do
    mount -t tmpfs none $directory || cannot "mount is refused"
done
# As if geo-replication were not installed, a program of Python that glusterd runs a score of times
# as it begins: to execute this is refused as if there were no such file.
printf '#!/is/not/there\n' >"$temporary/gsyncd" && chmod +x "$temporary/gsyncd"
for georeplication in /usr/lib/*/glusterfs/gsyncd; do
    [ ! -e "$georeplication" ] || mount --bind "$temporary/gsyncd" "$georeplication" ||
        cannot "mount is refused"
done
cc -O2 -Wall -Wextra -Werror -D_FILE_OFFSET_BITS=64 -pthread -o "$temporary/files" \
    "$here/files.c" "$here/files-gfapi.c" -lgfapi >"$temporary/cc.log" 2>&1 ||
    fail "cannot compile files.c"

# The hosts: gluster takes no address that begins with 127. These are on the loopback as well, of
# the network namespace that only we have.
host_1=10.77.0.1
host_2=10.77.0.2
ip addr add $host_1/32 dev lo && ip addr add $host_2/32 dev lo || fail "cannot set an address"

# configuration NUMBER HOST: of that glusterd; the options of the transport are those of Debian.
configuration() {
    mkdir -p "$home/work-$1" "$home/run-$1"
    cat >"$home/$1.vol" <<TEXT
volume management
    type mgmt/glusterd
    option working-directory $home/work-$1
    option run-directory $home/run-$1
    option glusterd-sockfile $home/run-$1/socket
    option transport-type socket
    option transport.socket.bind-address $2
    option transport.socket.listen-port 24007
    option transport.socket.keepalive-time 10
    option transport.socket.keepalive-interval 2
    option transport.socket.read-fail-log off
    option ping-timeout 0
    option event-threads 1
end-volume
TEXT
}

# ask NUMBER COMMAND...: that glusterd, by Debian's gluster on Debian's libraries.
ask() {
    local number=$1
    shift
    timeout 20 gluster --mode=script --glusterd-sock="$home/run-$number/socket" "$@"
}

# told NUMBER COMMAND...: it has to do it.
told() { ask "$@" >>"$temporary/told.log" 2>&1 || fail "glusterd $1 does not do: ${*:2}"; }

# peers NUMBER COUNT: it has so many, and is connected to each.
peers() {
    local reply
    reply=$(ask "$1" peer status) && grep -q "^Number of Peers: $2\$" <<<"$reply" &&
        [ "$(grep -c '^State: Peer in Cluster (Connected)$' <<<"$reply")" = "$2" ]
}

# run_daemons WHICH: their processes are $first and $second.
run_daemons() {
    local which=$1 number
    for number in 1 2; do
        start "glusterd-$which-$number" "$which" glusterd -N -f "$home/$number.vol" \
            -l "$temporary/messages-$which-$number.log" -p "$home/$number.pid"
        first=${first:-$pid} second=$pid
    done
    for number in 1 2; do
        until_true 60 "glusterd $number is there" ask $number pool list
    done
    uses "$which" "$first" liburcu-bp
    uses "$which" "$second" liburcu-bp
}

# without_liburcu PID: should that change, `uses` has to be asked instead.
without_liburcu() {
    ! grep -E '/lib(urcu|quiescence)' "/proc/$1/maps" >&2 || fail "process $1 does use liburcu"
}

# told_to_end PID WHAT: by a signal, whose number is what glusterd ends with, by its own choice.
told_to_end() {
    kill -TERM "$1"
    ended "$1" 20 "$2" 15
}

# askers: one of each glusterd that lists its peers until a file is there; each notes its replies,
# and how many were refused: glusterd cannot list a peer whose uuid it does not know yet, which is
# from when it probes one until that one has replied. It is so with either libraries.
askers() {
    local number
    asking=()
    rm -f "$temporary/enough" "$temporary"/asked.*
    for number in 1 2; do
        (
            trap - EXIT
            count=0 refused=0
            until [ -e "$temporary/enough" ]; do
                reply=$(ask "$number" pool list 2>&1)
                # Itself is always on its list.
                if grep -q '[[:space:]]localhost[[:space:]]' <<<"$reply"; then
                    count=$((count + 1))
                elif [ "$reply" = "pool list: failed" ]; then
                    refused=$((refused + 1))
                else
                    echo "$reply"
                    exit 1
                fi
            done
            echo $count $refused >"$temporary/asked.$number"
        ) >>"$temporary/askers.log" 2>&1 &
        asking+=("$!")
        started+=("$!")
    done
}

# asked WHICH: what the askers noted, to $replies and $refused.
asked() {
    local number asker count not
    for asker in "${asking[@]}"; do ended "$asker" 30 "who asks"; done
    replies=0 refused=0
    for number in 1 2; do
        read -r count not <"$temporary/asked.$number"
        [ "$count" -gt 0 ] || fail "glusterd $number has listed no peers"
        [ "$not" = 0 ] || grep -qF 'Dict set failed [{Key=friend1.uuid}]' \
            "$temporary/messages-$1-$number.log" ||
            fail "glusterd $number refused to list its peers, for another reason than the uuid"
        replies=$((replies + count)) refused=$((refused + not))
    done
}

# volume_begins WHICH: of one brick, and a program that uses its files until $temporary/enough is
# there.
volume_begins() {
    told 1 volume create files "$host_1:$home/brick" force
    told 1 volume start files
    brick=$(cat "$home"/run-1/vols/files/*.pid) || fail "the brick has no process"
    started+=("$brick")
    without_liburcu "$brick"
    start "gfapi-$1" "$1" "$temporary/files" $host_1 files "$temporary/enough"
    files=$pid
    until_true 20 "files are written" test -e "$home/brick/of-3/file-7"
    without_liburcu "$files"
}

# volume_ends WHICH: its files are in the brick under their last names; then it is stopped and
# deleted.
volume_ends() {
    ended "$files" 30 "the program that uses files"
    quiet "gfapi-$1"
    done_with_files=$(tail -n 1 "$temporary/gfapi-$1.log")
    grep -q 'rounds, .* names listed$' <<<"$done_with_files" ||
        fail "the program that uses files says nothing"
    (cd "$home/brick" && find of-? -type f -print | sort | xargs sha256sum) \
        >"$temporary/contents-$1"
    [ "$(wc -l <"$temporary/contents-$1")" = 32 ] || fail "the brick does not have the 32 files"
    told 1 volume stop files
    until_true 20 "the brick ends" is_gone "$brick"
    told 1 volume delete files
    ask 1 volume info 2>&1 | grep -q 'No volumes present' || fail "the volume is still there"
}

# probe_and_detach COUNT: the second glusterd, each time until both say so.
probe_and_detach() {
    local number
    for ((number = 1; number <= $1; number++)); do
        told 1 peer probe $host_2
        until_true 20 "peer $number of glusterd 1" peers 1 1
        until_true 20 "peer $number of glusterd 2" peers 2 1
        told 1 peer detach $host_2
        until_true 20 "no peer of glusterd 1" peers 1 0
        until_true 20 "no peer of glusterd 2" peers 2 0
    done
}

times=15
$is_long && times=600
for which in "${which_libraries[@]}"; do
    home=$temporary/$which
    mkdir "$home"
    configuration 1 $host_1
    configuration 2 $host_2
    first=
    run_daemons "$which"
    askers
    volume_begins "$which"
    probe_and_detach $times
    : >"$temporary/enough"
    asked "$which"
    volume_ends "$which"
    # Each peer that was detached has been freed, of both.
    [ "$which" = stock ] || { statistics "$first" 1 $times && statistics "$second" 1 $times; }
    told_to_end "$first" "glusterd 1"
    told_to_end "$second" "glusterd 2"
    for number in 1 2; do
        quiet "glusterd-$which-$number"
        quiet "messages-$which-$number"
        grep -q 'received signum (15), shutting down' "$temporary/messages-$which-$number.log" ||
            fail "glusterd $number does not say that it was told to end"
    done
    held "$which" glusterd "two of them, $times times a peer probed and detached," \
        "$replies lists of peers meanwhile ($refused refused, the uuid not known yet);" \
        "a volume of one brick created, started, used, stopped and deleted;" \
        "both told to end, and ended"
    say "gfapi on that volume, without liburcu: $done_with_files, all as they should be"
done
same_with_both contents "other files are left" \
    "the files that are left in the brick are the same with either libraries"
not_exercised glusterd "bricks on several hosts, snapshots, rebalance, quota," \
    "geo-replication, a restart with volumes"
say "glusterfsd and gfapi, not exercised: as Debian builds them, they use no liburcu"
