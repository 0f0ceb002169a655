//! Id tables: threads that insert, look up, replace, mark and remove, with ids that others have,
//! old ones among them; in the global domain and in one with hardly any room.
//!
//! An object knows its id, so a reader that finds the object of another id finds that out; and
//! whether it is alive. Each thread has indexes of its own, too, where it knows what must be found.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use quiescence::collections::{Id, IdMap, Mark};
use quiescence::{
    Domain, Weigh,
    tag::{DomainTag, Private},
};

use crate::context::ThreadContext;
use crate::deferral::tuning;
use crate::delays::spin;
use crate::kinds::{FaultKind, Operation};
use crate::ledger::Ledger;
use crate::random::{Random, scramble};

/// Operations between two messages to the watchdog.
const ROUNDS: u64 = 64;

/// Ids that all threads know.
const BOARD: usize = 64;

/// Where the indexes of threads begin, and how many each has.
const OWN: u32 = 1 << 20;
const OWN_EACH: u32 = 1_000;

/// Objects that the small domain has room for.
const ROOM: u64 = 20;

/// Objects that were made, and that were dropped; and dropped though they were not alive. In
/// statics: what was dropped too early may not lead anywhere.
static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static DROPPED_AGAIN: AtomicU64 = AtomicU64::new(0);

const DEAD: u64 = 0x6465_6164_2121;

/// An object that knows its id.
#[derive(Debug)]
struct Object {
    /// For the allocator's own words, once it is freed.
    _room: [u64; 2],
    id: AtomicU64,
    check: AtomicU64,
}

impl Weigh for Object {}

impl Object {
    fn new(id: Id) -> Self {
        MADE.fetch_add(1, Relaxed);
        let bits = id.to_bits();
        Self { _room: [0; 2], id: AtomicU64::new(bits), check: AtomicU64::new(scramble(bits)) }
    }

    fn expect(&self, context: &ThreadContext, id: Id) {
        let found = self.id.load(Relaxed);
        if found != id.to_bits() || self.check.load(Relaxed) != scramble(found) {
            context.fault(FaultKind::Freed, "IdMap", || format!("{id} has found {found:#x}"));
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.check.swap(DEAD, Relaxed) == DEAD {
            DROPPED_AGAIN.fetch_add(1, Relaxed);
        }
        DROPPED.fetch_add(1, Release); // pairs with the Acquire in `close`
    }
}

/// The tables, and the ids that are known.
#[derive(Debug)]
pub(crate) struct Ids {
    global: Table<quiescence::tag::Global>,
    small: Table<Private>,
    threads: AtomicU64,
}

#[derive(Debug)]
struct Table<D: DomainTag> {
    map: IdMap<Object, D>,
    board: [AtomicU64; BOARD],
}

impl Default for Ids {
    fn default() -> Self {
        let small = Domain::new();
        small.tune(tuning(ROOM, 1 << 20));
        Self {
            global: Table::new(Domain::global()),
            small: Table::new(small),
            threads: AtomicU64::new(0),
        }
    }
}

impl Ids {
    /// Uses both until the run is over.
    pub(crate) fn run(&self, context: &ThreadContext, random: &mut Random) {
        let thread = self.threads.fetch_add(1, Relaxed) as u32;
        while !context.is_over() && context.ledger.faults(FaultKind::Freed) == 0 {
            context.begin(Operation::IdUse);
            for _ in 0..ROUNDS {
                self.global.step(context, random, thread);
                self.small.step(context, random, thread);
            }
            context.ledger.did(Operation::IdUse, ROUNDS * 2);
        }
    }

    /// When all threads have ended: looks for what is lost.
    pub(crate) fn close(&self, ledger: &Ledger) {
        if ledger.faults(FaultKind::Freed) != 0 {
            return;
        }
        self.global.close(ledger);
        self.small.close(ledger);
        // Acquire: pairs with the Release in the drop.
        let (dropped, made) = (DROPPED.load(Acquire), MADE.load(Relaxed));
        let again = DROPPED_AGAIN.load(Relaxed);
        if made != dropped || again != 0 {
            ledger.fault(FaultKind::Freed, "", None, None, || {
                format!("{made} objects of id tables, {dropped} drops, {again} of dead ones")
            });
        }
    }
}

impl<D: DomainTag> Table<D> {
    fn new(domain: Domain<D>) -> Self {
        Self { map: IdMap::new_in(domain), board: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn step(&self, context: &ThreadContext, random: &mut Random, thread: u32) {
        let place = &self.board[random.below(BOARD as u64) as usize];
        // Relaxed, all of these: a number that may be an old one.
        let known = Id::from_bits(place.load(Relaxed));
        let mark = Mark::ALL[random.below(3) as usize];
        match random.below(10) {
            0 | 1 => {
                let id = self.map.insert_with(Object::new);
                if self.map.is_marked(id, mark) {
                    context.fault(FaultKind::Count, "IdMap", || format!("{id} begins with a mark"));
                }
                let old = place.swap(id.to_bits(), Relaxed);
                if let Some(old) = Id::from_bits(old) {
                    self.map.remove(old);
                }
                context.did(Operation::IdInsert);
            }
            2 => {
                if known.is_some_and(|id| self.map.remove(id)) {
                    context.did(Operation::IdRemove);
                }
            }
            3 => {
                if known.is_some_and(|id| self.map.replace(id, Object::new(id)).is_ok()) {
                    context.did(Operation::IdReplace);
                }
            }
            4 => {
                if let Some(id) = known {
                    self.map.set_mark(id, mark);
                    self.map.clear_mark(id, Mark::ALL[random.below(3) as usize]);
                    context.did(Operation::IdMark);
                }
            }
            5 => self.search(context, mark),
            6 => self.own(context, random, thread, mark),
            _ => {
                let reader = self.map.read();
                if let Some(id) = known
                    && let Some(object) = reader.get(id)
                {
                    object.expect(context, id);
                    spin(random.below(100));
                    object.expect(context, id); // it stays, whatever became of the entry
                    context.did(Operation::IdGet);
                }
            }
        }
    }

    /// Goes through the entries with a mark.
    fn search(&self, context: &ThreadContext, mark: Mark) {
        let reader = self.map.read();
        let mut last = None;
        for (id, object) in reader.marked(mark, ..) {
            object.expect(context, id);
            if last >= Some(id.index()) {
                context.fault(FaultKind::Order, "IdMap", || format!("{id} after {last:?}"));
            }
            last = Some(id.index());
        }
        context.did(Operation::IdSearch);
    }

    /// An index of this thread's: what it does there is known.
    fn own(&self, context: &ThreadContext, random: &mut Random, thread: u32, mark: Mark) {
        let index = OWN + thread * OWN_EACH + random.below(OWN_EACH.into()) as u32;
        let id = {
            let reader = self.map.read();
            reader.get_at(index).map(|(id, object)| {
                object.expect(context, id);
                id
            })
        };
        let is_found = || {
            let reader = self.map.read();
            reader.marked(mark, index..=index).next().map(|(id, _)| id)
        };
        let holds = match id {
            None => {
                // The id is known when the object is in: it gets one that fits in a second step.
                let Some(stand_in) = Id::from_bits(1 << 32) else { return };
                match self.map.insert_at(index, Object::new(stand_in)) {
                    Ok(id) => self.map.replace(id, Object::new(id)).is_ok() && is_found().is_none(),
                    Err(_) => false,
                }
            }
            Some(id) if random.one_in(2) => {
                self.map.set_mark(id, mark);
                is_found() == Some(id) && self.map.clear_mark(id, mark) && is_found().is_none()
            }
            Some(id) => {
                self.map.set_mark(id, mark);
                self.map.remove(id) && is_found().is_none() && !self.map.contains(id)
            }
        };
        if !holds {
            context.fault(FaultKind::Count, "IdMap", || {
                format!("index {index} is not as it was left")
            });
        }
    }

    fn close(&self, ledger: &Ledger) {
        let fault = |detail: String| ledger.fault(FaultKind::Count, "", None, None, || detail);
        let (there, counted) = (self.map.read().iter().count(), self.map.len());
        if there != counted {
            fault(format!("an id table has {there} entries, and counts {counted}"));
        }
        self.map.clear();
        for mark in Mark::ALL {
            if self.map.read().marked(mark, ..).next().is_some() {
                fault("an empty id table has marks".to_owned());
            }
        }
        self.map.domain().barrier();
    }
}
