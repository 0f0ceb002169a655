#!/usr/bin/env bash
# Inside a root of Debian 13: compiles the programs of `compat/tests/programs` and the examples of
# the package liburcu-dev with that system's own compiler, headers and libraries (liburcu 0.15), and
# runs each on the system's libraries and on ours. Prints a table in Markdown of what passed on
# each, and then what did not pass on ours: then it fails.
#
#   inside.sh DIR    DIR has programs/ (the sources), lib/ (our libraries); it is written to
#
# `.ci/debian13` brings all that there and calls it.
set -uo pipefail
export LC_ALL=C
place=${1:?the directory with programs/ and lib/}
cd "$place" || exit 2
mkdir -p bin out
# Ours have this long for a case; the system's, some of which hang, less.
ours_s=60
theirs_s=15

# program SOURCE LIBRARY...: it is compiled for each library, with readers exported and inlined.
programs() {
    cat <<'TABLE'
readers.c memb mb qsbr bp
call_rcu.c memb mb qsbr bp
defer.c memb mb qsbr bp
poll.c memb mb qsbr bp
flavor_struct.c memb mb qsbr bp
publication.c memb mb qsbr bp
fork.c memb mb qsbr bp
faults.c memb mb qsbr bp
qsbr.c qsbr
bp.c bp
lists.c memb qsbr
stacks.c memb qsbr
rculfqueue.c memb bp qsbr
lfht.c memb mb bp qsbr
lfht_load.c memb mb bp qsbr
lfht_memory.c memb mb bp qsbr
wfcqueue.c common
wfqueue.c common
workqueue.c cds
futex.c memb mb qsbr bp common cds
cplusplus.cpp memb bp qsbr
TABLE
}

# Whether a command ends well, on our libraries or on the system's.
on() {
    local whose=$1
    shift
    if [ "$whose" = ours ]; then
        LD_LIBRARY_PATH=$place/lib PROGRAMS_LIBRARY=ours timeout -s KILL "$ours_s" "$@"
    else
        PROGRAMS_LIBRARY=debian PROGRAMS_LIBURCU=0.15 timeout -s KILL "$theirs_s" "$@"
    fi
}

compile() { # compile SOURCE LIBRARY HOW
    local source=$1 library=$2 how=$3 program=bin/${1%.*}-$2-$3
    local compiler=(gcc -std=gnu11) options=() libraries=("-lurcu-$library")
    [[ $source = *.cpp ]] && compiler=(g++ -std=gnu++17)
    [ "$how" = inlined ] && options+=(-D_LGPL_SOURCE)
    [[ $library = common || $library = cds ]] || options+=("-DFLAVOR_${library^^}")
    [ "$source" = futex.c ] || libraries+=(-lurcu-cds -lurcu-common)
    "${compiler[@]}" -O1 -g -pthread -Wall -Wextra -Wno-deprecated-declarations -DDEBIAN_HEADERS \
        "${options[@]}" "programs/$source" -o "$program" "${libraries[@]}" \
        >"out/${program#bin/}.log" 2>&1
}

failures=out/failures
: >"$failures"

# Counts the cases of a compiled program that pass, on both.
try_program() { # try_program NAME
    local name=$1 case
    for case in $(bin/"$name" --list); do
        for whose in theirs ours; do
            if on $whose "bin/$name" "$case" >"out/$name.$case.$whose" 2>&1; then
                echo "$name $whose"
            elif [ $whose = ours ]; then
                echo "== $name $case, on ours:" >>"$failures"
                tail -n 5 "out/$name.$case.$whose" >>"$failures"
            fi
        done
    done
}
export -f try_program on
export place ours_s theirs_s failures

echo "| program | built for | cases | pass on Debian 13's 0.15 | pass on ours |"
echo "|---|---|---|---|---|"
while read -r source libraries; do
    names=() cases=0
    for library in $libraries; do
        for how in exported inlined; do
            name=${source%.*}-$library-$how
            if compile "$source" "$library" $how; then
                names+=("$name")
                cases=$((cases + $(bin/"$name" --list | wc -l)))
            else
                { echo "== $name does not compile:"; head -n 5 "out/$name.log"; } >>"$failures"
            fi
        done
    done
    passed=$(printf '%s\n' "${names[@]}" | xargs -P 4 -I NAME bash -c 'try_program NAME')
    theirs=$(grep -c ' theirs$' <<<"$passed")
    ours=$(grep -c ' ours$' <<<"$passed")
    echo "| \`$source\` | ${libraries// /, } | $cases | $theirs | $ours |"
done < <(programs)

# The package's own examples: that they end alike, and say the same.
cp -r /usr/share/doc/liburcu-dev/examples examples
find examples -name '*.gz' -exec gunzip {} +
make -k -C examples >out/examples.log 2>&1
examples=0 theirs=0 ours=0
while read -r example; do
    examples=$((examples + 1))
    # Addresses differ from run to run, and in the order of a table whose hash has a seed.
    said() {
        on "$1" "$example" 2>&1 </dev/null |
            perl -lpe 's/0x[0-9a-f]+/ADDRESS/g; $_ = join " ", sort split'
        echo "${PIPESTATUS[0]}"
    }
    theirs_said=$(said theirs)
    ours_said=$(said ours)
    [ "${theirs_said##*$'\n'}" = 0 ] && theirs=$((theirs + 1))
    if [ "$ours_said" = "$theirs_said" ]; then
        ours=$((ours + 1))
    else
        { echo "== $example:"; diff <(echo "$theirs_said") <(echo "$ours_said"); } >>"$failures"
    fi
done < <(find examples -type f -perm -u+x ! -name '*.*' | sort)
echo "| examples of liburcu-dev | each its own | $examples | $theirs |" \
    "$ours, with the same output |"

cat "$failures" >&2
[ ! -s "$failures" ] && [ "$examples" -gt 0 ]
