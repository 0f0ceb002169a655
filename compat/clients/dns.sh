# shellcheck shell=bash
# Zones, load, answers that are looked at, and the course of a script of a name server. Sourced
# after common.sh.
#
# Every name's address follows from the name: nI in zone Z has 10.Z.I/256.I%256. Sixteen names
# (g0 ... g15) and the serial number follow from how often the zone was written.

names=10000

# zone_text ZONE_NUMBER SERIAL: the zone, without its own name in it.
zone_text() {
    awk -v zone="$1" -v serial="$2" -v names=$names 'BEGIN {
        print "$TTL 300"
        print "@ SOA ns1 hostmaster " serial " 3600 900 604800 300"
        print "@ NS ns1\n@ NS ns2\nns1 A 127.0.0.1\nns2 A 127.0.0.1"
        for (i = 0; i < 16; i++) printf "g%d A 10.200.%d.%d\n", i, int(serial / 256) % 256, serial % 256
        for (i = 0; i < names; i++) printf "n%d A 10.%d.%d.%d\n", i, zone, int(i / 256), i % 256
    }'
}

# queries ZONE...: every name of these zones (number = position), in a fixed order that looks random.
queries() {
    awk -v zones="$*" -v names=$names 'BEGIN {
        count = split(zones, zone, " ")
        # 7919 is prime and does not divide the number of names.
        for (i = 0; i < names * count; i++) {
            j = (i * 7919) % (names * count)
            printf "n%d.%s A\n", j % names, zone[int(j / names) + 1]
        }
    }'
}

# load_start PORT SECONDS: queries at a bounded rate, to $load.
load_start() {
    dnsperf -s 127.0.0.1 -p "$1" -d "$temporary/queries" -l "$2" -c 4 -T 1 -q 60 -Q 5000 -t 5 \
        >"$temporary/dnsperf.log" 2>&1 &
    load=$!
    started+=("$load")
}

# load_end: none was lost, none was answered with anything but an answer.
load_end() {
    ended "$load" 20 dnsperf
    local sent completed lost codes
    sent=$(sed -n 's/.*Queries sent: *\([0-9]*\).*/\1/p' "$temporary/dnsperf.log")
    completed=$(sed -n 's/.*Queries completed: *\([0-9]*\).*/\1/p' "$temporary/dnsperf.log")
    lost=$(sed -n 's/.*Queries lost: *\([0-9]*\).*/\1/p' "$temporary/dnsperf.log")
    codes=$(sed -n 's/.*Response codes: *\(.*\)/\1/p' "$temporary/dnsperf.log")
    [ -n "$sent" ] && [ "$sent" -gt 0 ] || fail "dnsperf has sent nothing"
    [ "$sent" = "$completed" ] && [ "$lost" = 0 ] || fail "of $sent queries $lost were lost"
    [[ $codes == "NOERROR $sent (100.00%)" ]] || fail "answers other than NOERROR: $codes"
    load_sent=$sent
}

# verify PORT ZONE_NUMBER ZONE FIRST COUNT [OPTION...]: these names have their addresses. For the background:
# says what is wrong, and returns 1.
verify() {
    local port=$1 number=$2 zone=$3 first=$4 count=$5 wanted got
    shift 5
    wanted=$(awk -v zone="$number" -v first="$first" -v count="$count" 'BEGIN {
        for (i = first; i < first + count; i++) printf "10.%d.%d.%d\n", zone, int(i / 256), i % 256 }')
    # shellcheck disable=SC2046
    got=$(kdig "@127.0.0.1" -p "$port" +short +retry=0 +timeout=10 "$@" \
        $(seq -f "n%.0f.$zone" "$first" $((first + count - 1))) 2>&1)
    [ "$wanted" = "$got" ] && return 0
    echo "wrong answers in $zone from n$first ($*):"
    diff <(echo "$wanted") <(echo "$got") | head -n 10
    return 1
}

# answers_start PORT PID ZONE...: looks at the answers of zones 1, 2, ... until process PID ends, over UDP and now
# and then TCP; to $sampler, which ends with 0 and the number of names in sampler.log.
answers_start() {
    local port=$1 until_gone=$2
    shift 2
    (
        seen=0 first=0 round=0
        while kill -0 "$until_gone" 2>/dev/null; do
            number=0
            for zone in "$@"; do
                number=$((number + 1))
                if [ $((round % 8)) -eq 7 ]; then
                    verify "$port" $number "$zone" $first 25 +tcp || exit 1
                    seen=$((seen + 25))
                else
                    verify "$port" $number "$zone" $first 250 || exit 1
                    seen=$((seen + 250))
                fi
            done
            round=$((round + 1)) first=$(((first + 250) % names))
        done
        echo $seen
    ) >"$temporary/sampler.log" 2>&1 &
    sampler=$!
    started+=("$sampler")
}

answers_end() {
    ended "$sampler" 20 "the look at the answers"
    answers_seen=$(cat "$temporary/sampler.log")
    [ "$answers_seen" -gt 0 ] || fail "no answer was looked at"
}

# transfers_start PORT PID ZONE_NUMBER ZONE: the whole zone over TCP again and again until process PID ends, to
# $transfers. A transfer is a read-side section as long as it takes; it has to show one version of the zone.
transfers_start() {
    local port=$1 until_gone=$2 number=$3 zone=$4
    (
        seen=0
        while kill -0 "$until_gone" 2>/dev/null; do
            kdig "@127.0.0.1" -p "$port" AXFR "$zone" +noall +answer +retry=0 +timeout=10 >"$temporary/transfer" 2>&1
            whole "$number" "$zone." <"$temporary/transfer" || exit 1
            seen=$((seen + 1))
        done
        echo $seen
    ) >"$temporary/transfers.log" 2>&1 &
    transfers=$!
    started+=("$transfers")
}

# whole ZONE_NUMBER ZONE: is this a zone as zone_text has made it, from its SOA to its SOA, all of one serial number?
whole() {
    awk -v number="$1" -v zone="$2" -v names=$names '
        function wrong(why) { print why ": " $0; has_failed = 1; exit 1 }
        $4 == "SOA" {
            if (++soas > 2 || (soas == 2 && $7 != serial)) wrong("another version")
            serial = $7
            next
        }
        soas != 1 { wrong("not between two SOA") }
        $4 != "A" || $1 ~ /^ns/ { next }
        {
            i = substr($1, 2) + 0
            if ($1 == "g" i "." zone) { if ($5 != "10.200." int(serial / 256) % 256 "." serial % 256) wrong("another version") }
            else if ($1 != "n" i "." zone || $5 != "10." number "." int(i / 256) "." i % 256 || i in seen) wrong("wrong")
            else { seen[i]; count++ }
        }
        END { if (!has_failed && (soas != 2 || count != names)) { print soas + 0 " SOA and " count + 0 " names"; exit 1 } }'
}

transfers_end() {
    ended "$transfers" 20 "the look at the transfers"
    transfers_seen=$(cat "$temporary/transfers.log")
    [ "$transfers_seen" -gt 0 ] || fail "no transfer was looked at"
}

# answer_is PORT WANTED NAME [TYPE]: one name's answer, exactly.
answer_is() {
    local port=$1 wanted=$2 got
    shift 2
    got=$(kdig "@127.0.0.1" -p "$port" +short +retry=0 +timeout=10 "$@" 2>&1)
    [ "$got" = "$wanted" ] || fail "$*: $got, and should be $wanted"
}

# generation_is PORT ZONE SERIAL: what follows from the serial number, which SOA must show too.
generation_is() {
    local address="10.200.$(($3 / 256 % 256)).$(($3 % 256))"
    answer_is "$1" "$address"$'\n'"$address" "g0.$2" "g15.$2"
    answer_is "$1" "ns1.$2 hostmaster.$2 $3 3600 900 604800 300" "$2" SOA
}

# CPU time of a process so far, in clock ticks.
ticks() { awk '{sub(/.*\) /, ""); print $12 + $13}' "/proc/$1/stat"; }

# compare ROUNDS SECONDS PORT_STOCK PID_STOCK PORT_OURS PID_OURS: queries a second as fast as they go, in
# turns; and the server's CPU time for one, which a busy machine disturbs less. Told, not judged.
compare() {
    local rounds=$1 round_s=$2 round which port process before rate
    shift 2
    : >"$temporary/rates"
    for ((round = 0; round < rounds; round++)); do
        # Who comes first alternates.
        for which in $([ $((round % 2)) = 0 ] && echo stock ours || echo ours stock); do
            if [ "$which" = stock ]; then port=$1 process=$2; else port=$3 process=$4; fi
            before=$(ticks "$process")
            dnsperf -s 127.0.0.1 -p "$port" -d "$temporary/queries" -l "$round_s" -c 4 -T 1 -q 100 \
                >"$temporary/dnsperf.log" 2>&1 || fail "dnsperf"
            rate=$(sed -n 's/.*Queries per second: *\([0-9.]*\).*/\1/p' "$temporary/dnsperf.log")
            grep -q 'Queries lost: *0 ' "$temporary/dnsperf.log" || fail "queries were lost at full speed"
            echo "$round $which $rate $(($(ticks "$process") - before))" \
                "$(sed -n 's/.*Queries completed: *\([0-9]*\).*/\1/p' "$temporary/dnsperf.log")" >>"$temporary/rates"
        done
    done
    say "$(awk -v hz="$(getconf CLK_TCK)" '
        function median(v, n,   i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { rate[$1, $2] = $3; cost[$1, $2] = $4 * 1e6 / hz / $5; n = $1 + 1 }
        END {
            for (i = 1; i <= n; i++) {
                stock[i] = rate[i - 1, "stock"]; ours[i] = rate[i - 1, "ours"]; ratio[i] = ours[i] / stock[i]
                cost_stock[i] = cost[i - 1, "stock"]; cost_ours[i] = cost[i - 1, "ours"]
            }
            r = median(ratio, n)
            cost_r = median(cost_ours, n) / median(cost_stock, n)
            printf "speed, ours / stock: queries a second %.2f (%.2f to %.2f), ours %d; ", r, ratio[1], ratio[n], median(ours, n)
            printf "CPU time a query %.2f, ours %.2f us; %d rounds", cost_r, median(cost_ours, n), n
        }' "$temporary/rates")"
}

# serve KIB ZONE...: the server with each of the libraries, zones 1, 2, ... in so much memory; then
# both at full speed; then their ends. The script says how: run_server, under_load, after_load,
# shut_down.
serve() {
    local which seconds number zone rounds round_s
    in_memory "$1"
    shift
    queries "$@" >"$temporary/queries"
    for which in "${which_libraries[@]}"; do
        run_server "$which"
        seconds=5
        $is_long && seconds=300
        [ "$which" = stock ] && seconds=2
        under_load "$which" $seconds
        number=0
        for zone in "$@"; do
            number=$((number + 1))
            verify "$port" $number "$zone" 0 $names >"$temporary/verify.log" ||
                fail "not every name has its address"
        done
        after_load "$which"
        declare -g "port_$which=$port" "pid_$which=$pid"
    done
    if has ours && has stock; then
        if $is_long; then rounds=15 round_s=4; else rounds=3 round_s=1; fi
        # shellcheck disable=SC2154
        compare $rounds $round_s "$port_stock" "$pid_stock" "$port_ours" "$pid_ours"
    fi
    for which in "${which_libraries[@]}"; do
        declare -n process="pid_$which"
        shut_down "$which" "$process"
    done
    say "all held"
}
