//! The updaters: every way to wait for a grace period, or to have it waited for.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use quiescence::tag::{DomainTag, ThreadTag};
use quiescence::{Domain, Qsbr};

use super::arena::Participant;
use super::kinds::{FaultKind, ReaderKind, Step, Way};
use super::pool::{BlockRef, lock};

/// Boxes given back by `into_box` that an arena keeps before it frees the first.
const BOXES_KEPT: usize = 4096;

/// Callbacks before a barrier, at most.
const CALLS_PER_BARRIER: u64 = 12;

impl<K: ThreadTag> Participant<K> {
    /// Updates until the run is over, each time in a way that is drawn.
    pub(crate) fn update_often(&self) {
        let ways = Way::all(|way| way.is_of_threads() && !way.is_alone());
        self.update_by(&ways, |way| match way {
            Way::RetireInSection => self.retire_in_section(),
            way => self.update(way),
        });
    }

    /// Updates until the run is over, in a domain where no other thread waits: a wake-up that a
    /// reader must do for this thread is not made up for by another waiter.
    pub(crate) fn wait_alone(&self) {
        const WAYS: [Way; 3] = [Way::Synchronize, Way::Expedited, Way::SnapshotWait];
        while !self.context.is_over() {
            self.update(self.begin(&WAYS));
        }
    }

    /// Replaces a block and waits, as a reader that goes offline meanwhile.
    pub(crate) fn update_by_qsbr(&self, reader: &mut Qsbr<K>) {
        // Not `fresh`: an online reader must not wait for blocks.
        let Some(new) = self.arena.pool.take() else { return };
        let old = self.replace(new, Way::QsbrSynchronize);
        reader.synchronize();
        self.arena.pool.aged([old]);
    }

    /// Retires inside a section, where `retire` only adds.
    fn retire_in_section(&self) {
        let Some(new) = self.fresh() else { return };
        let guard = self.arena.domain.read();
        let refused = self.arena.domain.retire(self.replaced(new, Way::RetireInSection)).err();
        drop(guard);
        drop(refused); // retired over the limit: others have filled the domain
    }
}

impl<K: DomainTag> Participant<K> {
    /// Updates until the run is over, each time in one of these ways.
    pub(crate) fn update_by(&self, ways: &[Way], update: impl Fn(Way)) {
        while !self.context.is_over() {
            update(self.begin(ways));
            self.context.give_way();
        }
    }

    /// Draws a way, and says that this is what the thread does now.
    pub(crate) fn begin(&self, ways: &[Way]) -> Way {
        let way = ways[self.context.below(ways.len() as u64) as usize];
        self.context.record().begin(Step::Update(way));
        way
    }

    /// Updates in one of the ways that need no section of the thread's own.
    pub(crate) fn update(&self, way: Way) {
        match way {
            Way::Synchronize => self.wait(way, Domain::synchronize),
            Way::Expedited => self.wait(way, Domain::synchronize_expedited),
            Way::StartPoll => self.wait(way, |domain| {
                let cookie = domain.start_poll();
                while !domain.poll(cookie) {
                    thread::yield_now();
                }
            }),
            Way::SnapshotWait => self.wait(way, |domain| domain.wait(domain.cookie())),
            Way::Call => self.call(),
            Way::Barrier => self.barrier(),
            Way::Store | Way::Swap | Way::IntoBox | Way::Take => self.replace_value(way),
            Way::Update => self.update_closure(),
            way => self.retire(way),
        }
    }

    /// A free block. Waits until there is one; none when the run is over.
    pub(crate) fn fresh(&self) -> Option<u32> {
        let (pool, domain) = (&self.arena.pool, &self.arena.domain);
        loop {
            if let Some(index) = pool.take() {
                return Some(index);
            }
            if self.context.is_over() {
                return None;
            }
            // What callbacks hold first, then the pipe, one grace period at a time.
            self.context.record().begin(Step::WaitForBlocks);
            domain.barrier();
            let ageing = pool.take_ageing();
            domain.synchronize();
            pool.aged(ageing);
        }
    }

    /// Replaces a block and returns the old one, removed.
    pub(crate) fn replace(&self, new: u32, way: Way) -> u32 {
        let old = self.arena.publish(new, &self.context);
        self.arena.pool.removed(old, way);
        self.context.ledger.ways.add(way, 1);
        old
    }

    /// The same; and an object for the old one, whose drop notes the grace period.
    pub(crate) fn replaced(&self, new: u32, way: Way) -> Box<BlockRef> {
        Box::new(BlockRef::new(&self.arena.pool, self.replace(new, way)))
    }

    /// Replaces a block and waits: the grace period also carries the older ones along the pipe.
    pub(crate) fn wait(&self, way: Way, wait: impl FnOnce(&Domain<K>)) {
        let Some(new) = self.fresh() else { return };
        let mut passing = self.arena.pool.take_ageing();
        passing.push(self.replace(new, way));
        wait(&self.arena.domain);
        self.arena.pool.aged(passing);
    }

    /// Replaces a block; a callback notes the grace period, and now and then queues another one.
    fn call(&self) {
        let Some(new) = self.fresh() else { return };
        let old = self.replace(new, Way::Call);
        let again = self.context.one_in(4);
        let own = self.clone();
        self.queue(move || {
            own.arena.pool.aged([old]);
            if again {
                let ageing = own.arena.pool.take_ageing();
                let pool = Arc::clone(&own.arena.pool);
                own.queue(move || pool.aged(ageing));
            }
        });
    }

    /// Queues a callback, counted before and after.
    fn queue(&self, f: impl FnOnce() + Send + 'static) {
        self.context.ledger.calls_queued.fetch_add(1, Relaxed);
        let ledger = Arc::clone(&self.context.ledger);
        let queued = self.arena.domain.call(move || {
            f();
            ledger.calls_run.fetch_add(1, Relaxed);
        });
        if queued.is_err() {
            self.refused(Way::Call);
        }
    }

    /// Queues some callbacks; a barrier must have run them all.
    fn barrier(&self) {
        let run = Arc::new(AtomicU64::new(0));
        let mut queued = 0;
        for _ in 0..1 + self.context.below(CALLS_PER_BARRIER) {
            let Some(new) = self.fresh() else { break };
            self.context.record().begin(Step::Update(Way::Barrier));
            let old = self.replace(new, Way::Barrier);
            let (pool, run) = (Arc::clone(&self.arena.pool), Arc::clone(&run));
            self.queue(move || {
                pool.aged([old]);
                run.fetch_add(1, Relaxed);
            });
            queued += 1;
        }
        self.arena.domain.barrier();
        let run = run.load(Relaxed);
        if run != queued {
            self.fault(FaultKind::Barrier, None, Some(Way::Barrier), || {
                format!("barrier() returned when {run} of {queued} callbacks had run")
            });
        }
    }

    /// Replaces a block and retires an object for it.
    pub(crate) fn retire(&self, way: Way) {
        // Short-lived threads take what there is: they may be inside a destructor.
        let new = if way == Way::Passing { self.arena.pool.take() } else { self.fresh() };
        let Some(new) = new else { return };
        if self.arena.domain.retire(self.replaced(new, way)).is_err() {
            self.refused(way);
        }
    }

    /// Nothing is refused outside of sections, and in a callback there is room for one closure.
    pub(crate) fn refused(&self, way: Way) {
        self.fault(FaultKind::Limit, None, Some(way), || {
            "refused where it should have waited".to_owned()
        });
    }

    /// Replaces a block in one of the places that take a value.
    fn replace_value(&self, way: Way) {
        let Some(index) = self.fresh() else { return };
        let arena = &*self.arena;
        arena.pool.prepare(index);
        let new = BlockRef::new(&arena.pool, index);
        self.context.ledger.ways.add(way, 1);
        match way {
            Way::Store if self.context.one_in(2) => arena.value.store(new),
            Way::Store => arena.option.store(Some(new)),
            Way::Take => {
                if let Some(old) = arena.option.take() {
                    arena.pool.removed(old.index(), way);
                }
                self.context.give_way();
                arena.option.store(Some(new));
            }
            way => {
                let old = arena.value.swap(new);
                arena.pool.removed(old.index(), way);
                self.context.give_way();
                if way == Way::Swap {
                    return drop(old); // retires
                }
                let old = old.into_box();
                old.note_grace_period();
                let mut boxes = lock(&arena.boxes);
                boxes.push_back(old);
                if boxes.len() > BOXES_KEPT {
                    boxes.pop_front();
                }
            }
        }
    }

    /// A new value made from the old one, which the closure reads inside a section.
    fn update_closure(&self) {
        let Some(index) = self.fresh() else { return };
        let pool = &self.arena.pool;
        pool.prepare(index);
        self.context.ledger.ways.add(Way::Update, 1);
        let mut calls = 0;
        self.arena.value.update(|old| {
            if calls > 0 {
                // The value made before was refused and is about to be dropped.
                BlockRef::unpublish(pool, index);
            }
            calls += 1;
            self.glance(old.index(), ReaderKind::Updater);
            if self.context.one_in(8) {
                thread::yield_now();
            }
            BlockRef::new(pool, index)
        });
    }
}
