//! liburcu's replacements and callbacks, through `c/update.c`.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::{MEMB, Registered};
use crate::cases::enqueue::{BURST, Caller};
use crate::cases::replace::{READS, Site, Worker};

unsafe extern "C" {
    fn rivals_update_begin();
    fn rivals_update_end();
    safe fn rivals_update_barrier();
    fn rivals_update_read_until(stop: *const AtomicI32) -> u64;
    fn rivals_update_read_timed(samples: *mut u32, count: u64);
    fn rivals_update_hold(entered: *const AtomicI32, release: *const AtomicI32);
    fn rivals_calls_queue(count: u64);
    safe fn rivals_calls_sum() -> u64;
}

/// A way to retire, as in `c/update.c`.
#[repr(C)]
pub(super) struct Way {
    begin: unsafe extern "C" fn(),
    end: unsafe extern "C" fn(),
    replace: unsafe extern "C" fn(u64),
    replace_timed: unsafe extern "C" fn(*mut u32, u64),
    freed: extern "C" fn() -> u64,
}

unsafe extern "C" {
    /// `call_rcu`: a head in the object, and a worker that frees.
    #[link_name = "rivals_by_call"]
    pub(super) safe static BY_CALL: Way;
    /// `defer_rcu`: a queue of the thread, which the thread waits for when it is full.
    #[link_name = "rivals_by_defer"]
    pub(super) safe static BY_DEFER: Way;
}

/// The one object that `c/update.c` replaces. At most one at a time in the process, which the
/// turns of [`turn`](crate::cases::object::turn) see to.
pub(super) struct Replaced {
    way: &'static Way,
}

impl Replaced {
    pub(super) fn new(way: &'static Way) -> Self {
        // SAFETY: no other `Replaced` exists.
        unsafe { rivals_update_begin() };
        Self { way }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        // SAFETY: made by `new`; updaters and readers borrow this, so they are gone.
        unsafe { rivals_update_end() };
    }
}

impl Site for Replaced {
    fn updater(&self) -> Box<dyn Worker + '_> {
        Thread::begin(self.way)
    }

    /// As an updater by a way that needs nothing of its threads.
    fn reader(&self) -> Box<dyn Worker + '_> {
        Thread::begin(&BY_CALL)
    }

    fn freed(&self) -> u64 {
        (self.way.freed)()
    }

    /// What was deferred was freed when its thread unregistered.
    fn flush(&self) {
        rivals_update_barrier();
    }

    /// It replaces objects of its own, in C.
    #[cfg(test)]
    fn keeps_its_word(&self, _name: &str) -> bool {
        false
    }
}

/// A registered thread; not `Send`, as its registration is not.
struct Thread {
    way: &'static Way,
    _registered: Registered,
}

impl Thread {
    fn begin(way: &'static Way) -> Box<dyn Worker> {
        let registered = Registered::new(&MEMB);
        // SAFETY: this thread is registered, and does not update yet.
        unsafe { (way.begin)() };
        Box::new(Self { way, _registered: registered })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: it began in this very thread, which is outside every section.
        unsafe { (self.way.end)() };
    }
}

impl Worker for Thread {
    fn replace(&mut self, count: u64) {
        // SAFETY: the site of this thread has made the object, and this thread is registered and
        // outside every section, and has begun.
        unsafe { (self.way.replace)(count) };
    }

    fn replace_timed(&mut self, samples: &mut [u32]) {
        // SAFETY: as in `replace`, and C writes as many samples as there are.
        unsafe { (self.way.replace_timed)(samples.as_mut_ptr(), samples.len() as u64) };
    }

    fn read_until(&mut self, stop: &AtomicI32) -> u64 {
        // SAFETY: this thread is registered, and the object is there for as long as its site.
        let reads = unsafe { rivals_update_read_until(stop) };
        debug_assert_eq!(reads % READS, 0);
        reads
    }

    fn read_timed(&mut self, samples: &mut [u32]) {
        // SAFETY: as in `read_until`, and C writes as many samples as there are.
        unsafe { rivals_update_read_timed(samples.as_mut_ptr(), samples.len() as u64) };
    }

    fn hold(&mut self, entered: &AtomicI32, release: &AtomicI32) {
        // SAFETY: as in `read_until`; C reads and writes the flags with atomic instructions.
        unsafe { rivals_update_hold(entered, release) };
    }
}

/// Callbacks that are queued by `call_rcu` again and again: the [`BURST`] that there is in C.
pub(super) struct Calls {
    _registered: Registered,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { _registered: Registered::new(&MEMB) }
    }
}

/// Callbacks that were ever queued.
static QUEUED: AtomicU64 = AtomicU64::new(0);

impl Caller for Calls {
    fn call(&mut self, count: u64) {
        let sum = self.sum();
        // Relaxed: one change of it comes before the other, and that is all that is asked of it.
        let marks =
            || QUEUED.compare_exchange(sum, sum + count, Ordering::Relaxed, Ordering::Relaxed);
        assert!(count <= BURST && marks().is_ok(), "a head is queued once at a time");
        // SAFETY: there are so many callbacks, and none of them is queued: all that ever were have
        // run, and nobody else finds that so until these have, too. This thread is registered.
        unsafe { rivals_calls_queue(count) };
    }

    fn finish(&mut self) {
        rivals_update_barrier();
    }

    fn sum(&self) -> u64 {
        rivals_calls_sum()
    }
}

impl Drop for Calls {
    /// None is queued when the next one begins.
    fn drop(&mut self) {
        rivals_update_barrier();
    }
}
