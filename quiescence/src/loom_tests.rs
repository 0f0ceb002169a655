//! The real code under loom: every interleaving (up to a bound on preemptions) of readers, drivers,
//! sleepers, registrations and callback queues, with membarrier modelled by fence cells.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p quiescence --lib`; with `--features chaos` the
//! test `mutants` also removes one step at a time and expects a model to fail.

use std::panic::Location;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use grace::policy::{Adaptive, AnyPolicy, Tick, Token};
use grace::{Cookie, Start, Urgency};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use crate::gp::engine::Settings;
use crate::gp::grace_periods::Me;
use crate::gp::grace_periods::foreign::{Links, Readers, Surroundings, Words};
use crate::gp::grace_periods::sleepers::Wanted;
use crate::gp::slot::{Slot, Sort};
use crate::os::sync::{AtomicU32, AtomicU64};
use crate::os::{fence, futex};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::llist::{Chain, Found, Inbox, Link};
use crate::reclaim::queue::{Contents, Queue, Wants};
use crate::reclaim::stream::Kind;

/// Loom is to see the sleep, not two hundred looks.
const SETTINGS: Settings = Settings {
    policy: AnyPolicy::Adaptive(Adaptive { looks_max: 1, looks_max_expedited: 2 }),
    budget: None,
};

/// The calling thread has no slot of its own.
const STRANGER: Me = Me { quiescent_slots: 0 };

/// A pointer (an index) to one of some objects, and what has been done to them.
struct World {
    core: DomainState,
    current: AtomicUsize,
    objects: [UnsafeCell<u32>; 3],
}

// SAFETY: the cells are what the model checks: loom fails if an exclusive access meets another one.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        Self::with(SETTINGS)
    }

    fn with(settings: Settings) -> Arc<Self> {
        Self::of(DomainState::new(Start::ZERO, settings))
    }

    fn of(core: DomainState) -> Arc<Self> {
        Arc::new(Self {
            core,
            current: AtomicUsize::new(0),
            objects: [UnsafeCell::new(7), UnsafeCell::new(7), UnsafeCell::new(7)],
        })
    }

    /// Loads the pointer and looks at the object.
    fn look(&self) {
        let object = self.current.load(Acquire);
        // SAFETY: a read; that no writer is near is what is tested.
        self.objects[object].with(|object| assert_eq!(unsafe { *object }, 7));
    }

    /// Replaces the object and destroys the old one after a grace period.
    fn replace(&self, new: usize) {
        let old = self.current.swap(new, AcqRel);
        self.core.synchronize(Urgency::Normal, STRANGER);
        self.destroy(old);
    }

    /// The same, by a thread that takes the place of a driver at work, up to so many times.
    fn replace_impatiently(&self, new: usize, take_overs: u32) {
        let old = self.current.swap(new, AcqRel);
        self.core.synchronize_impatiently(STRANGER, take_overs);
        self.destroy(old);
    }

    /// Replaces the object and goes as far with the grace period as is possible without waiting.
    fn begin_to_replace(&self, new: usize) -> (usize, Cookie) {
        let old = self.current.swap(new, AcqRel);
        let cookie = self.core.request(Urgency::Normal);
        self.core.advance(STRANGER);
        (old, cookie)
    }

    fn destroy_if_done(&self, old: usize, cookie: Cookie) {
        if self.core.sequence().is_done(cookie) {
            self.destroy(old);
        }
    }

    fn destroy(&self, old: usize) {
        // SAFETY: a write; that no reader is near is what is tested.
        self.objects[old].with_mut(|object| unsafe { *object = 0xdead });
    }
}

fn enter(core: &DomainState, slot: &Slot) {
    slot.enter_slow(&core.gp.0, Location::caller());
}

/// A thread that reads in sections, with a slot that is registered before it starts.
fn spawn_reader(world: &Arc<World>, sections: usize, nested: bool) -> thread::JoinHandle<()> {
    let slot = std::ptr::from_ref(world.core.register(1, Sort::Ordinary)).expose_provenance();
    let world = Arc::clone(world);
    thread::spawn(move || {
        // SAFETY: the registry keeps the slot while `world` lives.
        let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
        for _ in 0..sections {
            enter(&world.core, slot);
            if nested {
                enter(&world.core, slot);
                slot.leave();
            }
            world.look();
            slot.leave();
        }
    })
}

fn model(f: impl Fn() + Send + Sync + 'static) {
    bounded(4, f);
}

/// For models of three threads that look again and again.
fn bounded(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000;
    builder.check(f);
}

fn reader_and_updater(sections: usize, nested: bool, grace_periods: usize) {
    model(move || {
        let world = World::new();
        let reader = spawn_reader(&world, sections, nested);
        for new in 1..=grace_periods {
            world.replace(new);
        }
        reader.join().unwrap();
    });
}

#[test]
fn one_section_one_grace_period() {
    reader_and_updater(1, false, 1);
}

#[test]
fn two_sections_one_grace_period() {
    reader_and_updater(2, false, 1);
}

/// The scan may meet the word of a second section and never that of the first one's end.
#[test]
fn a_section_hides_the_end_of_the_one_before() {
    model(|| {
        let world = World::new();
        let slot = world.core.register(1, Sort::Ordinary);
        let updater = thread::spawn({
            let world = Arc::clone(&world);
            move || world.replace(1)
        });
        for _ in 0..2 {
            enter(&world.core, slot);
            world.look();
            slot.leave();
        }
        updater.join().unwrap();
    });
}

#[test]
fn one_section_two_grace_periods() {
    reader_and_updater(1, false, 2);
}

#[test]
fn nested_sections() {
    reader_and_updater(1, true, 1);
}

#[test]
fn registration_during_a_grace_period() {
    model(|| {
        let world = World::new();
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let slot = world.core.register(1, Sort::Ordinary);
                enter(&world.core, slot);
                world.look();
                slot.leave();
                world.core.unregister(slot);
            }
        });
        world.replace(1);
        reader.join().unwrap();
        assert_eq!(world.core.readers(), 0);
    });
}

/// A thread that leaves and unregisters while it is being marked, and another one that gets its slot.
#[test]
fn a_slot_changes_hands_while_the_driver_marks_it() {
    model(|| {
        let world = World::new();
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || world.replace(1)
        });
        let second = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let slot = world.core.register(2, Sort::Ordinary);
                world.core.unregister(slot);
            }
        });
        let slot = world.core.register(1, Sort::Ordinary);
        enter(&world.core, slot);
        world.look();
        slot.leave();
        world.core.unregister(slot);
        driver.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn two_updaters_share_and_are_both_served() {
    model(|| {
        let world = World::new();
        let slot = world.core.register(1, Sort::Ordinary);
        let updater = thread::spawn({
            let world = Arc::clone(&world);
            move || world.replace(1)
        });
        enter(&world.core, slot);
        world.look();
        slot.leave();
        world.replace(2);
        updater.join().unwrap();
        assert!(world.core.sequence().ended() <= 2);
    });
}

/// A section that begins after the announcement of one grace period holds up the next one only; so
/// an updater that comes in between must get the next one.
#[test]
fn a_request_in_mid_grace_period() {
    model(|| {
        let world = World::new();
        let reader = spawn_reader(&world, 1, false);
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.core.request(Urgency::Normal);
                world.core.advance(STRANGER);
            }
        });
        world.replace(1);
        reader.join().unwrap();
        driver.join().unwrap();
    });
}

/// A waiter takes the driver's place, wherever it finds it without its locks; the superseded driver changes nothing any
/// more, and both are served.
fn one_takes_over(preemptions: usize, policy: Adaptive, sections: usize) {
    bounded(preemptions, move || {
        let world = World::with(Settings { policy: AnyPolicy::Adaptive(policy), budget: None });
        let reader = spawn_reader(&world, sections, false);
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || world.replace(1)
        });
        world.replace_impatiently(2, 1);
        driver.join().unwrap();
        reader.join().unwrap();
    });
}

/// Where it sleeps for a holdout, too.
const SLEEPY: Adaptive = Adaptive { looks_max: 0, looks_max_expedited: 0 };

#[test]
fn a_waiter_takes_a_drivers_place() {
    one_takes_over(3, SLEEPY, 1);
}

#[test]
fn qsbr_reader() {
    model(|| {
        let world = World::new();
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let slot = world.core.register(1, Sort::Qsbr);
                slot.online(&world.core.gp.0, Location::caller());
                world.look();
                slot.renew();
                world.look();
                slot.offline();
                world.core.unregister(slot);
            }
        });
        world.replace(1);
        reader.join().unwrap();
    });
}

#[test]
fn a_grace_period_driven_in_steps() {
    model(|| {
        let world = World::new();
        let reader = spawn_reader(&world, 1, false);
        let (old, cookie) = world.begin_to_replace(1);
        world.core.wait(cookie, Urgency::Normal, STRANGER);
        assert!(world.core.sequence().is_done(cookie));
        world.destroy(old);
        reader.join().unwrap();
    });
}

#[test]
fn everything_on_the_tick() {
    model(|| {
        let world = World::with(Settings { policy: AnyPolicy::Tick(Tick), budget: None });
        let reader = spawn_reader(&world, 2, false);
        world.replace(1);
        reader.join().unwrap();
    });
}

const RELAY: Settings = Settings { policy: AnyPolicy::Token(Token { looks_max: 1 }), budget: None };

/// A slot of a QSBR reader, for a thread that it is moved to.
fn qsbr(world: &Arc<World>, online: bool) -> &'static Slot {
    let slot = std::ptr::from_ref(world.core.register(1, Sort::Qsbr));
    // SAFETY: the registry keeps the slot while `world` lives, and every thread of a model has it.
    let slot = unsafe { &*slot };
    if online {
        slot.online(&world.core.gp.0, Location::caller());
    }
    slot
}

/// One reader hands the number on to another one, which comes online at any time.
#[test]
fn a_relay_of_two() {
    bounded(2, || {
        let world = World::with(RELAY);
        let (first, second) = (qsbr(&world, true), qsbr(&world, false));
        let readers = [first, second].map(|slot| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                if std::ptr::eq(slot, second) {
                    slot.online(&world.core.gp.0, Location::caller());
                    world.look();
                } else {
                    world.look();
                    slot.renew();
                }
            })
        });
        let (old, cookie) = world.begin_to_replace(1);
        world.core.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// A reader that is offline all the time is passed over: the one behind it holds nothing up for ever.
#[test]
fn a_relay_with_a_gap() {
    bounded(2, || {
        let world = World::with(RELAY);
        let (_gap, last) = (qsbr(&world, false), qsbr(&world, true));
        let done = Arc::new(AtomicUsize::new(0));
        let reader = thread::spawn({
            let (world, done) = (Arc::clone(&world), Arc::clone(&done));
            move || {
                world.look();
                while done.load(Relaxed) == 0 {
                    last.renew();
                    thread::yield_now();
                }
            }
        });
        world.replace(1);
        done.store(1, Relaxed);
        reader.join().unwrap();
    });
}

/// The first hands the number on and goes offline, at any time; the second gets it all the same.
#[test]
fn a_relay_whose_first_goes_away() {
    model(|| {
        let world = World::with(RELAY);
        let (first, last) = (qsbr(&world, true), qsbr(&world, true));
        let away = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.look();
                first.renew();
                world.look();
                first.offline();
            }
        });
        let (old, cookie) = world.begin_to_replace(1);
        last.renew();
        world.core.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        away.join().unwrap();
        last.renew();
        world.core.advance_at_tick(STRANGER);
        last.renew();
        world.core.advance_at_tick(STRANGER);
        assert!(world.core.sequence().is_done(cookie));
    });
}

/// A reader whose only quiescent states are those at which it comes online: the driver need not meet it
/// offline.
#[test]
fn a_relay_of_one_that_only_comes_and_goes() {
    model(|| {
        let world = World::with(RELAY);
        let slot = qsbr(&world, true);
        let (old, cookie) = world.begin_to_replace(1);
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.look();
                slot.offline();
                slot.online(&world.core.gp.0, Location::caller());
                world.look();
            }
        });
        world.core.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        reader.join().unwrap();
        world.core.advance_at_tick(STRANGER);
        assert!(world.core.sequence().is_done(cookie));
    });
}

/// In the middle of a grace period the middle one of three unregisters, and its slot changes hands.
#[test]
fn a_relay_that_changes() {
    model(|| {
        let world = World::with(RELAY);
        let [first, middle, last] = [0, 1, 2].map(|_| qsbr(&world, true));
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.look();
                first.offline();
            }
        });
        let renewer = thread::spawn(move || {
            last.renew();
        });
        let (old, cookie) = world.begin_to_replace(1);
        middle.offline();
        world.core.unregister(middle);
        let newcomer = qsbr(&world, true);
        assert!(std::ptr::eq(newcomer, middle));
        newcomer.renew();
        newcomer.offline();
        world.core.advance_at_tick(STRANGER);
        world.destroy_if_done(old, cookie);
        reader.join().unwrap();
        renewer.join().unwrap();
    });
}

thread_local! {
    /// How many callbacks of a queue model have run. Loom runs all of a model on one thread.
    static RUN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A callback that notes its place in the order. `pointer` says whether it may stand without its kind.
const fn numbered(pointer: bool) -> Kind {
    Kind {
        words: 1,
        pointer,
        bytes: Some(0),
        bytes_of: |_| 0,
        run: |payload, count, progress| {
            let index = progress.begin(count).unwrap();
            // SAFETY: so many stand side by side.
            let payload = unsafe { payload.add(index) };
            // SAFETY: what `add_numbered` wrote.
            let number = unsafe { payload.cast::<*const ()>().read() };
            assert_eq!(RUN.replace(RUN.get() + 1), number.addr() / 2, "out of order");
        },
    }
}

/// Some that need their kind, so that pages are turned early, and some that do not.
static NUMBERED: [Kind; 2] = [numbered(false), numbered(true)];

fn add_numbered(queue: &Queue, number: usize) {
    let payload = std::ptr::without_provenance::<()>(number * 2);
    // SAFETY: each queue has one thread that adds; a word with a lowest bit of 0.
    unsafe { queue.add(&NUMBERED[number / 3 % 2], payload, 0) };
}

/// A callback that destroys an object.
static DESTROY: Kind = Kind {
    words: 1,
    pointer: true,
    bytes: Some(0),
    bytes_of: |_| 0,
    run: |payload, _, progress| {
        progress.begin(1);
        // SAFETY: what `retire` wrote: an object of a world that outlives its callbacks.
        let object = unsafe { &*payload.cast::<*const UnsafeCell<u32>>().read() };
        // SAFETY: a write; that no reader is near is what is tested.
        object.with_mut(|object| unsafe { *object = 0xdead });
    },
};

/// Unlinks the current object, and has it destroyed.
fn retire(world: &World, queue: &Queue, new: usize) {
    let old = world.current.swap(new, AcqRel);
    let object = std::ptr::from_ref(&world.objects[old]);
    // SAFETY: each queue has one thread that adds. It is run once, before the end of the model.
    unsafe { queue.add(&DESTROY, object, 0) };
}

/// Loom's complaint about an access in a callback ends there, as any panic does.
fn nothing_panicked(core: &DomainState) {
    assert_eq!(core.queues.panicked.load(Relaxed), 0);
}

fn two_threads_run_in_order(before: usize, after: usize) {
    bounded(2, move || {
        RUN.set(0);
        let core = DomainState::new(Start::ZERO, SETTINGS);
        let queue = Queue::new(&core, 1, Contents::Objects);
        let shared = Arc::new((core, queue));
        (0..before).for_each(|number| add_numbered(&shared.1, number));
        let runner = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.close(&shared.0, Urgency::Normal);
                shared.0.advance(STRANGER);
                shared.1.run_some(&shared.0, 2, 32);
            }
        });
        (before..before + after).for_each(|number| add_numbered(&shared.1, number));
        shared.1.drain(&shared.0, || STRANGER, 1);
        nothing_panicked(&shared.0);
        assert_eq!(RUN.get(), before + after);
        runner.join().unwrap();
        assert!(shared.1.is_empty());
    });
}

/// While one thread closes and runs, the other adds, turns a page, and runs the rest.
#[test]
fn two_threads_run_a_queue_in_order() {
    two_threads_run_in_order(2, 1);
}

/// The reader gives pages back while the writer needs new ones.
#[test]
fn pages_go_round() {
    two_threads_run_in_order(5, 3);
}

#[test]
fn callbacks_wait_for_readers() {
    model(|| {
        let world = World::new();
        let reader = spawn_reader(&world, 1, false);
        let queue = Queue::new(&world.core, 2, Contents::Objects);
        retire(&world, &queue, 1);
        // As an updater does: a step, and what is ready. Then all of it.
        queue.close(&world.core, Urgency::Normal);
        world.core.advance(STRANGER);
        queue.run_some(&world.core, 2, 32);
        queue.drain(&world.core, || STRANGER, 2);
        nothing_panicked(&world.core);
        reader.join().unwrap();
    });
}

/// What one thread adds another one closes and runs, beside a reader that has driven a grace period just
/// before its section.
#[test]
fn what_another_thread_closes_waits_for_readers() {
    bounded(3, || {
        let world = World::new();
        let queue = Arc::new(Queue::new(&world.core, 2, Contents::Objects));
        let slot = world.core.register(3, Sort::Ordinary);
        let slot = std::ptr::from_ref(slot).addr();
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.core.advance(Me { quiescent_slots: 1 });
                // SAFETY: the world keeps its slots, and this one is handed to this thread.
                let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                enter(&world.core, slot);
                world.look();
                slot.leave();
            }
        });
        let adder = thread::spawn({
            let (world, queue) = (Arc::clone(&world), Arc::clone(&queue));
            move || retire(&world, &queue, 1)
        });
        queue.close(&world.core, Urgency::Normal);
        world.core.advance(STRANGER);
        queue.run_some(&world.core, 1, 32);
        adder.join().unwrap();
        queue.drain(&world.core, || STRANGER, 1);
        nothing_panicked(&world.core);
        reader.join().unwrap();
    });
}

/// A reader that follows liburcu's protocol, whoever compiled it: see `foreign`. It wakes the driver if it finds that
/// it sleeps, and looks at nothing else.
fn foreign_section(world: &World, words: &Words, slot: &Slot) {
    slot.word().store(words.ctr.load(Acquire), Release);
    fence::light(&slot.fence);
    world.look();
    fence::light(&slot.fence);
    slot.word().store(0, Release);
    fence::light(&slot.fence);
    if words.futex.load(Relaxed) == u32::MAX {
        words.futex.store(0, Relaxed);
        futex::wake_shared(&words.futex);
    }
}

fn beside_foreign_readers(readers: usize, sections: usize) {
    bounded(3, move || {
        let mut core = DomainState::new(Start::ZERO, SETTINGS);
        core.grace_periods.foreign = Some(Links::new(Readers::Light));
        let world = World::of(core);
        // Leaked, as the words of a program are for ever.
        let words: &'static Words = Box::leak(Box::new(Words {
            ctr: AtomicU64::new(grace::word::entered(Start::ZERO.number)),
            futex: AtomicU32::new(0),
        }));
        let nothing = Surroundings { begin: || 0, end: |_| () };
        world.core.foreign.as_ref().unwrap().attach(words, nothing);
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                let slot = world.core.register(1, Sort::Foreign(Readers::Light));
                let slot = std::ptr::from_ref(slot).expose_provenance();
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    // SAFETY: the registry keeps the slot while `world` lives.
                    let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                    for _ in 0..sections {
                        foreign_section(&world, words, slot);
                    }
                })
            })
            .collect();
        world.replace(1);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(words.futex.load(Relaxed), 0, "readers would go on with system calls");
    });
}

/// The driver sleeps until a foreign reader has left, and is not left asleep.
#[test]
fn a_driver_sleeps_beside_a_foreign_reader() {
    beside_foreign_readers(1, 2);
}

/// Whoever leaves wakes it, also one that it does not wait for; it then looks again.
#[test]
fn a_driver_sleeps_beside_two_foreign_readers() {
    beside_foreign_readers(2, 1);
}

/// Whoever adds while the worker leaves finds out that it has to announce, or the worker sees what was added.
#[test]
fn the_worker_leaves_nothing_behind() {
    model(|| {
        let core = Arc::new(DomainState::new(Start::ZERO, SETTINGS));
        core.queues.announced.store(true, Relaxed);
        let queue = core.queues.add(&core, 1, Contents::Closures);
        let adder = thread::spawn({
            let core = Arc::clone(&core);
            move || {
                add_numbered(&queue, 0);
                core.queues.announced.load(Relaxed)
            }
        });
        let wants = core.queues.leave();
        let announced = adder.join().unwrap();
        assert!(wants != Wants::Nothing || !announced, "a callback that nobody looks after");
        RUN.set(0);
        core.queues.run_all(&core);
        assert_eq!(RUN.get(), 1);
    });
}

/// A thread adds a last callback and ends; its queue is adopted with all that is in it.
#[test]
fn an_orphan_is_forgotten_when_it_is_empty() {
    model(|| {
        RUN.set(0);
        let core = Arc::new(DomainState::new(Start::ZERO, SETTINGS));
        let queue = core.queues.add(&core, 1, Contents::Closures);
        let adder = thread::spawn({
            let core = Arc::clone(&core);
            move || {
                add_numbered(&queue, 0);
                queue.mark_orphan(&core);
            }
        });
        core.queues.forget_orphans(&core);
        adder.join().unwrap();
        assert_eq!(core.queues.counts().queued, 1);
        core.queues.run_all(&core);
        assert_eq!(RUN.get(), 1, "forgotten with a callback in it");
        core.queues.forget_orphans(&core);
        assert_eq!(core.queues.len(), 0);
    });
}

/// A thread ends, and what it has queued moves on while a barrier waits for it: the barrier finds it there. What
/// comes after it to the same queue comes after it.
#[test]
fn a_barrier_finds_what_was_left_behind() {
    bounded(3, || {
        RUN.set(0);
        let core = Arc::new(DomainState::new(Start::ZERO, SETTINGS));
        let queue = core.queues.add(&core, 1, Contents::Closures);
        (0..2).for_each(|number| add_numbered(&queue, number));
        let ending = thread::spawn({
            let core = Arc::clone(&core);
            move || {
                queue.mark_orphan(&core);
                core.queues.leave_behind(&core, &queue);
            }
        });
        core.queues.drain(&core, || STRANGER, 2);
        nothing_panicked(&core);
        assert_eq!(RUN.get(), 2, "the barrier is over");
        ending.join().unwrap();
        core.queues.forget_orphans(&core);
        assert_eq!((core.queues.len(), core.queues.counts().queued), (0, 2));
    });
}

/// A thread that ends takes nothing out of the worker's sight when it leaves the domain alone.
#[test]
fn the_worker_sees_what_moves() {
    bounded(3, || {
        let core = Arc::new(DomainState::new(Start::ZERO, SETTINGS));
        core.queues.announced.store(true, Relaxed);
        // The shared queue is empty, and looked at before the other one.
        core.queues.with_shared(&core, Contents::Closures, |_| ());
        let queue = core.queues.add(&core, 1, Contents::Closures);
        add_numbered(&queue, 0);
        let ending = thread::spawn({
            let core = Arc::clone(&core);
            move || {
                queue.mark_orphan(&core);
                core.queues.leave_behind(&core, &queue);
            }
        });
        assert_eq!(core.queues.leave(), Wants::Company);
        assert_eq!(core.queues.counts().queued, 1);
        ending.join().unwrap();
        RUN.set(0);
        core.queues.run_all(&core);
    });
}

/// A lane's inbox: two threads push what they have written, one of them twice; the one who takes it sleeps where there is
/// nothing. All of it is taken, what was written is seen, and each one's come in order.
#[test]
fn an_inbox_wakes_whoever_sleeps() {
    bounded(2, || {
        let shared = Arc::new((Inbox::new(), [const { () }; 3].map(|()| UnsafeCell::new(0_u32))));
        let links: [Box<Link>; 3] = std::array::from_fn(|_| Box::new(Link::new()));
        let links = links.map(|link| Box::into_raw(link).expose_provenance());
        let push = |numbers: &'static [usize]| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for &number in numbers {
                    // SAFETY: a write; that whoever takes comes after it is what is tested.
                    shared.1[number].with_mut(|cell| unsafe { *cell = 7 });
                    let link = std::ptr::with_exposed_provenance_mut(links[number]);
                    // SAFETY: a box that is freed at the end; each is pushed once.
                    if unsafe { shared.0.push(link, false) } == Found::Asleep {
                        shared.0.ring();
                    }
                }
            })
        };
        assert!(shared.0.take().is_null());
        let pushers = [push(&[0, 1]), push(&[2])];
        let (mut chain, mut taken) = (Chain::EMPTY, Vec::new());
        while taken.len() < 3 {
            let heard = shared.0.heard();
            // SAFETY: taken just now.
            unsafe { chain.append(shared.0.take()) }.unwrap();
            if chain.is_empty() {
                shared.0.sleep(heard, None);
            }
            while let Some((link, _)) = chain.pop() {
                let number = links.iter().position(|known| *known == link.addr()).unwrap();
                // SAFETY: a read; that it comes after the write is what is tested.
                shared.1[number].with(|cell| assert_eq!(unsafe { *cell }, 7));
                taken.push(number);
            }
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        taken.retain(|number| *number != 2);
        assert_eq!(taken, [0, 1]);
        for link in links {
            // SAFETY: from a box, and in no chain any more.
            drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Link>(link)) });
        }
    });
}

/// One thread unlinks an object and takes the cookie without a lock; others make grace periods. Once one of them has
/// ended that the cookie stands for, the object is destroyed.
fn a_cookie_without_the_lock(reads: bool, alone: bool) {
    bounded(3, move || {
        let world = World::new();
        let slot = std::ptr::from_ref(world.core.register(1, Sort::Ordinary)).expose_provenance();
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                // SAFETY: the registry keeps the slot while `world` lives.
                let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                let me = Me { quiescent_slots: usize::from(alone) };
                world.core.synchronize(Urgency::Normal, me);
                if alone {
                    enter(&world.core, slot);
                    world.look();
                    slot.leave();
                } else {
                    world.core.synchronize(Urgency::Normal, me);
                }
            }
        });
        let reader = reads.then(|| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                // SAFETY: as above.
                let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
                enter(&world.core, slot);
                world.look();
                slot.leave();
            })
        });
        let old = world.current.swap(1, AcqRel);
        let cookie = world.core.snapshot_after_unlinking();
        world.destroy_if_done(old, cookie);
        driver.join().unwrap();
        world.destroy_if_done(old, cookie);
        reader.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// The grace periods are another thread's.
#[test]
fn a_cookie_without_the_lock_beside_a_reader() {
    a_cookie_without_the_lock(true, false);
}

/// The driver is the only reader, and so executes no heavy fence.
#[test]
fn a_cookie_without_the_lock_beside_a_driver_that_reads() {
    a_cookie_without_the_lock(false, true);
}

/// Notes that its task has been woken.
#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A task that waits until a callback has been run finds that it has, or is woken.
#[test]
fn a_task_that_waits_for_callbacks_is_not_left_asleep() {
    model(|| {
        RUN.set(0);
        let core = Arc::new(DomainState::new(Start::ZERO, SETTINGS));
        let queue = core.queues.add(&core, 1, Contents::Objects);
        add_numbered(&queue, 0);
        queue.close(&core, Urgency::Normal);
        core.advance(STRANGER);
        let runner = thread::spawn({
            let (core, queue) = (Arc::clone(&core), queue.clone());
            move || {
                RUN.set(0);
                assert_eq!(queue.run_some(&core, 1, 1), 1);
            }
        });
        let flag = std::sync::Arc::new(Flag::default());
        let wanted = Wanted { cookie: None, room: true };
        let number = core.tell(wanted, None, &flag.clone().into());
        let has_run = queue.is_empty();
        runner.join().unwrap();
        assert!(has_run || flag.0.load(Relaxed), "left asleep");
        core.tell_no_more(number.unwrap());
        assert_eq!(std::sync::Arc::strong_count(&flag), 1);
    });
}

/// A task that waits for a grace period, which another thread drives.
#[test]
fn a_task_that_waits_for_a_grace_period_is_not_left_asleep() {
    model(|| {
        let world = World::new();
        let reader = spawn_reader(&world, 1, false);
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || world.core.synchronize(Urgency::Normal, STRANGER)
        });
        let old = world.current.swap(1, AcqRel);
        let cookie = world.core.request(Urgency::Normal);
        let flag = std::sync::Arc::new(Flag::default());
        let wanted = Wanted { cookie: Some(cookie), room: false };
        let number = world.core.tell(wanted, None, &flag.clone().into());
        driver.join().unwrap();
        if number.is_none() {
            world.destroy(old);
        } else {
            world.core.wait(cookie, Urgency::Normal, STRANGER);
            assert!(flag.0.load(Relaxed), "left asleep");
        }
        reader.join().unwrap();
    });
}

/// Removes one step at a time, in a process of its own, and expects some model to fail.
#[cfg(feature = "chaos")]
#[test]
fn mutants() {
    use crate::chaos::Mutant;
    let caught_here = [
        Mutant::NoWait,
        Mutant::SkipLastReader,
        Mutant::NoRegistration,
        Mutant::NoWakeUp,
        Mutant::NoSecondLook,
        Mutant::LostMark,
        Mutant::NestedUnlock,
        Mutant::EarlyCookie,
        Mutant::EarlyCallbacks,
        Mutant::AlwaysAlone,
        Mutant::NoSharing,
    ];
    let caught_here: Vec<Mutant> = caught_here
        .into_iter()
        .chain(Mutant::ORDERINGS)
        .chain(Mutant::RELAY)
        .chain(Mutant::FOREIGN)
        .chain(Mutant::QUEUES)
        .chain(Mutant::INBOX)
        .chain(Mutant::UNLINKED)
        .chain([Mutant::SupersededReports, Mutant::SupersededMarks, Mutant::MarksLeft])
        .chain(Mutant::SLEEPERS)
        .collect();
    if let Ok(name) = std::env::var("QUIESCENCE_LOOM_MUTANT") {
        let mutant = caught_here.into_iter().find(|&mutant| format!("{mutant:?}") == name);
        let mutant = mutant.expect("one of the list");
        crate::chaos::remove_step(mutant);
        if Mutant::RELAY.contains(&mutant) {
            a_relay_that_changes();
            a_relay_with_a_gap();
            a_relay_of_two();
            a_relay_of_one_that_only_comes_and_goes();
            return;
        }
        if Mutant::FOREIGN.contains(&mutant) {
            a_driver_sleeps_beside_a_foreign_reader();
            return;
        }
        if Mutant::HANDOVER.contains(&mutant) {
            a_waiter_takes_a_drivers_place();
            return;
        }
        if Mutant::INBOX.contains(&mutant) {
            an_inbox_wakes_whoever_sleeps();
            return;
        }
        if Mutant::SLEEPERS.contains(&mutant) {
            a_task_that_waits_for_callbacks_is_not_left_asleep();
            a_task_that_waits_for_a_grace_period_is_not_left_asleep();
            return;
        }
        if Mutant::UNLINKED.contains(&mutant) {
            a_cookie_without_the_lock_beside_a_driver_that_reads();
            a_cookie_without_the_lock_beside_a_reader();
            return;
        }
        if Mutant::QUEUES.contains(&mutant) {
            the_worker_leaves_nothing_behind();
            an_orphan_is_forgotten_when_it_is_empty();
            a_barrier_finds_what_was_left_behind();
            the_worker_sees_what_moves();
            two_threads_run_a_queue_in_order();
            what_another_thread_closes_waits_for_readers();
            return;
        }
        one_section_one_grace_period();
        a_section_hides_the_end_of_the_one_before();
        nested_sections();
        two_updaters_share_and_are_both_served();
        callbacks_wait_for_readers();
        a_request_in_mid_grace_period();
        a_slot_changes_hands_while_the_driver_marks_it();
        return;
    }
    for mutant in caught_here {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["loom_tests::mutants", "--exact", "--nocapture"])
            .env("QUIESCENCE_LOOM_MUTANT", format!("{mutant:?}"))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "no model noticed {mutant:?}");
    }
}
