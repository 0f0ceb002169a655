//! Hooks for tests: points where a race could live, and steps that can be removed.
//!
//! In the library all of this is empty and costs nothing. A build with
//! `RUSTFLAGS="--cfg quiescence_mutants"`, in a target directory of its own as for loom, has the
//! hooks: there torture installs a function that yields or pauses at the [`Point`]s; and a process
//! that is started with the name of a [`Mutant`] in the environment variable
//! `QUIESCENCE_MUTANT` runs without that step. [`mutants`] has all of them, and what must notice;
//! `cargo xtask mutants` looks whether it does. In such a build the memory of retired objects is
//! given back late (`free`), so that a reader that a fault lets see one finds what the object's
//! drop left, and can count the fault.

mod catchers;
pub mod mutants;

#[cfg(quiescence_mutants)]
mod caught;

pub use catchers::{Catcher, Place};
pub use mutants::Mutant;

/// Names the step that is removed in a process, if it has the hooks.
pub const SWITCH: &str = "QUIESCENCE_MUTANT";

/// What a command has to be started with, in place of `cargo`, to have the hooks.
pub const BUILD: &str =
    "RUSTFLAGS=\"--cfg quiescence_mutants\" CARGO_TARGET_DIR=target/mutants cargo";

/// Whether this build has the hooks.
pub const HAS_HOOKS: bool = cfg!(quiescence_mutants);

/// A place in the code where a delay makes a race likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// A reader has loaded `gp.ctr` and not yet stored its word.
    EnterBeforeStore,
    /// A reader has stored its word; its section begins.
    Entered,
    /// A reader is about to end its section.
    LeaveBeforeStore,
    /// A reader has ended its section and not yet looked whether somebody waits.
    Left,
    /// An updater has unlinked an object and not yet asked for a grace period.
    Unlinked,
    /// The driver has fenced and not yet announced the number.
    Fenced,
    /// The driver has announced the number and not yet scanned.
    Announced,
    /// The driver has seen holdouts and not yet marked them.
    BeforeMark,
    /// The driver has marked the holdouts and not yet looked again.
    Marked,
    /// A batch of callbacks has been closed and not yet got its cookie.
    BatchClosed,
    /// Callbacks are about to run.
    BeforeCallbacks,
    /// A callback has been written, and the worker has perhaps to be told.
    Added,
    /// Room has been charged, and is perhaps to be given back.
    Charged,
    /// A thread that ends has left its queue to others, and not yet looked what is in it.
    Orphaned,
    /// The worker has said that it leaves a domain alone, and not yet looked a last time.
    Leaving,
    /// A reader of a sleepable domain knows its index and has not yet counted itself in.
    IndexChosen,
    /// The unlock counts of an index have been summed, the lock counts not yet.
    Summed,
    /// The words of the CPUs have been emptied, and what was in them is not yet in the one word.
    Gathered,
    /// A thread is about to unregister.
    BeforeUnregister,
    /// A thread has unregistered, so that its slot is free, and not yet looked whether somebody
    /// waits.
    Unregistered,
    /// The thread that ends a table holds its worker off, and has not yet looked whether there are
    /// nodes.
    TableHeld,
    /// A table's worker finds that it is held off; or who holds it off, that it is at the table's
    /// list.
    TableAwaited,
    /// A table's worker looks at the table's list, or is about to free buckets.
    TableUsed,
    /// A reader of a hash map has matched a tag and not yet compared the key.
    SlotFound,
    /// A tag is stored, and the entry is not there yet.
    SlotTagged,
    /// An updater has locked a bucket.
    BucketLocked,
    /// A reader has missed in a node and not yet looked whether it is still the bucket's.
    NodeMissed,
    /// The entries of a bucket have been copied, and the bucket does not say so yet.
    BucketMoving,
    /// An updater of an exact cell has marked a borrow as paid.
    BorrowPaid,
}

#[cfg(quiescence_mutants)]
mod imp {
    use super::{Mutant, Point};
    use std::alloc::Layout;
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::{Mutex, OnceLock, PoisonError};

    static HOOK: OnceLock<fn(Point)> = OnceLock::new();

    /// The place of the removed step in the registry; or one of the following.
    static MUTANT: AtomicU32 = AtomicU32::new(NOT_ASKED);
    const NOT_ASKED: u32 = u32::MAX;
    const NO_STEP: u32 = u32::MAX - 1;

    /// Has `hook` called at every point, from now on.
    pub fn install(hook: fn(Point)) {
        let _ = HOOK.set(hook);
    }

    /// Removes the step for the rest of the process. Returns `false` if another one is removed
    /// already.
    pub fn remove_step(mutant: Mutant) -> bool {
        if let Some(removed) = removed_step() {
            return removed == mutant;
        }
        // Relaxed: a number, which nothing goes with.
        MUTANT.compare_exchange(NO_STEP, mutant as u32, Relaxed, Relaxed).is_ok()
    }

    /// The step that is removed in this process.
    ///
    /// # Panics
    /// If the environment names none of the registry.
    #[inline]
    pub fn removed_step() -> Option<Mutant> {
        // Relaxed: as above.
        match MUTANT.load(Relaxed) {
            NOT_ASKED => asked(),
            NO_STEP => None,
            number => Some(Mutant::ALL[number as usize]),
        }
    }

    /// Asks the environment.
    #[cold]
    fn asked() -> Option<Mutant> {
        let named = std::env::var(super::SWITCH).ok().map(|name| {
            Mutant::by_name(&name).unwrap_or_else(|| panic!("{}: no step {name:?}", super::SWITCH))
        });
        let number = named.map_or(NO_STEP, |mutant| mutant as u32);
        // Relaxed: as above. Whichever thread asks, the environment says the same.
        let _ = MUTANT.compare_exchange(NOT_ASKED, number, Relaxed, Relaxed);
        removed_step()
    }

    #[inline]
    pub(crate) fn point(point: Point) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }

    /// Whether this step is removed.
    #[inline]
    pub fn mutant(mutant: Mutant) -> bool {
        removed_step() == Some(mutant)
    }

    /// Objects that have been dropped and whose memory is kept.
    const QUARANTINE: usize = 1 << 16;

    /// Memory in quarantine, oldest first.
    static QUARANTINED: Mutex<VecDeque<Memory>> = Mutex::new(VecDeque::new());

    struct Memory {
        start: *mut u8,
        layout: Layout,
    }

    // SAFETY: memory that only the quarantine owns.
    unsafe impl Send for Memory {}

    /// Calls `f`, which forks, while the quarantine does not change: a child process might find its
    /// lock held for ever. Callbacks take that lock, and hold no other one then.
    pub fn with_quarantine_held<R>(f: impl FnOnce() -> R) -> R {
        let _held = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
        f()
    }

    /// Drops an object, and gives its memory back only after many others'.
    pub(crate) fn free<T: ?Sized>(object: Box<T>) {
        let layout = Layout::for_value(&*object);
        let object = Box::into_raw(object);
        // SAFETY: from a box, and used as an object no more.
        unsafe { std::ptr::drop_in_place(object) };
        if layout.size() == 0 {
            return; // a box of it has no memory
        }
        let mut quarantined = QUARANTINED.lock().unwrap_or_else(PoisonError::into_inner);
        quarantined.push_back(Memory { start: object.cast(), layout });
        if quarantined.len() > QUARANTINE
            && let Some(oldest) = quarantined.pop_front()
        {
            drop(quarantined);
            // SAFETY: from a box of this layout, whose object has been dropped above.
            unsafe { std::alloc::dealloc(oldest.start, oldest.layout) };
        }
    }
}

#[cfg(quiescence_mutants)]
pub use caught::each_is_caught;
#[cfg(quiescence_mutants)]
pub use imp::{install, mutant, remove_step, removed_step, with_quarantine_held};

#[cfg(quiescence_mutants)]
pub(crate) use imp::{free, point};

#[cfg(not(quiescence_mutants))]
#[inline(always)]
pub(crate) const fn point(_point: Point) {}

/// Whether this step is removed: never, without the hooks.
#[cfg(not(quiescence_mutants))]
#[inline(always)]
pub const fn mutant(_mutant: Mutant) -> bool {
    false
}

#[cfg(not(quiescence_mutants))]
#[inline(always)]
pub(crate) fn free<T: ?Sized>(object: Box<T>) {
    drop(object);
}

/// `Acquire`, unless that is what is removed.
#[inline(always)]
pub(crate) fn acquire_unless(removed: Mutant) -> std::sync::atomic::Ordering {
    use std::sync::atomic::Ordering::{Acquire, Relaxed};
    if mutant(removed) { Relaxed } else { Acquire }
}

/// `Release`, unless that is what is removed.
#[inline(always)]
pub(crate) fn release_unless(removed: Mutant) -> std::sync::atomic::Ordering {
    use std::sync::atomic::Ordering::{Relaxed, Release};
    if mutant(removed) { Relaxed } else { Release }
}
