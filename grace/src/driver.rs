//! What a driver decides between the actions of the machine: which fence a grace period needs, and
//! what becomes of a wait where the driver may not wait. And the tick, which all that waits in the
//! background goes by.
//!
//! Pure functions, called by the library and by the simulator; the driver itself, with its locks
//! and system calls, is theirs.

use crate::policy::Hint;

/// Between two looks at what has no hurry, in nanoseconds: a tick at HZ = 100, rcu_ltimer's
/// overhead.
pub const TICK_NS: u64 = 10_000_000;

/// Between two looks of a thread that waits until others have made room, or have ended, in
/// nanoseconds.
pub const MOMENT_NS: u64 = 200_000;

/// A fence that the registered readers ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needed {
    /// Some reader has light fences only: `membarrier`.
    Heavy,
    /// All are QSBR readers, which execute a full fence where they come online: one of the
    /// updater's own.
    Full,
}

/// Which fence a grace period begins with, if `readers` are registered, of which `own` are the
/// driver's and quiescent, and `light` have light fences. None if there is no other reader: then
/// the grace period is over ([`Event::Alone`](crate::Event::Alone)).
///
/// ```
/// use grace::driver::{Needed, fence_needed};
///
/// assert_eq!(fence_needed(1, 1, 1), None);
/// assert_eq!(fence_needed(2, 1, 1), Some(Needed::Heavy));
/// assert_eq!(fence_needed(2, 0, 0), Some(Needed::Full));
/// ```
pub const fn fence_needed(readers: usize, own: usize, light: usize) -> Option<Needed> {
    if readers <= own {
        None
    } else if light != 0 {
        Some(Needed::Heavy)
    } else {
        Some(Needed::Full)
    }
}

/// A driver that may not wait, and what it has done so far: it comes by, takes the steps that can
/// be taken, and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passing {
    tick: bool,
    looked: bool,
}

impl Passing {
    /// It comes by; at a tick, if it is the worker.
    pub const fn new(tick: bool) -> Self {
        Self { tick, looked: false }
    }

    /// It has scanned.
    pub const fn scanned(&mut self) {
        self.looked = true;
    }

    /// The machine wants it to wait ([`Action::Wait`](crate::Action::Wait)). Returns whether that
    /// wait is over at once; if not, the driver leaves, and the next one continues from there.
    ///
    /// ```
    /// use grace::Hint;
    /// use grace::driver::Passing;
    ///
    /// let mut worker = Passing::new(true);
    /// assert!(worker.must_wait(Hint::Tick)); // the tick that it waits for is this one
    /// assert!(!worker.must_wait(Hint::Tick));
    /// let mut updater = Passing::new(false);
    /// assert!(updater.must_wait(Hint::Sleep)); // it has not scanned yet
    /// updater.scanned();
    /// assert!(!updater.must_wait(Hint::Again));
    /// ```
    pub const fn must_wait(&mut self, hint: Hint) -> bool {
        let waits_for_tick = matches!(hint, Hint::Tick);
        if waits_for_tick && self.tick {
            self.tick = false;
            return true;
        }
        !waits_for_tick && !self.looked
    }
}
