#!/usr/bin/env bash
# Debian's gdnsd on our libraries: QSBR readers, inlined, through a TLS symbol and copy relocations. Its zones
# are reloaded all the time while dnsperf asks and kdig looks at what is answered; then the daemon is replaced
# by a new one of its own making, as in an upgrade.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/dns.sh"
client gdnsd 120 1800 "$@"
need gdnsd gdnsd
need gdnsdctl gdnsd
need dnsperf dnsperf
need kdig knot-dnsutils

configuration() {
    local which=$1 port=$2 place=$place/$1
    mkdir -p "$place/zones"
    zone_text 1 1 >"$place/zones/one.test"
    zone_text 2 1 >"$place/zones/two.test"
    cat >"$place/config" <<TEXT
options => {
  listen => [ 127.0.0.1:$port ]
  run_dir => $place/run
  state_dir => $place/state
  lock_mem => false
  udp_threads => 2
  tcp_threads => 1
}
TEXT
}

# control WHICH ACTION: waits until the daemon has done it.
control() { gdnsdctl -c "$place/$1" -t 30 "$2"; }

# A daemon that has replaced ours, and that we were not told of.
clean_up_first() {
    local configuration
    for configuration in "$place"/*/config; do gdnsdctl -c "${configuration%/config}" -o -i -t 5 stop; done
}

# run_server WHICH: gdnsd with these libraries; $port and $pid are its.
run_server() {
    port=$(free_port)
    configuration "$1" "$port"
    start "gdnsd-$1" "$1" gdnsd -c "$place/$1" start
    until_true 20 "gdnsd is there" gdnsdctl -c "$place/$1" -o -t 5 status
    uses "$1" "$pid" liburcu-qsbr
    generation_is "$port" one.test. 1
}

# reload WHICH SERIAL: both zones; what is answered afterwards is the new one.
reload() {
    local zone number=0
    for zone in one two; do
        number=$((number + 1))
        zone_text $number "$2" >"$place/$1/new"
        mv "$place/$1/new" "$place/$1/zones/$zone.test"
    done
    timed control "$1" reload-zones >>"$temporary/gdnsdctl.log" 2>&1 || fail "reload-zones"
    generation_is "$port" one.test. "$2"
    generation_is "$port" two.test. "$2"
}

under_load() {
    local which=$1 load_s=$2
    serial=1 longest_ms=0
    load_start "$port" "$load_s"
    answers_start "$port" "$load" one.test two.test
    while kill -0 "$load" 2>/dev/null; do serial=$((serial + 1)); reload "$which" $serial; done
    load_end
    answers_end
    say "$which: $load_sent queries and $answers_seen answers looked at, $((serial - 1)) reloads meanwhile (the longest in $longest_ms ms)," \
        "none lost or wrong; memory at most $(memory "$pid")"
}

# replace WHICH: the daemon starts its successor, hands over its sockets and ends, with 0; $pid is the new one's.
replace() {
    local which=$1 old=$pid
    control "$which" replace >>"$temporary/gdnsdctl.log" 2>&1 || fail "replace"
    ended "$old" 20 "the old gdnsd"
    pid=$(control "$which" status 2>&1 | sed -n 's/.*running at PID \([0-9]*\).*/\1/p')
    [ -n "$pid" ] && [ "$pid" != "$old" ] || fail "nobody has replaced gdnsd"
    started+=("$pid")
    uses "$which" "$pid" liburcu-qsbr
    generation_is "$port" one.test. "$serial"
    serial=$((serial + 1))
    reload "$which" "$serial"
}

# shut_down WHICH PID
shut_down() {
    control "$1" stop >>"$temporary/gdnsdctl.log" 2>&1 || fail "stop"
    until_true 20 "gdnsd ends" is_gone "$2"
    grep -q 'Exiting cleanly' "$temporary/gdnsd-$1.log" || fail "the log does not say that it was shut down"
    if grep -E '^(error|fatal): ' "$temporary/gdnsd-$1.log"; then fail "errors in the log"; fi
    quiet "gdnsd-$1"
}

after_load() {
    [ "$1" = stock ] || statistics "$pid" $((serial - 1)) 0
    replace "$1"
}

serve 100000 one.test two.test
