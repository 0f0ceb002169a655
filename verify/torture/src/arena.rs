//! A domain under torture, the places in it where blocks are published, and one look at them.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex};

use quiescence::tag::{DomainTag, Section};
use quiescence::{Cookie, Domain, Rcu, RcuOption};

use super::context::ThreadContext;
use super::delays;
use super::kinds::{FaultKind, ReaderKind, Way};
use super::pool::{BlockRef, Pool};
use super::random::Random;

/// Places that hold the index of a block, as a pointer of our own would.
const SLOTS: usize = 6;

/// A domain and its places.
pub(crate) struct Arena<K: DomainTag> {
    pub(crate) name: &'static str,
    pub(crate) domain: Domain<K>,
    pub(crate) pool: Arc<Pool>,
    slots: [AtomicU32; SLOTS],
    pub(crate) value: Rcu<BlockRef, K>,
    pub(crate) option: RcuOption<BlockRef, K>,
    /// Boxes that `into_box` gave back. A reader that a fault lets see one of them finds it as it
    /// was.
    pub(crate) boxes: Mutex<VecDeque<Box<BlockRef>>>,
}

/// What a thread needs to take part.
#[derive(Clone)]
pub(crate) struct Participant<K: DomainTag> {
    pub(crate) arena: Arc<Arena<K>>,
    pub(crate) context: ThreadContext,
}

/// A block that a reader found, to be looked at again at the end of its section.
#[must_use = "a look is worth nothing until look_again"]
pub(crate) struct Look {
    index: u32,
    serial: u64,
    /// Of a grace period that cannot end before the section; taken now and then, and by the thread
    /// that came late.
    cookie: Option<Cookie>,
    /// Grace periods that had ended.
    ended: Option<u64>,
}

/// A section, and what was found in it.
pub(crate) struct Visit<'a> {
    _guard: Box<dyn Send + 'a>,
    look: Option<Look>,
    kind: ReaderKind,
}

impl<K: DomainTag> Arena<K> {
    /// How many blocks are published once the option holds none.
    pub(crate) const PUBLISHED: usize = SLOTS + 1;

    pub(crate) fn new(name: &'static str, domain: Domain<K>) -> Self {
        let pool = Arc::new(Pool::new());
        let fresh = || {
            let index = pool.take().expect("a new pool is full");
            pool.prepare(index);
            index
        };
        Self {
            name,
            slots: std::array::from_fn(|_| AtomicU32::new(fresh())),
            value: Rcu::new_in(BlockRef::new(&pool, fresh()), domain.clone()),
            option: RcuOption::new_in(Some(BlockRef::new(&pool, fresh())), domain.clone()),
            boxes: Mutex::default(),
            domain,
            pool,
        }
    }

    /// Puts a block that was taken from the pool into a place, and returns which one was there.
    pub(crate) fn publish(&self, new: u32, random: &Random) -> u32 {
        let slot = random.pick(&self.slots);
        //~ publish-before-init
        self.pool.prepare(new);
        // AcqRel: the Release pairs with the Acquire in `look`, so that the thread that finds the
        // block finds its payload; the Acquire lets the owner of the old block go on from its
        // writes.
        slot.swap(new, AcqRel)
    }
}

impl<K: DomainTag> Participant<K> {
    pub(crate) fn new(arena: &Arc<Arena<K>>, context: &ThreadContext) -> Self {
        Self { arena: Arc::clone(arena), context: context.clone() }
    }

    /// Something is wrong: who saw it, and how the block had been taken out.
    pub(crate) fn fault(
        &self,
        kind: FaultKind,
        reader: Option<ReaderKind>,
        way: Option<Way>,
        detail: impl FnOnce() -> String,
    ) {
        self.context.ledger.fault(kind, self.arena.name, reader, way, detail);
    }

    /// Finds a block, inside a section.
    pub(crate) fn look<S: Section<K>>(&self, section: &S, kind: ReaderKind) -> Option<Look> {
        let (arena, context) = (&*self.arena, &self.context);
        let cookie = context.one_in(if delays::is_late() { 1 } else { 32 });
        let cookie = cookie.then(|| arena.domain.cookie());
        let ended = context.one_in(64).then(|| arena.domain.statistics().grace_periods);
        let index = match context.below(8) {
            0 | 1 => arena.value.load(section).index(),
            2 => arena.option.load(section)?.index(),
            // Acquire: pairs with the Release in `publish`.
            _ => context.pick(&arena.slots).load(Acquire),
        };
        let Some(block) = arena.pool.get(index) else {
            self.fault(FaultKind::Payload, Some(kind), None, || {
                format!("an object that was published holds {index:#x}, which is no block")
            });
            return None;
        };
        let look = Look { index, serial: block.serial(), cookie, ended };
        self.check(&look, kind);
        Some(look)
    }

    /// Looks once at a block that an updater is about to replace, inside a section.
    pub(crate) fn glance(&self, index: u32, kind: ReaderKind) {
        if let Some(block) = self.arena.pool.get(index) {
            let look = Look { index, serial: block.serial(), cookie: None, ended: None };
            let age = self.check(&look, kind);
            self.context.record().read(kind, age);
        }
    }

    /// Looks at the block again, at the end of the section that it was found in.
    pub(crate) fn look_again(&self, look: &Look, kind: ReaderKind) {
        let age = self.check(look, kind);
        let record = self.context.record();
        record.read(kind, age);
        let domain = &self.arena.domain;
        if let Some(ended) = look.ended {
            // The counter of grace periods has 63 bits.
            let batches = domain.statistics().grace_periods.wrapping_sub(ended) & (u64::MAX >> 1);
            record.batches.count(batches);
        }
        if look.cookie.is_some_and(|cookie| domain.poll(cookie)) {
            self.fault(FaultKind::EarlyEnd, Some(kind), None, || {
                "a cookie taken inside a section was done before the section ended".to_owned()
            });
        }
    }

    /// Finds a block in a section that has just begun.
    pub(crate) fn visit<'a>(
        &self,
        guard: impl Section<K> + Send + 'a,
        kind: ReaderKind,
    ) -> Visit<'a> {
        let look = self.look(&guard, kind);
        Visit { _guard: Box::new(guard), look, kind }
    }

    /// Looks at the block again, and ends the section.
    pub(crate) fn leave(&self, visit: Visit<'_>) {
        visit.look.iter().for_each(|look| self.look_again(look, visit.kind));
    }

    /// Compares a block with what a reader may see, and returns its age.
    fn check(&self, look: &Look, kind: ReaderKind) -> u32 {
        let Some(block) = self.arena.pool.get(look.index) else { return 0 };
        let whole = block.is_whole(look.serial);
        let age = block.age();
        let fault = |fault, way: Way| {
            self.fault(fault, Some(kind), Some(way), || {
                let payload = if whole { "intact" } else { "not that of its publication" };
                format!("block {} had age {age}, payload {payload}", look.index)
            });
        };
        if age > 1 {
            fault(FaultKind::Age, block.way());
        }
        if !whole {
            fault(FaultKind::Payload, block.way());
        }
        age
    }
}
