//! Updates of many entries, and of the table.

use std::hash::{BuildHasher, Hash};
use std::panic::Location;
use std::sync::Arc;

use super::garbage::Garbage;
use super::growth;
use super::map::HashMap;
use super::update::{At, Wants, never};
use super::walk::Walk;
use crate::domain::tag::DomainTag;
use crate::os::user_code::{self, Site};
use crate::reclaim::{at_limit, defer};

/// Buckets that are gone over in one section, at most.
const BATCH: usize = 16;

/// Entries that are taken out in one section, from which on no further bucket is gone over.
const TAKEN: usize = 64;

/// # Many entries
impl<K, V, S, D> HashMap<K, V, S, D>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher,
    D: DomainTag,
{
    /// Removes every entry for which `keeps` returns `false`, one after the other, not all at one
    /// moment. An entry that is present during the whole call is certain to be visited. `keeps` is
    /// called under no lock, and again if the entry is replaced meanwhile.
    ///
    /// Removed entries are retired after every 16 buckets, or after as many buckets as 64 entries
    /// were removed from. In a section of the caller's they are retired one by one, so that at most
    /// one exceeds the domain's limit. (Not so in one that `keeps` begins, in those buckets.)
    ///
    /// # Panics
    /// As [`insert`](Self::insert), for each entry; some may have been removed by then.
    ///
    /// ```
    /// let map: quiescence::collections::HashMap<u32, ()> = (0..10).map(|n| (n, ())).collect();
    /// map.retain(|n, ()| n % 2 == 0);
    /// assert_eq!(map.len(), 5);
    /// ```
    #[track_caller]
    pub fn retain(&self, mut keeps: impl FnMut(&K, &V) -> bool) {
        let location = Location::caller();
        let mut at = 0; // a position that `advance` gave
        loop {
            // Retired after the section, where that may wait; in one of the caller's at once.
            let mut taken = (!defer::in_section()).then(Vec::new);
            let _section = self.tag().enter(location);
            for _ in 0..BATCH {
                if taken.as_ref().is_some_and(|taken| taken.len() >= TAKEN) {
                    break;
                }
                // SAFETY: in a section.
                let table = unsafe { growth::root(&self.root) };
                if table.is_nothing() {
                    return;
                }
                let index = at & table.mask();
                let mut walk = Walk::new(table, index, index + 1);
                // SAFETY: the table was loaded in this section.
                while let Some(entry) = unsafe { walk.next(|entry| self.hash(&entry.key)) } {
                    let garbage = self.retain_entry(entry, &mut keeps, taken.is_none());
                    if let Some(taken) = &mut taken {
                        taken.extend(garbage);
                    }
                }
                at = advance(at, table.mask());
                if at == 0 {
                    return;
                }
            }
        }
    }

    /// Removes an entry, unless it is to stay. Returns what that leaves. In a section; if it is one
    /// of the caller's, the entry is refused where an update would be.
    #[track_caller]
    fn retain_entry(
        &self,
        entry: At<K, V>,
        keeps: &mut impl FnMut(&K, &V) -> bool,
        in_callers_section: bool,
    ) -> Option<Garbage<'_, K, V, S, D>> {
        let (mut entry, mut garbage) = (entry, None);
        loop {
            // SAFETY: found in this section.
            let found = unsafe { &*entry };
            if user_code::run(Site::Choose, || keeps(&found.key, &found.value)) {
                return garbage;
            }
            let hash = self.hash(&found.key);
            if in_callers_section && garbage.is_none() {
                garbage = Some(self.garbage("retain"));
            }
            let left = garbage.get_or_insert_with(|| Garbage::new(self));
            if self.take_where(hash, (Wants::This(entry), None), never, left).is_some() {
                return garbage;
            }
            // SAFETY: in a section.
            let Some(again) = (unsafe { self.find_hashed(&found.key, hash) }) else {
                return garbage;
            };
            entry = again;
        }
    }

    /// Removes every entry that is present during the whole call: see [`retain`](Self::retain). The
    /// table keeps its size.
    ///
    /// # Panics
    /// As [`retain`](Self::retain).
    #[track_caller]
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Inserts all `entries` one by one, as [`insert`](Self::insert) does. `(&map).extend(...)`
    /// does the same, so a shared map can be extended, too. First [`reserve`](Self::reserve)s room
    /// for half of the iterator's lower size bound.
    ///
    /// # Panics
    /// As [`insert`](Self::insert) and [`reserve`](Self::reserve).
    #[track_caller]
    pub fn extend(&self, entries: impl IntoIterator<Item = (K, V)>) {
        let entries = entries.into_iter();
        // Half of them, as the standard library has it: some keys may be there.
        self.reserve(entries.size_hint().0.div_ceil(2));
        for (key, value) in entries {
            self.insert(key, value);
        }
    }

    /// Makes room for `additional` more entries. If the table is too small, all entries move to a
    /// larger one while other updates continue. In a section at the domain's limit, once this
    /// thread has exceeded the limit, moving them is left to later updates.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity); or if `Hash` of a key panics.
    #[track_caller]
    pub fn reserve(&self, additional: usize) {
        let entries = self.len().saturating_add(additional);
        let enough = growth::buckets_for(entries);
        // A map without a table is given none for nothing; see `shrink_to` as well.
        while entries > 0 && self.resize_step(|buckets| (enough > buckets).then_some(enough)) {}
    }

    /// Shrinks the table as far as its entries, or `capacity` if that is more, allow. All entries
    /// move, halving the table step by step, while other updates continue. If old tables of the map
    /// are still waiting to be freed, it first waits for a grace period. In a section it returns at
    /// that point instead; at the domain's limit it behaves as [`reserve`](Self::reserve); in a
    /// [sleepable domain](crate::Srcu) it returns after waiting for 10 ms. Call it again in these
    /// cases.
    ///
    /// ```
    /// let map: quiescence::collections::HashMap<u64, u64> = (0..10_000).map(|n| (n, n)).collect();
    /// map.retain(|n, _| *n < 10);
    /// map.shrink_to(100);
    /// assert!(map.capacity() >= 100 && map.capacity() < 1_000);
    /// ```
    #[track_caller]
    pub fn shrink_to(&self, capacity: usize) {
        // For the number of entries that there are now: other threads may insert meanwhile.
        let smaller = |buckets: usize| {
            let enough = growth::buckets_for(self.len().max(capacity));
            (enough < buckets).then_some(buckets / 2)
        };
        while self.capacity() > 0 && self.resize_step(smaller) {}
    }

    /// Like [`shrink_to`](Self::shrink_to), as far as the map's entries allow.
    #[track_caller]
    pub fn shrink_to_fit(&self) {
        self.shrink_to(0);
    }

    /// Moves some buckets to another table; has one begin, if `wanted` says of how many buckets,
    /// from the number that there is. Returns whether there is more to do, and to be done now: in a
    /// section not by a thread that is over the limit.
    #[track_caller]
    fn resize_step(&self, wanted: impl Fn(usize) -> Option<usize>) -> bool {
        let Some(garbage) = Garbage::if_room(self) else { return false };
        let section = self.tag().enter(Location::caller());
        let table = self.own_table();
        if table.next().is_none() {
            let Some(buckets) = wanted(table.buckets()) else { return false };
            if buckets < table.buckets()
                //~ map-shrinks-on:
                && let Some(old) = table.old()
            {
                let old = Arc::clone(old);
                drop(section);
                let domain = self.domain.core();
                let cookie = domain.grace_periods.snapshot();
                // For a tick at most in a sleepable domain, and not in a section [D-2]. There this
                // ends, also if another thread's grace period has ended meanwhile.
                let is_over = at_limit::await_grace_period(domain)
                    && domain.grace_periods.sequence().is_done(cookie);
                if is_over {
                    // SAFETY: they were out of reach when they were found; the grace period began
                    // after that.
                    unsafe { old.end_all() };
                }
                return is_over;
            }
            table.set_next(buckets);
        }
        self.help(table, &garbage);
        // A thread that looked at the map again might find that another one has undone this, and so
        // without end.
        let next = table.next().expect("there is one, or it was made");
        !growth::has_moved(table) || wanted(next.buckets()).is_some()
    }
}

/// The position after `at`, so that all are gone over whatever sizes the table has meanwhile: the
/// bits that choose a bucket are counted from the highest one. Zero after the last one.
///
/// Source: Pieter Noordhuis's cursor of Redis's `SCAN`.
fn advance(at: usize, mask: usize) -> usize {
    let reversed = (at | !mask).reverse_bits().wrapping_add(1);
    reversed.reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::random::Random;

    #[test]
    fn positions_reach_every_hash_while_the_table_changes() {
        // Each hash of 64 is in some bucket that is gone over, whatever happens to the mask.
        for seed in 0..200_u64 {
            let (mut seen, mut at, mut random) = (0_u64, 0, Random(seed));
            loop {
                let mask = [3, 7, 15, 63][random.index(4)];
                for hash in 0..64 {
                    seen |= u64::from(hash & mask == at & mask) << hash;
                }
                at = advance(at, mask);
                if at == 0 {
                    break;
                }
            }
            assert_eq!(seen, u64::MAX, "{seed}");
        }
    }
}
