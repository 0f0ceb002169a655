//! Cells of counted pointers: more guards than a thread has slots, guards that end in other
//! threads, some of them kept for long among millions of loads, while what is in the cells is
//! replaced in every way there is.
//!
//! What a guard has must be alive until the guard ends. When all threads have ended, the objects
//! that are left must be those in the cells: of cells with exact counts, a borrow that was paid
//! twice would keep one more, and one that was not paid would have dropped one.

use std::collections::{HashSet, VecDeque};
use std::convert::identity;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use quiescence::cell::{ArcCellAny, ArcGuard, Cache, ExactCell, ExactGuard, RefCnt};
use quiescence::{Weigh, hazard};

use super::{Canary, FaultKind, Fixture, Live, Operation, ThreadContext, end, lock, spin};
use crate::canary::Kept;
use crate::passing::at_the_end;

/// In how many of 64 draws a guard is given away.
const GIVEN_AWAY: u64 = 4;

/// Guards that a thread has at once, at most: more than it has slots.
const GUARDS: u64 = 20;

/// Guards on their way to another thread, and guards that are kept for long.
const MOVING: usize = 64;
const KEPT: usize = 256;

type Object = Arc<Canary>;

/// A cell of pointers, or of what may be none.
trait Cell<P: RefCnt>: Send + Sync + 'static {
    type Guard: Send + 'static;

    fn new(pointer: P) -> Self;
    fn load(&self) -> Self::Guard;
    fn store(&self, new: P);
    fn swap(&self, new: P) -> P;
    fn compare_and_swap(&self, current: *const P::Base, new: P) -> P;
    fn rcu(&self, f: impl FnMut(&P) -> P) -> P;
    fn guard(pointer: P) -> Self::Guard;
    fn inner(guard: &Self::Guard) -> &P;
    fn into_inner(guard: Self::Guard) -> P;
}

macro_rules! cell {
    ($cell:ident, $guard:ident, $inner:path, $was:path) => {
        impl<P: RefCnt<Base: Weigh>> Cell<P> for $cell<P> {
            type Guard = $guard<P>;

            fn new(pointer: P) -> Self {
                $cell::new(pointer)
            }

            fn load(&self) -> Self::Guard {
                self.load()
            }

            fn store(&self, new: P) {
                self.store(new);
            }

            fn swap(&self, new: P) -> P {
                self.swap(new)
            }

            fn compare_and_swap(&self, current: *const P::Base, new: P) -> P {
                $was(self.compare_and_swap(current, new))
            }

            fn rcu(&self, f: impl FnMut(&P) -> P) -> P {
                self.rcu(f)
            }

            fn guard(pointer: P) -> Self::Guard {
                $guard::from_inner(pointer)
            }

            fn inner(guard: &Self::Guard) -> &P {
                $inner(guard)
            }

            fn into_inner(guard: Self::Guard) -> P {
                $guard::into_inner(guard)
            }
        }
    };
}

cell!(ArcCellAny, ArcGuard, ArcGuard::as_inner, identity);
cell!(ExactCell, ExactGuard, Deref::deref, ExactGuard::into_inner);

/// A kind of cells.
trait Kind: 'static {
    const NAME: &'static str;
    /// What is counted: loads, guards of others, and updates, by what is drawn.
    const LOAD: Operation;
    const ELSEWHERE: Operation;
    const UPDATES: [Operation; 8];
    /// Cells: few, where a slot is to be used for one again and again.
    const CELLS: u64;
    /// How seldom a guard of another thread ends when its keeper has looked at it, and how long the
    /// keeper rests then: less than this.
    const ENDS_ONE_IN: u64;
    const REST_BELOW_US: u64;
    const LIVE: &'static Live;
    type Cell: Cell<Object>;
    type Optional: Cell<Option<Object>>;
}

type Guard<K> = <<K as Kind>::Cell as Cell<Object>>::Guard;

macro_rules! operations {
    ($($operation:ident)*) => { [$(Operation::$operation),*] };
}

/// Cells which stand on hazard pointers.
struct Protected;

static PROTECTED: Live = Live::none();

impl Kind for Protected {
    const NAME: &'static str = "ArcCell";
    const LOAD: Operation = Operation::ArcLoad;
    const ELSEWHERE: Operation = Operation::ArcElsewhere;
    const UPDATES: [Operation; 8] =
        operations![ArcStore ArcSwap ArcOption ArcTake ArcCompare ArcRcu ArcShared ArcRcu];
    const CELLS: u64 = 16;
    const ENDS_ONE_IN: u64 = 2_500;
    const REST_BELOW_US: u64 = 500;
    const LIVE: &'static Live = &PROTECTED;
    type Cell = ArcCellAny<Object>;
    type Optional = ArcCellAny<Option<Object>>;
}

/// Cells with exact counts.
struct Exact;

static EXACT: Live = Live::none();

impl Kind for Exact {
    const NAME: &'static str = "ExactCell";
    const LOAD: Operation = Operation::ExactLoad;
    const ELSEWHERE: Operation = Operation::ExactElsewhere;
    const UPDATES: [Operation; 8] = operations![
        ExactStore ExactSwap ExactOption ExactOption ExactCompare ExactRcu ExactShared ExactRcu
    ];
    const CELLS: u64 = 3;
    const ENDS_ONE_IN: u64 = 4;
    const REST_BELOW_US: u64 = 1;
    const LIVE: &'static Live = &EXACT;
    type Cell = ExactCell<Object>;
    type Optional = ExactCell<Option<Object>>;
}

/// A guard that is had for a while, and the serial of its object.
struct Held<K: Kind>(Guard<K>, u64);

impl<K: Kind> Held<K> {
    fn new(context: &ThreadContext, guard: Guard<K>) -> Self {
        let serial = K::Cell::inner(&guard).loaded(context, K::NAME);
        Self(guard, serial)
    }

    fn expect(&self, context: &ThreadContext) {
        K::Cell::inner(&self.0).expect(context, K::NAME, self.1);
    }
}

/// Cells of one kind.
struct Cells<K: Kind> {
    cells: Vec<K::Cell>,
    optional: K::Optional,
    /// Each update adds one to the serial.
    chain: K::Cell,
    links: AtomicU64,
    moving: Mutex<Vec<Guard<K>>>,
}

/// Threads that use cells with exact counts.
pub(crate) fn cast_exact(fixture: &mut Fixture, threads: usize) {
    cast::<Exact>(fixture, threads, 1);
}

/// Threads that use cells which stand on hazard pointers, and that come and go with guards.
pub(crate) fn cast_hazards(fixture: &mut Fixture, threads: usize) {
    let cells = cast::<Protected>(fixture, threads, 2);
    fixture.parts(
        true,
        cells,
        &[(1, "user of a cache", load_cached), (2, "starter of threads with guards", come_and_go)],
        |_, _| {},
    );
}

fn cast<K: Kind>(fixture: &mut Fixture, threads: usize, keepers: usize) -> Arc<Cells<K>> {
    let cell = |_| K::Cell::new(Arc::new(Canary::new(0, K::LIVE)));
    let cells = Arc::new(Cells {
        cells: (0..K::CELLS).map(cell).collect(),
        optional: K::Optional::new(None),
        chain: cell(0),
        links: AtomicU64::new(0),
        moving: Mutex::default(),
    });
    let [loads, keeps, stores] = ["reader", "keeper of others' guards", "updater"]
        .map(|part| format!("{part}, {}", K::NAME));
    fixture.parts(
        true,
        Arc::clone(&cells),
        &[
            (threads, &*loads, |cells, context| cells.load(context)),
            (keepers, &*keeps, |cells, context| cells.keep(context)),
            (2, &*stores, |cells, context| cells.store(context)),
        ],
        |cells, context| cells.close(context),
    );
    cells
}

impl<K: Kind> Cells<K> {
    /// What is in the cell that may have nothing.
    fn optional(&self) -> Option<Object> {
        K::Optional::inner(&self.optional.load()).clone()
    }

    /// Loads from cells until the run is over.
    fn load(&self, context: &ThreadContext) {
        let mut held: VecDeque<Held<K>> = VecDeque::new();
        let mut last = 0;
        context.repeat(K::LOAD, || self.load_one(context, &mut held, &mut last));
        end(context, held);
    }

    fn load_one(&self, context: &ThreadContext, held: &mut VecDeque<Held<K>>, last: &mut u64) {
        let cell = context.pick(&self.cells);
        let guard = match context.below(8) {
            0 => match self.optional() {
                Some(object) => K::Cell::guard(object),
                None => return,
            },
            1 => {
                let link = self.chain.load();
                let serial = K::Cell::inner(&link).serial();
                context.expect(serial >= *last, FaultKind::Torn, K::NAME, || {
                    format!("value {serial} was loaded after {last} had been")
                });
                *last = serial;
                link
            }
            2 => K::Cell::guard(K::Cell::into_inner(cell.load())),
            _ => cell.load(),
        };
        let one = Held::<K>::new(context, guard);
        if context.one_in(16) {
            spin(context.below(500));
            one.expect(context);
        }
        match context.below(64).checked_sub(GIVEN_AWAY) {
            None => self.give_away(context, one),
            Some(0) => K::Cell::into_inner(one.0).expect(context, K::NAME, one.1),
            Some(1..=4) => {
                held.push_back(one);
                if held.len() as u64 > GUARDS {
                    // Not in the order in which they came.
                    let oldest = held.swap_remove_back(context.below(GUARDS) as usize);
                    oldest.iter().for_each(|one| one.expect(context));
                }
            }
            _ => {}
        }
    }

    /// Sends a guard to whichever thread takes it.
    fn give_away(&self, context: &ThreadContext, one: Held<K>) {
        let mut moving = lock(&self.moving);
        if moving.len() < MOVING && !context.has_died() {
            moving.push(one.0);
        }
    }

    /// Takes guards from others and keeps them, some for long, until the run is over.
    fn keep(&self, context: &ThreadContext) {
        let mut kept: Vec<Held<K>> = Vec::new();
        context.rounds(K::ELSEWHERE, || {
            for guard in mem::take(&mut *lock(&self.moving)) {
                let one = Held::<K>::new(context, guard);
                context.did(K::ELSEWHERE);
                if kept.len() < KEPT {
                    kept.push(one);
                }
            }
            kept.iter().for_each(|one| one.expect(context));
            if !context.has_died() {
                // Not in the order in which they came.
                kept.retain(|_| !context.one_in(K::ENDS_ONE_IN));
            }
            context.sleep(K::REST_BELOW_US);
        });
        end(context, kept);
    }

    /// Loads some guards, more than there are slots perhaps, and gives some of them away.
    fn hand_out(&self, context: &ThreadContext) {
        let guards = 1 + context.below(GUARDS);
        let guards = (0..guards).map(|_| Held::<K>::new(context, context.pick(&self.cells).load()));
        for one in guards.collect::<Vec<_>>() {
            one.expect(context);
            if context.one_in(2) {
                self.give_away(context, one);
            }
        }
    }

    /// Replaces what is in cells until the run is over.
    fn store(&self, context: &ThreadContext) {
        let mut kept = Kept::default();
        context.turns(K::UPDATES[0], || self.store_one(context, &mut kept));
        end(context, kept);
    }

    fn store_one(&self, context: &ThreadContext, kept: &mut Kept) {
        let mut fresh = |serial: u64| kept.keep(Canary::new(serial, K::LIVE));
        let next_serial = || K::LIVE.next_serial();
        let expect = |old: &Canary| {
            old.loaded(context, K::NAME);
        };
        let cell = context.pick(&self.cells);
        let drawn = context.below(10).saturating_sub(2) as usize;
        context.did(K::UPDATES[drawn]);
        match drawn {
            0 => cell.store(fresh(next_serial())),
            1 => expect(&cell.swap(fresh(next_serial()))),
            2 | 3 => {
                let is_new = drawn == 2 && context.one_in(2);
                let new = is_new.then(|| fresh(next_serial()));
                self.optional.swap(new).iter().for_each(|old| expect(old));
            }
            4 => {
                let current = self.chain.load();
                let current = K::Cell::inner(&current);
                let new = fresh(current.serial() + 1);
                let was = self.chain.compare_and_swap(Arc::as_ptr(current), new);
                expect(&was);
                self.links.fetch_add(u64::from(Arc::ptr_eq(&was, current)), Relaxed);
            }
            5 => {
                expect(&self.chain.rcu(|old| fresh(old.serial() + 1)));
                self.links.fetch_add(1, Relaxed);
            }
            6 => {
                // One object in two cells, and back where it was.
                let from = context.pick(&self.cells);
                let shared = K::Cell::into_inner(from.load());
                cell.store(Arc::clone(&shared));
                from.store(shared);
            }
            _ => {
                drop(cell.rcu(|old| {
                    expect(old);
                    fresh(next_serial())
                }));
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        lock(&self.moving).clear();
        let (chain, links) = (self.chain.load(), self.links.load(Relaxed));
        let chain = K::Cell::inner(&chain).serial();
        context.equal(FaultKind::Sum, K::NAME, "a value that each update increments", chain, links);
        hazard::barrier();
        // One may be in several.
        let there: HashSet<*const Canary> =
            self.cells.iter().map(|cell| Arc::as_ptr(K::Cell::inner(&cell.load()))).collect();
        let there = there.len() + 1 + usize::from(self.optional().is_some());
        K::LIVE.expect(context, K::NAME, there);
    }
}

/// Loads through a cache until the run is over.
fn load_cached(cells: &Arc<Cells<Protected>>, context: &ThreadContext) {
    let mut cache = Cache::new(&cells.cells[0]);
    context.repeat(Operation::ArcCache, || _ = cache.load().loaded(context, "Cache"));
    end(context, cache);
}

/// Starts threads that load and end, with guards that outlive them, until the run is over.
fn come_and_go(cells: &Arc<Cells<Protected>>, context: &ThreadContext) {
    context.rounds(Operation::ArcShort, || {
        let cells = Arc::clone(cells);
        let short = context.spawn("guards", move |context| {
            let (at_its_end, own) = (context.one_in(8), context.clone());
            let loads = move || cells.hand_out(&own);
            if at_its_end { at_the_end(loads) } else { loads() }
        });
        short.map(|short| context.join(short, ""));
        context.did(Operation::ArcShort);
    });
}
