//! The list of a domain's queues: what they need from the worker, and the sums of their counts.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::run::running;
use super::{Contents, Queue, Wants, bytes_between};
use crate::event::statistics::Callbacks;
use crate::os::fence;
use crate::os::sync::{self, AtomicBool, AtomicU64, Mutex, Rank, const_unless_loom};
use crate::reclaim::charge::Charged;
use crate::reclaim::running::Uncharged;

/// The queues that threads without queues of their own share: one for objects, one for closures,
/// since a closure may take long. They are in the list, too.
#[derive(Debug)]
pub(super) struct Shared {
    objects: Option<Arc<Queue>>,
    closures: Option<Arc<Queue>>,
}

impl Shared {
    const NONE: Self = Self { objects: None, closures: None };

    fn of(&mut self, contents: Contents) -> &mut Option<Arc<Queue>> {
        match contents {
            Contents::Objects => &mut self.objects,
            Contents::Closures => &mut self.closures,
        }
    }

    /// The shared queue for `contents`; creates it and adds it to the list if there is none.
    pub(super) fn queue(
        &mut self,
        core: &Charged,
        contents: Contents,
        list: &mut Vec<Arc<Queue>>,
    ) -> &Arc<Queue> {
        self.of(contents).get_or_insert_with(|| {
            let queue = Arc::new(Queue::new(core, 0, contents));
            list.push(Arc::clone(&queue));
            queue
        })
    }

    /// Whether this is one of them.
    pub(super) fn has(&mut self, queue: &Arc<Queue>) -> bool {
        self.of(queue.contents).as_ref().is_some_and(|shared| Arc::ptr_eq(shared, queue))
    }

    /// Forgets one of them.
    pub(super) fn forget(&mut self, queue: &Queue) {
        *self.of(queue.contents) = None;
    }
}

/// The queues of a domain.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(super) list: Mutex<Vec<Arc<Queue>>>,
    /// Callbacks that have run in queues no longer in the list. Written under the list's lock.
    pub(super) gone: AtomicU64,
    /// The queues of threads that have ended or are ending; the holder of the lock is their writer.
    pub(super) shared: Mutex<Shared>,
    /// Whether the worker knows that there is something to do here.
    pub(crate) announced: AtomicBool,
    /// Whether the worker should close open callbacks now.
    pub(crate) hurried: AtomicBool,
}

impl Queues {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                list: Mutex::new(Rank::Queues, Vec::new()),
                gone: AtomicU64::new(0),
                shared: Mutex::new(Rank::SharedQueues, Shared::NONE),
                announced: AtomicBool::new(false),
                hurried: AtomicBool::new(false),
            }
        }
    }

    /// A new queue in the list.
    pub(crate) fn add(&self, core: &Charged, owner: usize, contents: Contents) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(core, owner, contents));
        let mut list = sync::lock(&self.list);
        list.push(Arc::clone(&queue));
        core.charge.0.queues.store(list.len() as u64, Relaxed);
        queue
    }

    /// Calls `f` with the shared queue for `contents`. Meanwhile the calling thread is its writer;
    /// `f` runs no user code.
    pub(crate) fn with_shared<R>(
        &self,
        core: &Charged,
        contents: Contents,
        f: impl FnOnce(&Queue) -> R,
    ) -> R {
        let mut shared = sync::lock(&self.shared);
        let mut list = sync::lock(&self.list);
        let queue = shared.queue(core, contents, &mut list);
        core.charge.0.queues.store(list.len() as u64, Relaxed);
        drop(list);
        f(queue)
    }

    /// All queues, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        sync::lock(&self.list).clone()
    }

    /// At the end of a domain, which has no reader left: runs everything. The thread, which may be
    /// the worker, counts as in a callback meanwhile, so it does not wait for callbacks. Objects
    /// that are `protected` are kept.
    pub(crate) fn run_all(&self, core: &Charged, protected: &[usize]) {
        running(core, &Uncharged::new(), || {
            let run_all = |queue: &Arc<Queue>| queue.run_all(core, protected);
            while self.all().iter().map(run_all).sum::<u64>() != 0 {}
        });
    }

    /// Callbacks ever added and ever finished, and the bytes that wait.
    pub(crate) fn counts(&self) -> Callbacks {
        let list = sync::lock(&self.list);
        // Relaxed: under the list's lock. Those in `gone` were added and have finished.
        let gone = self.gone.load(Relaxed);
        let none = Callbacks { queued: gone, run: gone, bytes_waiting: 0 };
        // Under the lock to the end: meanwhile no callback moves from one queue to another.
        let look = || {
            list.iter().fold(none, |all, queue| {
                // `finished` is loaded before `written`, so `run <= queued`: what happens between
                // the two loads is counted in `queued` only.
                let run = queue.finished.load(Acquire);
                let bytes_run = queue.bytes_finished.load(Relaxed);
                let bytes = queue.own.0.bytes.load(Relaxed);
                Callbacks {
                    queued: all.queued + queue.own.0.stream.written(),
                    run: all.run + run,
                    bytes_waiting: all
                        .bytes_waiting
                        .saturating_add(bytes_between(bytes_run, bytes)),
                }
            })
        };
        let run = || list.iter().fold(gone, |all, queue| all + queue.finished.load(Acquire));
        Callbacks::steadiest(look, run)
    }

    /// Clears `announced`, since the worker is about to leave the domain alone. If there is
    /// something to do after all, sets it again. Returns what there is to do.
    ///
    /// The thread that adds writes the callback, passes a light fence and loads `announced`; here
    /// `announced` is cleared, a heavy fence follows, and then the queues are examined. One of the
    /// two sees the other's store [DQ-3].
    pub(crate) fn leave(&self) -> Wants {
        self.announced.store(false, Relaxed);
        //~ point leaving
        fence::heavy(self.all().iter().map(|queue| &queue.fence)); // [DQ-3] //~ no-idle-fence
        let wants = self.wants_unless_busy();
        if wants != Wants::Nothing {
            self.announced.store(true, Relaxed);
        }
        wants
    }

    /// The most that a queue needs from the worker now.
    pub(crate) fn wants(&self) -> Wants {
        self.most(Queue::wants)
    }

    /// The same for the worker: it is to come back if another thread holds a queue's lock [W-2].
    pub(crate) fn wants_unless_busy(&self) -> Wants {
        self.most(Queue::wants_unless_busy)
    }

    fn most(&self, wants: impl Fn(&Queue) -> Wants) -> Wants {
        //~ one-by-one
        // Under the lock: as in `counts`.
        let list = sync::lock(&self.list);
        list.iter().map(|queue| wants(queue)).max().unwrap_or(Wants::Nothing)
    }
}
