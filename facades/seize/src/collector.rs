//! [`Collector`]: its domains, and the objects that wait in it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread as os_thread;
use std::time::{Duration, Instant};

use quiescence::tag::Private;
use quiescence::{Cookie, Domain, Srcu, SrcuOwnedGuard, raw};

use crate::guard::{LocalGuard, OwnedGuard};
use crate::thread;

/// Objects in a batch, which share the cost of a grace period, unless [`Collector::batch_size`]
/// sets another number.
const BATCH: usize = 256;

/// How long a thread waits for room at the end of a guard.
const PATIENCE: Duration = Duration::from_millis(10);

/// How often [`Collector::reclaim_all`] looks in vain before it gives up, at least.
const LOOKS: u32 = 100;

/// The collector: objects are retired to it, and guards protect them.
///
/// ```
/// use seize::{Collector, Guard, reclaim};
/// use std::ptr;
/// use std::sync::atomic::AtomicPtr;
/// use std::sync::atomic::Ordering::{AcqRel, Acquire};
///
/// let collector = Collector::new();
/// let place = AtomicPtr::new(Box::into_raw(Box::new(7)));
/// let guard = collector.enter();
/// let value = guard.protect(&place, Acquire);
/// // SAFETY: it is retired below at the earliest, and the guard lives.
/// assert_eq!(unsafe { *value }, 7);
/// let old = guard.swap(&place, ptr::null_mut(), AcqRel);
/// // SAFETY: from a box, and no thread can load it any more.
/// unsafe { guard.defer_retire(old, reclaim::boxed) };
/// ```
#[repr(transparent)]
pub struct Collector {
    /// From a box. A pointer, so that reclaimers can be given a collector even if its owner has
    /// moved the original.
    state: NonNull<State>,
}

// SAFETY: the state is behind locks and atomics. Threads that have the collector reclaim retired
// objects; whether they may is up to those who retire them.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

pub(crate) struct State {
    domain: Domain,
    /// The domain of owned guards; made for the first of them.
    owned: OnceLock<Arc<Srcu>>,
    /// How many owned guards live.
    owned_guards: AtomicUsize,
    /// Batches that are being filled, by thread.
    open: Box<[Open]>,
    /// Full batches, the oldest first.
    sealed: Mutex<VecDeque<Batch>>,
    /// How many full batches wait.
    waiting: AtomicUsize,
    /// The number of waiting objects, and their bytes.
    objects: AtomicUsize,
    bytes: AtomicUsize,
    objects_max: usize,
    bytes_max: usize,
    batch_size: usize,
}

/// A batch that is being filled. It has a pair of cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Open(Mutex<Vec<Entry>>);

/// A retired object.
struct Entry {
    object: *mut (),
    reclaim: unsafe fn(*mut (), &Collector),
    bytes: usize,
}

struct Batch {
    entries: Vec<Entry>,
    awaited: Awaited,
}

/// The grace periods after which no guard protects an object of a batch.
#[derive(Clone, Copy, PartialEq)]
struct Awaited {
    /// That of the collector's domain.
    sections: Cookie,
    /// That of owned guards; `None` if there were none.
    owned: Option<Cookie>,
}

thread_local! {
    /// Whether the thread is reclaiming. Guards that end meanwhile reclaim nothing, or stacks would
    /// grow.
    static RECLAIMS: Cell<bool> = const { Cell::new(false) };
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl Collector {
    /// Makes a collector with domains of its own.
    pub fn new() -> Self {
        let domain = Domain::new();
        let tuning = domain.tuning();
        let threads = os_thread::available_parallelism().map_or(1, usize::from);
        let open = (0..(2 * threads).next_power_of_two().min(64)).map(|_| Open::default());
        let state = State {
            owned: OnceLock::new(),
            owned_guards: AtomicUsize::new(0),
            open: open.collect(),
            sealed: Mutex::default(),
            waiting: AtomicUsize::new(0),
            objects: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            objects_max: usize::try_from(tuning.objects_max).unwrap_or(usize::MAX),
            bytes_max: usize::try_from(tuning.bytes_max).unwrap_or(usize::MAX),
            batch_size: BATCH,
            domain,
        };
        Self { state: NonNull::from(Box::leak(Box::new(state))) }
    }

    /// Sets the number of objects in a batch, which share a grace period.
    #[must_use]
    pub fn batch_size(mut self, batch_size: usize) -> Self {
        // SAFETY: the collector is owned, and no guard borrows it, so this is the only reference.
        unsafe { self.state.as_mut() }.batch_size = batch_size;
        self
    }

    /// Begins a section of the calling thread. What is retired from now on is not reclaimed before
    /// the guard is dropped. A thread's guards nest.
    #[inline]
    pub fn enter(&self) -> LocalGuard<'_> {
        LocalGuard::new(self)
    }

    /// The same, but the guard may go to other threads. It costs more.
    pub fn enter_owned(&self) -> OwnedGuard<'_> {
        OwnedGuard::new(self)
    }

    /// Begins the section of a thread's guard, which calls [`has_ended`](Self::has_ended) at its
    /// end.
    #[inline]
    pub(crate) fn read(&self) -> quiescence::Guard<'_, Private> {
        self.state().domain.read()
    }

    /// Begins the section of an owned guard, which calls [`owned_has_ended`](Self::owned_has_ended)
    /// at its end.
    pub(crate) fn read_owned(&self) -> SrcuOwnedGuard {
        self.state().owned_guards.fetch_add(1, SeqCst);
        let section = self.state().owned.get_or_init(|| Arc::new(Srcu::new())).read_owned();
        // Pairs with the fence in `seal`: a thread that finds no such domain there has unlinked its
        // objects before this section loads anything.
        fence(SeqCst);
        section
    }

    /// Calls `reclaim(ptr, collector)` once all guards that live now have ended; perhaps in this
    /// call, if there are none.
    ///
    /// # Safety
    /// `ptr` is retired once, and guards that begin from now on do not reach it. `reclaim(ptr, _)`
    /// may be called by every thread that has this collector, and as late as in the collector's
    /// drop.
    pub unsafe fn retire<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Self)) {
        // SAFETY: by the contract.
        unsafe { self.add(ptr, reclaim) };
        self.has_ended();
    }

    /// Reclaims retired objects, and what their reclaimers retire: all of them, if no guard lives.
    ///
    /// # Safety
    /// No thread uses a retired object. (Objects that a guard still protects are spared all the
    /// same: programs share collectors. It is taken to be a guard that holds them up if nothing
    /// could be reclaimed for 10 ms, at a hundred looks. What other threads retire meanwhile is
    /// reclaimed as well: as long as they go on, this may.)
    pub unsafe fn reclaim_all(&self) {
        let state = self.state();
        let (mut looks, mut began) = (0, Instant::now());
        // Another thread may be driving the grace period, or this one may have lost its CPU.
        while state.objects.load(Relaxed) != 0 && (looks < LOOKS || began.elapsed() < PATIENCE) {
            state.seal_all();
            if self.reclaim_ready() {
                (looks, began) = (0, Instant::now());
            } else {
                looks += 1;
                os_thread::yield_now();
            }
        }
    }

    #[inline]
    fn state(&self) -> &State {
        // SAFETY: from a box that lives as long as the collector that owns it. The collectors that
        // reclaimers are given are used only during a call of that one.
        unsafe { self.state.as_ref() }
    }

    /// Adds an object to the thread's batch.
    ///
    /// # Safety
    /// As [`retire`](Self::retire).
    pub(crate) unsafe fn add<T>(&self, ptr: *mut T, reclaim: unsafe fn(*mut T, &Self)) {
        debug_assert!(!ptr.is_null(), "a null pointer is retired");
        // SAFETY: each is a function of one thin pointer, and is called with the pointer that it is
        // for.
        let reclaim = unsafe {
            mem::transmute::<unsafe fn(*mut T, &Self), unsafe fn(*mut (), &Self)>(reclaim)
        };
        let state = self.state();
        let entry = Entry { object: ptr.cast(), reclaim, bytes: size_of::<T>() };
        state.objects.fetch_add(1, Relaxed);
        state.bytes.fetch_add(entry.bytes, Relaxed);
        let mut open = lock(state.own_batch());
        open.push(entry);
        if open.len() >= state.batch_size || state.is_over_limit() {
            let entries = mem::take(&mut *open);
            drop(open);
            state.seal(entries);
        }
    }

    /// Closes the calling thread's batch, however few objects it has.
    pub(crate) fn flush(&self) {
        let state = self.state();
        let entries = mem::take(&mut *lock(state.own_batch()));
        state.seal(entries);
    }

    /// Closes the batches of all threads.
    pub(crate) fn flush_all(&self) {
        self.state().seal_all();
    }

    /// Whether a batch waits.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        // Relaxed: a hint. The next guard that ends finds a batch that is missed here.
        self.state().waiting.load(Relaxed) != 0
    }

    /// Whether the calling thread is in exactly one section, not in a nested one.
    pub(crate) fn is_outermost(&self) -> bool {
        raw::nesting(&self.state().domain) == 1
    }

    /// An owned guard's section belongs to no thread, so it may always be renewed.
    pub(crate) fn is_any(&self) -> bool {
        true
    }

    /// Called when a thread's guard has ended, or an object was retired: reclaims ready batches, if
    /// any wait.
    #[inline]
    pub(crate) fn has_ended(&self) {
        if self.has_waiting() {
            self.settle();
        }
    }

    /// Called when an owned guard has ended. If it was the last one, batches that only owned guards
    /// held up are reclaimed here. A grace period of their domain takes some steps, and the
    /// library's worker may be taking one, so this waits, for two ticks at most.
    pub(crate) fn owned_has_ended(&self) {
        let is_last = self.state().owned_guards.fetch_sub(1, SeqCst) == 1;
        self.has_ended();
        let began = Instant::now();
        let waits = || self.has_waiting() && self.may_reclaim() && began.elapsed() < 2 * PATIENCE;
        while is_last && waits() {
            os_thread::yield_now();
            self.settle();
        }
    }

    /// Whether this thread is in no section and in no reclaimer.
    fn may_reclaim(&self) -> bool {
        !RECLAIMS.get() && raw::nesting(&self.state().domain) == 0
    }

    /// Reclaims ready batches, and waits for room if too many objects wait. Does nothing in a
    /// section of this thread, or in a reclaimer.
    #[cold]
    pub(crate) fn settle(&self) {
        let state = self.state();
        if !self.may_reclaim() {
            return;
        }
        self.reclaim_ready();
        if !state.is_over_limit() {
            return;
        }
        self.flush();
        let began = Instant::now();
        while state.is_over_limit() && began.elapsed() < PATIENCE {
            os_thread::yield_now();
            self.reclaim_ready();
        }
    }

    /// Reclaims ready batches; says whether there were any.
    fn reclaim_ready(&self) -> bool {
        let mut any = false;
        while let Some(batch) = self.state().take_ready() {
            self.run(batch);
            any = true;
        }
        any
    }

    /// Reclaims a batch. If a reclaimer panics, the rest of the batch waits again.
    fn run(&self, batch: Batch) {
        struct Running<'c> {
            state: &'c State,
            batch: Batch,
            outer: bool,
        }
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                RECLAIMS.set(self.outer);
                let entries = mem::take(&mut self.batch.entries);
                if !entries.is_empty() {
                    self.state.wait_first(Batch { entries, awaited: self.batch.awaited });
                }
            }
        }
        let state = self.state();
        let mut running = Running { state, batch, outer: RECLAIMS.replace(true) };
        let collector = ManuallyDrop::new(Self { state: self.state });
        while let Some(entry) = running.batch.entries.pop() {
            state.objects.fetch_sub(1, Relaxed);
            state.bytes.fetch_sub(entry.bytes, Relaxed);
            // SAFETY: retired with this function, and its batch was taken out after the guards that
            // could protect it had ended.
            unsafe { (entry.reclaim)(entry.object, &collector) };
        }
    }
}

impl Drop for Collector {
    /// Reclaims all retired objects.
    fn drop(&mut self) {
        let state = self.state();
        loop {
            state.seal_all();
            // No guard borrows the collector: no batch needs a grace period.
            match state.take_if(|_| true) {
                Some(batch) => self.run(batch),
                None => break,
            }
        }
        // SAFETY: from `new`, and this is the last use.
        drop(unsafe { Box::from_raw(self.state.as_ptr()) });
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data behind the locks is consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The batch that the calling thread fills.
    fn own_batch(&self) -> &Mutex<Vec<Entry>> {
        &self.open[thread::id() & (self.open.len() - 1)].0
    }

    fn is_over_limit(&self) -> bool {
        // Relaxed: counts.
        self.objects.load(Relaxed) > self.objects_max || self.bytes.load(Relaxed) > self.bytes_max
    }

    /// Makes unlinked objects a batch, which waits for a grace period of both domains.
    fn seal(&self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        fence(SeqCst); // see `read_owned`
        let owned = self.owned.get().map(|owned| owned.start_poll());
        let awaited = Awaited { sections: self.domain.start_poll(), owned };
        let batch = Batch { entries, awaited };
        lock(&self.sealed).push_back(batch);
        self.waiting.fetch_add(1, Relaxed);
    }

    fn seal_all(&self) {
        for open in &self.open {
            let entries = mem::take(&mut *lock(&open.0));
            self.seal(entries);
        }
    }

    fn wait_first(&self, batch: Batch) {
        lock(&self.sealed).push_front(batch);
        self.waiting.fetch_add(1, Relaxed);
    }

    /// Takes the oldest batch, if `may` says that it may be reclaimed.
    fn take_if(&self, may: impl FnOnce(Awaited) -> bool) -> Option<Batch> {
        let mut sealed = lock(&self.sealed);
        let may_go = sealed.front().is_some_and(|batch| may(batch.awaited));
        let batch = may_go.then(|| sealed.pop_front())?;
        self.waiting.fetch_sub(1, Relaxed);
        batch
    }

    /// Takes the oldest batch, if no guard protects any of it. Takes steps of the grace periods,
    /// without the lock: they execute fences, and a subscriber of `tracing` that is told of them
    /// may use the collector.
    fn take_ready(&self) -> Option<Batch> {
        loop {
            let awaited = lock(&self.sealed).front()?.awaited;
            if !self.is_over(awaited) {
                return None;
            }
            // If another thread has taken it, there may be another batch.
            if let Some(batch) = self.take_if(|oldest| oldest == awaited) {
                return Some(batch);
            }
        }
    }

    /// Whether no guard protects any object of such a batch. Takes a step of the grace periods.
    fn is_over(&self, awaited: Awaited) -> bool {
        self.domain.poll(awaited.sections)
            && match (awaited.owned, self.owned.get()) {
                (Some(cookie), Some(owned)) => owned.poll(cookie),
                _ => true,
            }
    }
}

impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}

impl Eq for Collector {}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("batch_size", &self.state().batch_size).finish()
    }
}
