#!/usr/bin/env bash
# Debian's kzonesign and kzonecheck on our libraries: a generated zone is signed, with keys, a time
# and algorithms that leave nothing to chance. The signed zone, the messages about it, and those
# about one that was tampered with, are what they are with Debian's liburcu.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/dns.sh"
client kzone 120 1800 "$@"
for program in kzonesign kzonecheck; do need $program knot-dnssecutils; done
need keymgr knot

made=1700000000
names=1000
zones=2
if $is_long; then names=10000 zones=20; fi

# configuration DIRECTORY SOURCE NSEC3: of knot's, with a database of keys in that directory, and
# zones from SOURCE.
configuration() {
    mkdir -p "$1/db" "$1/signed"
    cat >"$1/config" <<TEXT
server:
    rundir: "$1"
    background-workers: 2
database:
    storage: "$1/db"
policy:
  - id: policy
    algorithm: ed25519
    nsec3: $3
    nsec3-iterations: 0
    nsec3-salt-length: 0
    signing-threads: 2
template:
  - id: default
    storage: "$2"
    file: "%s.zone"
    zonefile-load: whole
    journal-content: none
    dnssec-signing: on
    dnssec-policy: policy
zone:
  - domain: sign.test
TEXT
}

# keys DIRECTORY: made with Debian's libraries, once for both.
keys() {
    local key active="created=$made publish=$made active=$made"
    # shellcheck disable=SC2086
    for key in "ksk=yes zsk=no ready=$made" "ksk=no zsk=yes"; do
        keymgr -c "$1/config" sign.test generate algorithm=ed25519 $active $key \
            >>"$temporary/keymgr.log" 2>&1 ||
            fail "keymgr"
    done
}

# same WHAT: with either libraries, if both are asked for.
same() {
    has ours && has stock || return 0
    diff "$place/$1-stock" "$place/$1-ours" | head -n 20 >&2 ||
        fail "$1 is something else with our libraries"
}

# said WHICH NAME CODE COMMAND...: it ends with that code; its messages are kept, without names of
# directories.
said() {
    local which=$1 name=$2 wanted=$3 code
    shift 3
    with_seen "$which" "$name" "$@"
    code=$?
    [ $code = "$wanted" ] || fail "$1 with $which ended with $code, and should end with $wanted"
    quiet "$name"
    sed -e "s|$place/$which|PLACE|g" "$temporary/$name.log" >"$place/$name-$which"
}

# sign WHICH NUMBER: signs the zone, verifies it twice, and tampers with it.
sign() {
    local which=$1 number=$2 nsec3=on home=$place/$1
    [ $((number % 2)) = 1 ] || nsec3=off
    rm -rf "$home"
    mkdir -p "$home"
    cp -a "$place/keys/db" "$home/db"
    configuration "$home" "$place/source" $nsec3
    said "$which" sign 0 kzonesign -c "$home/config" -t $((made + 1000)) -o "$home/signed" sign.test
    # Without the line that says when the file was written.
    sed '/^;; Time /d' "$home/signed/sign.test.zone" >"$place/zone-$which"
    grep -q RRSIG "$place/zone-$which" || fail "the zone is not signed"

    configuration "$home" "$home/signed" $nsec3
    said "$which" verify 0 kzonesign -c "$home/config" -v -t $((made + 2000)) sign.test
    said "$which" check 0 kzonecheck -t $((made + 2000)) -o sign.test "$home/signed/sign.test.zone"
    # One address of n7 that its signature does not cover.
    sed -i -E 's/^(n7\.sign\.test\..*[[:space:]]A[[:space:]].*)10\./\111./' \
        "$home/signed/sign.test.zone"
    grep -qE '^n7\.sign\.test\..*[[:space:]]A[[:space:]]+11\.' "$home/signed/sign.test.zone" ||
        fail "the zone could not be tampered with"
    said "$which" tampered 1 kzonecheck -t $((made + 2000)) -o sign.test \
        "$home/signed/sign.test.zone"
    said "$which" refused 1 kzonesign -c "$home/config" -v -t $((made + 2000)) sign.test
    grep -q 'n7\.sign\.test' "$place/tampered-$which" ||
        fail "kzonecheck does not name what was tampered with"
}

in_memory 200000
mkdir "$place/source"
configuration "$place/keys" "$place/source" on
keys "$place/keys"
signatures=0
for ((number = 1; number <= zones; number++)); do
    zone_text "$number" "$number" >"$place/source/sign.test.zone"
    for which in "${which_libraries[@]}"; do sign "$which" "$number"; done
    signatures=$((signatures + $(grep -c RRSIG "$place/zone-${which_libraries[0]}")))
    for what in zone sign verify check tampered refused; do same $what; done
done
compared="nothing to compare with"
has ours && has stock && compared="byte for byte the same with either libraries"
for which in "${which_libraries[@]}"; do
    held "$which" kzonesign "$zones zones of $names names signed (NSEC3 and NSEC," \
        "$signatures signatures), verified by kzonesign -v and kzonecheck," \
        "tampered with and refused; zones and messages $compared"
done
not_exercised kzonesign "key rollovers (-r), and signing in knotd itself"
