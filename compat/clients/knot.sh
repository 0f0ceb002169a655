#!/usr/bin/env bash
# Debian's knotd on our libraries: two zones of 10,000 names, one reloaded and one updated (DDNS, and
# transactions of knotc) all the time while dnsperf asks, and kdig looks at what is
# answered and transferred.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/dns.sh"
client knot 120 1800 "$@"
need knotd knot
need knotc knot
need dnsperf dnsperf
need kdig knot-dnsutils
need knsupdate knot-dnsutils

configuration() {
    local which=$1 port=$2 place=$place/$1
    mkdir -p "$place/db"
    zone_text 1 1 >"$place/reload.test.zone"
    zone_text 2 1 >"$place/update.test.zone"
    cat >"$place/knot.conf" <<TEXT
server:
    rundir: "$place"
    listen: 127.0.0.1@$port
    udp-workers: 2
    tcp-workers: 2
    # Not the half a second of its own choice: on a busy machine a client may not read for so long.
    tcp-io-timeout: 10000
    background-workers: 2
log:
  - target: "$temporary/knot-$which.log"
    any: info
database:
    storage: "$place/db"
control:
    listen: "$place/knot.sock"
acl:
  - id: loopback
    address: 127.0.0.1
    action: [update, transfer]
template:
  - id: default
    storage: "$place"
    file: "%s.zone"
    semantic-checks: off
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
zone:
  - domain: reload.test
    acl: loopback
  - domain: update.test
    acl: loopback
TEXT
}

# control WHICH COMMAND...: waits until the server has done it.
control() {
    local which=$1
    shift
    knotc -c "$place/$which/knot.conf" -b -t 30 "$@"
}

# run_server WHICH: knotd with these libraries; $port and $pid are its.
run_server() {
    port=$(free_port)
    configuration "$1" "$port"
    start "knotd-$1" "$1" knotd -c "$place/$1/knot.conf"
    until_true 20 "knotd is there" control "$1" status
    uses "$1" "$pid" liburcu
    generation_is "$port" reload.test. 1
}

reload() {
    zone_text 1 "$2" >"$place/$1/new.zone"
    mv "$place/$1/new.zone" "$place/$1/reload.test.zone"
    timed control "$1" zone-reload reload.test >>"$temporary/knotc.log" 2>&1 || fail "zone-reload"
    generation_is "$port" reload.test. "$2"
}

# One name by DDNS, one by a transaction: there as soon as the server says so, and gone again.
update() {
    local which=$1 number=$2 address="10.201.$(($2 / 256 % 256)).$(($2 % 256))"
    printf 'server 127.0.0.1 %s\nzone update.test.\nupdate delete d%s.update.test.\nupdate add d%s.update.test. 300 A %s\nsend\nquit\n' \
        "$port" $((number - 1)) "$number" "$address" | knsupdate >>"$temporary/knsupdate.log" 2>&1 || fail "knsupdate"
    answer_is "$port" "$address" "d$number.update.test"
    answer_is "$port" "" "d$((number - 1)).update.test"
    {
        control "$which" zone-begin update.test &&
            control "$which" zone-set update.test "c$number" 300 A "$address" &&
            { [ "$number" = 1 ] || control "$which" zone-unset update.test "c$((number - 1))" A; } &&
            control "$which" zone-commit update.test
    } >>"$temporary/knotc.log" 2>&1 || fail "a transaction"
    answer_is "$port" "$address" "c$number.update.test"
    answer_is "$port" "" "c$((number - 1)).update.test"
}

# under_load WHICH SECONDS: everything at once.
under_load() {
    local which=$1 load_s=$2 churn serial=1
    longest_ms=0
    load_start "$port" "$load_s"
    answers_start "$port" "$load" reload.test update.test
    transfers_start "$port" "$load" 1 reload.test
    (
        trap - EXIT
        number=0
        while kill -0 "$load" 2>/dev/null; do number=$((number + 1)); update "$which" $number; done
        echo $number >"$temporary/updates"
    ) &
    churn=$!
    started+=("$churn")
    while kill -0 "$load" 2>/dev/null; do serial=$((serial + 1)); reload "$which" $serial; done
    ended "$churn" 30 "the updates"
    load_end
    answers_end
    transfers_end
    updates=$((2 * $(cat "$temporary/updates")))
    # knotd frees what each has replaced by a callback.
    needed=$((updates + serial - 1))
    say "$which: $load_sent queries, $answers_seen answers and $transfers_seen transfers looked at, $((serial - 1)) reloads (the longest in $longest_ms ms) and" \
        "$updates updates meanwhile, none lost or wrong; memory at most $(memory "$pid")"
}

# shut_down WHICH PID: as a service manager would; nothing went wrong in all that time.
shut_down() {
    kill -TERM "$2"
    ended "$2" 20 knotd
    grep -q 'shutting down' "$temporary/knot-$1.log" || fail "the log does not say that it was shut down"
    if grep -E ' (error|critical): ' "$temporary/knot-$1.log"; then fail "errors in the log"; fi
    quiet "knotd-$1"
}

after_load() { [ "$1" = stock ] || statistics "$pid" 1 "$needed"; }

serve 1000000 reload.test update.test
