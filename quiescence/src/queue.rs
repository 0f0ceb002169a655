//! Queues of callbacks that wait for grace periods.
//!
//! A thread puts callbacks into the open batch of a queue of its own. A full batch is *closed*: it
//! gets the cookie of a grace period from now on, and waits. When the cookie is done the batch is
//! ready and its callbacks run, a few at a time. Which thread does that, and when, is said in
//! [`crate::defer`].
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
use crate::os::sync::{self, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, const_unless_loom};

/// Callbacks in a full batch: one grace period's cost is shared by so many.
const BATCH: usize = if cfg!(loom) { 2 } else { 256 };

/// Objects that may wait in one queue before its thread waits for a grace period.
pub(crate) const WAITING_MAX: u64 = 65_536;

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
}

// SAFETY: made by `new` from data that is Send.
unsafe impl Send for Callback {}

impl Callback {
    /// # Safety
    /// `run(data)` must be sound to call once, on any thread, once readers have let go.
    pub(crate) unsafe fn new(data: *mut (), run: unsafe fn(*mut ())) -> Self {
        Self { data, run }
    }

    /// Calls it; a panic ends here, reported by the panic hook, and makes the answer `false`.
    fn run(self) -> bool {
        // SAFETY: by the contract of `new`; `self` is consumed.
        match catch_unwind(AssertUnwindSafe(|| unsafe { (self.run)(self.data) })) {
            Ok(()) => true,
            Err(payload) => {
                // Its own drop may panic again. The payload of that one is forgotten: some day it has
                // to end.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                    std::mem::forget(payload);
                }
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
    /// Tells those who wait that whoever ran callbacks has stopped.
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
    /// Threads that wait for the runner to stop.
    waiters: u32,
}

impl Queues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Vec::new()),
                gone: AtomicU64::new(0),
                shared: Mutex::new(None),
                announced: AtomicBool::new(false),
                panicked: AtomicU64::new(0),
            }
        }
    }

    /// A new queue in the list.
    pub(crate) fn add(&self, owner: usize) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(owner));
        sync::lock(&self.list).push(Arc::clone(&queue));
        queue
    }

    /// The queue for those who have none of their own.
    pub(crate) fn shared(&self) -> Arc<Queue> {
        Arc::clone(sync::lock(&self.shared).get_or_insert_with(|| self.add(0)))
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).clone()
    }

    /// At the end of a domain, which has no reader left: runs everything.
    pub(crate) fn run_all(&self) {
        self.all().iter().for_each(|queue| queue.run_all());
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
    fn close(&mut self, core: &Core, urgency: Urgency) {
        if self.open.is_empty() {
            return;
        }
        chaos::point(Point::BatchClosed);
        // The request comes after the last callback of the batch was added [DQ-1], [GP-9].
        let cookie = core.request(urgency);
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
        self.waiters = 0;
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

    /// Takes the next few to run.
    fn take(&mut self) -> Vec<Callback> {
        let count = RUN_MIN.max(self.ready.len() >> RUN_SHIFT).min(self.ready.len());
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
        let waiting = inner.waiting_count();
        if inner.open.len() >= BATCH {
            inner.close(core, Urgency::of_backlog(waiting, BATCH as u64, WAITING_MAX));
        }
        waiting
    }

    /// Closes the open batch, full or not.
    pub(crate) fn close(&self, core: &Core, urgency: Urgency) {
        sync::lock(&self.inner).close(core, urgency);
    }

    /// Runs a few of those that are ready, unless somebody is doing so. Answers how many.
    pub(crate) fn run_some(&self, core: &Core, runner: usize) -> usize {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            return 0;
        }
        inner.ripen(core);
        let callbacks = inner.take();
        if callbacks.is_empty() {
            inner.spare_run = callbacks;
            return 0;
        }
        inner.runner = runner;
        drop(inner);
        self.run(core, callbacks)
    }

    /// Runs these callbacks, taken from the front, without the lock. Answers how many.
    fn run(&self, core: &Core, mut callbacks: Vec<Callback>) -> usize {
        chaos::point(Point::BeforeCallbacks);
        let count = callbacks.len();
        let run = || callbacks.drain(..).map(Callback::run).filter(|whole| !whole).count();
        #[cfg(not(loom))]
        let panicked = crate::local::running_callbacks(run);
        #[cfg(loom)]
        let panicked = std::iter::once_with(run).sum::<usize>();
        core.queues.panicked.fetch_add(panicked as u64, Relaxed);
        let mut inner = sync::lock(&self.inner);
        // Under the lock: whoever sees the count has the callbacks behind it [DQ-2].
        inner.finished += count as u64;
        inner.runner = 0;
        inner.spare_run = callbacks;
        if inner.waiters != 0 {
            self.stopped.notify_all();
        }
        count
    }

    /// Waits until callbacks can be run, or have been: for whoever runs them, or for the grace period
    /// of the oldest. `me` is asked here, not before: a callback that has run on this thread may have
    /// changed what it has registered.
    pub(crate) fn wait_for_progress(&self, core: &Core, urgency: Urgency, me: impl Fn() -> Me) {
        let mut inner = sync::lock(&self.inner);
        if inner.runner != 0 {
            inner.waiters += 1;
            inner = sync::wait(&self.stopped, inner);
            inner.waiters -= 1;
        } else {
            inner.close(core, urgency);
            let cookie = inner.waiting.front().map(|(cookie, _)| *cookie);
            drop(inner);
            if let Some(cookie) = cookie {
                core.wait(cookie, urgency, me());
            }
        }
    }

    /// Waits until all that has been added so far has run; runs it if nobody else does.
    pub(crate) fn drain(&self, core: &Core, me: impl Fn() -> Me, runner: usize) {
        let mark = sync::lock(&self.inner).added;
        while sync::lock(&self.inner).finished < mark {
            if self.run_some(core, runner) == 0 {
                self.wait_for_progress(core, Urgency::Expedited, &me);
            }
        }
    }

    /// Runs everything at once: there is no reader left.
    fn run_all(&self) {
        loop {
            let mut inner = sync::lock(&self.inner);
            let ready = std::mem::take(&mut inner.ready);
            let waiting = std::mem::take(&mut inner.waiting);
            let open = std::mem::take(&mut inner.open);
            drop(inner);
            let waiting = waiting.into_iter().flat_map(|(_, batch)| batch);
            let mut callbacks = ready.into_iter().chain(waiting).chain(open).peekable();
            if callbacks.peek().is_none() {
                return;
            }
            callbacks.for_each(|callback| {
                callback.run();
            });
        }
    }

    /// How many callbacks have been added and not yet run.
    pub(crate) fn waiting_count(&self) -> u64 {
        sync::lock(&self.inner).waiting_count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting_count() == 0
    }

    fn is_orphan(&self) -> bool {
        // Relaxed: the lock of the list, or that of the queue, is taken before it matters.
        self.orphan.load(Relaxed)
    }

    pub(crate) fn mark_orphan(&self) {
        self.orphan.store(true, Relaxed);
    }
}

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
