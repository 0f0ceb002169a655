//! Callbacks that wait for grace periods: one queue per thread and domain.
//!
//! A thread puts callbacks into the open batch of its own queue. A full batch is *closed*: it gets
//! the cookie of a grace period from now on, and waits. When the cookie is done the batch is ready
//! and its callbacks run, a few at a time: by the thread itself when it retires again, else by the
//! worker ([`crate::worker`]), or by whoever calls `barrier`. A reader inside a section only ever
//! adds.
//!
//! **Invariant: a batch gets its cookie after its last callback was added**, so the grace
//! period begins after everything in it was unlinked [DQ-1].
//!
//! **Invariant: one thread at a time runs the callbacks of a queue**, first in, first out; so
//! they run in order, and a queue whose count of finished callbacks has reached a mark has run all
//! that came before it [DQ-2].

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use grace::Urgency;

use crate::chaos::{self, Mutant, Point};
use crate::core::{Core, Me};
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard};

/// Callbacks in a full batch: one grace period's cost is shared by so many.
const BATCH: usize = if cfg!(loom) { 2 } else { 256 };

/// Callbacks run in one go, at least; the kernel's `blimit`.
const RUN_MIN: usize = 10;

/// The part of the ready callbacks that is run in one go is one in 2^this; the kernel's
/// `rcu_divisor`.
const RUN_SHIFT: u32 = 7;

/// A callback: a pointer and what to do with it.
#[derive(Debug)]
pub(crate) struct Callback {
    data: *mut (),
    run: unsafe fn(*mut ()),
    /// Whether the thread that queued it may run it in a later update: it is the drop of an object,
    /// not a closure, which might want a lock that an updater holds.
    in_place: bool,
}

// SAFETY: made by `new` from data that is Send.
unsafe impl Send for Callback {}

impl Callback {
    /// # Safety
    /// `run(data)` must be sound to call once, on any thread, once readers have let go.
    pub(crate) unsafe fn new(data: *mut (), run: unsafe fn(*mut ()), in_place: bool) -> Self {
        Self { data, run, in_place }
    }

    /// Calls it; a panic ends here, reported by the panic hook, and makes the answer `false`.
    fn run(self) -> bool {
        // SAFETY: by the contract of `new`; `self` is consumed.
        match catch_unwind(AssertUnwindSafe(|| unsafe { (self.run)(self.data) })) {
            Ok(()) => true,
            Err(payload) => {
                // Its own drop might panic again, and here is nobody to catch that.
                std::mem::forget(payload);
                false
            }
        }
    }
}

/// The queues of a domain.
#[derive(Debug)]
pub(crate) struct Queues {
    list: Mutex<Vec<Arc<Queue>>>,
    /// Callbacks that went through queues which are no longer in the list. Under its lock.
    gone: AtomicU64,
    /// For threads that have none of their own any more.
    shared: Mutex<Option<Arc<Queue>>>,
    /// Whether the worker knows that there is something to do here.
    pub(crate) announced: AtomicBool,
    pub(crate) panicked: AtomicU64,
}

/// The callbacks of one thread in one domain.
#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    /// Tells a barrier that whoever runs callbacks has stopped.
    stopped: Condvar,
    /// The thread that adds, as [`crate::local::token`]; 0 for the shared one.
    owner: usize,
    /// That thread is gone; nobody adds any more.
    orphan: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    /// The open batch.
    open: Vec<Callback>,
    /// Closed batches and their cookies, oldest first.
    waiting: VecDeque<(grace::Cookie, Vec<Callback>)>,
    /// Callbacks whose grace period is over.
    ready: VecDeque<Callback>,
    /// An empty batch, and an empty list of callbacks to run, kept for their memory.
    spare: Vec<Callback>,
    spare_run: Vec<Callback>,
    added: u64,
    finished: u64,
    /// The thread that is running callbacks of this queue, as [`crate::local::token`]; else 0.
    runner: usize,
    /// Barriers that wait for the runner to stop.
    barriers: u32,
}

impl Queues {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            list: Mutex::new(Vec::new()),
            gone: AtomicU64::new(0),
            shared: Mutex::new(None),
            announced: AtomicBool::new(false),
            panicked: AtomicU64::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            list: Mutex::new(Vec::new()),
            gone: AtomicU64::new(0),
            shared: Mutex::new(None),
            announced: AtomicBool::new(false),
            panicked: AtomicU64::new(0),
        }
    }

    /// A new queue in the list.
    pub(crate) fn add(&self, owner: usize) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(owner));
        sync::lock(&self.list).push(Arc::clone(&queue));
        queue
    }

    /// The queue for those who have none of their own.
    fn shared(&self) -> Arc<Queue> {
        Arc::clone(sync::lock(&self.shared).get_or_insert_with(|| self.add(0)))
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).clone()
    }

    /// Forgets queues that are empty and whose threads are gone.
    pub(crate) fn forget_orphans(&self) {
        sync::lock(&self.list).retain(|queue| {
            let forget = queue.is_orphan() && queue.is_empty();
            if forget {
                // Relaxed: under the list's lock.
                self.gone.fetch_add(sync::lock(&queue.inner).added, Relaxed);
            }
            !forget
        });
    }

    /// Callbacks ever added and ever finished.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let list = sync::lock(&self.list);
        // Relaxed: under the list's lock. What has gone has been added and finished.
        let gone = self.gone.load(Relaxed);
        let queues = list.clone();
        drop(list);
        queues.iter().fold((gone, gone), |(added, finished), queue| {
            let inner = sync::lock(&queue.inner);
            (added + inner.added, finished + inner.finished)
        })
    }
}

impl Inner {
    fn waiting_count(&self) -> u64 {
        self.added - self.finished
    }

    /// Gives the open batch a cookie. Asks for its grace period.
    fn close(&mut self, core: &Core) {
        if self.open.is_empty() {
            return;
        }
        chaos::point(Point::BatchClosed);
        // The request comes after the last callback of the batch was added [DQ-1], [GP-9].
        let cookie = core.request(Urgency::Normal);
        let spare = std::mem::take(&mut self.spare);
        let batch = std::mem::replace(&mut self.open, spare);
        self.waiting.push_back((cookie, batch));
    }

    /// In a child process: whoever was running callbacks is gone with what it had taken out.
    #[cfg(not(loom))]
    fn forget_runner(&mut self) {
        let waiting: usize = self.waiting.iter().map(|(_, batch)| batch.len()).sum();
        self.finished = self.added - (self.open.len() + waiting + self.ready.len()) as u64;
        self.runner = 0;
        self.barriers = 0;
    }

    /// Moves what has waited long enough to the ready ones.
    fn ripen(&mut self, core: &Core) {
        let sequence = core.sequence();
        let early = chaos::mutant(Mutant::EarlyCallbacks);
        while self.waiting.front().is_some_and(|(cookie, _)| early || sequence.is_done(*cookie)) {
            if let Some((_, mut batch)) = self.waiting.pop_front() {
                self.ready.extend(batch.drain(..));
                self.spare = batch;
            }
        }
    }

    /// Takes the next few to run: all kinds, or only those that may run in place.
    fn take(&mut self, in_place_only: bool) -> Vec<Callback> {
        let count = RUN_MIN.max(self.ready.len() >> RUN_SHIFT).min(self.ready.len());
        let run = self.ready.iter().take(count);
        let count = run.take_while(|callback| !in_place_only || callback.in_place).count();
        let mut callbacks = std::mem::take(&mut self.spare_run);
        callbacks.extend(self.ready.drain(..count));
        callbacks
    }
}

impl Queue {
    pub(crate) fn new(owner: usize) -> Self {
        Self {
            inner: Mutex::new(Inner::default()),
            stopped: Condvar::new(),
            owner,
            orphan: AtomicBool::new(false),
        }
    }

    /// Adds a callback; closes the batch if it is full. Answers how many wait.
    pub(crate) fn add(&self, core: &Core, callback: Callback) -> u64 {
        let mut inner = sync::lock(&self.inner);
        inner.open.push(callback);
        inner.added += 1;
        if inner.open.len() >= BATCH {
            inner.close(core);
        }
        inner.waiting_count()
    }

    /// Closes the open batch, full or not.
    pub(crate) fn close(&self, core: &Core) {
        sync::lock(&self.inner).close(core);
    }

    /// Runs a few of those that are ready, unless somebody is doing so. Answers how many.
    pub(crate) fn run_some(&self, core: &Core, runner: usize, in_place_only: bool) -> usize {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            return 0;
        }
        inner.ripen(core);
        let callbacks = inner.take(in_place_only);
        if callbacks.is_empty() {
            inner.spare_run = callbacks;
            return 0;
        }
        let count = callbacks.len();
        drop(self.run(core, inner, runner, callbacks));
        count
    }

    /// Runs these callbacks, taken from the front, without the lock.
    fn run<'a>(
        &'a self,
        core: &Core,
        mut inner: MutexGuard<'a, Inner>,
        runner: usize,
        mut callbacks: Vec<Callback>,
    ) -> MutexGuard<'a, Inner> {
        inner.runner = runner;
        drop(inner);
        chaos::point(Point::BeforeCallbacks);
        let count = callbacks.len() as u64;
        let run = || callbacks.drain(..).map(Callback::run).filter(|whole| !whole).count();
        #[cfg(not(loom))]
        let panicked = crate::local::running_callbacks(run);
        #[cfg(loom)]
        let panicked = std::iter::once_with(run).sum::<usize>();
        core.queues.panicked.fetch_add(panicked as u64, Relaxed);
        let mut inner = sync::lock(&self.inner);
        // Under the lock: whoever sees the count has the callbacks behind it [DQ-2].
        inner.finished += count;
        inner.runner = 0;
        inner.spare_run = callbacks;
        if inner.barriers != 0 {
            self.stopped.notify_all();
        }
        inner
    }

    /// Waits until all that has been added so far has run; runs it if nobody else does. `me` is asked
    /// before every wait: a callback may have changed what the thread has registered.
    pub(crate) fn drain(&self, core: &Core, me: impl Fn() -> Me, runner: usize) {
        let mut inner = sync::lock(&self.inner);
        inner.close(core);
        let mark = inner.added;
        while inner.finished < mark {
            if inner.runner != 0 {
                inner.barriers += 1;
                inner = sync::wait(&self.stopped, inner);
                inner.barriers -= 1;
                continue;
            }
            inner.ripen(core);
            let callbacks = inner.take(false);
            if callbacks.is_empty() {
                let cookie = inner.waiting.front().map(|(cookie, _)| *cookie);
                drop(inner);
                if let Some(cookie) = cookie {
                    core.wait(cookie, Urgency::Expedited, me());
                }
                inner = sync::lock(&self.inner);
            } else {
                inner = self.run(core, inner, runner, callbacks);
            }
        }
    }

    /// Runs everything at once: there is no reader left. For the end of a domain.
    fn run_all(&self) -> u64 {
        let mut panicked = 0;
        loop {
            let mut inner = sync::lock(&self.inner);
            let waiting =
                std::mem::take(&mut inner.waiting).into_iter().flat_map(|(_, batch)| batch);
            let callbacks: Vec<_> =
                std::mem::take(&mut inner.ready).into_iter().chain(waiting).collect();
            let open = std::mem::take(&mut inner.open);
            drop(inner);
            if callbacks.is_empty() && open.is_empty() {
                return panicked;
            }
            let run = callbacks.into_iter().chain(open).map(Callback::run);
            panicked += run.filter(|whole| !whole).count() as u64;
        }
    }

    fn oldest(&self) -> Option<grace::Cookie> {
        sync::lock(&self.inner).waiting.front().map(|(cookie, _)| *cookie)
    }

    pub(crate) fn is_empty(&self) -> bool {
        sync::lock(&self.inner).waiting_count() == 0
    }

    fn is_orphan(&self) -> bool {
        // Relaxed: the lock of the list, or that of the queue, is taken before it matters.
        self.orphan.load(Relaxed)
    }

    pub(crate) fn mark_orphan(&self) {
        self.orphan.store(true, Relaxed);
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        for queue in self.queues.all() {
            queue.run_all();
        }
    }
}

#[cfg(not(loom))]
mod threads {
    //! How threads come by their queues.

    use super::{Callback, Queue};
    use crate::core::{Core, Me};
    use crate::kind::{Handle, Kind};
    use crate::local::{self, Own};
    use crate::worker;
    use grace::Urgency;
    use std::sync::atomic::Ordering::Relaxed;

    /// Callbacks that may wait in one queue before its thread waits for a grace period.
    const WAITING_MAX: u64 = 65_536;

    /// Additions between two looks at what is due. Less than [`RUN_MIN`](super::RUN_MIN), so that a
    /// thread that keeps retiring runs more than it adds.
    const TEND_EVERY: u64 = 8;

    impl Queue {
        /// The thread that added to this queue is gone.
        pub(crate) fn orphan(&self, handle: &Handle) {
            self.mark_orphan();
            if self.is_empty() {
                handle.queues.forget_orphans();
            } else {
                worker::announce(handle);
            }
        }
    }

    /// [`Domain::call`](crate::Domain::call).
    pub(crate) fn call<K: Kind, F: FnOnce() + Send + 'static>(kind: &K, f: F) {
        unsafe fn run<F: FnOnce()>(data: *mut ()) {
            // SAFETY: made below from a box of this very type.
            let f = unsafe { Box::from_raw(data.cast::<F>()) };
            f();
        }
        let data = Box::into_raw(Box::new(f)).cast();
        // SAFETY: the box is consumed once; F is Send and 'static.
        add(kind, unsafe { Callback::new(data, run::<F>, false) });
    }

    /// Drops the box that `object` came from after a grace period.
    ///
    /// # Safety
    /// `object` came from a box and new sections cannot reach it.
    pub(crate) unsafe fn retire_raw<K: Kind, T: Send + 'static>(kind: &K, object: *mut T) {
        unsafe fn run<T>(data: *mut ()) {
            // SAFETY: made below from a box of this very type.
            crate::chaos::free(unsafe { Box::from_raw(data.cast::<T>()) });
        }
        if crate::chaos::mutant(crate::chaos::Mutant::RetireBeforeUnlink) {
            // SAFETY: not at all: this is the fault to be caught.
            return unsafe { run::<T>(object.cast()) };
        }
        // SAFETY: the box is consumed once; T is Send and 'static.
        add(kind, unsafe { Callback::new(object.cast(), run::<T>, true) });
    }

    /// Adds to the thread's queue, and now and then does a little of the work that is due.
    fn add<K: Kind>(kind: &K, callback: Callback) {
        let core = kind.core();
        let queue = local::queue(core, || kind.handle());
        let waiting = match queue {
            Some(queue) => queue.add(core, callback),
            None => core.queues.shared().add(core, callback),
        };
        // Relaxed: a stale `true` is put right by the worker's own look under its lock.
        if !core.queues.announced.load(Relaxed) {
            worker::announce(&kind.handle());
        }
        if let Some(queue) = queue
            && waiting.is_multiple_of(TEND_EVERY)
            && !local::in_callback()
        {
            tend(core, queue, waiting);
        }
    }

    /// A step of the grace period, a few callbacks, and patience where there are too many. A reader
    /// in a section does none of it; an online QSBR reader does not wait.
    fn tend(core: &Core, queue: &Queue, waiting: u64) {
        let own = Own::in_domain(core);
        if own.section().is_some_and(|section| !section.qsbr) {
            return;
        }
        let runner = local::token();
        core.advance(own.me());
        queue.run_some(core, runner, true);
        if waiting < WAITING_MAX {
            return;
        }
        // Once more: a callback may have changed what the thread has registered.
        let own = Own::in_domain(core);
        if own.section().is_none() {
            if let Some(cookie) = queue.oldest() {
                core.wait(cookie, Urgency::Normal, own.me());
            }
            while queue.run_some(core, runner, true) > 0 {}
        }
    }

    /// At a quiescent state of a QSBR reader: runs a few callbacks that it queued itself.
    pub(crate) fn run_some_of_this_thread(core: &Core) {
        if let Some(queue) = local::existing_queue(core)
            && !local::in_callback()
        {
            queue.run_some(core, local::token(), true);
        }
    }

    /// [`Domain::barrier`](crate::Domain::barrier).
    pub(crate) fn barrier(core: &Core, me: impl Fn() -> Me) {
        if crate::chaos::mutant(crate::chaos::Mutant::NoBarrier) {
            return;
        }
        let queues = core.queues.all();
        // All batches first, so that one grace period serves them all.
        queues.iter().for_each(|queue| queue.close(core));
        queues.iter().for_each(|queue| queue.drain(core, &me, local::token()));
        core.queues.forget_orphans();
    }
}

#[cfg(not(loom))]
pub(crate) use threads::{barrier, call, retire_raw, run_some_of_this_thread};

/// What is held across a `fork`.
#[cfg(not(loom))]
pub(crate) struct Held<'a> {
    list: MutexGuard<'a, Vec<Arc<Queue>>>,
    _shared: MutexGuard<'a, Option<Arc<Queue>>>,
}

#[cfg(not(loom))]
impl Queues {
    /// Before a `fork`: the list, so that no queue comes or goes.
    pub(crate) fn hold(&self) -> Held<'_> {
        // `shared` before `list`, as in `shared`.
        let shared = sync::lock(&self.shared);
        Held { list: sync::lock(&self.list), _shared: shared }
    }
}

#[cfg(not(loom))]
impl Held<'_> {
    /// The queues in the list.
    pub(crate) fn queues(&self) -> &[Arc<Queue>] {
        &self.list
    }

    /// In the child: nobody else runs callbacks, and the other threads' queues are orphans. What
    /// they hold is run by the next `barrier`, or by the worker once it has started again.
    pub(crate) fn after_fork(&self, held: &mut [HeldQueue<'_>], owner: usize) {
        for (queue, held) in self.list.iter().zip(held) {
            if held.0.runner != owner {
                held.0.forget_runner();
            }
            if queue.owner != owner && queue.owner != 0 {
                queue.mark_orphan();
            }
        }
    }
}

/// One queue, held across a `fork`.
#[cfg(not(loom))]
pub(crate) struct HeldQueue<'a>(MutexGuard<'a, Inner>);

#[cfg(not(loom))]
impl Queue {
    /// Before a `fork`.
    pub(crate) fn hold(&self) -> HeldQueue<'_> {
        HeldQueue(sync::lock(&self.inner))
    }
}
