//! The tables of a map: the way from a hash to its bucket, updates of one bucket, and moves from
//! one table to another.
//!
//! # Moves
//! A move goes from one table to another of twice or half its size. A *unit* is a bucket of the
//! smaller table and the two buckets of the larger one that have its hashes. Each update moves a
//! few units; updaters go through all units in rounds until every one has moved. An updater that is
//! delayed, or whose `Hash` panics, leaves its units to the next round. Hashes are computed before
//! the buckets of a unit are locked, of a copy. If a bucket has changed since, the mover copies it
//! again under the lock, and compares the keys with those that it has hashed, byte by byte; their
//! values may have changed. So updates of existing keys do not keep a unit from moving. If another
//! thread has locked one of the buckets, the unit is left to the next round, too.
//!
//! A thread that has locked the buckets of a unit checks that its move is still in progress [CM-3].
//! If so, the move does not end before this unit has moved: so one thread moves each unit, once.
//! The thread that moves the last unit ends the move.

#[cfg(all(test, not(loom)))]
mod tests;

use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use bytemuck::bytes_of;

use super::bucket::{Bucket, HERE, LOCKED, ONE, Seen};
use super::spare::{Nodes, Spare};
use crate::collections::hash_map::Operation;
use crate::collections::lines::Lines;
use crate::collections::moving;
use crate::collections::patience::Patience;
use crate::collections::tags;
use crate::os::sync::{self, AtomicPtr, AtomicU64, Mutex, Rank};
use crate::sync::{Counter, NoUninit};

/// How often a look-up searches a bucket that changes meanwhile; and then, how often it copies the
/// bucket, before it takes the lock to do that.
const TRIES: u32 = if cfg!(loom) { 1 } else { 32 };

/// Units that an update moves.
const STEP: usize = 4;

/// How often a unit that changes meanwhile is tried without locks for its copy, and then with them,
/// before it is left to the next round. And how often its buckets are tried to be locked.
const ATTEMPTS: u32 = 4;

/// Buckets of the smallest table.
const SMALLEST: usize = if cfg!(loom) { 1 } else { 4 };

/// A power of two of buckets.
pub(super) struct Table {
    /// Their number, less one.
    pub(super) mask: usize,
    lines: Lines,
    /// No state that a bucket had when its pairs moved away was greater [CM-I3].
    floor: AtomicU64,
}

/// The tables of a map.
pub(super) struct Tables<K, V> {
    /// The table that look-ups begin with.
    root: AtomicPtr<Table>,
    /// The table that its pairs move to, or null; for a moment the same one, when they have.
    next: AtomicPtr<Table>,
    pub(super) count: Counter,
    progress: Progress,
    /// Of each size one at most, freed with the map [CM-I1].
    tables: Mutex<Vec<Arc<Table>>>,
    nodes: Mutex<Nodes<K, V>>,
    /// Threads send each other copies, as with this lock; and pairs come in by a shared reference.
    of: PhantomData<Mutex<(K, V)>>,
}

/// The progress of the current move. It is not in the line that look-ups load.
#[repr(align(64))]
struct Progress {
    /// Tickets: how many units have been passed.
    passed: AtomicU64,
    /// How many have moved.
    moved: AtomicU64,
}

/// A bucket that is here, and the state that said so.
pub(super) struct Place<'m, K, V> {
    pub(super) table: &'m Table,
    bucket: Bucket<K, V>,
    pub(super) state: u64,
}

/// What the mover of a unit needs, kept for the next unit.
struct Unit<'m, K, V> {
    pairs: Vec<(K, V)>,
    hashes: Vec<u64>,
    spare: Spare<'m, K, V>,
}

impl Table {
    fn buckets(&self) -> usize {
        self.mask + 1
    }
}

impl<K: NoUninit, V: NoUninit> Place<'_, K, V> {
    /// As [`Bucket::copy`]; if `locks`, under the lock. `None` if the bucket has changed.
    fn copy(&self, locks: bool, into: &mut Vec<(K, V)>) -> Option<usize> {
        let Self { bucket, state, .. } = *self;
        if !locks {
            return bucket.copy(state, into);
        }
        let count = bucket.lock(state).then(|| bucket.copy(state | LOCKED, into))?;
        bucket.release(state); //~ copy-lock-kept
        count
    }
}

impl<K: NoUninit, V: NoUninit> Tables<K, V> {
    /// Tables with room for `pairs` pairs.
    pub(super) fn new(pairs: usize) -> Self {
        let first = Self::table(Self::buckets_for(pairs));
        let root = Arc::as_ptr(&first).cast_mut();
        (0..first.buckets()).for_each(|index| Self::bucket(&first, index).release(ONE | HERE));
        Self {
            root: AtomicPtr::new(root),
            next: AtomicPtr::new(ptr::null_mut()),
            count: Counter::new(),
            progress: Progress { passed: AtomicU64::new(0), moved: AtomicU64::new(0) },
            tables: Mutex::new(Rank::CopyMap, vec![first]),
            nodes: Mutex::new(Rank::CopyMap, Nodes { all: Vec::new(), spare: Vec::new() }),
            of: PhantomData,
        }
    }

    fn table(buckets: usize) -> Arc<Table> {
        let lines = Bucket::<K, V>::lines(buckets);
        Arc::new(Table { mask: buckets - 1, lines, floor: AtomicU64::new(0) })
    }

    #[inline(always)]
    fn bucket(table: &Table, hash: usize) -> Bucket<K, V> {
        // SAFETY: within the table, which stays as long as the map [CM-I1].
        unsafe { Bucket::at(&table.lines, hash & table.mask) }
    }

    /// Pairs from which on a table grows: eleven sixteenths of its slots.
    pub(super) fn most(buckets: usize) -> usize {
        buckets.saturating_mul(Bucket::<K, V>::SLOTS * 11) / 16
    }

    /// The number of buckets for `pairs` pairs.
    pub(super) fn buckets_for(pairs: usize) -> usize {
        let slots = pairs.saturating_mul(16).div_ceil(11);
        slots.div_ceil(Bucket::<K, V>::SLOTS).next_power_of_two().max(SMALLEST)
    }

    /// The table that look-ups begin with.
    #[inline(always)]
    pub(super) fn root(&self) -> &Table {
        // Acquire: pairs with the Release in `end_move` [CM-3]. The table has been made.
        let root = self.root.load(Acquire); //~ copy-relaxed-root-load
        // SAFETY: a table of the map, which is kept [CM-I1].
        unsafe { &*root }
    }

    /// The table that pairs move to.
    fn next(&self) -> Option<&Table> {
        // Acquire: pairs with the Release in `begin_move`: the table has been made; and with that
        // in `end_move` [CM-3]: a thread that finds null sees the root.
        let next = self.next.load(Acquire); //~ copy-relaxed-next-load
        // SAFETY: null, or a table of the map, which is kept [CM-I1].
        unsafe { next.as_ref() }
    }

    /// Buckets that there are, or will be when the move that goes on has ended.
    pub(super) fn buckets(&self) -> usize {
        self.next().unwrap_or(self.root()).buckets()
    }

    /// The bucket of a hash, once it is here and not locked [CM-I2].
    #[inline(always)]
    fn place(&self, hash: u64) -> Place<'_, K, V> {
        Self::place_in(self.root(), hash).unwrap_or_else(|| self.place_slow(hash))
    }

    #[inline(always)]
    fn place_in(table: &Table, hash: u64) -> Option<Place<'_, K, V>> {
        let bucket = Self::bucket(table, hash as usize);
        bucket.prefetch();
        let state = bucket.state();
        (state & (HERE | LOCKED) == HERE).then_some(Place { table, bucket, state })
    }

    #[cold]
    #[inline(never)]
    fn place_slow(&self, hash: u64) -> Place<'_, K, V> {
        let mut looks = 0;
        loop {
            // If the bucket is in neither of them, it is locked, or has moved in between.
            let found = Self::place_in(self.root(), hash);
            let next = || self.next().and_then(|next| Self::place_in(next, hash));
            if let Some(place) = found.or_else(next) {
                return place;
            }
            let _waits: Result<(), _> = Patience::Wait.pass(&mut looks);
        }
    }

    /// The pair of a key.
    #[inline(always)]
    pub(super) fn get(&self, hash: u64, is_key: impl Fn(&K) -> bool) -> Option<(K, V)> {
        for _ in 0..TRIES {
            let Place { bucket, state, .. } = self.place(hash);
            if let Some(seen) = bucket.search(state, tags::of_hash(hash), &is_key) {
                return seen.found.map(|(_, pair)| pair);
            }
        }
        self.get_slow(hash, &is_key)
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&self, hash: u64, is_key: &impl Fn(&K) -> bool) -> Option<(K, V)> {
        let mut pairs = Vec::new();
        self.copy(hash, &mut pairs);
        pairs.into_iter().find(|(key, _)| is_key(key))
    }

    /// Copies the pairs of a hash's bucket as they are at one moment, in place of what `into` has.
    /// Without the lock, unless the bucket changes all the time.
    pub(super) fn copy(&self, hash: u64, into: &mut Vec<(K, V)>) -> Place<'_, K, V> {
        let mut tries = 0;
        loop {
            let place = self.place(hash);
            into.clear();
            match place.copy(tries >= TRIES, into) {
                None => tries += 1,
                Some(count) if into.len() == count => return place,
                // Under no lock, as the allocator is others' code.
                Some(count) => into.reserve(count),
            }
        }
    }

    /// Has `decide` say what becomes of a key, and does that, at one moment. Gives the pair
    /// before, or what the decision was aborted with. Nothing is locked while it decides; it may be
    /// asked again. `key` is what is inserted.
    #[inline(always)]
    pub(super) fn change<T>(
        &self,
        hash: u64,
        key: Option<K>,
        is_key: impl Fn(&K) -> bool,
        hash_of: impl Fn(&K) -> u64,
        mut decide: impl FnMut(Option<V>) -> Operation<V, T>,
    ) -> Result<Option<(K, V)>, T> {
        // Relaxed: a hint.
        if !self.next.load(Relaxed).is_null() {
            moving::help(|| self.help(STEP, &hash_of));
        }
        let (tag, mut spare) = (tags::of_hash(hash), Spare::of(&self.nodes));
        loop {
            let Place { bucket, state, .. } = self.place(hash);
            let Some(Seen { found, is_full }) = bucket.search(state, tag, &is_key) else {
                sync::relax();
                continue;
            };
            let old = found.map(|(_, (_, value))| value);
            let new = match decide(old) {
                Operation::Abort(with) => return Err(with),
                Operation::Remove if old.is_none() => return Ok(None),
                Operation::Remove => None,
                Operation::Insert(value) => Some(value),
            };
            if is_full {
                spare.fill(1);
            }
            if !bucket.lock(state) {
                sync::relax();
                continue;
            }
            let mut emptied = None;
            match (found, new) {
                (Some(((part, slot), (key, _))), Some(value)) => part.store(slot, (key, value)),
                (Some((at, _)), None) => emptied = bucket.remove(at),
                (None, Some(value)) => {
                    let key = key.expect("what inserts has a key");
                    bucket.add(tag, (key, value), &mut spare.taken);
                }
                (None, None) => {}
            }
            bucket.release(state + ONE);
            if let Some(node) = emptied {
                spare.taken.push(node);
            }
            let added = i64::from(new.is_some()) - i64::from(old.is_some());
            if added != 0 {
                self.count.add(added);
            }
            if is_full {
                self.grow();
            }
            return Ok(found.map(|(_, pair)| pair));
        }
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.count.sum()).unwrap_or(0)
    }

    /// Bytes of all that is kept.
    pub(super) fn bytes(&self) -> usize {
        let tables: usize = sync::lock(&self.tables).iter().map(|table| table.lines.bytes()).sum();
        tables + sync::lock(&self.nodes).all.iter().map(Lines::bytes).sum::<usize>()
    }

    /// Has the table grow if it has too many pairs: called where a bucket was full.
    #[cold]
    #[inline(never)]
    fn grow(&self) {
        let root = self.root();
        if self.next().is_none() && self.len() > Self::most(root.buckets()) {
            self.begin_move(root, 2 * root.buckets());
        }
    }
}

/// # Moves
impl<K: NoUninit, V: NoUninit> Tables<K, V> {
    /// Begins a move from a table to one of `buckets` buckets, if that is another number, `from` is
    /// the root, and no move is in progress.
    fn begin_move(&self, from: &Table, buckets: usize) {
        let mut tables = sync::lock(&self.tables);
        // In this order: if there is no next table, the root is that of the last move [CM-3].
        let is_root = self.next().is_none() && ptr::eq(self.root(), from);
        if !is_root || from.buckets() == buckets {
            return;
        }
        let to = Self::table_of(&mut tables, buckets);
        // Release: pairs with the Acquire in `next`.
        self.next.store(Arc::as_ptr(to).cast_mut(), Release); //~ copy-relaxed-begin
    }

    /// The table of `buckets` buckets; it is made if there is none.
    fn table_of(tables: &mut Vec<Arc<Table>>, buckets: usize) -> &Arc<Table> {
        let index = tables.iter().position(|table| table.buckets() == buckets);
        let index = index.unwrap_or_else(|| {
            tables.push(Self::table(buckets));
            tables.len() - 1
        });
        &tables[index]
    }

    /// Moves some units, if a move goes on.
    #[cold]
    #[inline(never)]
    fn help(&self, step: usize, hash_of: &impl Fn(&K) -> u64) {
        let from = self.root();
        let Some(to) = self.next().filter(|to| !ptr::eq(*to, from)) else { return };
        let units = from.buckets().min(to.buckets());
        let step = units.min(step);
        // Relaxed: tickets.
        let first = self.progress.passed.fetch_add(step as u64, Relaxed) as usize;
        // Room for two full buckets, and their second copies: none of them grows, without chains.
        let most = 2 * Bucket::<K, V>::SLOTS;
        let (pairs, hashes) = (Vec::with_capacity(2 * most), Vec::with_capacity(most));
        let mut unit = Unit { pairs, hashes, spare: Spare::of(&self.nodes) };
        for index in first..first.wrapping_add(step) {
            self.move_unit(from, to, index & (units - 1), hash_of, &mut unit);
        }
    }

    /// Moves the pairs of a unit, unless that has been done. Waits for no thread: a unit that
    /// another thread has locked, or whose keys change all the time, is left to the next round.
    fn move_unit(
        &self,
        from: &Table,
        to: &Table,
        index: usize,
        hash_of: &impl Fn(&K) -> u64,
        Unit { pairs, hashes, spare }: &mut Unit<'_, K, V>,
    ) {
        let units = from.buckets().min(to.buckets());
        // Its one or two buckets of a table.
        let count_in = |table: &Table| 1 + usize::from(table.buckets() > units);
        let indexes = |table| [index, index + units].into_iter().take(count_in(table));
        let targets = || indexes(to).map(|at| Self::bucket(to, at));
        let mut sources = [(Self::bucket(from, index), 0); 2];
        let sources = &mut sources[..count_in(from)];
        'attempts: for attempt in 0..2 * ATTEMPTS {
            pairs.clear();
            hashes.clear();
            for (source, at) in sources.iter_mut().zip(indexes(from)) {
                let Some(place) = Self::place_in(from, at as u64) else {
                    return; // it is locked, or has moved
                };
                let before = pairs.len();
                let count = place.copy(attempt >= ATTEMPTS, pairs);
                if count.is_none_or(|count| before + count > pairs.len()) {
                    pairs.reserve(count.unwrap_or(0));
                    continue 'attempts;
                }
                *source = (place.bucket, place.state);
            }
            hashes.extend(pairs.iter().map(|(key, _)| hash_of(key)));
            // What needs the allocator or the system, before anything is locked. As many nodes as
            // these are in the chains at most, too [CM-I4].
            let count = pairs.len();
            let nodes = count.div_ceil(Bucket::<K, V>::SLOTS).saturating_sub(1);
            spare.fill(nodes);
            spare.taken.reserve(nodes);
            pairs.reserve(count);
            targets().for_each(|target| tags::touch(&target.head().tags));

            // Whatever their states are by now: of values that others have replaced meanwhile, the
            // new ones move, from a second copy. There is none if the states are the same [CM-I3].
            let mut is_as_copied = true;
            let lock = |(source, state): &mut (Bucket<K, V>, u64)| {
                (0..ATTEMPTS).any(|_| {
                    let copied = mem::replace(state, source.state());
                    is_as_copied &= *state == copied; //~ copy-moved-stale
                    *state & (HERE | LOCKED) == HERE && source.lock(*state)
                })
            };
            let locked = sources.iter_mut().map(lock).take_while(|is_locked| *is_locked).count();
            // Whether this move goes on [CM-3]. Only root and next table have buckets that are
            // here, as these are: so `from` is the root, and stays it until this unit has moved.
            let goes_on = self.next().is_some_and(|next| ptr::eq(next, to)); //~ copy-move-ended
            let mut is_as_hashed = || {
                let copies = sources.iter().map(|(of, state)| of.copy(state | LOCKED, pairs));
                let again: Option<usize> = copies.sum();
                let (hashed, now) = pairs.split_at(count);
                let mut keys = hashed.iter().zip(now).map(|((was, _), (is, _))| (was, is));
                again == Some(count) && keys.all(|(was, is)| bytes_of(was) == bytes_of(is))
            };
            let moves = locked == sources.len() && (is_as_copied || is_as_hashed());
            if !goes_on || !moves {
                sources[..locked].iter().for_each(|(source, state)| source.release(*state));
                if goes_on {
                    continue;
                }
                return;
            }

            // Relaxed: the threads that moved the pairs of `to` away did so before this move began.
            let number = to.floor.load(Relaxed) + ONE; //~ copy-no-floor
            targets().for_each(Bucket::clear);
            //~ copy-here-early
            let last_copy = pairs.len() - count;
            for (&pair, &hash) in pairs[last_copy..].iter().zip(&*hashes) {
                // By the hash, but within the unit: a key whose hash is another one by now is lost,
                // and nothing else.
                let at = (hash as usize & to.mask & !(units - 1)) | index;
                Self::bucket(to, at).add(tags::of_hash(hash), pair, &mut spare.taken);
            }
            targets().for_each(|target| target.release(number | HERE));
            for &(source, state) in &*sources {
                let number = state + ONE - HERE;
                // Relaxed: it is read in a later move to this table, which begins after this one.
                if number > from.floor.load(Relaxed) {
                    from.floor.fetch_max(number, Relaxed);
                }
                source.release(number);
            }
            // What has moved stays as it is until this move has ended.
            for (source, _) in &*sources {
                source.nodes().for_each(|node| spare.taken.push(node));
            }
            // AcqRel: a thread that finds that these were all has seen the others.
            let moved = self.progress.moved.fetch_add(1, AcqRel) + 1; //~ copy-relaxed-moved
            if moved == units as u64 {
                self.end_move(from, to);
            }
            return;
        }
    }

    /// Ends a move: called by the thread that has moved the last unit.
    fn end_move(&self, from: &Table, to: &Table) {
        self.progress.moved.store(0, Relaxed);
        //~ copy-root-late
        // Release: pairs with the Acquire in `root` [CM-3].
        self.root.store(ptr::from_ref(to).cast_mut(), Release); //~ copy-relaxed-root
        // Now that look-ups do not begin there any more.
        // SAFETY: no thread changes a bucket that has moved until pairs move back to this table,
        // which cannot begin before `next` is null. A mover of an earlier move may touch it.
        unsafe { from.lines.forget() };
        // Release: pairs with the Acquire in `next` [CM-3]: a thread that finds null sees the root.
        self.next.store(ptr::null_mut(), Release); //~ copy-relaxed-end
    }

    /// Ends the move that goes on, if there is one.
    pub(super) fn end_moves(&self, hash_of: impl Fn(&K) -> u64) {
        let mut looks = 0;
        while self.next().is_some() {
            self.help(usize::MAX, &hash_of);
            if self.next().is_some() {
                let _waits: Result<(), _> = Patience::Wait.pass(&mut looks);
            }
        }
    }

    /// Has pairs move until there are as many buckets as `wanted` says, of the number that there
    /// is, or it says nothing. By doublings or halves: so no thread has more than two buckets and
    /// those that they move to locked at a time. Moves all pairs, beside other updates.
    pub(super) fn resize(
        &self,
        wanted: impl Fn(usize) -> Option<usize>,
        hash_of: impl Fn(&K) -> u64,
    ) {
        let mut last = None;
        while let Some(wanted) = wanted(self.buckets()) {
            if self.next().is_none() {
                let root = self.root();
                let buckets = root.buckets();
                let next = wanted.clamp(buckets / 2, buckets * 2);
                // If it went the other way, or back, another thread wants it so: this one does not
                // go on.
                if last.is_some_and(|last| buckets.cmp(&last) != next.cmp(&buckets)) {
                    return;
                }
                last = (next != buckets).then_some(buckets);
                // First the last one: if there is no memory for that, nothing moves.
                Self::table_of(&mut sync::lock(&self.tables), wanted);
                self.begin_move(root, next);
            }
            self.end_moves(&hash_of);
        }
    }
}

#[cfg(all(test, loom))]
impl<K: NoUninit, V: NoUninit> Tables<K, V> {
    /// Begins a move to `buckets` buckets.
    pub(super) fn begin(&self, buckets: usize) {
        self.begin_move(self.root(), buckets);
    }

    /// Moves a unit.
    pub(super) fn move_one(&self, hash_of: impl Fn(&K) -> u64) {
        self.help(1, &hash_of);
    }

    /// If the root has `buckets` buckets: whether all of them are `HERE`.
    pub(super) fn are_here(&self, buckets: usize) -> Option<bool> {
        let root = self.root();
        let is_here = |at| Self::place_in(root, at as u64).is_some();
        (root.buckets() == buckets).then(|| (0..buckets).all(is_here))
    }
}
