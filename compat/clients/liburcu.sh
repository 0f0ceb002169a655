#!/usr/bin/env bash
# The tests of one release of liburcu, compiled against its own headers, on our libraries and on its
# own: the unit tests, that of fork, and the torture of each flavour. Not its benchmarks, which take
# hours. The sources (LGPL, tests GPL) are fetched to target/liburcu; nothing of them is kept here.
#
#   liburcu.sh VERSION [OPTION...]
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
case ${1:-} in
    0.13.2) sum=1213fd9f1b0b74da7de2bb74335b76098db9738fec5d3cdc07c0c524f34fc032 ;;
    0.14.1) sum=231acb13dc6ec023e836a0f0666f6aab47dc621ecb1d2cd9d9c22f922678abc0 ;;
    0.15.2) sum=59f36f2b8bda1b7620a7eced2634f26c549444818a8313025a3bb09c0766a61d ;;
    *) echo "usage: $0 0.13.2|0.14.1|0.15.2 [OPTION...]" >&2; exit 2 ;;
esac
version=$1
shift
client "liburcu-$version" 900 3600 "$@"
say "version: $version"
for program in cc c++ make bzip2 curl; do need $program "$program"; done

name=userspace-rcu-$version
archive=$here/../../target/liburcu/$name.tar.bz2
mkdir -p "${archive%/*}"
if [ ! -e "$archive" ]; then
    url=https://lttng.org/files/urcu/$name.tar.bz2
    curl -fsSL --max-time 120 -o "$temporary/archive" "$url" ||
        cannot "the sources cannot be fetched; they may be put to target/liburcu/$name.tar.bz2"
    mv "$temporary/archive" "$archive"
fi
sha256sum --check --status <<<"$sum  $archive" || fail "$archive is not what was released"
tar -xf "$archive" -C "$temporary" && cd "$temporary/$name" || fail "cannot unpack $archive"
{ ./configure --disable-static && make -j2; } >"$temporary/build.log" 2>&1 ||
    fail "$name does not build"

# tried WHICH PROGRAM ARGUMENT...: counts what it reports (TAP); to end badly is a failure too. One
# that is linked with none of the libraries is left out.
tried() {
    local which=$1 program=$2 own=() log=$temporary/test.log code counts libraries_of
    shift 2
    [ "$which" = ours ] || own=("LD_LIBRARY_PATH=$PWD/src/.libs")
    libraries_of=$(with "$which" env "${own[@]}" ldd "$program" |
        sed -nE 's#.*=> (/.*/lib(urcu|quiescence)[^ ]*) .*#\1#p')
    [ -n "$libraries_of" ] || return 0
    of_one_kind "$which" "$program" "$libraries_of"
    with "$which" env "${own[@]}" timeout 120 "$program" "$@" >"$log" 2>&1 </dev/null
    code=$?
    counts=$(awk -v code=$code '
        /^ok/ { if (tolower($0) ~ /# *skip/) skipped++; else passed++ }
        /^not ok/ { failed++ }
        END { print passed + 0, failed + (code != 0 && !failed), skipped + 0 }' "$log")
    read -r passes failures skips <<<"$counts"
    passed=$((passed + passes)) failed=$((failed + failures)) skipped=$((skipped + skips))
    [ "$failures" = 0 ] || { names+=" \`${program##*/}${*:+ $*}\`"; tail -n 5 "$log" >&2; }
}

# all_tests WHICH
all_tests() {
    local which=$1 program kind kinds=(perthread) torture
    passed=0 failed=0 skipped=0 names=
    ! $is_long || kinds+=(global percpu)
    for program in tests/unit/test_* tests/regression/test_urcu_fork.tap; do
        [[ -f $program && -x $program ]] || continue
        [ ! -x "${program%/*}/.libs/${program##*/}" ] || program=${program%/*}/.libs/${program##*/}
        tried "$which" "$program"
    done
    for program in tests/regression/.libs/rcutorture_urcu_*; do
        for kind in "${kinds[@]}"; do
            for torture in perf rperf uperf stress; do
                tried "$which" "$program" "$(nproc)" $torture 1 "callrcu_$kind"
            done
        done
    done
    say "tests on $which: $passed / $failed / $skipped$names"
    declare -g "names_$which=$names"
    [ "$passed" -gt 0 ] || fail "no test passed on $which"
}

for which in "${which_libraries[@]}"; do all_tests "$which"; done
[ "${names_ours:-}" = "${names_stock:-}" ] || fail "not as on its own libraries"
say "all held"
