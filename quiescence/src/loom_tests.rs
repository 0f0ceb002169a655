//! The real code under loom: every interleaving (up to a bound on preemptions) of readers, drivers,
//! sleepers, registrations and callback queues, with membarrier modelled by fence cells.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p quiescence --lib loom_tests`; the other unit
//! tests compile under loom and would fail, since they meet its types outside of a model. And
//! `cargo xtask mutants --by loom` removes one step at a time: its models must fail then.

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
use crate::gp::grace_periods::sleepers::Wanted;
use crate::gp::links::{Links, Readers, Surroundings, Words};
use crate::gp::slot::{ReaderKind, Slot};
use crate::os::sync::{AtomicU32, AtomicU64};
use crate::os::{fence, futex};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domain_state::queues::drain_one;
use crate::reclaim::llist::{Chain, Found, Link, Llist};
use crate::reclaim::stream::CallbackType;
use crate::reclaim::thread_queue::{Contents, OwnQueue, Queue, Wants};

mod threads;
mod relay;
mod callbacks;
mod liburcu;
mod borrows;
mod hazard;
mod llist;
mod cookies;
mod changes;
mod sleepers;

/// Loom is to see the sleep, not two hundred looks.
const SETTINGS: Settings = Settings {
    policy: AnyPolicy::Adaptive(Adaptive { looks_max: 1, looks_max_expedited: 2 }),
    budget: None,
    readers_fence: false,
};

/// The same of another policy.
fn settings(policy: AnyPolicy) -> Settings {
    Settings { policy, ..SETTINGS }
}

/// The calling thread has no slot of its own.
const STRANGER: Me = Me::NOBODY;

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

    /// Looks at the object in a section.
    fn section(&self, slot: &Slot) {
        enter(&self.core, slot);
        self.look();
        slot.leave();
    }

    /// Replaces the object and destroys the old one after a grace period.
    fn replace(&self, new: usize) {
        let old = self.current.swap(new, AcqRel);
        assert!(self.core.grace_periods.synchronize(Urgency::Normal, STRANGER));
        self.destroy(old);
    }

    /// The same, by a thread that takes the place of a driver at work, up to so many times.
    fn replace_impatiently(&self, new: usize, take_overs: u32) {
        let old = self.current.swap(new, AcqRel);
        self.core.grace_periods.synchronize_impatiently(STRANGER, take_overs);
        self.destroy(old);
    }

    /// The same, by a QSBR reader that goes offline only where it has to wait.
    fn replace_alone(&self, new: usize, slot: &Slot) {
        let old = self.current.swap(new, AcqRel);
        // SAFETY: it has one, and keeps nothing that it has loaded.
        if !unsafe { self.core.grace_periods.synchronize_alone(1) } {
            slot.offline();
            assert!(self.core.grace_periods.synchronize(Urgency::Normal, STRANGER));
            slot.online(&self.core.grace_periods.gp_words.gp, Location::caller());
        }
        self.destroy(old);
    }

    /// Replaces the object and goes as far with the grace period as is possible without waiting.
    fn begin_to_replace(&self, new: usize) -> (usize, Cookie) {
        let old = self.current.swap(new, AcqRel);
        let cookie = self.core.grace_periods.lock().request(Urgency::Normal);
        self.core.grace_periods.advance(STRANGER);
        (old, cookie)
    }

    /// Goes on with it as far as a tick does.
    fn go_on_to_replace(&self, old: usize, cookie: Cookie) {
        self.core.grace_periods.advance_at(STRANGER, true);
        self.destroy_if_done(old, cookie);
    }

    fn destroy_if_done(&self, old: usize, cookie: Cookie) {
        if self.core.grace_periods.sequence().is_done(cookie) {
            self.destroy(old);
        }
    }

    fn destroy(&self, old: usize) {
        // SAFETY: a write; that no reader is near is what is tested.
        self.objects[old].with_mut(|object| unsafe { *object = 0xdead });
    }
}

fn enter(core: &DomainState, slot: &Slot) {
    slot.enter_slow(&core.grace_periods.gp_words.gp, Location::caller());
}

/// A slot for a thread that is to have it.
fn registered(world: &World, owner: usize, kind: ReaderKind) -> &'static Slot {
    let slot = std::ptr::from_ref(world.core.grace_periods.register(owner, kind));
    // SAFETY: the registry keeps the slot while `world` lives, which the thread has as well.
    unsafe { &*slot }
}

/// What a thread reads in sections, with a slot that is registered before it starts.
fn reads(world: &World, sections: usize, nested: bool) -> impl FnOnce(&World) + use<> {
    let slot = registered(world, 1, ReaderKind::Ordinary);
    move |world| {
        for _ in 0..sections {
            enter(&world.core, slot);
            if nested {
                enter(&world.core, slot);
                slot.leave();
            }
            world.look();
            slot.leave();
        }
    }
}

/// Beside a section of another thread.
fn beside_a_section(world: &Arc<World>, here: impl FnOnce(&World)) {
    beside(world, reads(world, 1, false), here);
}

/// Runs `f` on a thread of the model.
pub(crate) fn spawn<W: 'static, R: 'static>(
    world: &Arc<W>,
    f: impl FnOnce(&W) -> R + 'static,
) -> thread::JoinHandle<R> {
    let world = Arc::clone(world);
    thread::spawn(move || f(&world))
}

/// What another thread of the model does, and what this one does beside it.
pub(crate) fn beside<W: 'static, T: 'static, R>(
    world: &Arc<W>,
    there: impl FnOnce(&W) -> T + 'static,
    here: impl FnOnce(&W) -> R,
) -> (T, R) {
    let other = spawn(world, there);
    let here = here(world);
    (other.join().unwrap(), here)
}

/// What two other threads of the model do, and what this one does beside them.
pub(crate) fn beside_two<W: 'static, A: 'static, B: 'static, R>(
    world: &Arc<W>,
    first: impl FnOnce(&W) -> A + 'static,
    second: impl FnOnce(&W) -> B + 'static,
    here: impl FnOnce(&W) -> R,
) -> (A, B, R) {
    let first = spawn(world, first);
    let (second, here) = beside(world, second, here);
    (first.join().unwrap(), second, here)
}

/// Every interleaving with so many preemptions, each in a world of its own.
pub(crate) fn model_of<W: 'static>(
    preemptions: usize,
    new: impl Fn() -> W + Send + Sync + 'static,
    f: impl Fn(&W) + Send + Sync + 'static,
) {
    bounded(preemptions, move || f(&new()));
}

/// Every interleaving with so many preemptions: fewer for models of three threads that scan again
/// and again.
pub(crate) fn bounded(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000;
    builder.check(f);
}
