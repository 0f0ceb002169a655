//! The list of all workers and their threads, under one lock. Queueing a callback does not take it.
//!
//! This lock is taken before all locks of the library (`quiescence/src/os/lock_rank.rs`). No
//! callback runs under it.
//!
//! # Invariants
//! - Nothing is pushed to a worker once it is asked to stop ([`free`]). Its thread hands over what
//!   is left, and takes the worker out of the list. So nothing is left behind in it, and a barrier,
//!   which waits for the callback queues only, misses nothing.
//! - A worker in the list is paused as often as its flavour is ([`Workers::paused`]). A worker that
//!   is made during a pause is paused from the start.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiescence::callback_queue::Left;

use super::cpus;
use super::worker::Worker;
use crate::errno_guard::with_errno;
use crate::fatal::{UNREAD, fatal, variable};
use crate::flavor::{FLAVORS, Flavor};
use crate::threads;

/// How long a default worker is idle before its thread ends; for ever, unless the environment says
/// otherwise: a sandbox may allow no new thread, and that would have its caller's CPUs and policy.
fn default_idle_after() -> Option<Duration> {
    const NEVER: u64 = UNREAD - 1;
    static IDLE_MS: AtomicU64 = AtomicU64::new(UNREAD);
    let (name, wanted) = (c"QUIESCENCE_CALL_RCU_IDLE_MS", "a whole number of milliseconds");
    let after_ms = variable(&IDLE_MS, name, NEVER, wanted, |said| said.parse().ok());
    (after_ms != NEVER).then(|| Duration::from_millis(after_ms))
}

/// A worker and its thread.
pub(super) struct Entry {
    pub(super) worker: Arc<Worker>,
    /// Its thread, if it has one.
    thread: Option<libc::pthread_t>,
    /// The program has obtained the thread's id, and may join the thread.
    handed_out: bool,
    /// The program has freed the worker.
    freed: bool,
}

/// All workers, and the pauses of each flavour.
pub(super) struct Workers {
    entries: Vec<Entry>,
    /// The pauses of each flavour that have not ended: how many calls of `call_rcu_before_fork`
    /// have not been followed by `call_rcu_after_fork_*`.
    paused: [u32; FLAVORS],
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { entries: Vec::new(), paused: [0; FLAVORS] });

/// The default workers, each created on first use and never freed.
static DEFAULTS: [AtomicPtr<Worker>; FLAVORS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; FLAVORS];

pub(super) fn lock() -> MutexGuard<'static, Workers> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    fn find(&mut self, worker: *const Worker) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| ptr::eq(Arc::as_ptr(&entry.worker), worker))
    }

    fn of_flavor(&self, flavor: Flavor) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.worker.flavor == flavor)
    }

    /// A new worker, paused as often as its flavour. It is not in the list yet.
    fn make(&self, flavor: Flavor, flags: c_ulong, cpu: c_int) -> Arc<Worker> {
        let worker = Worker::new(flavor, flags, cpu);
        // No callback of it is running, for which `pause` would wait.
        (0..self.paused[flavor.index()]).for_each(|_| worker.callback_queue.pause());
        worker
    }
}

/// The flavour's default worker.
#[inline]
pub(super) fn default(flavor: Flavor) -> &'static Worker {
    existing_default(flavor).unwrap_or_else(|| with_errno(|| make_default(flavor)))
}

/// The same, if it has been created.
#[inline]
pub(super) fn existing_default(flavor: Flavor) -> Option<&'static Worker> {
    // Acquire: pairs with the Release in `make_default`.
    // SAFETY: null, or never freed.
    unsafe { DEFAULTS[flavor.index()].load(Acquire).as_ref() }
}

#[cold]
fn make_default(flavor: Flavor) -> &'static Worker {
    let mut workers = lock();
    if let Some(worker) = existing_default(flavor) {
        return worker;
    }
    let worker = workers.make(flavor, 0, -1);
    // SAFETY: kept by the list for ever: `free` leaves default workers alone.
    let lasting = unsafe { &*Arc::as_ptr(&worker) };
    workers.entries.push(Entry::new(worker));
    // Release: pairs with the Acquire in `existing_default`.
    DEFAULTS[flavor.index()].store(ptr::from_ref(lasting).cast_mut(), Release);
    lasting
}

fn is_default(worker: &Worker) -> bool {
    existing_default(worker.flavor).is_some_and(|default| ptr::eq(default, worker))
}

impl Entry {
    fn new(worker: Arc<Worker>) -> Self {
        Self { worker, thread: None, handed_out: false, freed: false }
    }

    /// Starts its thread. If the system provides none, callbacks wait until the next one is queued,
    /// or until a barrier.
    fn start(&mut self) -> bool {
        // It may take a while to arrive, or to come back if it was about to end: `next`. Until then
        // a barrier must not run its callbacks.
        self.worker.callback_queue.expect();
        if self.thread.is_none() {
            let worker = Arc::into_raw(Arc::clone(&self.worker));
            self.thread = threads::spawn(main, worker.cast_mut().cast());
            if self.thread.is_none() {
                // SAFETY: from `into_raw` above; no thread has it.
                drop(unsafe { Arc::from_raw(worker) });
                self.neglect();
            }
        }
        self.thread.is_some()
    }

    /// It has no thread, and none is on its way.
    fn neglect(&self) {
        let told = self.worker.callback_queue.neglect();
        told.unwrap_or_else(|twice| self.worker.queued_twice(twice));
    }
}

extern "C" fn main(worker: *mut c_void) -> *mut c_void {
    threads::name(c"call_rcu");
    // SAFETY: from `Entry::start`, and this thread's alone.
    unsafe { Arc::from_raw(worker.cast::<Worker>()) }.run();
    ptr::null_mut()
}

/// A worker is needed, with a callback or by the program: starts its thread, if it has none.
#[cold]
pub(super) fn start(worker: &Worker) {
    let mut workers = lock();
    if let Some(entry) = workers.find(worker) {
        entry.start();
    }
    // No thread pushes to workers that were being freed at a fork. In the child this call has their
    // callbacks handed over.
    workers.start_those(|entry| entry.freed);
}

impl Workers {
    /// Starts a thread for each of these workers that has callbacks but no thread.
    fn start_those(&mut self, which: impl Fn(&Entry) -> bool) {
        let without = self.entries.iter_mut().filter(|entry| entry.thread.is_none());
        for entry in without.filter(|entry| which(entry)) {
            if !entry.worker.callback_queue.is_empty() {
                entry.start();
            }
        }
    }
}

/// Starts a thread for each worker that has callbacks but no thread: in a child process, or after
/// the system has provided none.
pub(super) fn start_where_needed(flavor: Flavor) {
    lock().start_those(|entry| entry.worker.flavor == flavor);
}

/// A worker that C owns; `None` if the system provides no thread.
pub(super) fn create(flavor: Flavor, flags: c_ulong, cpu: c_int) -> Option<*const Worker> {
    let mut workers = lock();
    let worker = workers.make(flavor, flags, cpu);
    let mut entry = Entry::new(Arc::clone(&worker));
    if !entry.start() {
        drop(workers);
        return None;
    }
    workers.entries.push(entry);
    // C owns it until it frees it.
    Some(Arc::into_raw(worker))
}

/// Whether the calling thread may wait for a worker's thread of this flavour. It may not in a
/// callback or a section, for which the worker may wait in turn.
fn may_wait(flavor: Flavor) -> bool {
    let in_callback = |one: Flavor| one.domain().is_in_callback_queue();
    !flavor.is_reader() && !Flavor::ALL.into_iter().any(in_callback)
}

/// Notified when a worker's thread has ended.
static ENDED: Condvar = Condvar::new();

/// `call_rcu_data_free`. If the caller [may wait](may_wait), the worker's thread runs nothing more
/// when this returns. The thread has detached itself, or the program joins it.
///
/// # Safety
/// `crdp` is null or a worker that was not freed, and no thread uses it any more.
pub(super) unsafe fn free(flavor: Flavor, crdp: *const Worker) {
    let waits = may_wait(flavor);
    let mut workers = lock();
    let Some(entry) = workers.find(crdp).filter(|entry| !entry.freed) else {
        if !crdp.is_null() {
            fatal(format_args!(
                "{flavor}_call_rcu_data_free({crdp:p}): there is no such worker; was it freed \
                 before?"
            ));
        }
        return;
    };
    if is_default(&entry.worker) {
        return;
    }
    entry.freed = true;
    drop(workers);
    cpus::wait_for_pushers(flavor);
    // SAFETY: C's reference, from `create`.
    let worker = unsafe { Arc::from_raw(crdp) };
    worker.callback_queue.stop();
    let mut workers = lock();
    if let Some(entry) = workers.find(crdp).filter(|entry| entry.thread.is_none()) {
        // In a child process. The new thread does what a stopped one does.
        entry.start();
    }
    while waits && workers.find(crdp).is_some_and(|entry| entry.thread.is_some()) {
        workers = ENDED.wait(workers).unwrap_or_else(PoisonError::into_inner);
    }
    drop(workers);
    drop(worker); // without the lock: if this is the last owner, its callback queue ends
}

/// `get_call_rcu_thread`.
///
/// # Safety
/// `crdp` is a worker that was not freed.
pub(super) unsafe fn thread_of(flavor: Flavor, crdp: *const Worker) -> libc::pthread_t {
    let mut workers = lock();
    let thread = workers.find(crdp).and_then(|entry| {
        entry.handed_out = true;
        entry.start();
        entry.thread
    });
    thread.unwrap_or_else(|| {
        fatal(format_args!(
            "{flavor}_get_call_rcu_thread({crdp:p}): there is no such worker, or no memory for its \
             thread"
        ))
    })
}

/// How long the worker's thread stays idle before it ends; `None` is for ever.
pub(super) fn idle_after(worker: &Worker) -> Option<Duration> {
    let handed_out = lock().find(worker).is_none_or(|entry| entry.handed_out);
    default_idle_after().filter(|_| is_default(worker) && !handed_out)
}

/// What a worker's thread does next.
pub(super) enum Next {
    /// It continues, and leaves when it has been idle for so long.
    Attend(Option<Duration>),
    /// It hands its callbacks to this worker, and ends.
    HandOver(&'static Worker),
    /// It ends.
    End,
}

/// Called when the worker's thread has left its callback queue: what the thread does next. If it
/// ends, the worker has no thread from now on.
pub(super) fn next(worker: &Worker, left: Left) -> Next {
    let mut workers = lock();
    // There is no entry in a child that a callback of the worker has forked: `keep_default_only`.
    let Some(entry) = workers.find(worker) else { return Next::End };
    if left == Left::Taken {
        // Another thread runs the queue, and does so until it ends: this one is not needed.
        entry.thread = None;
        ENDED.notify_all();
        if !entry.handed_out {
            detach();
        }
        return Next::End;
    }
    if entry.freed {
        drop(workers);
        return Next::HandOver(default(worker.flavor));
    }
    // Callbacks may have come meanwhile, and found that there is a thread: `Entry::start`.
    if left != Left::Idle || entry.handed_out || !worker.callback_queue.is_empty() {
        drop(workers);
        return Next::Attend(idle_after(worker));
    }
    entry.thread = None;
    entry.neglect(); // a barrier that came first may have run what the thread was to come back for
    detach();
    Next::End
}

/// The thread of a worker that was freed is about to end.
pub(super) fn ended(worker: &Worker) {
    let mut workers = lock();
    if workers.find(worker).is_some_and(|entry| !entry.handed_out) {
        detach();
    }
    let is_it = |entry: &Entry| ptr::eq(Arc::as_ptr(&entry.worker), worker);
    let gone = workers.entries.iter().position(is_it);
    let gone = gone.map(|index| workers.entries.swap_remove(index));
    ENDED.notify_all();
    drop(workers);
    // Without the lock: if this is the last owner, its callback queue ends.
    drop(gone);
}

/// Detaches the calling thread: no thread can join it, as its id was not handed out.
fn detach() {
    // SAFETY: `pthread_self` has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread, which is joinable and not joined.
    unsafe { libc::pthread_detach(thread) };
}

/// Pauses a flavour's workers, also those that are made meanwhile. Returns when none of their
/// callbacks is running, except on the calling thread.
pub(super) fn pause(flavor: Flavor) {
    let mut workers = lock();
    workers.paused[flavor.index()] += 1;
    let of_flavor: Vec<_> =
        workers.of_flavor(flavor).map(|entry| Arc::clone(&entry.worker)).collect();
    drop(workers); // callbacks, for which `pause` waits, may take this lock
    of_flavor.iter().for_each(|worker| worker.callback_queue.pause());
}

/// Ends a [`pause`].
pub(super) fn resume(flavor: Flavor) {
    let mut workers = lock();
    let paused = &mut workers.paused[flavor.index()];
    *paused = paused.saturating_sub(1);
    workers.of_flavor(flavor).for_each(|entry| entry.worker.callback_queue.resume());
}

impl Workers {
    /// In a child process: no worker has a thread, except one that forked in a callback. Workers
    /// are paused as often as this thread itself has paused their flavour.
    pub(super) fn after_fork(&mut self, paused: [u32; FLAVORS]) {
        // SAFETY: no preconditions. The thread has the same id in the child.
        let own = unsafe { libc::pthread_self() };
        self.paused = paused;
        for entry in &mut self.entries {
            // Callback queues have forgotten their pauses. Nothing runs for which `pause` would
            // wait.
            let pauses = paused[entry.worker.flavor.index()];
            (0..pauses).for_each(|_| entry.worker.callback_queue.pause());
            if entry.freed {
                entry.worker.callback_queue.stop(); // the thread that was about to is gone
            }
            if entry.thread == Some(own) {
                continue;
            }
            if entry.thread.take().is_some() {
                // SAFETY: the reference of its thread, which the child does not have; the entry has
                // another one.
                unsafe { Arc::decrement_strong_count(Arc::as_ptr(&entry.worker)) };
            }
            entry.handed_out = false;
        }
    }
}

/// For `after_fork_child`: frees all workers of the flavour except the default one, and hands it
/// their callbacks.
pub(super) fn keep_default_only(flavor: Flavor) {
    if lock().of_flavor(flavor).next().is_none() {
        return;
    }
    let to = default(flavor);
    let mut workers = lock();
    let (gone, kept): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut workers.entries)
        .into_iter()
        .partition(|entry| entry.worker.flavor == flavor && !is_default(&entry.worker));
    workers.entries = kept;
    drop(workers);
    for Entry { worker, freed, .. } in gone {
        let handed = worker.callback_queue.hand_over(&to.callback_queue);
        let _ = handed.unwrap_or_else(|twice| worker.queued_twice(twice));
        // Its thread, if it is the one that has forked, comes back to it, and ends.
        worker.callback_queue.stop();
        if !freed {
            // SAFETY: C's reference, which this call releases, as liburcu documents.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&worker)) });
        }
    }
    start_where_needed(flavor);
}

#[cfg(test)]
#[path = "../../../quiescence/tests/common/processes.rs"]
mod processes;
#[cfg(test)]
mod tests {
    use std::ffi::c_uint;
    use std::sync::atomic::Ordering::AcqRel;

    use quiescence::raw::Head;

    use super::processes::in_child;
    use super::*;

    unsafe extern "C" {
        safe fn quiescence_urcu_call_rcu_before_fork(flavor: c_uint);
        safe fn quiescence_urcu_call_rcu_after_fork_parent(flavor: c_uint);
        safe fn quiescence_urcu_call_rcu_after_fork_child(flavor: c_uint);
    }

    /// It ended after ten seconds without work. In a sandbox no other could be made.
    #[test]
    fn a_default_worker_without_work_ended() {
        let flavor = Flavor::called(Flavor::Mb.index() as c_uint);
        assert_eq!(idle_after(default(flavor)), None);
    }

    /// It took the lock of all workers each time.
    #[test]
    fn a_default_worker_that_attends_was_started_again() {
        let flavor = Flavor::called(Flavor::Memb.index() as c_uint);
        let ask = || crate::call_rcu::started_default(flavor);
        in_child(|| {
            let worker = ask();
            while !default(flavor).callback_queue.is_attended() {
                std::thread::yield_now();
            }
            let _locked = lock();
            assert!(ptr::eq(ask(), worker)); // without waiting for the lock
        });
    }

    /// It was about to end, and a barrier ran what it was to come back for. One that ends after all
    /// is not waited for.
    #[test]
    fn a_thread_that_comes_back_was_not_expected() {
        static RAN_ON: AtomicU64 = AtomicU64::new(0);
        unsafe extern "C" fn run(_: *mut Head) {
            // SAFETY: `pthread_self` has no preconditions.
            RAN_ON.store(unsafe { libc::pthread_self() }, Release);
        }
        let flavor = Flavor::called(Flavor::Signal.index() as c_uint);
        let head = || Box::leak(Box::new(Head::new()));
        let wait = move || flavor.domain().wait_for_callback_queues();
        in_child(|| {
            // SAFETY: `pthread_self` has no preconditions.
            let own = unsafe { libc::pthread_self() };
            let worker = default(flavor);
            // This thread is the worker's, and has left the queue as idle.
            let leaves = || lock().find(worker).unwrap().thread = Some(own);
            leaves();
            // SAFETY: queued once, and leaked.
            unsafe { worker.push(head(), run) };
            let barrier = std::thread::spawn(wait);
            std::thread::sleep(Duration::from_millis(50)); // it may try
            let comes_back = matches!(next(worker, Left::Idle), Next::Attend(_));
            let left = worker.callback_queue.attend(Some(Duration::ZERO));
            barrier.join().unwrap();
            let ran_here = || RAN_ON.swap(0, AcqRel) == own;
            assert!(comes_back && left == Ok(Left::Idle) && ran_here());
            leaves();
            start(worker);
            let ends = matches!(next(worker, Left::Idle), Next::End);
            // SAFETY: queued once, and leaked.
            let pushed = unsafe { worker.callback_queue.push(head(), run) };
            wait();
            assert!(ends && pushed.unwrap().unattended && ran_here());
        });
    }

    /// References of threads that a child does not have do not keep a worker alive there.
    #[test]
    fn a_child_has_no_worker_but_the_default_one() {
        let flavor = Flavor::called(Flavor::Mb.index() as c_uint);
        let number = flavor.index() as c_uint;
        let made = create(flavor, 0, -1).unwrap();
        let worker = Arc::downgrade(&lock().find(made).unwrap().worker);
        quiescence_urcu_call_rcu_before_fork(number);
        in_child(|| {
            quiescence_urcu_call_rcu_after_fork_child(number);
            assert!(worker.upgrade().is_none(), "the worker is there still");
            assert_eq!(lock().of_flavor(flavor).count(), 1);
        });
        quiescence_urcu_call_rcu_after_fork_parent(number);
        assert!(worker.upgrade().is_some());
        // SAFETY: made above, and freed once.
        unsafe { free(flavor, made) };
    }
}
