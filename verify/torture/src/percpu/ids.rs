//! Id tables: threads that insert, look up, replace, mark and remove, with ids that others have,
//! old ones among them; in the global domain and in one with hardly any room.
//!
//! An object knows its id, so a reader that finds the object of another id finds that out; and
//! whether it is alive. Each thread has indexes of its own, too, where it knows what must be found.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::Domain;
use quiescence::collections::{Id, IdMap, Mark};
use quiescence::tag::{DomainTag, Global, Private};

use super::{Canary, FaultKind, Fixture, Live, Operation, ThreadContext, spin, tuning};

/// Ids that all threads know.
const BOARD: usize = 64;

/// Where the indexes of threads begin, and how many each has.
const OWN: u32 = 1 << 20;
const OWN_EACH: u32 = 1_000;

/// Objects that the small domain has room for.
const ROOM: u64 = 20;

static LIVE: Live = Live::none();

/// An object whose serial is its id.
fn object(id: Id) -> Canary {
    Canary::new(id.to_bits(), &LIVE)
}

/// The tables.
struct Ids {
    global: Table<Global>,
    small: Table<Private>,
}

/// A table, and the ids that are known.
struct Table<D: DomainTag> {
    map: IdMap<Canary, D>,
    board: [AtomicU64; BOARD],
}

/// Threads that use id tables.
pub(crate) fn cast(fixture: &mut Fixture, threads: usize) {
    let small = Domain::builder().tuning(tuning(ROOM, 1 << 20)).build();
    let ids = Ids { global: Table::new(Domain::global()), small: Table::new(small) };
    fixture.parts(true, ids, &[(threads, "user of id tables", Ids::run)], Ids::close);
}

impl Ids {
    /// Uses both, in turn, until the run is over.
    fn run(&self, context: &ThreadContext) {
        context.repeat(Operation::IdUse, || {
            self.global.step(context);
            self.small.step(context);
        });
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        self.global.close(context);
        self.small.close(context);
        LIVE.expect(context, "IdMap", 0);
    }
}

impl<D: DomainTag> Table<D> {
    fn new(domain: Domain<D>) -> Self {
        Self { map: IdMap::new_in(domain), board: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn step(&self, context: &ThreadContext) {
        let place = context.pick(&self.board);
        // Relaxed, all of these: a number that may be an old one.
        let known = Id::from_bits(place.load(Relaxed));
        let mark = Mark::ALL[context.below(3) as usize];
        match context.below(10) {
            0 | 1 => {
                let id = self.map.insert_with(object);
                let is_marked = self.map.is_marked(id, mark);
                context.expect(!is_marked, FaultKind::Count, "IdMap", || {
                    format!("{id} begins with a mark")
                });
                Id::from_bits(place.swap(id.to_bits(), Relaxed)).map(|old| self.map.remove(old));
                context.did(Operation::IdInsert);
            }
            2 => {
                if known.is_some_and(|id| self.map.remove(id)) {
                    context.did(Operation::IdRemove);
                }
            }
            3 => {
                if known.is_some_and(|id| self.map.replace(id, object(id)).is_ok()) {
                    context.did(Operation::IdReplace);
                }
            }
            4 => {
                if let Some(id) = known {
                    self.map.set_mark(id, mark);
                    self.map.clear_mark(id, Mark::ALL[context.below(3) as usize]);
                    context.did(Operation::IdMark);
                }
            }
            5 => self.search(context, mark),
            6 => self.own(context, mark),
            _ => {
                let reader = self.map.read();
                if let Some(id) = known
                    && let Some(object) = reader.get(id)
                {
                    object.expect(context, "IdMap", id.to_bits());
                    spin(context.below(100));
                    // It stays, whatever became of the entry.
                    object.expect(context, "IdMap", id.to_bits());
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
            object.expect(context, "IdMap", id.to_bits());
            context.expect(last < Some(id.index()), FaultKind::Order, "IdMap", || {
                format!("{id} after {last:?}")
            });
            last = Some(id.index());
        }
        context.did(Operation::IdSearch);
    }

    /// An index of this thread's: what it does there is known.
    fn own(&self, context: &ThreadContext, mark: Mark) {
        let index = OWN + context.record as u32 * OWN_EACH + context.below(OWN_EACH.into()) as u32;
        let id = {
            let reader = self.map.read();
            reader.get_at(index).map(|(id, object)| {
                object.expect(context, "IdMap", id.to_bits());
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
                match self.map.insert_at(index, object(stand_in)) {
                    Ok(id) => self.map.replace(id, object(id)).is_ok() && is_found().is_none(),
                    Err(_) => false,
                }
            }
            Some(id) if context.one_in(2) => {
                self.map.set_mark(id, mark);
                is_found() == Some(id) && self.map.clear_mark(id, mark) && is_found().is_none()
            }
            Some(id) => {
                self.map.set_mark(id, mark);
                self.map.remove(id) && is_found().is_none() && !self.map.contains(id)
            }
        };
        context.expect(holds, FaultKind::Count, "IdMap", || {
            format!("index {index} is not as it was left")
        });
    }

    fn close(&self, context: &ThreadContext) {
        let (there, counted) = (self.map.read().iter().count(), self.map.len());
        context.equal(FaultKind::Count, "IdMap", "entries, and by the count", there, counted);
        self.map.clear();
        for mark in Mark::ALL {
            let is_empty = self.map.read().marked(mark, ..).next().is_none();
            context.expect(is_empty, FaultKind::Count, "IdMap", || {
                "an empty id table has marks".to_owned()
            });
        }
        self.map.domain().barrier();
    }
}
