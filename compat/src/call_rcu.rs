//! Callbacks queued by C: `call_rcu`, the workers that run them, per thread, per CPU and by
//! default, and `rcu_barrier`.
//!
//! A `struct call_rcu_data` is a [`Worker`]: a [callback queue](quiescence::callback_queue) and a
//! thread that attends to it. C knows it by its address, and so does the thread that queues; the
//! list of all of them, and what is known of their threads, is in [`workers`]. Which worker a
//! callback goes to is the calling thread's, else its CPU's ([`cpus`]), else the flavour's default
//! one.
//!
//! Threads of workers are joinable, and the library joins none: a caller that has asked for one by
//! `get_call_rcu_thread` may (`multipathd` does, after `call_rcu_data_free`). One that was not
//! asked for detaches itself when it ends, so nothing leaks. liburcu joins them itself since 0.14:
//! so `call_rcu_data_free` waits until the thread has nothing more to run, and leaves the joining.
//!
//! The default worker's thread ends when it has had nothing to do for ten seconds
//! (`QUIESCENCE_CALL_RCU_IDLE_MS` in the environment says otherwise), and starts again with the
//! next callback; not once it has been asked for, since its number would be another thread's some
//! day.

mod cpus;
pub(crate) mod forks;
mod worker;
pub(crate) mod workers;

use std::cell::Cell;
use std::ffi::{c_int, c_ulong};
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use quiescence::callback_queue;
use quiescence::raw::{Function, Head};

use self::worker::Worker;
use crate::errno_guard::with_errno_uncancelled;
use crate::fatal::{Mistake, fatal, tolerated};
use crate::flavor::{FLAVORS, Flavor};

thread_local! {
    /// The worker that the calling thread has chosen, for each flavour. Without a destructor, so
    /// that it can be used until the very end.
    static CHOSEN: [Cell<*const Worker>; FLAVORS] =
        const { [const { Cell::new(ptr::null()) }; FLAVORS] };
}

/// Whether some thread ever chose one. Else none need look what it has, which takes a call in a
/// library.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

#[inline]
fn chosen(flavor: Flavor) -> *const Worker {
    // Relaxed: a thread sees that it has chosen itself.
    if !IS_CHOSEN.load(Relaxed) {
        return ptr::null();
    }
    CHOSEN.with(|chosen| chosen[flavor.index()].get())
}

fn choose(flavor: Flavor, worker: *const Worker) {
    IS_CHOSEN.store(true, Relaxed);
    CHOSEN.with(|chosen| chosen[flavor.index()].set(worker));
}

of_flavors! {
    /// `call_rcu`: `head` need not be initialised.
    fn quiescence_urcu_call_rcu(flavor, head: *mut Head, function: Function) {
        let mut worker = chosen(flavor);
        if worker.is_null() {
            if cpus::are_there(flavor) {
                return call_on_cpu(flavor, head, function);
            }
            worker = workers::default(flavor);
        }
        // SAFETY: the thread's own choice, which it keeps until it makes another one; or the
        // default one, which is never freed.
        let worker = &*worker;
        if worker.push(head, function) {
            wait_for_room(flavor);
        }
    }
}

/// The same where CPUs have workers.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn call_on_cpu(flavor: Flavor, head: *mut Head, function: Function) {
    // SAFETY: by the contract.
    let pushed = unsafe { cpus::push(flavor, head, function) };
    // SAFETY: by the contract.
    if pushed.unwrap_or_else(|| unsafe { workers::default(flavor).push(head, function) }) {
        wait_for_room(flavor);
    }
}

#[cold]
fn wait_for_room(flavor: Flavor) {
    with_errno_uncancelled(|| callback_queue::wait_for_room(&flavor.domain().domain()));
}

of_flavors! {
    /// `rcu_barrier`. Of this flavour's callbacks only: what was deferred may call it, and
    /// callbacks of other flavours. In a section it waits for nothing, as in liburcu.
    fn quiescence_urcu_barrier(flavor) {
        if flavor.domain().is_in_callback_queue() {
            fatal(format_args!(
                "{flavor}_barrier() by a callback, for which it would wait; call it on a thread of \
                 your own"
            ));
        }
        if flavor.is_reading() {
            return tolerated(
                Mistake::BarrierInside,
                format_args!(
                    "{flavor}_barrier() inside a read-side critical section of the same thread, \
                     for which callbacks may wait: it returns without waiting; call \
                     {flavor}_read_unlock() first"
                ),
            );
        }
        // It may run callbacks, and drive grace periods.
        with_errno_uncancelled(|| {
            let away = flavor.may_wait("barrier");
            workers::start_where_needed(flavor);
            flavor.domain().wait_for_callback_queues();
            drop(away);
        });
    }

    /// `create_call_rcu_data`.
    fn quiescence_urcu_create_call_rcu_data(
        flavor,
        flags: c_ulong,
        cpu_affinity: c_int
    ) -> *const Worker {
        workers::create(flavor, flags, cpu_affinity).unwrap_or_else(|| {
            fatal(format_args!(
                "{flavor}_create_call_rcu_data(): pthread_create failed: out of memory, or too \
                 many threads"
            ))
        })
    }

    /// `call_rcu_data_free`: its thread finishes the batch that it is running, and ends; what is
    /// left is the default worker's. Waits for that, as liburcu 0.14 does, but where it would wait
    /// for itself. That of the default worker is ignored, as in liburcu.
    fn quiescence_urcu_call_rcu_data_free(flavor, crdp: *const Worker) {
        with_errno_uncancelled(|| workers::free(flavor, crdp, workers::may_wait(flavor)));
    }

    /// `get_default_call_rcu_data`.
    fn quiescence_urcu_get_default_call_rcu_data(flavor) -> *const Worker {
        ptr::from_ref(workers::default(flavor))
    }

    /// `get_cpu_call_rcu_data`.
    fn quiescence_urcu_get_cpu_call_rcu_data(flavor, cpu: c_int) -> *const Worker {
        cpus::get(flavor, cpu)
    }

    /// `get_thread_call_rcu_data`.
    fn quiescence_urcu_get_thread_call_rcu_data(flavor) -> *const Worker { chosen(flavor) }

    /// `get_call_rcu_data`: what `call_rcu` would take.
    fn quiescence_urcu_get_call_rcu_data(flavor) -> *const Worker {
        let of_thread = chosen(flavor);
        if !of_thread.is_null() {
            return of_thread;
        }
        let of_cpu = cpus::here(flavor);
        if of_cpu.is_null() { ptr::from_ref(workers::default(flavor)) } else { of_cpu }
    }

    /// `get_call_rcu_thread`.
    fn quiescence_urcu_get_call_rcu_thread(flavor, crdp: *const Worker) -> libc::pthread_t {
        workers::thread_of(flavor, crdp)
    }

    /// `set_thread_call_rcu_data`.
    fn quiescence_urcu_set_thread_call_rcu_data(flavor, crdp: *const Worker) {
        choose(flavor, crdp);
    }

    /// `set_cpu_call_rcu_data`.
    fn quiescence_urcu_set_cpu_call_rcu_data(flavor, cpu: c_int, crdp: *const Worker) -> c_int {
        answer(cpus::set(flavor, cpu, crdp))
    }

    /// `create_all_cpu_call_rcu_data`.
    fn quiescence_urcu_create_all_cpu_call_rcu_data(flavor, flags: c_ulong) -> c_int {
        answer(cpus::create_all(flavor, flags))
    }

    /// `free_all_cpu_call_rcu_data`. Waits for a grace period, as in liburcu; unlike there, not
    /// where there is no such worker.
    fn quiescence_urcu_free_all_cpu_call_rcu_data(flavor) {
        with_errno_uncancelled(|| cpus::free_all(flavor));
    }
}

/// 0, or the number of the error with a minus before it, and in `errno`.
fn answer(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: asks for a place.
            let place = unsafe { libc::__errno_location() };
            // SAFETY: the thread's own.
            unsafe { *place = error };
            -error
        }
    }
}
