//! Callbacks queued by C: `call_rcu`, the workers that run them (per thread, per CPU, and a default
//! one), and `rcu_barrier`.
//!
//! A `struct call_rcu_data` is a [`Worker`]: a [callback queue](quiescence::callback_queue) and the
//! thread that runs it. C refers to a worker by its address. [`workers`] lists all workers and
//! their threads. A callback goes to the worker that the calling thread has chosen, else to that of
//! its CPU ([`cpus`]), else to the flavour's default worker.
//!
//! Worker threads are joinable, but the library joins none: a program that has obtained a thread's
//! id by `get_call_rcu_thread` may join it (`multipathd` does, after `call_rcu_data_free`). A
//! thread whose id was not obtained detaches itself when it ends, so nothing leaks. Since 0.14
//! liburcu joins them itself. So `call_rcu_data_free` waits until the thread has nothing more to
//! run, and leaves the joining to the program.
//!
//! The default worker's thread starts with the first callback, or when the program asks for the
//! worker, and stays: a program may make it before it gives up the right to make threads. If
//! `QUIESCENCE_CALL_RCU_IDLE_MS` is set it ends when it has been idle for that long, and starts
//! again with the next callback; but not once the program has obtained its id, which could
//! otherwise become another thread's.

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
use crate::errno_guard::{with_errno, with_errno_uncancelled};
use crate::fatal::{Mistake, fatal, tolerated};
use crate::flavor::{FLAVORS, Flavor};

thread_local! {
    /// The worker that the calling thread has chosen, for each flavour. It has no destructor, so
    /// that it can be used until the thread's very end.
    static CHOSEN: [Cell<*const Worker>; FLAVORS] =
        const { [const { Cell::new(ptr::null()) }; FLAVORS] };
}

/// Whether any thread has ever chosen one. If not, `call_rcu` skips the thread-local, whose access
/// from a shared library takes a call.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

#[inline]
fn chosen(flavor: Flavor) -> *const Worker {
    // Relaxed: a thread that has chosen sees its own store.
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

/// `call_rcu` if CPUs have workers.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn call_on_cpu(flavor: Flavor, head: *mut Head, function: Function) {
    // SAFETY: by the contract.
    let pushed = with_errno(|| unsafe { cpus::push(flavor, head, function) });
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
    /// `rcu_barrier`. It waits only for this flavour's callbacks, so deferred functions and
    /// callbacks of other flavours may call it. In a section it waits for nothing, as in liburcu.
    fn quiescence_urcu_barrier(flavor) {
        if flavor.domain().is_in_callback_queue() {
            fatal(format_args!(
                "{flavor}_barrier() by a callback, for which it would wait; call it on a thread of \
                 your own"
            ));
        }
        if flavor != Flavor::Qsbr && flavor.is_reader() {
            return tolerated(
                Mistake::BarrierInside,
                format_args!(
                    "{flavor}_barrier() inside a read-side critical section of the same thread, \
                     for which callbacks may wait: it returns without waiting; call \
                     {flavor}_read_unlock() first"
                ),
            );
        }
        // The caller may run callbacks, and drive grace periods.
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

    /// `call_rcu_data_free`: the worker's thread finishes the batch that it is running, hands what
    /// is left to the default worker, and ends. Waits for that, as liburcu 0.14 does, except where
    /// it would wait for itself. A call for the default worker is ignored, as in liburcu.
    fn quiescence_urcu_call_rcu_data_free(flavor, crdp: *const Worker) {
        with_errno_uncancelled(|| workers::free(flavor, crdp));
    }

    /// `get_default_call_rcu_data`. Starts the worker's thread.
    fn quiescence_urcu_get_default_call_rcu_data(flavor) -> *const Worker {
        started_default(flavor)
    }

    /// `get_cpu_call_rcu_data`.
    fn quiescence_urcu_get_cpu_call_rcu_data(flavor, cpu: c_int) -> *const Worker {
        cpus::get(flavor, cpu)
    }

    /// `get_thread_call_rcu_data`.
    fn quiescence_urcu_get_thread_call_rcu_data(flavor) -> *const Worker { chosen(flavor) }

    /// `get_call_rcu_data`: the worker that `call_rcu` would use.
    fn quiescence_urcu_get_call_rcu_data(flavor) -> *const Worker {
        let of_thread = chosen(flavor);
        if !of_thread.is_null() {
            return of_thread;
        }
        let of_cpu = cpus::here(flavor);
        if of_cpu.is_null() { started_default(flavor) } else { of_cpu }
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

    /// `free_all_cpu_call_rcu_data`. Waits for a grace period, as in liburcu; unlike there, it does
    /// not wait if no CPU has a worker.
    fn quiescence_urcu_free_all_cpu_call_rcu_data(flavor) {
        with_errno_uncancelled(|| cpus::free_all(flavor));
    }
}

/// The default worker, with its thread, if the system provides one.
fn started_default(flavor: Flavor) -> *const Worker {
    let worker = workers::default(flavor);
    with_errno_uncancelled(|| {
        if !worker.callback_queue.is_attended() {
            workers::start(worker);
        }
    });
    worker
}

/// 0, or the negated error number, which is also stored in `errno`.
fn answer(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: asks where the calling thread has it.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: the thread's own.
            unsafe { *errno = error };
            -error
        }
    }
}
