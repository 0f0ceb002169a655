//! Cells of counted pointers: more guards than a thread has slots, guards that end in other
//! threads, some of them kept for long among millions of loads, while what is in the cells is
//! replaced in every way there is.
//!
//! What a guard has must be alive until the guard ends. When all threads have ended, the objects
//! that are left must be those in the cells: of cells with exact counts, a borrow that was paid
//! twice would keep one more, and one that was not paid would have dropped one.

use std::collections::{HashSet, VecDeque};
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use quiescence::cell::{ArcCellAny, ArcGuard, Cache, ExactCell, ExactGuard};
use quiescence::hazard;

use crate::canary::{Canary, Kept, Live, end};
use crate::context::ThreadContext;
use crate::delays::{self, spin};
use crate::fixture::Fixture;
use crate::kinds::{FaultKind, Operation};
use crate::passing::at_the_end;
use crate::pool::lock;
use crate::random::Random;

/// Loads between two messages to the watchdog; and stores.
const LOADS: u64 = 128;
const STORES: u64 = 16;

/// Threads for each CPU that load.
const LOADERS_PER_CPU: usize = 2;

/// Guards that a thread has at once, at most: more than it has slots.
const GUARDS: u64 = 20;

/// Guards on their way to another thread, and guards that are kept for long.
const MOVING: usize = 64;
const KEPT: usize = 256;

type Object = Arc<Canary>;

/// What is counted of cells of a kind.
struct Operations {
    load: Operation,
    elsewhere: Operation,
    store: Operation,
    swap: Operation,
    compare: Operation,
    rcu: Operation,
    optional: Operation,
    take: Operation,
    shared: Operation,
}

/// A kind of cell.
trait Cell: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    const OPERATIONS: Operations;
    /// Who loads, keeps the guards of others, and updates.
    const PARTS: [&'static str; 3];
    /// Cells: few, where a slot is to be used for one again and again.
    const CELLS: u64;
    /// In how many of 64 draws a guard is given away.
    const GIVEN_AWAY: u64;
    /// How long a guard of another thread is kept, and how long its keeper rests: less than this.
    /// Without rest it yields.
    const KEPT_BELOW_US: u64;
    const REST_BELOW_US: u64;
    const LIVE: &'static Live;
    type Guard: Send + 'static;
    type Optional: Send + Sync;

    fn new(object: Object) -> Self;
    /// Loads through a cache of the caller's own, if there are caches of such cells.
    fn cached(&self) -> impl FnMut(&ThreadContext);
    fn load(&self) -> Self::Guard;
    fn store(&self, new: Object);
    fn swap(&self, new: Object) -> Object;
    /// Whether `new` is there now instead of `current`.
    fn replace(&self, current: &Self::Guard, new: Object, expect: impl Fn(&Canary)) -> bool;
    fn rcu(&self, f: impl FnMut(&Object) -> Object) -> Object;
    fn empty() -> Self::Optional;
    fn load_optional(optional: &Self::Optional) -> Option<Self::Guard>;
    fn swap_optional(optional: &Self::Optional, new: Option<Object>) -> Option<Object>;
    fn take(optional: &Self::Optional) -> Option<Object>;
    fn guard(object: Object) -> Self::Guard;
    fn object(guard: Self::Guard) -> Object;
    fn canary(guard: &Self::Guard) -> &Canary;
}

macro_rules! cell {
    (
        $cell:ident, $guard:ident, $live:ident, $cached:expr, $take:expr,
        $($constant:ident: $type:ty = $is:expr,)*
    ) => {
        static $live: Live = Live::none();

        impl Cell for $cell<Object> {
            $(const $constant: $type = $is;)*
            const LIVE: &'static Live = &$live;
            type Guard = $guard<Object>;
            type Optional = $cell<Option<Object>>;

            fn new(object: Object) -> Self {
                $cell::new(object)
            }

            fn cached(&self) -> impl FnMut(&ThreadContext) {
                $cached(self)
            }

            fn load(&self) -> Self::Guard {
                self.load()
            }

            fn store(&self, new: Object) {
                self.store(new);
            }

            fn swap(&self, new: Object) -> Object {
                self.swap(new)
            }

            fn replace(
                &self,
                current: &Self::Guard,
                new: Object,
                expect: impl Fn(&Canary),
            ) -> bool {
                let current: *const Canary = Self::canary(current);
                let was = self.compare_and_swap(current, new);
                let was: &Canary = &was;
                expect(was);
                ptr::eq(was, current)
            }

            fn rcu(&self, f: impl FnMut(&Object) -> Object) -> Object {
                self.rcu(f)
            }

            fn empty() -> Self::Optional {
                $cell::empty()
            }

            fn load_optional(optional: &Self::Optional) -> Option<Self::Guard> {
                optional.load().as_ref().map(|object| $guard::from_inner(Arc::clone(object)))
            }

            fn swap_optional(optional: &Self::Optional, new: Option<Object>) -> Option<Object> {
                optional.swap(new)
            }

            fn take(optional: &Self::Optional) -> Option<Object> {
                $take(optional)
            }

            fn guard(object: Object) -> Self::Guard {
                $guard::from_inner(object)
            }

            fn object(guard: Self::Guard) -> Object {
                $guard::into_inner(guard)
            }

            fn canary(guard: &Self::Guard) -> &Canary {
                guard
            }
        }
    };
}

cell! {
    ArcCellAny, ArcGuard, IN_ARC_CELLS, cached, ArcCellAny::take,
    NAME: &'static str = "ArcCell",
    OPERATIONS: Operations = Operations {
        load: Operation::ArcLoad,
        elsewhere: Operation::ArcElsewhere,
        store: Operation::ArcStore,
        swap: Operation::ArcSwap,
        compare: Operation::ArcCompare,
        rcu: Operation::ArcRcu,
        optional: Operation::ArcOption,
        take: Operation::ArcTake,
        shared: Operation::ArcShared,
    },
    PARTS: [&'static str; 3] = ["reader of cells", "keeper of others' guards", "updater of cells"],
    CELLS: u64 = 16,
    GIVEN_AWAY: u64 = 2,
    KEPT_BELOW_US: u64 = 2_500_000,
    REST_BELOW_US: u64 = 500,
}

cell! {
    ExactCell, ExactGuard, IN_EXACT_CELLS,
    |_| |_: &ThreadContext| {}, |optional: &Self::Optional| optional.swap(None),
    NAME: &'static str = "ExactCell",
    OPERATIONS: Operations = Operations {
        load: Operation::ExactLoad,
        elsewhere: Operation::ExactElsewhere,
        store: Operation::ExactStore,
        swap: Operation::ExactSwap,
        compare: Operation::ExactCompare,
        rcu: Operation::ExactRcu,
        optional: Operation::ExactOption,
        take: Operation::ExactOption,
        shared: Operation::ExactShared,
    },
    PARTS: [&'static str; 3] = [
        "reader of exact cells",
        "keeper of others' exact guards",
        "updater of exact cells",
    ],
    CELLS: u64 = 3,
    GIVEN_AWAY: u64 = 4,
    KEPT_BELOW_US: u64 = 50,
    REST_BELOW_US: u64 = 1,
}

fn cached(cell: &ArcCellAny<Object>) -> impl FnMut(&ThreadContext) {
    let mut cache = Cache::new(cell);
    move |context| {
        cache.load().loaded(context, "Cache");
        context.did(Operation::ArcCache);
    }
}

/// A guard that is had for a while, and the serial of its object.
struct Held<C: Cell>(C::Guard, u64);

impl<C: Cell> Held<C> {
    fn new(context: &ThreadContext, guard: C::Guard) -> Self {
        let serial = C::canary(&guard).loaded(context, C::NAME);
        Self(guard, serial)
    }

    fn expect(&self, context: &ThreadContext) {
        C::canary(&self.0).expect(context, C::NAME, self.1);
    }
}

/// Cells of one kind.
struct Cells<C: Cell> {
    cells: Vec<C>,
    optional: C::Optional,
    /// Each update adds one to the serial.
    chain: C,
    links: AtomicU64,
    serial: AtomicU64,
    moving: Mutex<Vec<C::Guard>>,
}

/// Threads that use cells with exact counts.
pub(crate) fn cast_exact(fixture: &mut Fixture, cpus: usize) {
    cast::<ExactCell<Object>>(fixture, cpus, 1);
}

/// Threads that use cells which stand on hazard pointers, and that come and go with guards.
pub(crate) fn cast_hazards(fixture: &mut Fixture, cpus: usize) {
    let cells = cast::<ArcCellAny<Object>>(fixture, cpus, 2);
    let parts = [(2, "starter of threads with guards", come_and_go as _)];
    fixture.moved(cells, &parts, |_, _| {});
}

fn cast<C: Cell>(fixture: &mut Fixture, cpus: usize, keepers: usize) -> Arc<Cells<C>> {
    let cell = |_| C::new(Arc::new(Canary::new(0, C::LIVE)));
    let cells = Arc::new(Cells {
        cells: (0..C::CELLS).map(cell).collect(),
        optional: C::empty(),
        chain: cell(0),
        links: AtomicU64::new(0),
        serial: AtomicU64::new(1),
        moving: Mutex::default(),
    });
    let [loads, keeps, stores] = C::PARTS;
    fixture.moved(
        Arc::clone(&cells),
        &[
            (LOADERS_PER_CPU * cpus, loads, |cells, context, random| cells.load(context, random)),
            (keepers, keeps, |cells, context, random| cells.keep(context, random)),
            (2, stores, |cells, context, random| cells.store(context, random)),
        ],
        |cells, context| cells.close(context),
    );
    cells
}

impl<C: Cell> Cells<C> {
    fn cell(&self, random: &Random) -> &C {
        &self.cells[random.below(C::CELLS) as usize]
    }

    /// Loads from cells until the run is over.
    fn load(&self, context: &ThreadContext, random: &Random) {
        let mut held: VecDeque<Held<C>> = VecDeque::new();
        let mut cached = self.cells[0].cached();
        let mut last = 0;
        context.rounds(C::OPERATIONS.load, random, |random| {
            (0..LOADS).for_each(|_| self.load_one(context, &mut held, &mut last, random));
            context.ledger.did(C::OPERATIONS.load, LOADS);
            cached(context);
        });
        end(context, (held, cached));
    }

    fn load_one(
        &self,
        context: &ThreadContext,
        held: &mut VecDeque<Held<C>>,
        last: &mut u64,
        random: &Random,
    ) {
        let guard = match random.below(8) {
            0 => match C::load_optional(&self.optional) {
                Some(guard) => guard,
                None => return,
            },
            1 => {
                let link = self.chain.load();
                let serial = C::canary(&link).serial();
                context.expect(serial >= *last, FaultKind::Torn, C::NAME, || {
                    format!("value {serial} was loaded after {last} had been")
                });
                *last = serial;
                link
            }
            2 => C::guard(C::object(self.cell(random).load())),
            _ => self.cell(random).load(),
        };
        let one = Held::<C>::new(context, guard);
        if random.one_in(16) {
            spin(random.below(500));
            one.expect(context);
        }
        match random.below(64).checked_sub(C::GIVEN_AWAY) {
            None => self.give_away(context, one),
            Some(0) => C::object(one.0).expect(context, C::NAME, one.1),
            Some(1..=4) => {
                held.push_back(one);
                if held.len() as u64 > GUARDS {
                    // Not in the order in which they came.
                    let oldest = held.swap_remove_back(random.below(GUARDS) as usize);
                    oldest.iter().for_each(|one| one.expect(context));
                }
            }
            _ => {}
        }
    }

    /// Sends a guard to whichever thread takes it.
    fn give_away(&self, context: &ThreadContext, one: Held<C>) {
        let mut moving = lock(&self.moving);
        if moving.len() < MOVING && !context.has_died() {
            moving.push(one.0);
        }
    }

    /// Takes guards from others and keeps them, some for long, until the run is over.
    fn keep(&self, context: &ThreadContext, random: &Random) {
        let mut kept: Vec<(Held<C>, Instant)> = Vec::new();
        context.rounds(C::OPERATIONS.elsewhere, random, |random| {
            let came = mem::take(&mut *lock(&self.moving));
            let now = Instant::now();
            for guard in came {
                let until = now + Duration::from_micros(random.below_mostly_low(C::KEPT_BELOW_US));
                let one = Held::<C>::new(context, guard);
                context.did(C::OPERATIONS.elsewhere);
                if kept.len() < KEPT {
                    kept.push((one, until));
                }
            }
            kept.iter().for_each(|(one, _)| one.expect(context));
            if context.has_died() {
                return;
            }
            let mut due: Vec<_> = kept.extract_if(.., |(_, until)| *until <= now).collect();
            while !due.is_empty() {
                drop(due.swap_remove(random.below(due.len() as u64) as usize));
            }
            match random.below(C::REST_BELOW_US) {
                0 => thread::yield_now(),
                rest => thread::sleep(Duration::from_micros(rest)),
            }
        });
        end(context, kept);
    }

    /// Loads some guards, more than there are slots perhaps, and gives some of them away.
    fn hand_out(&self, context: &ThreadContext, random: &Random) {
        let guards = 1 + random.below(GUARDS);
        let guards = (0..guards).map(|_| Held::<C>::new(context, self.cell(random).load()));
        for one in guards.collect::<Vec<_>>() {
            one.expect(context);
            if random.one_in(2) {
                self.give_away(context, one);
            }
        }
    }

    /// Replaces what is in cells until the run is over.
    fn store(&self, context: &ThreadContext, random: &Random) {
        let mut kept = Kept::default();
        context.rounds(C::OPERATIONS.store, random, |random| {
            (0..STORES).for_each(|_| self.store_one(context, &mut kept, random));
        });
        kept.end(context);
    }

    fn store_one(&self, context: &ThreadContext, kept: &mut Kept, random: &Random) {
        let mut fresh = |serial: u64| kept.keep(Canary::new(serial, C::LIVE));
        let next_serial = || self.serial.fetch_add(1, Relaxed);
        let expect = |old: &Canary| {
            old.loaded(context, C::NAME);
        };
        let (operation, cell) = (C::OPERATIONS, self.cell(random));
        match random.below(10) {
            0..=2 => {
                context.did(operation.store);
                cell.store(fresh(next_serial()));
            }
            3 => {
                context.did(operation.swap);
                expect(&cell.swap(fresh(next_serial())));
            }
            4 => {
                context.did(operation.optional);
                let new = random.one_in(2).then(|| fresh(next_serial()));
                C::swap_optional(&self.optional, new).iter().for_each(|old| expect(old));
            }
            5 => {
                context.did(operation.take);
                C::take(&self.optional).iter().for_each(|old| expect(old));
            }
            6 => {
                context.did(operation.compare);
                let current = self.chain.load();
                let new = fresh(C::canary(&current).serial() + 1);
                let is_replaced = self.chain.replace(&current, new, expect);
                self.links.fetch_add(u64::from(is_replaced), Relaxed);
            }
            7 => {
                context.did(operation.rcu);
                expect(&self.chain.rcu(|old| fresh(old.serial() + 1)));
                self.links.fetch_add(1, Relaxed);
            }
            8 => {
                // One object in two cells, and back where it was.
                context.did(operation.shared);
                let from = self.cell(random);
                let shared = C::object(from.load());
                cell.store(Arc::clone(&shared));
                from.store(shared);
            }
            _ => {
                context.did(operation.rcu);
                drop(cell.rcu(|old| {
                    expect(old);
                    fresh(next_serial())
                }));
            }
        }
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        let moving = mem::take(&mut *lock(&self.moving));
        if context.has_died() {
            return mem::forget(moving);
        }
        drop(moving);
        let (chain, links) = (C::canary(&self.chain.load()).serial(), self.links.load(Relaxed));
        context.expect(chain == links, FaultKind::Sum, C::NAME, || {
            format!("{links} updates came to {chain}")
        });
        hazard::barrier();
        // One may be in several.
        let there: HashSet<*const Canary> =
            self.cells.iter().map(|cell| Arc::as_ptr(&C::object(cell.load()))).collect();
        let there = there.len() + 1 + usize::from(C::load_optional(&self.optional).is_some());
        C::LIVE.expect(context, C::NAME, there);
    }
}

/// Starts threads that load and end, with guards that outlive them, until the run is over.
fn come_and_go(cells: &Arc<Cells<ArcCellAny<Object>>>, context: &ThreadContext, random: &Random) {
    context.rounds(Operation::ArcShort, random, |random| {
        let (cells, own) = (Arc::clone(cells), context.clone());
        let short = delays::spawn("guards", random, move |random| {
            let (at_its_end, random) = (random.one_in(8), random.clone());
            let loads = move || cells.hand_out(&own, &random);
            if at_its_end { at_the_end(loads) } else { loads() }
        });
        short.map(|short| context.join(short, ""));
        context.did(Operation::ArcShort);
    });
}
