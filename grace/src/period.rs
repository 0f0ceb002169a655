//! The grace period in progress: which fence it needs, which steps it goes through, and when it has
//! ended.
//!
//! [`Machine`](crate::Machine) decides which requests it serves, when the next one begins, and what
//! happens between two scans. Whatever it decides, a grace period here ends only after a fence, an
//! announcement and a scan without holdouts, in this order ([GM-2], in `machine.rs`): the fields
//! are private, and [`Period::observe`] accepts only the event for which the current step waits.

use crate::machine::{Event, Start};
use crate::sequence::Sequence;
use crate::word::Number;

/// The fence that the registered readers require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needed {
    /// Some reader has light fences only: `membarrier`.
    Heavy,
    /// All execute full fences themselves (a QSBR reader when it comes online): one of the
    /// updater's own is enough.
    Full,
}

/// Which fence a grace period begins with, if `readers` are registered, of which `own` are the
/// driver's and quiescent, and `light` have light fences. `None` if there is no other reader: the
/// grace period ends at once ([`Event::Alone`](crate::Event::Alone)).
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

/// The step of the grace period in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Idle,
    Fence,
    Announce,
    Scan,
    Wait,
    Complete,
}

/// The grace period in progress, or the last one, and the numbers that have been announced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Period {
    sequence: Sequence,
    step: Step,
    number: Number,
    number_mask: u32,
    /// Numbers that can still be announced before one repeats.
    fresh: u32,
    /// Passes that this grace period still has to make, the current one included.
    passes: u8,
}

impl Period {
    /// None is in progress.
    pub(crate) const fn new(start: Start) -> Self {
        let bits = match start.number_bits {
            0 => 1,
            1..=32 => start.number_bits,
            _ => 32,
        };
        let number_mask = u32::MAX >> (32 - bits);
        Self {
            sequence: Sequence::after(start.sequence.ended()),
            step: Step::Idle,
            number: Number(start.number.0 & number_mask),
            number_mask,
            fresh: number_mask,
            passes: 0,
        }
    }

    pub(crate) const fn sequence(&self) -> Sequence {
        self.sequence
    }

    pub(crate) const fn number(&self) -> Number {
        self.number
    }

    pub(crate) const fn step(&self) -> Step {
        self.step
    }

    /// Begins one, if none is in progress.
    pub(crate) fn begin(&mut self) {
        if self.step == Step::Idle {
            self.sequence = self.sequence.begin();
            self.step = Step::Fence;
        }
    }

    /// Takes what a driver has done or seen. False if the step does not wait for that; then nothing
    /// has changed.
    #[inline]
    pub(crate) fn observe(&mut self, event: Event) -> bool {
        match (self.step, event) {
            (Step::Fence, Event::Alone) => self.finish(),
            (Step::Fence, Event::Fenced) => {
                self.passes = if self.fresh == 0 { 2 } else { 1 };
                self.begin_pass();
            }
            (Step::Announce, Event::Announced) => self.step = Step::Scan,
            (Step::Scan, Event::Scanned { holdouts: 0 }) => self.end_pass(),
            (Step::Scan, Event::Scanned { .. }) => self.step = Step::Wait,
            (Step::Wait, Event::Woken) => self.step = Step::Scan,
            (Step::Complete, Event::Completed) => self.step = Step::Idle,
            (Step::Idle | Step::Complete, Event::Abandoned) => {}
            (_, Event::Abandoned) => self.step = Step::Fence,
            _ => return false,
        }
        true
    }

    fn begin_pass(&mut self) {
        self.number = Number(self.number.0.wrapping_add(1) & self.number_mask);
        self.fresh = self.fresh.saturating_sub(1);
        self.step = Step::Announce;
    }

    fn end_pass(&mut self) {
        self.passes = self.passes.saturating_sub(1);
        if self.passes == 0 { self.finish() } else { self.begin_pass() }
    }

    fn finish(&mut self) {
        self.sequence = self.sequence.end();
        self.step = Step::Complete;
    }
}
