//! `defer_rcu` and its kin: functions that are called with a pointer after a grace period.
//!
//! Each thread has a queue of quiescence's: what waits there is called in order, charged to the
//! limit, counted in the statistics. Called by the thread that defers, when enough of it is ready,
//! as in liburcu: what it frees is in its own cache, and needed next. By quiescence's worker, where
//! the thread defers no more or does so in sections; or by a thread that waits in a barrier.
//!
//! A barrier of deferred calls waits for these queues only, and not for `call_rcu`'s callbacks,
//! from which it may well be called.

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
    /// Whether the calling thread is.
    static REGISTERED: [Cell<bool>; FLAVORS] = const { [const { Cell::new(false) }; FLAVORS] };
    /// The flavours, as bits, for which it has a queue.
    static HAS_QUEUE: Cell<u8> = const { Cell::new(0) };
}

/// Returns what it was.
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

/// At the end of a thread: what it has deferred is called in its time.
pub(crate) fn thread_ends() {
    for flavor in Flavor::ALL {
        set_registered(flavor, false);
    }
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
    /// Now and then it calls what is ready of the thread's own; at the limit also what it has to
    /// wait for, where it may, 10 ms at most, and then it goes over. Either is a quiescent state of
    /// a QSBR reader, as in liburcu. In a section and in a callback, where stock would wait for
    /// itself, it does neither. A thread need not be registered for it.
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

/// What is ready of the thread's own is called.
#[cold]
fn run_own(flavor: Flavor) {
    with_errno_uncancelled(|| {
        let away = leave_for_a_while(flavor);
        flavor.domain().run_deferred();
        drop(away);
    });
}

/// As `quiescence_urcu_defer_rcu`, where the thread has no queue at hand, or there is no room.
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

/// Takes a QSBR reader offline, for whom others and itself would wait; not in a function that is
/// being called, which may not be left offline.
fn leave_for_a_while(flavor: Flavor) -> Option<Away> {
    let leaves = flavor == Flavor::Qsbr
        && reader::is_registered(flavor)
        //~ compat-defer-limit:
        && !callback_queue::in_callback();
    leaves.then(|| flavor.may_wait("defer_rcu"))
}

// ---- registration -------------------------------------------------------------------------------

/// What the queue of a thread takes of memory at most, with what notices the end of the thread.
const QUEUE_BYTES: usize = 65_536;

/// Whether the calling thread has a queue: it is made, if there is memory.
fn has_queue(flavor: Flavor) -> bool {
    let bit = 1 << flavor.index();
    let had = HAS_QUEUE.get() & bit != 0;
    if !had && memory::is_there(QUEUE_BYTES) {
        flavor.domain().make_queue();
        HAS_QUEUE.set(HAS_QUEUE.get() | bit);
    }
    had || HAS_QUEUE.get() & bit != 0
}

of_flavors! {
    /// `rcu_defer_register_thread`: -ENOMEM if there is no memory for what the thread will defer.
    /// Its queue is made here, so that `defer_rcu` finds it.
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
        reader::attend_end();
        0
    }

    /// `rcu_defer_unregister_thread`: all that the thread has deferred has been called afterwards.
    fn quiescence_urcu_defer_unregister_thread(flavor) {
        if !set_registered(flavor, false) {
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

/// Waits until all that has been deferred by now, by the calling thread or by all, has been called.
/// Nothing is as good as done, also in a section.
fn barrier(flavor: Flavor, what: &str, own_only: bool) {
    let domain = flavor.domain();
    //~ compat-defer-barrier:
    if !domain.is_waiting(own_only) {
        return;
    }
    if LiburcuDomain::is_running_deferred() {
        fatal(format_args!(
            "{flavor}_{what}() by a deferred function, for which it would wait; call it elsewhere"
        ));
    }
    with_errno_uncancelled(|| {
        let away = flavor.may_wait(what);
        domain.wait_for_queues(own_only);
        drop(away);
    });
}

exported! {
    /// liburcu's library destructor, which expects that no thread is registered any more. Nothing
    /// of ours is left then that would have to end: looked at where mistakes are looked for.
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
