//! All workers, and what is known of their threads; under one lock, which is not taken to queue a
//! callback.
//!
//! It comes before all of the library's (`quiescence/src/os/lock_rank.rs`). No callback runs under
//! it.
//!
//! # Invariants
//! - Nothing is pushed to a worker once it is asked to stop: [`free`]. So its thread, which hands
//!   over what is left and takes it out of the list, leaves nothing behind in it, and a barrier,
//!   which looks through callback queues only, misses nothing.
//! - A worker in the list is paused as often as its flavour is: [`Workers::paused`]. One that is
//!   made meanwhile stands still from its beginning.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quiescence::callback_queue::Left;

use super::worker::Worker;
use crate::fatal::{UNREAD, fatal, variable};
use crate::flavor::{FLAVORS, Flavor};
use crate::threads;

/// How long a default worker has nothing to do before its thread ends.
fn idle_after_ms() -> u64 {
    static IDLE_MS: AtomicU64 = AtomicU64::new(UNREAD);
    let (name, wanted) = (c"QUIESCENCE_CALL_RCU_IDLE_MS", "a whole number of milliseconds");
    variable(&IDLE_MS, name, 10_000, wanted, |said| said.parse().ok())
}

/// A worker, and what is known of its thread.
pub(super) struct Entry {
    pub(super) worker: Arc<Worker>,
    /// Its thread, if it has one.
    thread: Option<libc::pthread_t>,
    /// Somebody has asked for the thread, and may join it.
    handed_out: bool,
    /// A callback came when the thread was about to end.
    wanted: bool,
    /// C has given it back.
    freed: bool,
}

/// All there are, and the pauses of each flavour.
pub(super) struct Workers {
    entries: Vec<Entry>,
    /// Pauses of each flavour that have not ended: its threads between `call_rcu_before_fork` and
    /// `call_rcu_after_fork_*`.
    paused: [u32; FLAVORS],
}

static WORKERS: Mutex<Workers> = Mutex::new(Workers { entries: Vec::new(), paused: [0; FLAVORS] });

/// The default workers, once they were needed. They are never freed.
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

    /// A new worker, which stands still while its flavour is paused; not in the list yet.
    fn make(&self, flavor: Flavor, flags: c_ulong, cpu: c_int) -> Arc<Worker> {
        let worker = Worker::new(flavor, flags, cpu);
        // Nothing runs in it that this would wait for.
        (0..self.paused[flavor.index()]).for_each(|_| worker.callback_queue.pause());
        worker
    }
}

/// The flavour's default worker.
#[inline]
pub(super) fn default(flavor: Flavor) -> &'static Worker {
    // Acquire: pairs with the Release in `make_default`.
    let worker = DEFAULTS[flavor.index()].load(Acquire);
    // SAFETY: null, or never freed.
    unsafe { worker.as_ref() }.unwrap_or_else(|| make_default(flavor))
}

/// The same, if it was ever needed.
pub(super) fn existing_default(flavor: Flavor) -> Option<&'static Worker> {
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
    // Release: pairs with the Acquire in `default`.
    DEFAULTS[flavor.index()].store(ptr::from_ref(lasting).cast_mut(), Release);
    lasting
}

fn is_default(worker: &Worker) -> bool {
    existing_default(worker.flavor).is_some_and(|default| ptr::eq(default, worker))
}

impl Entry {
    fn new(worker: Arc<Worker>) -> Self {
        Self { worker, thread: None, handed_out: false, wanted: false, freed: false }
    }

    /// Starts its thread. If the system gives none, callbacks wait for the next one that is queued,
    /// or a barrier.
    fn start(&mut self) -> bool {
        // The thread may take a while to come; callbacks are not a barrier's caller's business.
        self.worker.callback_queue.expect();
        if self.thread.is_none() {
            let worker = Arc::into_raw(Arc::clone(&self.worker));
            self.thread = threads::spawn(main, worker.cast_mut().cast());
            if self.thread.is_none() {
                // SAFETY: from above; no thread has it.
                drop(unsafe { Arc::from_raw(worker) });
            }
        }
        if self.thread.is_none() {
            let told = self.worker.callback_queue.neglect();
            told.unwrap_or_else(|twice| self.worker.queued_twice(twice));
        }
        self.thread.is_some()
    }
}

extern "C" fn main(worker: *mut c_void) -> *mut c_void {
    threads::name(c"call_rcu");
    // SAFETY: from `Entry::start`, and this thread's alone.
    unsafe { Arc::from_raw(worker.cast::<Worker>()) }.run();
    ptr::null_mut()
}

/// A callback was queued where no thread attends: starts one, or has the one that is about to end
/// stay.
#[cold]
pub(super) fn start(worker: &Worker) {
    let mut workers = lock();
    if let Some(entry) = workers.find(worker) {
        entry.wanted = true;
        entry.start();
    }
    // No thread pushes to those that were being freed at a fork: in the child this is what has
    // their callbacks handed over.
    workers.start_those(|entry| entry.freed);
}

impl Workers {
    /// Starts threads of those workers that have something to do and none to do it.
    fn start_those(&mut self, which: impl Fn(&Entry) -> bool) {
        let without = self.entries.iter_mut().filter(|entry| entry.thread.is_none());
        for entry in without.filter(|entry| which(entry)) {
            if !entry.worker.callback_queue.is_empty() {
                entry.wanted = true;
                entry.start();
            }
        }
    }
}

/// Starts threads of all workers that have something to do and none to do it: in a child process,
/// or where the system gave none.
pub(super) fn start_where_needed(flavor: Flavor) {
    lock().start_those(|entry| entry.worker.flavor == flavor);
}

/// A worker of C's own; none if the system gives it no thread.
pub(super) fn create(flavor: Flavor, flags: c_ulong, cpu: c_int) -> Option<*const Worker> {
    let mut workers = lock();
    let worker = workers.make(flavor, flags, cpu);
    let mut entry = Entry::new(Arc::clone(&worker));
    if !entry.start() {
        drop(workers);
        return None;
    }
    workers.entries.push(entry);
    // C's own, until it frees it.
    Some(Arc::into_raw(worker))
}

/// Whether the calling thread may wait for a worker's thread of this flavour: it runs no callback,
/// and is in no section, for which the worker may wait in turn.
pub(super) fn may_wait(flavor: Flavor) -> bool {
    let runs_callback =
        |flavor: &Flavor| flavor.is_attached() && flavor.domain().is_in_callback_queue();
    let is_reading = flavor.record().is_some_and(|record| !record.is_quiescent());
    !is_reading && !Flavor::ALL.iter().any(runs_callback)
}

/// A worker that was freed has no thread any more.
static ENDED: Condvar = Condvar::new();

/// `call_rcu_data_free`. If it `waits`, the worker's thread runs nothing any more when it returns:
/// it is joined by the program, or detached.
///
/// # Safety
/// `crdp` is null or a worker that was not freed, and no thread uses it any more.
pub(super) unsafe fn free(flavor: Flavor, crdp: *const Worker, waits: bool) {
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
    // A thread that queues by way of a CPU may have found it, and not pushed yet.
    quiescence::synchronize();
    // SAFETY: C's own, by `create`.
    let worker = unsafe { Arc::from_raw(crdp) };
    worker.callback_queue.stop();
    let mut workers = lock();
    if let Some(entry) = workers.find(crdp).filter(|entry| entry.thread.is_none()) {
        // In a child process. The thread does what a stopped one does.
        entry.start();
    }
    while waits && workers.find(crdp).is_some_and(|entry| entry.thread.is_some()) {
        workers = ENDED.wait(workers).unwrap_or_else(PoisonError::into_inner);
    }
    drop(workers);
    drop(worker); // perhaps the last owner: its callback queue ends, without the lock
}

/// `get_call_rcu_thread`.
///
/// # Safety
/// `crdp` is a worker that was not freed.
pub(super) unsafe fn thread_of(flavor: Flavor, crdp: *const Worker) -> libc::pthread_t {
    let mut workers = lock();
    let thread = workers.find(crdp).and_then(|entry| {
        entry.handed_out = true;
        entry.wanted = true;
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

/// How long the worker's thread stays with nothing to do; for ever, if there is no answer.
pub(super) fn idle_after(worker: &Worker) -> Option<Duration> {
    let handed_out = lock().find(worker).is_none_or(|entry| entry.handed_out);
    (is_default(worker) && !handed_out).then(|| Duration::from_millis(idle_after_ms()))
}

/// What a worker's thread does next.
pub(super) enum Next {
    /// It continues, and leaves when it has had nothing to do for so long.
    Attend(Option<Duration>),
    /// It hands what is left over, and ends.
    HandOver(&'static Worker),
    /// It ends.
    End,
}

/// The worker's thread has left its callback queue. Says what it does next; if it ends, there is
/// none from now on.
pub(super) fn next(worker: &Worker, left: Left) -> Next {
    let mut workers = lock();
    // None in a child that a callback of the worker has forked: `keep_default_only`.
    let Some(entry) = workers.find(worker) else { return Next::End };
    if left == Left::Taken {
        // Another thread attends, and will until it ends: there is nothing to wait for here.
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
    if left != Left::Idle || std::mem::take(&mut entry.wanted) || entry.handed_out {
        drop(workers);
        return Next::Attend(idle_after(worker));
    }
    entry.thread = None;
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
    // Perhaps the last owner: its callback queue ends, without the lock.
    drop(gone);
}

/// The calling thread cannot be joined: its number was not given out.
fn detach() {
    // SAFETY: asks for a number.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread, which is joinable and not joined.
    unsafe { libc::pthread_detach(thread) };
}

/// Workers of a flavour stand still from now on, those that are made meanwhile as well. Returns
/// when no callback of theirs is being run, unless by the calling thread.
pub(super) fn pause(flavor: Flavor) {
    let mut workers = lock();
    workers.paused[flavor.index()] += 1;
    let of_flavor: Vec<_> =
        workers.of_flavor(flavor).map(|entry| Arc::clone(&entry.worker)).collect();
    drop(workers); // callbacks, which are waited for, may want it
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
    /// In a child process: workers have no threads, but for the one that has forked in a callback;
    /// and they are paused as often as this thread has paused each flavour itself.
    pub(super) fn after_fork(&mut self, paused: [u32; FLAVORS]) {
        // SAFETY: asks for a number, which is the same in the child.
        let own = unsafe { libc::pthread_self() };
        self.paused = paused;
        for entry in &mut self.entries {
            // Callback queues have forgotten their pauses. Nothing runs that this would wait for.
            let pauses = paused[entry.worker.flavor.index()];
            (0..pauses).for_each(|_| entry.worker.callback_queue.pause());
            if entry.freed {
                entry.worker.callback_queue.stop(); // the thread that was about to is gone
            }
            if entry.thread == Some(own) {
                continue;
            }
            if entry.thread.take().is_some() {
                // SAFETY: its thread's own, which is not here to drop it; the entry has another
                // one.
                unsafe { Arc::decrement_strong_count(Arc::as_ptr(&entry.worker)) };
            }
            entry.handed_out = false;
        }
    }
}

/// For `after_fork_child`: frees all workers of the flavour but the default one, and gives it what
/// they have.
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
            // SAFETY: C's own, which is freed by this call, as liburcu says.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&worker)) });
        }
    }
    start_where_needed(flavor);
}

#[cfg(test)]
mod tests {
    use std::ffi::c_uint;

    use super::*;

    unsafe extern "C" {
        safe fn quiescence_urcu_call_rcu_before_fork(flavor: c_uint);
        safe fn quiescence_urcu_call_rcu_after_fork_parent(flavor: c_uint);
        safe fn quiescence_urcu_call_rcu_after_fork_child(flavor: c_uint);
    }

    /// Forks, and returns how the child ends: with 0 if `f` is right there.
    fn in_child(f: impl FnOnce() -> bool) -> c_int {
        // SAFETY: the child calls what is made for it, and the allocator, which glibc makes whole.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a signal that ends the process: a child that hangs is a failure.
            unsafe { libc::alarm(60) };
            let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
            // SAFETY: ends the child.
            unsafe { libc::_exit(c_int::from(!right.unwrap_or(false))) };
        }
        let mut status = 0;
        // SAFETY: a child of ours, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    }

    /// What the threads have that a child has not got is no worker's owner there.
    #[test]
    fn a_child_has_no_worker_but_the_default_one() {
        let flavor = Flavor::called(Flavor::Mb.index() as c_uint);
        let number = flavor.index() as c_uint;
        let made = create(flavor, 0, -1).unwrap();
        let worker = Arc::downgrade(&lock().find(made).unwrap().worker);
        quiescence_urcu_call_rcu_before_fork(number);
        let status = in_child(|| {
            quiescence_urcu_call_rcu_after_fork_child(number);
            worker.upgrade().is_none() && lock().of_flavor(flavor).count() == 1
        });
        quiescence_urcu_call_rcu_after_fork_parent(number);
        assert_eq!(status, 0, "the worker is there still");
        assert!(worker.upgrade().is_some());
        // SAFETY: made above, and freed once.
        unsafe { free(flavor, made, true) };
    }
}
