#!/usr/bin/env bash
# Debian's ganesha.nfsd on our libraries (the bp flavour; its libntirpc uses that too): the names of
# its exports are read in each request, and freed a grace period after a reload has replaced them.
# Exports are added, removed and made read-only while threads of files.c use another. They speak
# NFSv4 by libnfs, over the loopback of a network namespace; the kernel's NFS is not needed.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
alone "$@"
client ganesha 120 1800 "$@"
need ganesha.nfsd nfs-ganesha
for program in nfs-ls nfs-cat nfs-cp; do need $program libnfs-utils; done
need cc gcc
modules=$(dirname /usr/lib/*/ganesha/libfsalvfs.so)
for export in vfs mem; do
    [ -e "$modules/libfsal$export.so" ] ||
        missing "the module $export is not there; get it with: apt-get install nfs-ganesha-$export"
done
[ -e /usr/include/nfsc/libnfs.h ] ||
    missing "nfsc/libnfs.h is not there; get it with: apt-get install libnfs-dev"
cc -O2 -Wall -Wextra -Werror -pthread -o "$temporary/files" "$here/files.c" "$here/files-nfs.c" \
    -lnfs >"$temporary/cc.log" 2>&1 || fail "cannot compile files.c"

# ganesha.nfsd writes there whatever its options are; and exports need a file system that has
# handles of files, which not every one has.
mkdir "$temporary/home"
mount -t tmpfs none /run && mkdir /run/ganesha && mount -t tmpfs none "$temporary/home" ||
    cannot "mount is refused"

clean_up_first() { umount --lazy "$temporary/home"; }

# url PATH
url() { echo "nfs://127.0.0.1/$1?version=4&nfsport=2049"; }

# export_of NUMBER NAME FSAL PATH ACCESS
export_of() {
    cat <<TEXT
EXPORT {
    Export_Id = $1;
    Pseudo = /$2;
    Path = $4;
    FSAL { Name = $3; }
    Access_Type = $5;
    Squash = No_Root_Squash;
    SecType = sys;
}
TEXT
}

# configuration NUMBER: of so many reloads; in one step. Of an odd number, one export can only be
# read, and there is one more.
configuration() {
    {
        cat <<TEXT
NFS_CORE_PARAM {
    Protocols = 4;
    NFS_Port = 2049;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Enable_UDP = false;
    Plugins_Dir = $modules;
}
NFS_KRB5 { Active_krb5 = false; }
NFSv4 {
    Graceless = true;
    RecoveryBackend = fs;
    RecoveryRoot = $home/recovery;
    Only_Numeric_Owners = true;
}
MEM { Inode_Size = 65536; }
LOG { COMPONENTS { TIRPC = CRIT; } }
TEXT
        export_of 1 files VFS "$home/files" RW
        if [ $(($1 % 2)) = 0 ]; then
            export_of 2 memory MEM /memory RW
        else
            export_of 2 memory MEM /memory RO
            export_of 3 "added-$1" VFS "$home/added" RW
        fi
    } >"$home/new.conf"
    mv "$home/new.conf" "$home/ganesha.conf"
}

# lists NAME...: the exports that there are.
lists() {
    nfs-ls "$(url '')" 2>/dev/null | awk '{ print $NF }' | sort >"$temporary/exports.log"
    diff "$temporary/exports.log" <(printf '%s\n' "$@" | sort)
}

# can_write: may a new file be made in the export in memory?
can_write() { nfs-cp "$temporary/kept" "$(url "memory/new-${EPOCHREALTIME/./}")"; }

# has_exports NUMBER: those of that configuration.
has_exports() {
    if [ $(($1 % 2)) = 0 ]; then
        lists files memory && can_write
    else
        lists files memory "added-$1" && ! can_write
    fi
}

run_daemon() {
    home=$temporary/home/$1
    mkdir -p "$home/files" "$home/added" "$home/recovery"
    configuration 0
    start "ganesha-$1" "$1" ganesha.nfsd -F -f "$home/ganesha.conf" -p "$home/pid" \
        -L "$temporary/messages-$1.log"
    daemon=$pid
    until_true 20 "ganesha.nfsd is there" has_exports 0
    uses "$1" "$daemon" liburcu-bp
}

# reload COUNT: each time with other exports, whose files are what they were.
reload() {
    local number
    for ((number = 1; number <= $1; number++)); do
        configuration $number
        kill -HUP "$daemon"
        until_true 20 "the exports of reload $number" has_exports $number
        nfs-cat "$(url memory/kept)" 2>>"$temporary/kept.log" |
            cmp - "$temporary/kept" >>"$temporary/kept.log" 2>&1 ||
            fail "a file of the export in memory is not what it was"
    done
}

# contents: of all files of the export, read without NFS.
contents() { (cd "$home/files" && find . -type f -print | sort | xargs sha256sum); }

reloads=30
$is_long && reloads=1000
head -c 1500 /dev/urandom >"$temporary/kept"
for which in "${which_libraries[@]}"; do
    run_daemon "$which"
    nfs-cp "$temporary/kept" "$(url memory/kept)" >>"$temporary/kept.log" 2>&1 || fail "nfs-cp"
    rm -f "$temporary/enough"
    start "files-$which" stock "$temporary/files" "$(url files)" "$temporary/enough"
    files=$pid
    until_true 20 "files are written" test -e "$home/files/of-3/file-7"
    reload $reloads
    : >"$temporary/enough"
    ended "$files" 60 "the program that uses files"
    done_with_files=$(tail -n 1 "$temporary/files-$which.log")
    grep -q 'rounds, .* names listed$' <<<"$done_with_files" ||
        fail "the program that uses files says nothing"
    contents >"$temporary/contents-$which"
    [ "$(wc -l <"$temporary/contents-$which")" = 32 ] || fail "there are not 32 files"
    # Each reload replaces the names of the two exports that stay.
    [ "$which" = stock ] || statistics "$daemon" $((reloads * 2)) 0
    kill -TERM "$daemon"
    ended "$daemon" 30 ganesha.nfsd
    grep -q 'NFS EXIT: regular exit' "$temporary/messages-$which.log" ||
        fail "ganesha.nfsd does not say that it has ended"
    [ "$(grep -c 'Reread exports complete' "$temporary/messages-$which.log")" = $reloads ] ||
        fail "ganesha.nfsd has not reloaded $reloads times"
    quiet "ganesha-$which"
    quiet "messages-$which"
    held "$which" ganesha.nfsd "$reloads reloads, each of which replaces the names of two" \
        "exports, makes one read-only or writable, and adds or removes a third; by four clients" \
        "meanwhile: $done_with_files; told to end, ended with 0"
done
same_with_both contents "other files are left" \
    "the files that are left are the same with either libraries"
not_exercised ganesha.nfsd "NFSv3, NLM and rquota (no rpcbind), 9P, D-Bus, Kerberos, delegations," \
    "the kernel's client"
