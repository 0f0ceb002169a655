//! The callbacks that a thread is running: their domain, how deep they are nested, and the room
//! that they make.

use std::cell::Cell;
use std::ptr;

use grace::limit::Amount;

use crate::gp::grace_periods::GracePeriods;
use crate::gp::wake::Surroundings;
use crate::reclaim::stream::Progress;

/// The room that a domain's callbacks make on this thread while they are run: callbacks that they
/// queue themselves may use it [TQ-3].
#[derive(Debug, Default)]
pub(crate) struct RoomMade {
    amount: Cell<Amount>,
    /// How much of it has been used.
    spent: Cell<Amount>,
    /// Of the run in progress: how many callbacks have begun, how many of those are in `amount`
    /// already, and how many bytes each was charged.
    pub(crate) progress: Progress,
    counted: Cell<u64>,
    bytes_each: Cell<u64>,
}

impl RoomMade {
    pub(crate) fn begin_run(&self, bytes_each: u64) {
        self.amount(); // counts the rest of the run before
        self.progress.reset();
        self.counted.set(0);
        self.bytes_each.set(bytes_each);
    }

    /// The room that there is now.
    pub(crate) fn amount(&self) -> Amount {
        let begun = self.progress.begun();
        let new = begun - self.counted.replace(begun);
        let made = Amount { objects: new, bytes: new * self.bytes_each.get() };
        self.amount.set(self.amount.get().plus(made));
        self.amount.get()
    }

    /// Uses `amount` of the room, or all of it if there is less.
    pub(crate) fn spend(&self, amount: Amount) {
        let room = self.amount();
        self.amount.set(room.minus(amount));
        self.spent.set(self.spent.get().plus(room.minus(self.amount.get())));
    }
}

thread_local! {
    /// What this thread is running.
    static RUNNING: Cell<Running> = const { Cell::new(Running::NOTHING) };
}

/// The callbacks that a thread is running.
#[derive(Clone, Copy)]
struct Running {
    /// How deep callbacks and objects freed on the spot are nested.
    depth: u32,
    /// Their domain, and the room that they have made so far; or nulls.
    grace_periods: *const GracePeriods,
    room_made: *const RoomMade,
    /// What the thread was running before; or null.
    outer: *const Self,
}

impl Running {
    const NOTHING: Self =
        Self { depth: 0, grace_periods: ptr::null(), room_made: ptr::null(), outer: ptr::null() };
}

/// Whether this thread is running callbacks.
pub(crate) fn in_callback() -> bool {
    RUNNING.get().depth != 0
}

/// How deep the callbacks and the objects freed on the spot are nested that this thread is in.
pub(crate) fn nested_in_callbacks() -> u32 {
    RUNNING.get().depth
}

/// Runs `f`, which runs a domain's callbacks; the room that they make is in `room_made`. In a
/// liburcu domain, between the begin and end functions of its [`Surroundings`].
#[inline] // a go is short: nine objects or so
pub(crate) fn running_callbacks<R>(
    grace_periods: &GracePeriods,
    room_made: &RoomMade,
    f: impl FnOnce() -> R,
) -> R {
    /// What the thread was running before, and the surroundings that have begun: restored and ended
    /// on drop, also if `f` panics, since `room_made` does not outlive this call.
    struct Before(Running, Option<(Surroundings, usize)>);

    impl Drop for Before {
        fn drop(&mut self) {
            RUNNING.set(self.0);
            if let Some((surroundings, began)) = self.1 {
                (surroundings.end)(began);
            }
        }
    }

    if cfg!(loom) {
        return f(); // all threads of a model share `RUNNING`
    }
    let links = grace_periods.gp_words.links();
    let surroundings = links.and_then(|links| links.surroundings());
    let begun = surroundings.map(|surroundings| (surroundings, (surroundings.begin)()));
    let before = Before(RUNNING.get(), begun);
    let (depth, outer) = (before.0.depth + 1, &raw const before.0);
    RUNNING.set(Running { depth, grace_periods, room_made, outer });
    f()
}

/// The room that the domain's callbacks on this thread have made so far, while they are run.
pub(crate) fn room_made(grace_periods: &GracePeriods) -> Option<&RoomMade> {
    let running = RUNNING.get();
    if !ptr::eq(running.grace_periods, grace_periods) {
        return None;
    }
    // SAFETY: `running_callbacks`, which borrows it, is in progress; it ends after the caller,
    // which is one of its callbacks.
    unsafe { running.room_made.as_ref() }
}

/// How much of the room that they made the domain's callbacks in progress on this thread have
/// used. Their run has not finished, so this room is counted twice as waiting: for the callback
/// that is running, and for what it has queued.
pub(crate) fn spent(grace_periods: &GracePeriods) -> Amount {
    let (mut running, mut spent) = (RUNNING.get(), Amount::NONE);
    // SAFETY: each outlives those nested in it: see `running_callbacks`.
    while let Some(outer) = unsafe { running.outer.as_ref() } {
        if ptr::eq(running.grace_periods, grace_periods) {
            // SAFETY: as in `room_made`.
            spent = spent.plus(unsafe { &*running.room_made }.spent.get());
        }
        running = *outer;
    }
    spent
}
