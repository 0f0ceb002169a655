//! How entries move to another table, a few buckets at each update.
//!
//! The entries of a bucket go to buckets of the next table that get entries from no other bucket.
//! No thread can reach these before the old bucket is marked [`MOVED`](tags::MOVED). So entries are
//! copied under the lock of the old bucket alone. Readers keep references into the old bucket; the
//! old table is freed after a grace period.
//!
//! Updaters go through the buckets in rounds until all have moved. One that is delayed, or whose
//! `Hash` panics, leaves its buckets to the next round, and delays no other updater.
//!
//! **Invariant [HM-I4]: the old tables of a map have less than twice the bytes of its newest
//! table**, and are fewer than the binary digits of its number of buckets. A table is old from its
//! replacement until it is freed. A table grows whenever it is full, to at least twice its size. It
//! shrinks, to half its size, only while the map has no old tables. So the old tables are those of
//! one series of growths, which together are smaller than the newest one, and perhaps one before
//! them that was replaced by a shrink, with twice the size of the series' first. A shrink waits,
//! if it may, for the grace period of the table before; growth never does, or buckets would fill
//! without bound during a long section.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::bucket::{Locked, Moved, SLOTS, add_unseen};
use super::node::Left;
use super::search::load;
use super::table::{Table, TableRef};
use crate::collections::tags;
use crate::os::sync::AtomicPtr;

/// Buckets that an update moves, while a map grows.
pub(super) const STEP: u64 = 4;

/// Entries for each bucket on average from which on a table grows: eleven sixteenths of its slots.
pub(super) const fn most(buckets: usize) -> usize {
    buckets.saturating_mul(SLOTS * 11) / 16
}

/// The number of buckets for `entries` entries.
pub(super) fn buckets_for(entries: usize) -> usize {
    let buckets = entries.saturating_mul(16).div_ceil(SLOTS * 11).next_power_of_two();
    buckets.max(SMALLEST)
}

/// Tables with fewer buckets grow by four.
pub(super) const SMALL: usize = 256;

/// Buckets of the smallest table.
const SMALLEST: usize = if cfg!(loom) { 1 } else { 4 };

/// Moves the next buckets of a table that is growing or shrinking. Returns the table if these were
/// the last ones: it is out of reach then.
///
/// # Safety
/// `table` was loaded from `root` in the section that is in progress, and has a next one.
pub(super) unsafe fn help<E>(
    root: &AtomicPtr<Table<E>>,
    table: TableRef<E>,
    step: u64,
    hash_of: &impl Fn(&E) -> u64,
    left: &Left<E>,
) -> Option<TableRef<E>> {
    let next = table.next().expect("the caller has seen one");
    let units = units(table, next);
    // Relaxed: a ticket.
    let first = table.head().passed.fetch_add(step, Relaxed) as usize;
    let (tables, mut hashes) = ((table, next), Vec::with_capacity(2 * SLOTS));
    // Of pages of the next table, one update is not to wait for two: each part of it is touched a
    // step further ahead than the part before. (None if it shrinks, as most may stay unused.)
    let parts = 0..(next.buckets() / table.buckets()).min(4);
    let ahead = parts.map(|part| (part + 1) * step as usize - 1 + part * units);
    ahead.for_each(|ahead| tags::touch(&next.bucket(first.wrapping_add(ahead)).word));
    let own = (0..units.min(step as usize)).map(|unit| first.wrapping_add(unit) & (units - 1));
    // The keys of nearly all of them are hashed: their lines come at the same time.
    own.clone().for_each(|unit| table.bucket(unit).prefetch());
    for unit in own {
        // SAFETY: by the contract.
        unsafe { move_unit(tables, unit, hash_of, &mut hashes, left) };
    }
    if !has_moved(table) {
        return None;
    }
    // AcqRel: pairs with the Acquire of readers that begin with the next table [HM-3].
    let swung = root.compare_exchange(table.as_ptr(), next.as_ptr(), AcqRel, Acquire);
    swung.is_ok().then_some(table)
}

/// How many buckets the smaller one of both tables has.
fn units<E>(table: TableRef<E>, next: TableRef<E>) -> usize {
    table.buckets().min(next.buckets())
}

/// Whether all entries of a table are in its next one.
pub(super) fn has_moved<E>(table: TableRef<E>) -> bool {
    // Acquire: pairs with the AcqRel in `move_unit`.
    table.next().is_some_and(|next| table.head().moved.load(Acquire) == units(table, next) as u64)
}

/// Moves the entries of one bucket of the smaller table: to several ones, or from several ones;
/// unless that has been done.
///
/// # Safety
/// As [`help`].
unsafe fn move_unit<E>(
    (table, next): (TableRef<E>, TableRef<E>),
    unit: usize,
    hash_of: &impl Fn(&E) -> u64,
    hashes: &mut Vec<(*const E, u64)>,
    left: &Left<E>,
) {
    // A table shrinks by half at once.
    let both = [Some(unit), (next.buckets() < table.buckets()).then(|| unit + next.buckets())];
    let lock = |index| Locked::lock(table.bucket(index), left);
    let units = table.mask().min(next.mask());
    let mut known = BTreeMap::new(); // where others change the bucket: a key is hashed once
    let (first, second) = loop {
        hashes.clear();
        for index in both.into_iter().flatten() {
            let bucket = table.bucket(index);
            let (word, node) = load(bucket);
            for entry in bucket.live(word, node).filter(|entry| !entry.is_null()) {
                // SAFETY: loaded in the section, by the contract, and not freed before it ends.
                let ask = || hash_of(unsafe { &*entry });
                hashes.push((entry, known.get(&entry).copied().unwrap_or_else(ask)));
            }
        }
        let Ok(first) = lock(unit) else { return };
        let second = both[1].map(|second| {
            lock(second).unwrap_or_else(|Moved| unreachable!("both are moved under both locks"))
        });
        let all = first.live().chain(second.iter().flat_map(Locked::live));
        //~ map-unseen:
        if all.eq(hashes.iter().map(|hashed| hashed.0)) {
            break (first, second); // as usual: nothing has changed meanwhile
        }
        drop((first, second));
        known.extend(hashes.iter().copied());
    };
    //~ map-moved-before-copy
    for &(entry, hash) in hashes.iter() {
        // By the hash, but within the buckets that are this one's to fill: a key whose hash is
        // another one by now is lost, and nothing else.
        let target = next.bucket((hash as usize & !units) | unit);
        add_unseen(target, tags::of_hash(hash), entry);
    }
    //~ point bucket-moving
    first.leave_moved();
    if let Some(second) = second {
        second.leave_moved();
    }
    // AcqRel: a thread that finds that these were all has seen the others move theirs.
    table.head().moved.fetch_add(1, AcqRel);
}

/// The table of a map.
///
/// # Safety
/// The caller is in a section, or has the map alone.
#[inline(always)]
pub(super) unsafe fn root<E>(root: &AtomicPtr<Table<E>>) -> TableRef<E> {
    // Acquire: pairs with the Release in `help`, and where the first table is stored [HM-3].
    let table = root.load(Acquire);
    // SAFETY: never null.
    let table = unsafe { NonNull::new_unchecked(table) };
    // SAFETY: by the contract.
    unsafe { TableRef::of(table) }
}
