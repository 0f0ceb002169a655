//! `defer_rcu` and its kin: functions that are called with a pointer after a grace period.
//!
//! Each thread has one of quiescence's queues. The calls in it are made in order, charged to the
//! memory limit, and counted in the statistics. As in liburcu, the deferring thread itself makes
//! them when enough are ready: the memory that they free is in that thread's cache, and is soon
//! needed again. quiescence's worker makes them if the thread defers no more, or defers only in
//! sections. A thread that waits in a barrier may make them too.
//!
//! A barrier of deferred calls waits for these queues only. It does not wait for `call_rcu`'s
//! callbacks, which may therefore call it.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{debugging, fatal};
use crate::flavor::{Away, FLAVORS, Flavor};
use crate::{memory, reader};
use quiescence::callback_queue;
use quiescence::liburcu_readers::{Deferred, DeferredFunction, LiburcuDomain};

/// How many threads are registered; for `QUIESCENCE_DEBUG=1`.
static REGISTRATIONS: [AtomicU32; FLAVORS] = [const { AtomicU32::new(0) }; FLAVORS];

thread_local! {
    /// Whether the calling thread is registered.
    static REGISTERED: [Cell<bool>; FLAVORS] = const { [const { Cell::new(false) }; FLAVORS] };
    /// The flavours, as bits, for which it has a queue.
    static HAS_QUEUE: Cell<u8> = const { Cell::new(0) };
}

/// Returns the previous value.
fn set_registered(flavor: Flavor, now: bool) -> bool {
    let before = REGISTERED.with(|registered| registered[flavor.index()].replace(now));
    // Relaxed: a count for reports.
    match (before, now) {
        (false, true) => _ = REGISTRATIONS[flavor.index()].fetch_add(1, Relaxed),
        (true, false) => _ = REGISTRATIONS[flavor.index()].fetch_sub(1, Relaxed),
        _ => {}
    }
    before
}

/// At the end of a thread. What it has deferred is still called.
pub(crate) fn thread_ends() {
    for flavor in Flavor::ALL {
        set_registered(flavor, false);
    }
    HAS_QUEUE.set(0);
}

/// In a child process: the other threads are gone.
pub(crate) fn after_fork() {
    for flavor in Flavor::ALL {
        let own = REGISTERED.with(|registered| registered[flavor.index()].get());
        REGISTRATIONS[flavor.index()].store(u32::from(own), Relaxed);
    }
}

// ---- one call -----------------------------------------------------------------------------------

of_flavors! {
    /// `defer_rcu`.
    ///
    /// Now and then it makes those of the thread's own calls that are ready. At the limit it also
    /// waits for grace periods, 10 ms at most, and then exceeds the limit. Both are quiescent
    /// states of a QSBR reader, as in liburcu. In a section or a callback, where liburcu would
    /// deadlock, it does neither. The thread need not be registered.
    fn quiescence_urcu_defer_rcu(
        flavor,
        function: Option<DeferredFunction>,
        argument: *mut c_void
    ) {
        let Some(function) = function else {
            fatal(format_args!("{flavor}_defer_rcu() without a function"));
        };
        match flavor.domain().defer(function, argument) {
            Deferred::Queued => {}
            Deferred::Due => run_own(flavor),
            Deferred::Refused => defer_slowly(flavor, function, argument),
        }
    }
}

/// Makes those of the thread's own calls that are ready.
#[cold]
fn run_own(flavor: Flavor) {
    with_errno_uncancelled(|| {
        let away = leave_for_a_while(flavor);
        flavor.domain().run_deferred();
        drop(away);
    });
}

/// As `quiescence_urcu_defer_rcu`, if the thread has no queue yet, or there is no room.
///
/// # Safety
/// As there.
#[cold]
unsafe fn defer_slowly(flavor: Flavor, function: DeferredFunction, argument: *mut c_void) {
    with_errno_uncancelled(|| {
        if !has_queue(flavor) {
            memory::out_of_memory(QUEUE_BYTES);
        }
        flavor.domain().make_queue();
        // SAFETY: by the contract.
        match unsafe { flavor.domain().defer(function, argument) } {
            Deferred::Queued => return,
            Deferred::Due => return run_own(flavor),
            Deferred::Refused => {}
        }
        let away = leave_for_a_while(flavor);
        // SAFETY: by the contract; it does not wait.
        unsafe { flavor.domain().defer_in_any_case(function, argument) };
        drop(away);
    });
}

/// Takes a QSBR reader offline: otherwise it and others would wait for it. Not in a callback or a
/// deferred function, which must stay online.
fn leave_for_a_while(flavor: Flavor) -> Option<Away> {
    let leaves = flavor == Flavor::Qsbr
        && reader::is_registered(flavor)
        //~ compat-defer-limit:
        && !callback_queue::in_callback();
    leaves.then(|| flavor.may_wait("defer_rcu"))
}

// ---- registration -------------------------------------------------------------------------------

/// The largest number of bytes for a thread's queue and the record that notices the thread's end.
const QUEUE_BYTES: usize = 65_536;

/// Whether the calling thread has a queue. If not, one is made, unless memory is short.
fn has_queue(flavor: Flavor) -> bool {
    let bit = 1 << flavor.index();
    let had = HAS_QUEUE.get() & bit != 0;
    if !had && memory::is_there(QUEUE_BYTES) {
        reader::attend_last_round();
        flavor.domain().make_queue();
        HAS_QUEUE.set(HAS_QUEUE.get() | bit);
    }
    had || HAS_QUEUE.get() & bit != 0
}

of_flavors! {
    /// `rcu_defer_register_thread`: -ENOMEM if there is no memory for the thread's queue, which is
    /// made here, so that `defer_rcu` finds it.
    fn quiescence_urcu_defer_register_thread(flavor) -> c_int {
        if set_registered(flavor, true) {
            fatal(format_args!(
                "{flavor}_defer_register_thread() twice by the same thread; call \
                 {flavor}_defer_unregister_thread() before the next time"
            ));
        }
        if !has_queue(flavor) {
            set_registered(flavor, false);
            return -libc::ENOMEM;
        }
        0
    }

    /// `rcu_defer_unregister_thread`: returns when all that the thread has deferred was called.
    fn quiescence_urcu_defer_unregister_thread(flavor) {
        if !set_registered(flavor, false) && !reader::has_ended() {
            fatal(format_args!(
                "{flavor}_defer_unregister_thread() by a thread that is not registered; call \
                 {flavor}_defer_register_thread() on the same thread first"
            ));
        }
        barrier(flavor, "defer_unregister_thread", true);
    }
}

// ---- barriers -----------------------------------------------------------------------------------

of_flavors! {
    /// `rcu_defer_barrier_thread`.
    fn quiescence_urcu_defer_barrier_thread(flavor) {
        barrier(flavor, "defer_barrier_thread", true);
    }

    /// `rcu_defer_barrier`.
    fn quiescence_urcu_defer_barrier(flavor) { barrier(flavor, "defer_barrier", false) }
}

/// Waits until everything that has been deferred by now, by the calling thread (`own_only`) or by
/// all, has been called. If nothing waits it returns at once, also in a section.
fn barrier(flavor: Flavor, what: &str, own_only: bool) {
    let domain = flavor.domain();
    let own_only = own_only && !reader::has_ended(); // the queue may be another's by now
    with_errno_uncancelled(|| {
        //~ compat-defer-barrier:
        if !domain.is_waiting(own_only) {
            return;
        }
        if LiburcuDomain::is_running_deferred() {
            fatal(format_args!(
                "{flavor}_{what}() by a deferred function, for which it would wait; call it \
                 elsewhere"
            ));
        }
        let away = flavor.may_wait(what);
        domain.wait_for_queues(own_only);
        drop(away);
    });
}

exported! {
    /// liburcu's library destructor, which expects that no thread is registered any more. Here a
    /// registered thread does no harm: it is a mistake only under `QUIESCENCE_DEBUG=1`.
    fn quiescence_urcu_defer_exit(flavor: c_uint) {
        let flavor = Flavor::from_raw(flavor);
        let left = REGISTRATIONS[flavor.index()].load(Relaxed);
        if left != 0 && debugging() {
            fatal(format_args!(
                "{flavor}_defer_exit() while {left} threads are registered for deferring; each \
                 must call {flavor}_defer_unregister_thread() first"
            ));
        }
    }
}
