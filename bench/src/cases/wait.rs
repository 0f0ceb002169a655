//! The rivals of [`super::grace`], behind one trait.
//!
//! The calls are virtual, which costs each of them the same nanosecond.

use std::sync::atomic::{AtomicI32, Ordering};

/// A domain of some rival.
pub(crate) trait Flavour: Send + Sync {
    /// Registers the calling thread, until the member is dropped.
    fn enrol(&self) -> Box<dyn Member + '_>;

    /// Registers the calling thread, until the result is dropped, and says that it will not read,
    /// where that has to be said.
    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
        Box::new(self.enrol())
    }
}

/// A registered thread that does not read. Dropping it unregisters.
pub(crate) trait Idle {}

impl<T> Idle for T {}

/// A registered thread.
pub(crate) trait Member {
    /// Waits for a grace period.
    fn synchronize(&mut self);
    /// Reads in sections of so many steps until told to stop; how many sections there were.
    fn read_until(&mut self, stop: &AtomicI32, steps: u32) -> u64;
}

/// A registered thread, by how it waits, and by one of its sections: what is given, and how many
/// steps of a [`chain`] it takes.
pub(crate) fn member<'a, T: 'a>(
    thread: T,
    wait: impl Fn(&mut T) + 'a,
    section: impl Fn(&mut T, u64, u32) -> u64 + 'a,
) -> Box<dyn Member + 'a> {
    Box::new(Enrolled(thread, wait, section))
}

struct Enrolled<T, W, S>(T, W, S);

impl<T, W: Fn(&mut T), S: Fn(&mut T, u64, u32) -> u64> Member for Enrolled<T, W, S> {
    fn synchronize(&mut self) {
        self.1(&mut self.0);
    }

    /// Each section is given what the one before has returned.
    fn read_until(&mut self, stop: &AtomicI32, steps: u32) -> u64 {
        let (mut count, mut x) = (0, 1);
        // Relaxed: the flag ends the loop and publishes nothing.
        while stop.load(Ordering::Relaxed) == 0 {
            x = self.2(&mut self.0, x, steps);
            count += 1;
        }
        count
    }
}

/// The work of a section: steps that wait for each other, and that no compiler can do several of
/// at once, the same as in C: both take the same time whatever the compilers are.
#[inline(always)]
pub(crate) fn chain(mut x: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        x = (x ^ (x >> 32)).wrapping_mul(6_364_136_223_846_793_005);
    }
    std::hint::black_box(x)
}
