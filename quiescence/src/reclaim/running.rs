//! The callbacks that a thread is running: their domain, how deep they are nested, and the room
//! that they make.
//!
//! An error here makes a thread wait for itself, or charges a domain too much or too little.

#![deny(unsafe_code)]

use std::cell::Cell;
use std::ptr;

use grace::limit::Amount;

use crate::gp::grace_periods::GracePeriods;
use crate::gp::links::Surroundings;
use crate::os::exit;

/// The callbacks that a thread is running, and the room that they make meanwhile: callbacks that
/// they queue themselves may use it [TQ-3]. Objects that are kept, not freed, use up their own:
/// they stay charged.
#[derive(Debug)]
pub(crate) struct Running {
    /// What those were charged that have begun. A cell of its own: written for each callback.
    pub(crate) made: Cell<Amount>,
    go: Cell<Go>,
}

#[derive(Clone, Copy, Debug)]
struct Go {
    /// How deep callbacks and objects freed on the spot are nested.
    depth: u32,
    /// Their domain; or null.
    grace_periods: *const GracePeriods,
    /// How much of [`made`](Running::made) has been used.
    spent: Amount,
    /// How often [`forget_spent`] has been called.
    forgotten: u32,
}

impl Running {
    const fn nothing() -> Self {
        let go = Go { depth: 0, grace_periods: ptr::null(), spent: Amount::NONE, forgotten: 0 };
        Self { made: Cell::new(Amount::NONE), go: Cell::new(go) }
    }

    /// So many more have begun, each of which was charged `bytes`.
    #[inline(always)]
    pub(crate) fn begin(&self, objects: u64, bytes: u64) {
        let made = self.made.get();
        let bytes = made.bytes.saturating_add(objects * bytes);
        self.made.set(Amount { objects: made.objects + objects, bytes });
    }

    /// The room that there is now.
    pub(crate) fn room(&self) -> Amount {
        self.made.get().minus(self.go.get().spent)
    }

    /// Uses `amount` of the room, or all of it if there is less.
    pub(crate) fn spend(&self, amount: Amount) {
        let spent = self.go.get().spent.plus(amount.common(self.room()));
        self.go.set(Go { spent, ..self.go.get() });
    }
}

thread_local! {
    static RUNNING: Running = const { Running::nothing() };
}

/// Whether this thread is running callbacks.
pub(crate) fn in_callback() -> bool {
    nested_in_callbacks() != 0
}

/// Whether the worker may be waiting for this thread: it is running callbacks, perhaps under a lock
/// that the worker needs for others; or is one of the library's, the worker itself perhaps, in a
/// waker.
pub(crate) fn holds_up_worker() -> bool {
    in_callback() || exit::IS_OURS.get()
}

/// How deep the callbacks and the objects freed on the spot are nested that this thread is in.
pub(crate) fn nested_in_callbacks() -> u32 {
    RUNNING.with(|running| running.go.get().depth)
}

/// Runs `f`, which runs a domain's callbacks, and notes in what it is given which of them have
/// begun. In a liburcu domain, between the begin and end functions of its [`Surroundings`].
#[inline] // a go is short: 19 objects, or 37
pub(crate) fn running_callbacks<R>(
    grace_periods: &GracePeriods,
    f: impl FnOnce(&Running) -> R,
) -> R {
    /// What the thread was running before, and the surroundings that have begun: restored and ended
    /// on drop, also after a panic.
    struct Before<'r>(&'r Running, Amount, Go, Option<(Surroundings, usize)>);

    impl Drop for Before<'_> {
        fn drop(&mut self) {
            let Self(running, made, before, begun) = *self;
            let forgotten = running.go.get().forgotten;
            let spent = if forgotten == before.forgotten { before.spent } else { Amount::NONE };
            running.made.set(made);
            running.go.set(Go { spent, forgotten, ..before });
            if let Some((surroundings, began)) = begun {
                (surroundings.end)(began);
            }
        }
    }

    if cfg!(loom) {
        return f(&Running::nothing()); // all threads of a model share `RUNNING`
    }
    let links = grace_periods.gp_words.links();
    let surroundings = links.and_then(|links| links.surroundings());
    let begun = surroundings.map(|surroundings| (surroundings, (surroundings.begin)()));
    RUNNING.with(|running| {
        let go = running.go.get();
        let _before = Before(running, running.made.take(), go, begun);
        running.go.set(Go { depth: go.depth + 1, grace_periods, spent: Amount::NONE, ..go });
        f(running)
    })
}

/// Calls `f` if this thread is running callbacks of that domain.
pub(crate) fn if_running<R>(
    grace_periods: &GracePeriods,
    f: impl FnOnce(&Running) -> R,
) -> Option<R> {
    RUNNING
        .with(|running| ptr::eq(running.go.get().grace_periods, grace_periods).then(|| f(running)))
}

/// In a child process, where what waits is counted anew: what the callbacks in progress on this
/// thread have queued is, and so are they, as they have not finished. So none of the room that they
/// made has been used.
pub(crate) fn forget_spent() {
    RUNNING.with(|running| {
        let forgotten = running.go.get().forgotten.wrapping_add(1);
        running.go.set(Go { spent: Amount::NONE, forgotten, ..running.go.get() });
    });
}
