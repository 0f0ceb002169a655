#!/usr/bin/env bash
# Debian's xfs_repair (and mkfs.xfs, xfs_db, xfs_copy) on our libraries: inlined readers and call_rcu in a
# process with many threads that ends soon. Images are made, filled and damaged; what is said about them, and
# what becomes of them, is what it is with Debian's liburcu.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/common.sh"
client xfs 120 1800 "$@"
for program in mkfs.xfs xfs_repair xfs_db xfs_copy; do need $program xfsprogs; done

directories=40

# The tools wait for the disk again and again.
in_memory 3000000
images=$place

# Directories of 40 files and 3 symbolic links, for mkfs.xfs -p.
prototype() {
    head -c 3000 /dev/zero | tr '\0' x >"$temporary/content"
    awk -v directories=$directories -v content="$temporary/content" 'BEGIN {
        print "boot\n0 0\nd--755 0 0"
        for (d = 0; d < directories; d++) {
            print "dir" d " d--755 0 0"
            for (f = 0; f < 40; f++) print "file" f " ---644 0 0 " content
            for (l = 0; l < 3; l++) print "link" l " l--777 0 0 /there/" d "/" l
            print "$"
        }
        print "$"
    }'
}

# make WHICH IMAGE
make() {
    truncate -s 320M "$2"
    with_seen "$1" mkfs mkfs.xfs -q -f -m uuid=11111111-2222-3333-4444-555555555555 -d agcount=4 \
        -p "$temporary/prototype" "$2" || fail "mkfs.xfs"
}

# same_bytes IMAGE IMAGE: byte by byte, without reading the holes if they have the same.
same_bytes() {
    cmp -s <(packed "$1") <(packed "$2") || cmp "$1" "$2" >&2
}

packed() {
    tar --create --sparse --mtime=@0 --transform='s/.*/image/' --directory="${1%/*}" --file=- "${1##*/}"
}

# state IMAGE: every name, and every inode but its times and what follows from them (checksum, log number).
# Read with Debian's libraries.
state() {
    local image=$1 listing=$temporary/listing
    xfs_db -r -c 'blockget -n' -c ncheck "$image" >"$listing" 2>/dev/null || fail "xfs_db of $image"
    sort "$listing"
    awk '$1 + 0 > 0 {print "inode " $1; print "print"}' "$listing" | xfs_db -r "$image" 2>&1 |
        grep -vE '(atime|mtime|ctime|crtime)\.(sec|nsec) =|v3\.(crtime|crc|lsn|change_count)|lsn'
}

# damage KIND NUMBER: commands for xfs_db, a line each: where, and what is written there. Which directories
# are hit follows from the number.
damage() {
    local group=$(($2 % 3)) d=$(($2 * 37 % (directories - 3)))
    case $1 in
        counters)
            echo "agf $group;write -d freeblks 7"
            echo "agi $((group + 1));write -d count 0"
            echo "sb $((group + 1));write -d fdblocks 1"
            echo "sb 0;write -d rootino 999" ;;
        trees)
            echo "agi $((group + 1));write -d root 99"
            echo "agf $group;write -d bnoroot 1" ;;
        inodes)
            echo "path /dir$d/file3;write -d core.nextents 9"
            echo "path /dir$((d + 1));write -d core.nlinkv2 77"
            echo "path /dir$((d + 2))/link2;write -d core.format 3"
            echo "path /dir$((d + 3))/file5;write -d u3.bmx[0].startblock 5" ;;
        lost)
            echo "path /dir$d;write -d core.mode 0"
            echo "path /dir$((d + 1));write -c core.magic 0"
            echo "path /dir$((d + 2));write -d core.format 2" ;;
    esac
}

# hurt WHICH IMAGE KIND NUMBER
hurt() {
    local where what
    while IFS=';' read -r where what; do
        with_seen "$1" xfs_db xfs_db -x -c "$where" -c "$what" "$2" ||
            fail "xfs_db: $where: $what"
    done < <(damage "$3" "$4")
}

# repair WHICH IMAGE SAID [OPTION...]: what it says, without times and addresses. Threads report in any order.
repair() {
    local which=$1 image=$2 said=$3
    shift 3
    with_seen "$which" repair xfs_repair "$@" "$image" ||
        fail "xfs_repair on $image with $which"
    quiet repair
    sed -E -e 's/[0-9]{2}:[0-9]{2}:[0-9]{2}/TIME/' -e 's/0x[0-9a-f]{10,}/ADDRESS/' -e 's/^[0-9a-f]{10,}:/THREAD:/' \
        -e "s|${image}|IMAGE|" "$temporary/repair.log" | sort >"$said"
}

# hurt_all KIND NUMBER: the damaged image, the same with either.
hurt_all() {
    local kind=$1 number=$2
    rm -f "$images"/*.image
    cp --sparse=always "$images/base" "$images/hurt.image"
    hurt "${which_libraries[0]}" "$images/hurt.image" "$kind" "$number"
    if has ours && has stock; then
        cp --sparse=always "$images/base" "$images/again.image"
        hurt ours "$images/again.image" "$kind" "$number"
        same_bytes "$images/hurt.image" "$images/again.image" || fail "xfs_db has written something else"
        rm "$images/again.image"
    fi
    # Otherwise there would be nothing to see.
    ! xfs_repair -n "$images/hurt.image" >/dev/null 2>&1 || fail "$kind $number does no damage"
}

# repair_all KIND NUMBER [OPTION...]: the damaged image repaired with either.
repair_all() {
    local kind=$1 number=$2 which
    shift 2
    for which in "${which_libraries[@]}"; do
        cp --sparse=always "$images/hurt.image" "$images/$which.image"
        repair "$which" "$images/$which.image" "$temporary/said-$which" "$@"
        xfs_repair -n "$images/$which.image" >/dev/null 2>&1 || fail "$kind $number is not repaired with $which"
    done
    lines=$((lines + $(wc -l <"$temporary/said-${which_libraries[0]}")))
    repairs=$((repairs + 1))
    has ours && has stock || return 0
    diff "$temporary/said-stock" "$temporary/said-ours" >&2 || fail "xfs_repair says something else: $kind $number"
    case $kind in
        inodes | lost)
            # Directories that are written anew have the time of the repair.
            state "$images/stock.image" >"$temporary/state-stock"
            state "$images/ours.image" >"$temporary/state-ours"
            [ "$kind" = inodes ] || grep -q lost+found "$temporary/state-stock" || fail "nothing was lost"
            diff "$temporary/state-stock" "$temporary/state-ours" >&2 || fail "another result: $kind $number" ;;
        *) same_bytes "$images/stock.image" "$images/ours.image" || fail "another image: $kind $number" ;;
    esac
}

prototype >"$temporary/prototype"
for which in "${which_libraries[@]}"; do
    make "$which" "$images/base-$which"
    with_seen "$which" xfs_copy xfs_copy -d "$images/base-$which" "$images/copy" ||
        fail "xfs_copy"
    same_bytes "$images/base-$which" "$images/copy" || fail "xfs_copy has copied something else"
    rm "$images/copy"
    state "$images/base-$which" >"$temporary/state-$which"
    mv "$images/base-$which" "$images/base"
done
[ "$(wc -l <"$temporary/state-${which_libraries[0]}")" -gt $((directories * 43)) ] || fail "the image is not full"
if has ours && has stock; then
    diff "$temporary/state-stock" "$temporary/state-ours" >&2 || fail "mkfs.xfs has made something else"
fi
lines=0 repairs=0
numbers=1
$is_long && numbers=40
for ((number = 1; number <= numbers; number++)); do
    for kind in counters trees inodes lost; do
        hurt_all $kind $number
        # With one thread for the groups, and with several; in the short form each half of the time.
        if $is_long || [[ $kind == counters || $kind == inodes ]]; then repair_all $kind $number; fi
        if $is_long || [[ $kind == trees || $kind == lost ]]; then repair_all $kind $number -o ag_stride=2; fi
    done
done
say "${which_libraries[*]}: $repairs repairs of damaged images, $lines lines said about them; all held"
