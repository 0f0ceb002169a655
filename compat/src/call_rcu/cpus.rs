//! Workers of CPUs.
//!
//! A thread that queues a callback loads its CPU's worker and pushes in a section of a domain that
//! nothing else uses. A thread that frees a worker waits for those sections first.

use std::ffi::{c_int, c_ulong};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use quiescence::Domain;
use quiescence::raw::{Function, Head};

use super::worker::Worker;
use super::workers;
use crate::flavor::{FLAVORS, Flavor};
use crate::{memory, reader};

/// Bytes beyond the structure itself, for the allocations that come with it.
const SPARE: usize = 4_096;

type Table = Box<[AtomicPtr<Worker>]>;

quiescence::domain! {
    /// Of threads that push to the worker of their CPU.
    struct CpuWorkers;
}

const PUSHERS: Domain<CpuWorkers> = Domain::of(CpuWorkers);

/// By flavour: null until the first worker is set, and never freed after that. No `OnceLock`, which
/// a fork could leave half done in the child.
static TABLES: [AtomicPtr<Table>; FLAVORS] = [const { AtomicPtr::new(ptr::null_mut()) }; FLAVORS];

/// How many CPUs the machine may have.
fn count() -> usize {
    // SAFETY: `sysconf` has no preconditions.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(configured).unwrap_or(0)
}

/// The flavour's table, if there is one.
#[inline]
fn existing(flavor: Flavor) -> Option<&'static Table> {
    // Acquire: pairs with the Release in `table`.
    let table = TABLES[flavor.index()].load(Acquire);
    // SAFETY: null, or from a box that is never freed.
    unsafe { table.as_ref() }
}

/// Whether CPUs may have workers: whether any ever had one.
#[inline]
pub(super) fn are_there(flavor: Flavor) -> bool {
    existing(flavor).is_some()
}

/// The flavour's table. It is made if it is missing; an error if there is no memory for it.
fn table(flavor: Flavor) -> Result<&'static Table, c_int> {
    if let Some(table) = existing(flavor) {
        return Ok(table);
    }
    // Before the first section: a report of one would say nothing to the program.
    let mut tuning = PUSHERS.tuning();
    tuning.stall_after = None;
    PUSHERS.tune(tuning);
    // One thread makes it.
    let _workers = workers::lock();
    if let Some(table) = existing(flavor) {
        return Ok(table);
    }
    if !memory::is_there(size_of::<Table>() + count() * size_of::<AtomicPtr<Worker>>() + SPARE) {
        return Err(libc::ENOMEM);
    }
    let made: Table = (0..count()).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
    let made: &'static Table = Box::leak(Box::new(made));
    // Release: pairs with the Acquire in `existing`.
    TABLES[flavor.index()].store(ptr::from_ref(made).cast_mut(), Release);
    Ok(made)
}

/// The place of a CPU's worker, if there are any workers of CPUs.
fn place(flavor: Flavor, cpu: c_int) -> Option<&'static AtomicPtr<Worker>> {
    existing(flavor)?.get(usize::try_from(cpu).ok()?)
}

/// The CPU's worker, or null.
pub(super) fn get(flavor: Flavor, cpu: c_int) -> *const Worker {
    // Acquire: pairs with the exchange in `set`.
    place(flavor, cpu).map_or(ptr::null(), |place| place.load(Acquire).cast_const())
}

/// The worker of the CPU that the calling thread is on, or null.
pub(super) fn here(flavor: Flavor) -> *const Worker {
    if existing(flavor).is_none() {
        return ptr::null();
    }
    // SAFETY: `sched_getcpu` has no preconditions.
    get(flavor, unsafe { libc::sched_getcpu() })
}

/// Queues a callback with the CPU's worker, if it has one. Returns whether the domain is at its
/// limit.
///
/// # Safety
/// As [`quiescence::callback_queue::CallbackQueue::push`].
#[inline]
pub(super) unsafe fn push(flavor: Flavor, head: *mut Head, function: Function) -> Option<bool> {
    reader::attend_last_round(); // a thread's first section registers it
    let guard = PUSHERS.read();
    // SAFETY: the thread that frees it waits for this section: `workers::free`.
    let worker = unsafe { here(flavor).as_ref() };
    // SAFETY: by the contract.
    let pushed = worker.map(|worker| unsafe { worker.push(head, function) });
    drop(guard);
    pushed
}

/// Waits for threads that have found a worker as their CPU's, and perhaps not pushed yet.
pub(super) fn wait_for_pushers(flavor: Flavor) {
    if are_there(flavor) {
        PUSHERS.synchronize();
    }
}

/// `set_cpu_call_rcu_data`.
pub(super) fn set(flavor: Flavor, cpu: c_int, worker: *const Worker) -> Result<(), c_int> {
    let index = usize::try_from(cpu).map_err(|_| libc::EINVAL)?;
    let place = table(flavor)?.get(index).ok_or(libc::EINVAL)?;
    let worker = worker.cast_mut();
    if worker.is_null() {
        // AcqRel: as below.
        place.swap(worker, AcqRel);
        return Ok(());
    }
    // AcqRel: pairs with the Acquire in `get`; a thread that finds the worker finds it made.
    let set = place.compare_exchange(ptr::null_mut(), worker, AcqRel, Acquire);
    set.map(|_| ()).map_err(|_| libc::EEXIST)
}

/// `create_all_cpu_call_rcu_data`.
pub(super) fn create_all(flavor: Flavor, flags: c_ulong) -> Result<(), c_int> {
    let table = table(flavor)?;
    if table.is_empty() {
        return Err(libc::EINVAL);
    }
    for cpu in 0..table.len() as c_int {
        if !get(flavor, cpu).is_null() {
            continue;
        }
        // CPUs that have a worker keep it, as in liburcu.
        let enough = memory::is_there(size_of::<Worker>() + SPARE);
        let worker = if enough { workers::create(flavor, flags, cpu) } else { None };
        let worker = worker.ok_or(libc::ENOMEM)?;
        // Within the table it fails only if another thread has given the CPU one.
        if set(flavor, cpu, worker).is_err() {
            // SAFETY: made above, and known to no other thread.
            unsafe { workers::free(flavor, worker) };
        }
    }
    Ok(())
}

/// Takes all workers out, without freeing them.
pub(super) fn take_all(flavor: Flavor) -> Vec<*mut Worker> {
    let places = existing(flavor).into_iter().flat_map(|table| table.iter());
    // AcqRel: as in `set`.
    places
        .map(|place| place.swap(ptr::null_mut(), AcqRel))
        .filter(|taken| !taken.is_null())
        .collect()
}

/// `free_all_cpu_call_rcu_data`.
pub(super) fn free_all(flavor: Flavor) {
    let taken = take_all(flavor);
    if taken.is_empty() {
        return;
    }
    // For callers that obtained a worker by `get_cpu_call_rcu_data`, in sections of this flavour.
    let away = flavor.may_wait("free_all_cpu_call_rcu_data");
    flavor.domain().domain().synchronize();
    for worker in taken {
        // SAFETY: C's reference; no other thread can find the worker any more.
        unsafe { workers::free(flavor, worker) };
    }
    drop(away);
}
