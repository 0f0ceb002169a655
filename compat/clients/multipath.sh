#!/usr/bin/env bash
# Debian's multipathd on our libraries: a call_rcu worker of its own making, which it joins at the
# end, and configurations that are replaced, and freed by call_rcu, while many ask for them.
# stand-in-dm.c stands in for the kernel's device mapper, and every device is on the blacklist: no
# device of this machine is touched.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
alone "$@"
client multipath 120 1800 "$@"
need multipathd multipath-tools
need cc gcc

# A folder /etc that only we see: multipathd has no option for its configuration.
mkdir "$temporary/etc"
cp -a /etc/alternatives /etc/ld.so.* /etc/passwd /etc/group /etc/nsswitch.conf "$temporary/etc/" ||
    fail "cannot copy files of /etc"
mount --bind "$temporary/etc" /etc && mount -t tmpfs none /run || cannot "mount is refused"
# Should it make this one nevertheless.
[ ! -d /dev/mapper ] || mount -t tmpfs none /dev/mapper || cannot "mount is refused"
cc -O2 -shared -fPIC -o "$temporary/stand-in.so" "$here/stand-in-dm.c" >"$temporary/cc.log" 2>&1 ||
    fail "cannot compile stand-in-dm.c"

# configuration INTERVAL: in one step.
configuration() {
    printf 'defaults {\n polling_interval %s\n}\nblacklist {\n devnode ".*"\n}\n' "$1" \
        >/etc/multipath.new
    mv /etc/multipath.new /etc/multipath.conf
}

# says WANTED COMMAND...: that is in what multipathd replies.
says() {
    local wanted=$1
    shift
    multipathd "$@" 2>&1 | grep -q -- "$wanted"
}

run_daemon() {
    configuration 5
    start "multipathd-$1" "$1" env LD_PRELOAD="$temporary/stand-in.so" multipathd -d -s -v2
    until_true 20 "multipathd is there" says idle show daemon
    uses "$1" "$pid" liburcu
}

# askers: four that ask until a file is there; each notes how many replies it has had, all whole.
askers() {
    local number
    asking=()
    rm -f "$temporary/enough" "$temporary"/asked.*
    for number in 1 2 3 4; do
        (
            trap - EXIT
            count=0
            until [ -e "$temporary/enough" ]; do
                multipathd show config >"$temporary/config.$number" 2>&1
                # From its first section to its last, which is `overrides`.
                [ "$(head -n 1 "$temporary/config.$number")" = "defaults {" ] &&
                    grep -q '^overrides' "$temporary/config.$number" || exit 1
                says 'devnode blacklisted\|available block devices' show devices || exit 1
                count=$((count + 2))
            done
            echo $count >"$temporary/asked.$number"
        ) >>"$temporary/askers.log" 2>&1 &
        asking+=("$!")
        started+=("$!")
    done
}

# reconfigure COUNT: each time another value, which is told as soon as it says so.
reconfigure() {
    local number value
    for ((number = 1; number <= $1; number++)); do
        value=$((6 + number % 90))
        configuration $value
        multipathd reconfigure >>"$temporary/reconfigure.log" 2>&1 || fail "multipathd reconfigure"
        until_true 10 "polling_interval $value" says "polling_interval $value\$" show config local
    done
}

reconfigurations=100
$is_long && reconfigurations=5000
for which in "${which_libraries[@]}"; do
    run_daemon "$which"
    askers
    reconfigure $reconfigurations
    : >"$temporary/enough"
    for asker in "${asking[@]}"; do ended "$asker" 30 "who asks"; done
    replies=$(awk '{ n += $1 } END { print n + 0 }' "$temporary"/asked.*)
    [ "$replies" -gt 0 ] || fail "nobody had a reply"
    # Each configuration but the present one has been freed.
    [ "$which" = stock ] || statistics "$pid" 1 $reconfigurations
    multipathd shutdown >>"$temporary/reconfigure.log" 2>&1 || fail "multipathd shutdown"
    ended "$pid" 20 multipathd
    grep -q 'shut down' "$temporary/multipathd-$which.log" ||
        fail "the log does not say that it was shut down"
    quiet "multipathd-$which"
    held "$which" multipathd "started, $reconfigurations reconfigurations and" \
        "$replies replies of its socket meanwhile, shut down (its call_rcu worker joined)," \
        "ended with 0; device mapper: a stand-in, no device"
done
not_exercised multipathd "paths, maps, checkers and events of devices: there is no device"
