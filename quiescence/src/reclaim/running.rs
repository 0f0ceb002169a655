//! The callbacks that a thread is running: their domain, how deep they are nested, and the room
//! that they make.

use std::cell::Cell;
use std::ptr;

use grace::limit::Amount;

use crate::gp::grace_periods::GracePeriods;
use crate::gp::wake::Surroundings;

/// The room that a domain's callbacks make on this thread while they are run: callbacks that they
/// queue themselves may use it [TQ-3]. Objects that are kept, not freed, use up their own: they
/// stay charged.
#[derive(Debug, Default)]
pub(crate) struct RoomMade {
    /// The callbacks that have begun, and what they were charged.
    objects: Cell<u64>,
    bytes: Cell<u64>,
    /// How much of it has been used.
    spent: Cell<Amount>,
}

impl RoomMade {
    /// A callback begins that was charged so many bytes.
    #[inline(always)]
    pub(crate) fn begin(&self, bytes: u64) {
        self.objects.set(self.objects.get() + 1);
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// How many callbacks have begun.
    #[inline(always)]
    pub(crate) fn begun(&self) -> u64 {
        self.objects.get()
    }

    /// What they were charged.
    pub(crate) fn charged(&self) -> Amount {
        Amount { objects: self.objects.get(), bytes: self.bytes.get() }
    }

    /// The room that there is now.
    pub(crate) fn amount(&self) -> Amount {
        self.charged().minus(self.spent.get())
    }

    /// Uses `amount` of the room, or all of it if there is less.
    pub(crate) fn spend(&self, amount: Amount) {
        self.spent.set(self.spent.get().plus(amount.common(self.amount())));
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
/// used. Their run has not finished, so this room is counted twice as waiting: once for the
/// callbacks of the run, all of which still count; and once for what they have queued, or, of those
/// whose objects were kept, as [kept](crate::reclaim::kept).
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
