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

/// The callbacks that a thread is running, and the room that they make meanwhile: callbacks that
/// they queue themselves may use it [TQ-3]. Objects that are kept, not freed, use up their own:
/// they stay charged.
#[derive(Debug)]
pub(crate) struct Running(Cell<Go>);

#[derive(Clone, Copy, Debug)]
struct Go {
    /// How deep callbacks and objects freed on the spot are nested.
    depth: u32,
    /// Their domain; or null.
    grace_periods: *const GracePeriods,
    /// What those were charged that have begun.
    made: Amount,
    /// How much of it has been used.
    spent: Amount,
    /// How often [`forget_spent`] has been called.
    forgotten: u32,
}

impl Running {
    const fn nothing() -> Self {
        Self(Cell::new(Go {
            depth: 0,
            grace_periods: ptr::null(),
            made: Amount::NONE,
            spent: Amount::NONE,
            forgotten: 0,
        }))
    }

    /// Those that have begun were charged `made`.
    #[inline(always)]
    pub(crate) fn begun(&self, made: Amount) {
        self.0.set(Go { made, ..self.0.get() });
    }

    /// The room that there is now.
    pub(crate) fn room(&self) -> Amount {
        self.0.get().made.minus(self.0.get().spent)
    }

    /// Uses `amount` of the room, or all of it if there is less.
    pub(crate) fn spend(&self, amount: Amount) {
        let spent = self.0.get().spent.plus(amount.common(self.room()));
        self.0.set(Go { spent, ..self.0.get() });
    }
}

thread_local! {
    static RUNNING: Running = const { Running::nothing() };
}

/// Whether this thread is running callbacks.
pub(crate) fn in_callback() -> bool {
    nested_in_callbacks() != 0
}

/// How deep the callbacks and the objects freed on the spot are nested that this thread is in.
pub(crate) fn nested_in_callbacks() -> u32 {
    RUNNING.with(|running| running.0.get().depth)
}

/// Runs `f`, which runs a domain's callbacks, and notes in what it is given which of them have
/// begun. In a liburcu domain, between the begin and end functions of its [`Surroundings`].
#[inline] // a go is short: nine objects or so
pub(crate) fn running_callbacks<R>(
    grace_periods: &GracePeriods,
    f: impl FnOnce(&Running) -> R,
) -> R {
    /// What the thread was running before, and the surroundings that have begun: restored and ended
    /// on drop, also after a panic.
    struct Before<'r>(&'r Running, Go, Option<(Surroundings, usize)>);

    impl Drop for Before<'_> {
        fn drop(&mut self) {
            let Self(running, before, begun) = *self;
            let forgotten = running.0.get().forgotten;
            let spent = if forgotten == before.forgotten { before.spent } else { Amount::NONE };
            running.0.set(Go { spent, forgotten, ..before });
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
        let before = Before(running, running.0.get(), begun);
        let (depth, forgotten) = (before.1.depth + 1, before.1.forgotten);
        running.0.set(Go { depth, grace_periods, forgotten, ..Running::nothing().0.get() });
        f(running)
    })
}

/// Calls `f` if this thread is running callbacks of that domain.
pub(crate) fn if_running<R>(
    grace_periods: &GracePeriods,
    f: impl FnOnce(&Running) -> R,
) -> Option<R> {
    RUNNING
        .with(|running| ptr::eq(running.0.get().grace_periods, grace_periods).then(|| f(running)))
}

/// In a child process, where what waits is counted anew: what the callbacks in progress on this
/// thread have queued is, and so are they, as they have not finished. So none of the room that they
/// made has been used.
pub(crate) fn forget_spent() {
    RUNNING.with(|running| {
        let forgotten = running.0.get().forgotten.wrapping_add(1);
        running.0.set(Go { spent: Amount::NONE, forgotten, ..running.0.get() });
    });
}
