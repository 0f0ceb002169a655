//! A driver's decisions between the actions of the machine: which fence a grace period needs, and
//! what a driver that may not wait does when the machine waits. Also the tick, the interval of all
//! background work.
//!
//! Pure functions, which the library and the simulator call. Each of these has a driver of its own,
//! with locks and system calls.

pub use crate::machine::needed::{Needed, fence_needed};
use crate::policy::Hint;

/// The interval between two checks of background work, in nanoseconds: a tick at HZ = 100,
/// rcu_ltimer's overhead.
pub const TICK_NS: u64 = 10_000_000;

/// The interval, in nanoseconds, at which a thread polls while it waits for other threads to make
/// room or to end.
pub const MOMENT_NS: u64 = 200_000;

/// A driver that may not wait, and what it has done so far: it takes the steps that need no
/// waiting, and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passing {
    tick: bool,
    looked: bool,
}

impl Passing {
    /// A driver that begins. `tick`: it is the worker, at a tick.
    pub const fn new(tick: bool) -> Self {
        Self { tick, looked: false }
    }

    /// The driver has scanned.
    pub const fn scanned(&mut self) {
        self.looked = true;
    }

    /// The pending action is [`Action::Wait`](crate::Action::Wait). Returns whether that wait has
    /// ended already; if not, the driver leaves, and the next one continues from there.
    ///
    /// ```
    /// use grace::Hint;
    /// use grace::driver::Passing;
    ///
    /// let mut worker = Passing::new(true);
    /// assert!(worker.wait_has_ended(Hint::Tick)); // the tick that it waits for is this one
    /// assert!(!worker.wait_has_ended(Hint::Tick));
    /// let mut updater = Passing::new(false);
    /// assert!(updater.wait_has_ended(Hint::Sleep)); // it has not scanned yet
    /// updater.scanned();
    /// assert!(!updater.wait_has_ended(Hint::Again));
    /// ```
    pub const fn wait_has_ended(&mut self, hint: Hint) -> bool {
        let waits_for_tick = matches!(hint, Hint::Tick);
        if waits_for_tick && self.tick {
            self.tick = false;
            return true;
        }
        !waits_for_tick && !self.looked
    }
}
