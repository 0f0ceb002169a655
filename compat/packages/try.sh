#!/usr/bin/env bash
# Tries the Debian packages in a system of their own, made from nothing by debootstrap: installed,
# upgraded, removed and purged, beside Debian's liburcu and in its place.
#
#   try.sh SUITE OLD NEW     OLD, NEW: directories with the packages, of two builds of one version
#
# As root; needs debootstrap and a Debian archive (MIRROR, or deb.debian.org). Changes nothing
# outside a directory of its own, which is removed: mounts and processes are in namespaces.
# Exit codes: 0 all held, 1 something did not, 2 the arguments are wrong, 4 it cannot be run here.
set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
unset LD_LIBRARY_PATH LD_PRELOAD PKG_CONFIG_PATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "packages on $suite: $*"; }

fail() {
    say "FAILED: $*" >&2
    [ -s "$root/../log" ] && { echo "--- end of the log"; tail -n 20 "$root/../log"; } >&2
    exit 1
}

impossible() { say "skipped: $*"; exit 4; }

# in_root COMMAND...
in_root() { chroot "$root" "$@"; }

# quietly WHAT COMMAND...: the command's words are in the log; it has to succeed.
quietly() {
    local what=$1
    shift
    "$@" >>"$root/../log" 2>&1 || fail "$what"
}

apt() { quietly "apt-get $*" in_root apt-get -qq -y --no-install-recommends "$@"; }

# package DIRECTORY NAME: the file, as it is called in the root.
package() {
    local file
    file=$(cd "$root/packages/$1" && echo "$2"_*.deb)
    [ -e "$root/packages/$1/$file" ] || fail "there is no package $2 in $1"
    echo "/packages/$1/$file"
}

# keeps: all that was installed before is so still, and its dependencies are met.
keeps() {
    local name
    for name in "${clients[@]}" "$stock" liburcu-dev; do
        [ "$(in_root dpkg-query -W -f '${db:Status-Abbrev}' "$name")" = "ii " ] ||
            fail "$1: $name is not installed any more"
    done
    quietly "$1: apt-get check" in_root apt-get check
    [ -z "$(in_root dpkg --audit)" ] || fail "$1: dpkg --audit complains"
}

# of WHICH WHO PATHS: these libraries are ours, or Debian's, and no other's.
of() {
    [ -n "$3" ] || fail "$2 runs on no library of this kind"
    case $1 in
        ours) ! grep -v "/$home/" <<<"$3" || fail "$2 has another's libraries" ;;
        debians) ! grep -E "$home|libquiescence" <<<"$3" || fail "$2 has our libraries" ;;
    esac
    if [ "$1" = ours ]; then
        grep -q libquiescence <<<"$3" || fail "$2 has no libquiescence: $3"
    fi
}

# run_on WHICH WHEN [VARIABLE...]: the clients run, on these libraries: a program that was compiled
# against Debian's headers, xfs_repair, knotd.
run_on() {
    local which=$1 when=$2 paths pid
    shift 2
    paths=$(in_root env "$@" timeout 60 /client) || fail "$when: the client ended with $?"
    of "$which" "$when: the client" "$paths"
    quietly "$when: mkfs.xfs" in_root env "$@" mkfs.xfs -q -f -d file,name=/image,size=310m
    quietly "$when: xfs_repair" in_root env "$@" timeout 60 xfs_repair -f /image
    paths=$(in_root env "$@" ldd /usr/sbin/xfs_repair | grep -E 'urcu|quiescence' | sed 's/.*=> //')
    of "$which" "$when: xfs_repair" "$paths"
    # A daemon, while it runs.
    chroot "$root" env "$@" knotd -c /knot.conf >>"$root/../log" 2>&1 &
    pid=$!
    for ((tries = 0; tries < 3000; tries++)); do
        [ -S "$root/knot/knot.sock" ] && break
        kill -0 "$pid" 2>/dev/null || fail "$when: knotd does not start"
        sleep 0.02
    done
    paths=$(sed -n 's|^[^/]*\(/.*\)$|\1|p' "/proc/$pid/maps" | grep -E '/lib(urcu|quiescence)' |
        sort -u)
    of "$which" "$when: knotd" "$paths"
    kill "$pid"
    wait "$pid" || fail "$when: knotd ended with $?"
    rm -rf "$root/knot/"*
    say "$when: client, xfs_repair and knotd run on $which"
}

# All files but those that dpkg, apt and ldconfig keep for themselves.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./packages -o -path ./tmp \
        -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/log -o -path ./var/cache \
        -o -path ./knot -o -path ./image -o -path ./examples \) -prune -o -print | sort)
}

make_root() {
    say "debootstrap"
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root/../log" 2>&1 || {
        tail -n 3 "$root/../log"
        impossible "debootstrap $suite from $mirror failed"
    }
    mount -t proc proc "$root/proc" || impossible "no permission to mount"
    # No daemon is started by being installed.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mkdir "$root/packages" "$root/knot"
    cp -r "$old" "$root/packages/old"
    cp -r "$new" "$root/packages/new"
    cp "$here/client.c" "$root/client.c"
    printf 'server:\n  rundir: /knot\n  pidfile: /knot/pid\ndatabase:\n  storage: /knot\n' \
        >"$root/knot.conf"
    say "installing ${clients[*]} and compilers"
    apt install "${clients[@]}" liburcu-dev gcc g++ libc6-dev make pkg-config dpkg-dev
    triplet=$(in_root gcc -print-multiarch)
    home=lib/$triplet/quiescence
    case $suite in bookworm) stock=liburcu8 ;; *) stock=liburcu8t64 ;; esac
    quietly "the client, against Debian's" in_root gcc -O2 -pthread /client.c -o /client -lurcu-memb
}

beside() {
    apt install "$(package old libquiescence-urcu0)"
    keeps "with the libraries beside Debian's"
    run_on debians "beside Debian's"
    run_on ours "beside Debian's, asked for" LD_LIBRARY_PATH="/usr/$home"
    apt install "$(package old libquiescence-urcu-dev)" "$(package old libquiescence-urcu0-dbgsym)"
    keeps "with the development files beside Debian's"
    [ -z "$(in_root dpkg --verify libquiescence-urcu0 libquiescence-urcu-dev)" ] ||
        fail "the sums are not those of the files"
    development
    apt install "$(package new libquiescence-urcu0)" "$(package new libquiescence-urcu-dev)" \
        "$(package new libquiescence-urcu0-dbgsym)"
    keeps "after an upgrade"
    run_on ours "upgraded, asked for" LD_LIBRARY_PATH="/usr/$home"
}

# What the development files are for: the examples, as a user builds them; and what a packager's
# tool finds out of one of them.
development() {
    cp -r "$root/usr/share/doc/libquiescence-urcu-dev/examples" "$root/examples"
    quietly "make check" in_root make -C /examples check
    quietly "make STATIC=1 check" in_root make -C /examples STATIC=1 check
    in_root readelf --notes /examples/build-static/readers | grep -q quiescence ||
        fail "a static program is not ours"
    # Debian's own are what a compiler finds that is told nothing.
    quietly "a program with Debian's headers" in_root gcc -O2 -pthread /client.c -o /client-again \
        -lurcu-memb
    of debians "a program with Debian's headers" "$(in_root /client-again)"
    rm "$root/client-again"
    mkdir "$root/examples/debian"
    printf 'Source: readers\n\nPackage: readers\nArchitecture: any\n' \
        >"$root/examples/debian/control"
    in_root sh -c 'cd /examples && dpkg-shlibdeps -O build/readers' 2>>"$root/../log" |
        grep -q 'libquiescence-urcu0 (>= ' || fail "dpkg-shlibdeps does not name the libraries"
    rm -rf "$root/examples"
    say "the examples build and run, shared and static; dpkg-shlibdeps names the package"
}

in_place() {
    local removed
    removed=$(in_root apt-get -s install "$(package old libquiescence-urcu-default)" \
        "$(package old libquiescence-urcu0)" | grep ^Remv)
    [ -z "$removed" ] || fail "apt would remove: $removed"
    apt install "$(package old libquiescence-urcu-default)" "$(package old libquiescence-urcu0)"
    keeps "in Debian's place"
    run_on ours "in Debian's place"
    apt install "$(package new libquiescence-urcu-default)" "$(package new libquiescence-urcu0)"
    keeps "in Debian's place, upgraded"
    run_on ours "in Debian's place, upgraded"
    # As with an update of Debian's.
    apt install --reinstall "$stock"
    run_on ours "in Debian's place, which was installed anew"
    apt remove libquiescence-urcu-default
    keeps "after removal"
    [ -e "$root/etc/ld.so.conf.d/00-quiescence-$triplet.conf" ] ||
        fail "a removal takes configuration away"
    run_on debians "removed"
    apt install "$(package new libquiescence-urcu-default)"
    run_on ours "installed again"
    apt purge libquiescence-urcu-default
    run_on debians "purged"
}

# gone WHAT...: purges these packages, after which all is as it was.
gone() {
    apt purge "$@"
    keeps "after all was purged"
    run_on debians "all purged"
    diff <(echo "$before") <(files) || fail "files were left behind, or are missing"
    diff <(echo "$cache") <(in_root ldconfig -p) || fail "the dynamic linker's cache differs"
    say "nothing is left behind"
}

[ $# -ge 3 ] || { sed -n '2,10p' "${BASH_SOURCE[0]}" >&2; exit 2; }
suite=$1 old=$2 new=$3
mirror=${MIRROR:-http://deb.debian.org/debian}
# The first two are run; the others are to stay installed.
clients=(xfsprogs knot gdnsd lttng-tools)
root=${4:-}
if [ -z "$root" ]; then
    [ "$(id -u)" = 0 ] || impossible "run as root, for debootstrap and chroot"
    command -v debootstrap >/dev/null || impossible "no debootstrap; apt-get install debootstrap"
    unshare --mount --pid --fork true 2>/dev/null || impossible "no permission for namespaces"
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/quiescence-packages.XXXXXX") || exit 1
    trap 'rm -rf --one-file-system "$work"' EXIT
    mkdir "$work/root"
    unshare --mount --pid --fork --kill-child --mount-proc "$here/try.sh" \
        "$suite" "$old" "$new" "$work/root"
    exit
fi
make_root
keeps "at first"
run_on debians "at first"
before=$(files) cache=$(in_root ldconfig -p)
beside
gone libquiescence-urcu0 libquiescence-urcu-dev libquiescence-urcu0-dbgsym
in_place
gone libquiescence-urcu0
say "all held"
